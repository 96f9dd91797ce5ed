//! Events.

use sqlx::PgConnection;

use super::StoreError;
use crate::domain::{event::EventKind, ids::JobId};

/// Appends an event and announces it.
///
/// # Errors
/// See [`StoreError`].
pub async fn append(
    conn: &mut PgConnection,
    job: JobId,
    kind: EventKind,
    message: &str,
    data: serde_json::Value,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- events::append
         with event as (
             insert into events (job_id, kind, message, data) values ($1, $2, $3, $4) returning job_id
         )
         select pg_notify('nlac_events', job_id::text) from event",
    )
    .bind(job)
    .bind(kind)
    .bind(message)
    .bind(data)
    .execute(conn)
    .await?;
    Ok(())
}
