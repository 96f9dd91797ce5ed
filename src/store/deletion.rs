//! Jobs and datasets that people deleted. They are marked at once and removed piece by piece: a large one takes minutes,
//! and nobody should wait for it. Episodes go with the last thing that links them.

use sqlx::PgConnection;

use super::StoreError;
use crate::domain::ids::JobId;

/// Episodes that are removed at a time, so that nobody waits for long.
const BATCH: i64 = 200;

/// Marks a job; the caller holds its lock.
///
/// # Errors
/// See [`StoreError`].
pub async fn mark_job(conn: &mut PgConnection, job: JobId) -> Result<(), StoreError> {
    sqlx::query(
        "-- deletion::mark_job
         update jobs set deleted_at = now(), promoted_checkpoint_id = null where id = $1",
    )
    .bind(job)
    .execute(conn)
    .await?;
    Ok(())
}

/// What became of a dataset that somebody wants to delete.
#[derive(Debug, PartialEq, Eq)]
pub enum Marked {
    /// It is deleted.
    Done,
    /// This job may still link it.
    Needed(JobId),
    /// There is none of this name.
    Unknown,
}

/// Marks a dataset, unless a job that is not over names it.
///
/// # Errors
/// See [`StoreError`].
pub async fn mark_dataset(conn: &mut PgConnection, name: &str) -> Result<Marked, StoreError> {
    let needed: Option<JobId> = sqlx::query_scalar(
        "-- deletion::mark_dataset
         select id from jobs
         where status in ('queued', 'running', 'paused') and spec -> 'datasets' ? $1 order by id limit 1",
    )
    .bind(name)
    .fetch_optional(&mut *conn)
    .await?;
    if let Some(job) = needed {
        return Ok(Marked::Needed(job));
    }
    let marked = sqlx::query(
        "-- deletion::mark_dataset
         update datasets set deleted_at = now() where name = $1 and deleted_at is null",
    )
    .bind(name)
    .execute(conn)
    .await?;
    Ok(if marked.rows_affected() == 1 { Marked::Done } else { Marked::Unknown })
}

/// Removes a piece of what is marked; returns whether more may be left.
///
/// # Errors
/// See [`StoreError`].
pub async fn remove_some(conn: &mut PgConnection) -> Result<bool, StoreError> {
    // One process at a time: two that remove the last two links of an episode would each see the other's.
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('deletion', 0))")
        .execute(&mut *conn)
        .await?;
    let episodes = sqlx::query(
        "-- deletion::remove_some
         delete from episodes where id in (
             select r.episode_id from jobs j join rollouts r on r.job_id = j.id
             where j.deleted_at is not null and not exists (
                 select from dataset_episodes d where d.episode_id = r.episode_id)
             union
             select d.episode_id from datasets s join dataset_episodes d on d.dataset_id = s.id
             where s.deleted_at is not null and not exists (
                 select from transitions t join replay p on p.transition_id = t.id join jobs j on j.id = p.job_id
                 where t.episode_id = d.episode_id and j.deleted_at is null)
             limit $1)",
    )
    .bind(BATCH)
    .execute(&mut *conn)
    .await?;
    if episodes.rows_affected() > 0 {
        return Ok(true);
    }
    // What no dataset holds any more goes with the last job that learns from it.
    let unlinked = sqlx::query(
        "-- deletion::remove_some
         delete from episodes where id in (
             select t.episode_id from jobs j join replay p on p.job_id = j.id
             join transitions t on t.id = p.transition_id and t.step = 0
             where j.deleted_at is not null
                 and not exists (select from dataset_episodes d where d.episode_id = t.episode_id)
                 and not exists (select from rollouts r where r.episode_id = t.episode_id)
                 and not exists (select from replay o where o.transition_id = t.id and o.job_id <> j.id)
             limit $1)",
    )
    .bind(BATCH)
    .execute(&mut *conn)
    .await?;
    if unlinked.rows_affected() > 0 {
        return Ok(true);
    }
    sqlx::query(
        "-- deletion::remove_some
         with gone as (delete from datasets where deleted_at is not null),
         files as (
             insert into leftover_files (checkpoint_id, name, engine, path, trainer_state, trainer)
             select c.id, c.name, j.spec #>> '{model,engine}', c.path, c.trainer_state, j.spec #>> '{model,trainer}'
             from jobs j join checkpoints c on c.job_id = j.id
             where j.deleted_at is not null and c.expired_at is null
         )
         delete from jobs where deleted_at is not null",
    )
    .execute(conn)
    .await?;
    Ok(false)
}
