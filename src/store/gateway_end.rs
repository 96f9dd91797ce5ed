//! The end of an agent's episode: what was recorded call by call is stored as an episode with its steps.

use sqlx::PgConnection;
use time::OffsetDateTime;

use super::{StoreError, calls, episodes, gateway, transitions};
use crate::gateway::{
    Opened, OpenedState,
    ended::{self, End},
};

/// Stores an episode that was open. The caller holds its lock.
///
/// # Errors
/// See [`StoreError`].
pub async fn end(
    conn: &mut PgConnection,
    opened: &Opened,
    end: &End,
    now: OffsetDateTime,
) -> Result<(), StoreError> {
    let recorded = calls::of_episode(conn, opened.id).await?;
    let recorded: Vec<_> = recorded.into_iter().map(|(call, _)| call).collect();
    let rows = ended::rows(opened, &recorded, end, now);
    let (episode, steps) = rows.map_err(|e| sqlx::Error::Encode(e.into()))?;
    episodes::insert_many(conn, &[episode]).await?;
    transitions::insert_many(conn, &steps).await?;
    gateway::finish(conn, opened.id, OpenedState::Ended).await?;
    match opened.job_id {
        Some(job) => gateway::wake(conn, job).await,
        None => Ok(()),
    }
}
