//! Iterations.

use sqlx::PgConnection;
use time::OffsetDateTime;

use super::StoreError;
use crate::domain::{
    ids::{IterationId, JobId},
    job::{Iteration, Phase},
};

#[derive(sqlx::FromRow)]
struct Row {
    id: IterationId,
    job_id: JobId,
    index: i32,
    phase: Phase,
    started_at: OffsetDateTime,
    finished_at: Option<OffsetDateTime>,
}

impl From<Row> for Iteration {
    fn from(row: Row) -> Self {
        let Row { id, job_id, index, phase, started_at, finished_at } = row;
        Self { id, job_id, index, phase, started_at, finished_at }
    }
}

/// Begins an iteration.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert(
    conn: &mut PgConnection,
    id: IterationId,
    job: JobId,
    index: i32,
    phase: Phase,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- iterations::insert
         insert into iterations (id, job_id, index, phase) values ($1, $2, $3, $4)",
    )
    .bind(id)
    .bind(job)
    .bind(index)
    .bind(phase)
    .execute(conn)
    .await?;
    Ok(())
}

/// The newest iteration of a job.
///
/// # Errors
/// See [`StoreError`].
pub async fn latest(conn: &mut PgConnection, job: JobId) -> Result<Option<Iteration>, StoreError> {
    let row: Option<Row> = sqlx::query_as(
        "-- iterations::latest
         select * from iterations where job_id = $1 order by index desc limit 1",
    )
    .bind(job)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Into::into))
}

/// One iteration.
///
/// # Errors
/// See [`StoreError`].
pub async fn get(
    conn: &mut PgConnection,
    id: IterationId,
) -> Result<Option<Iteration>, StoreError> {
    let row: Option<Row> = sqlx::query_as(
        "-- iterations::get
         select * from iterations where id = $1",
    )
    .bind(id)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Into::into))
}

/// Enters a phase; returns how long the one before took, and the iteration so far, in seconds.
///
/// # Errors
/// See [`StoreError`].
pub async fn enter_phase(
    conn: &mut PgConnection,
    id: IterationId,
    phase: Phase,
) -> Result<(f64, f64), StoreError> {
    Ok(sqlx::query_as(
        "-- iterations::enter_phase
         with old as (select phase_started_at, started_at from iterations where id = $1)
         update iterations i set phase = $2, phase_started_at = clock_timestamp(),
             finished_at = case when $2 = 'done' then clock_timestamp() end
         from old where i.id = $1
         returning extract(epoch from clock_timestamp() - old.phase_started_at)::float8,
             extract(epoch from clock_timestamp() - old.started_at)::float8",
    )
    .bind(id)
    .bind(phase)
    .fetch_one(conn)
    .await?)
}
