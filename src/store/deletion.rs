//! Jobs and datasets that people deleted. They are marked at once and removed in the background: their episodes piece by
//! piece, then the rest. A large one takes minutes, and nobody should wait for it. Episodes go with the last thing that
//! links them.

use sqlx::PgConnection;
use uuid::Uuid;

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

/// Marks a dataset, unless a job that may still link it names it. The transaction is to be dropped then.
///
/// # Errors
/// See [`StoreError`].
pub async fn mark_dataset(conn: &mut PgConnection, name: &str) -> Result<Marked, StoreError> {
    // Before looking for jobs, because a submission locks the dataset meanwhile.
    let marked = sqlx::query(
        "-- deletion::mark_dataset
         update datasets set deleted_at = now() where name = $1 and deleted_at is null",
    )
    .bind(name)
    .execute(&mut *conn)
    .await?;
    if marked.rows_affected() == 0 {
        return Ok(Marked::Unknown);
    }
    let needed: Option<JobId> = sqlx::query_scalar(
        "-- deletion::mark_dataset
         select id from jobs
         where status in ('queued', 'running', 'paused', 'failed') and deleted_at is null
             and spec -> 'datasets' ? $1 order by id limit 1",
    )
    .bind(name)
    .fetch_optional(conn)
    .await?;
    Ok(needed.map_or(Marked::Done, Marked::Needed))
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
    // What is marked from here on is for the next look.
    let jobs: Vec<JobId> = sqlx::query_scalar(
        "-- deletion::remove_some
         select id from jobs where deleted_at is not null",
    )
    .fetch_all(&mut *conn)
    .await?;
    let datasets: Vec<Uuid> = sqlx::query_scalar(
        "-- deletion::remove_some
         select id from datasets where deleted_at is not null",
    )
    .fetch_all(&mut *conn)
    .await?;
    if jobs.is_empty() && datasets.is_empty() {
        return Ok(false);
    }
    let episodes = sqlx::query(
        "-- deletion::remove_some
         delete from episodes where id in (
             select r.episode_id from rollouts r
             where r.job_id = any($1) and not exists (
                 select from dataset_episodes d where d.episode_id = r.episode_id)
             union
             select d.episode_id from dataset_episodes d
             where d.dataset_id = any($2) and not exists (
                 select from transitions t join replay p on p.transition_id = t.id
                 where t.episode_id = d.episode_id and p.job_id <> all($1))
             union
             select id from gateway_episodes where job_id = any($1)
             union
             -- What no dataset holds any more goes with the last job that learns from it.
             select t.episode_id from replay p join transitions t on t.id = p.transition_id
             where p.job_id = any($1) and p.step = 0
                 and not exists (select from dataset_episodes d where d.episode_id = t.episode_id)
                 and not exists (select from rollouts r where r.episode_id = t.episode_id)
                 and not exists (
                     select from replay o where o.transition_id = t.id and o.job_id <> all($1))
             limit $3)",
    )
    .bind(&jobs)
    .bind(&datasets)
    .bind(BATCH)
    .execute(&mut *conn)
    .await?;
    if episodes.rows_affected() > 0 {
        return Ok(true);
    }
    sqlx::query(
        "-- deletion::remove_some
         with gone as (delete from datasets where id = any($2)),
         files as (
             insert into leftover_files (checkpoint_id, name, engine, path, trainer_state, critic_state, target_state,
                 trainer)
             select c.id, c.name, j.spec #>> '{model,engine}', c.path, c.trainer_state, c.critic_state, c.target_state,
                 j.spec #>> '{model,trainer}'
             from jobs j join checkpoints c on c.job_id = j.id
             where j.id = any($1) and c.expired_at is null
         )
         delete from jobs where id = any($1)",
    )
    .bind(&jobs)
    .bind(&datasets)
    .execute(&mut *conn)
    .await?;
    // Storing a frame locks its row, so no frame is deleted while another transaction is about to use it.
    sqlx::query(
        "-- deletion::remove_some
         delete from frames f where not exists (select from contexts c where c.frame = f.hash)
             and not exists (select from calls c where c.frame = f.hash)",
    )
    .execute(conn)
    .await?;
    Ok(false)
}
