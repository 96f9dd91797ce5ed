//! Which versions lose their files, and which of these files are still to be deleted.

use sqlx::PgConnection;

use super::StoreError;
use crate::domain::ids::{CheckpointId, JobId};

/// Jobs with more than `newest` versions that have their files.
///
/// # Errors
/// See [`StoreError`].
pub async fn crowded(conn: &mut PgConnection, newest: u16) -> Result<Vec<JobId>, StoreError> {
    Ok(sqlx::query_scalar(
        "-- expiry::crowded
         select job_id from checkpoints where role = 'online' and expired_at is null
         group by job_id having count(*) > $1",
    )
    .bind(i64::from(newest))
    .fetch_all(conn)
    .await?)
}

/// Expires the versions of a job that nothing needs, and returns how many checkpoints those are. The caller holds the
/// job's lock, so that nobody promotes a version or goes back to it meanwhile.
///
/// A version stays if it is among the newest, has the best evaluation, is promoted, was asked within the last hour, or
/// if a job that may still go on needs it: what its iterations act by, learn from, average, or are sent back to.
///
/// # Errors
/// See [`StoreError`].
pub async fn expire(conn: &mut PgConnection, job: JobId, newest: u16) -> Result<u64, StoreError> {
    let expired = sqlx::query(
        "-- expiry::expire
         with job as (
             select *, (spec #>> '{evaluation,temperature}')::real as quoted,
                 coalesce((spec #>> '{pipeline,max_staleness}')::int, 0) as staleness
             from jobs where id = $1
         ), kept as (
             (select version from checkpoints where job_id = $1 and role = 'online'
              order by version desc limit $2)
             union (select m.iteration from metrics m, job
                    where m.job_id = $1 and m.name = 'eval.success' and m.temperature = job.quoted
                    order by m.value desc, m.iteration desc limit 1)
             union select c.version from checkpoints c, job where c.id = job.promoted_checkpoint_id
             union select version from checkpoints
                   where job_id = $1 and asked_at > now() - interval '1 hour'
             union select roll_back_to from iterations
                   where job_id = $1 and roll_back_to is not null
                       and (finished_at is null or index = (select max(index) from iterations where job_id = $1))
         ), oldest_needed as (
             select min(least(i.base, i.index - 1)) - min(job.staleness) as version from iterations i, job
             where i.job_id = $1 and i.finished_at is null and job.status not in ('succeeded', 'cancelled')
         )
         update checkpoints c set expired_at = now()
         where c.job_id = $1 and c.expired_at is null and c.version not in (select version from kept)
             and not exists (select from oldest_needed o where c.version >= o.version)",
    )
    .bind(job)
    .bind(i64::from(newest))
    .execute(conn)
    .await?;
    Ok(expired.rows_affected())
}

/// What an expired checkpoint has left behind.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Remains {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Directory of its adapter.
    pub path: String,
    /// The job's trainer.
    pub trainer: String,
    /// The state that the trainer keeps; none for a target.
    pub trainer_state: Option<String>,
}

/// Expired checkpoints whose files are still there, oldest first.
///
/// # Errors
/// See [`StoreError`].
pub async fn remains(conn: &mut PgConnection, limit: i64) -> Result<Vec<Remains>, StoreError> {
    Ok(sqlx::query_as(
        "-- expiry::remains
         select c.id, c.path, c.trainer_state, j.spec #>> '{model,trainer}' as trainer
         from checkpoints c join jobs j on j.id = c.job_id
         where c.expired_at is not null and c.files_gone_at is null order by c.id limit $1",
    )
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// The checkpoint's files are deleted.
///
/// # Errors
/// See [`StoreError`].
pub async fn set_gone(conn: &mut PgConnection, id: CheckpointId) -> Result<(), StoreError> {
    sqlx::query(
        "-- expiry::set_gone
         update checkpoints set files_gone_at = now() where id = $1",
    )
    .bind(id)
    .execute(conn)
    .await?;
    Ok(())
}
