//! What should exist next: reconcilers without input. They enqueue and never compute, may run at any
//! time, in any number of processes, and find the same plan.

mod budget;
mod measure;
mod phases;
mod plan;
mod retention;

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio_util::sync::CancellationToken;

pub use retention::retain;

use crate::store::{PLAN_CHANNEL, Store, StoreError, jobs, work_items};

/// Longest pause between two looks.
const POLL: Duration = Duration::from_secs(1);

/// Plans until `shutdown`.
///
/// # Errors
/// A database that cannot be listened to at the start.
pub async fn run(store: Store, shutdown: CancellationToken) -> Result<(), StoreError> {
    let mut listener = PgListener::connect_with(store.pool()).await?;
    listener.listen(PLAN_CHANNEL).await?;
    while !shutdown.is_cancelled() {
        if let Err(error) = reconcile(&store).await {
            tracing::warn!(%error, "planning failed; it is tried again");
        }
        tokio::select! {
            _ = listener.recv() => {}
            () = tokio::time::sleep(POLL) => {}
            () = shutdown.cancelled() => break,
        }
    }
    Ok(())
}

/// One look: fails what cannot be tried any more, then moves every job on as far as it goes.
///
/// # Errors
/// See [`StoreError`].
pub async fn reconcile(store: &Store) -> Result<(), StoreError> {
    let mut conn = store.acquire().await?;
    work_items::fail_exhausted(&mut conn).await?;
    let active = jobs::active(&mut conn).await?;
    drop(conn);
    for job in active {
        let mut tx = store.begin().await?;
        plan::advance(&mut tx, job).await?;
        tx.commit().await?;
    }
    Ok(())
}
