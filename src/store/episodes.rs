//! Episodes.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::{
    StoreError,
    rows::{ROWS, json},
};
use crate::{
    domain::ids::IterationId,
    experience::episode::{Episode, Purpose},
};

/// What an evaluation came to.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct EvaluationTally {
    /// Sampling temperature.
    pub temperature: f32,
    /// Episodes that were played: all but those that failed technically.
    pub episodes: i64,
    /// Those that solved their task.
    pub successes: i64,
    /// Those that were truncated.
    pub truncated: i64,
    /// Episodes that failed technically.
    pub failed: i64,
    /// Steps of all episodes that were played.
    pub turns: i64,
    /// Mean return of those whose reward was observed.
    pub mean_return: Option<f64>,
}

/// Stores episodes.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(conn: &mut PgConnection, episodes: &[Episode]) -> Result<(), StoreError> {
    for rows in episodes.chunks(ROWS) {
        sqlx::query(
            "-- episodes::insert_many
             insert into episodes (id, job_id, iteration_id, purpose, ordinal, task, seed,
                 checkpoint_id, temperature, messages, tools, turns, end_reason, episode_return,
                 reward_status, success, truncated_by, error, created_at)
             select id, job_id, iteration_id, purpose, ordinal, task, seed, checkpoint_id,
                 temperature, messages, tools, turns, end_reason, episode_return, reward_status, success,
                 truncated_by, error, created_at
             from json_populate_recordset(null::episodes, $1::json)",
        )
        .bind(json(rows)?)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Ordinals of an iteration's episodes of a purpose and temperature that were played.
///
/// # Errors
/// See [`StoreError`].
pub async fn played(
    conn: &mut PgConnection,
    iteration: IterationId,
    purpose: Purpose,
    temperature: f32,
) -> Result<HashSet<i32>, StoreError> {
    let ordinals: Vec<i32> = sqlx::query_scalar(
        "-- episodes::played
         select ordinal from episodes where iteration_id = $1 and purpose = $2 and temperature = $3",
    )
    .bind(iteration)
    .bind(purpose)
    .bind(temperature)
    .fetch_all(conn)
    .await?;
    Ok(ordinals.into_iter().collect())
}

/// Deletes the episodes that an iteration played for a purpose.
///
/// # Errors
/// See [`StoreError`].
pub async fn delete(
    conn: &mut PgConnection,
    iteration: IterationId,
    purpose: Purpose,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- episodes::delete
         delete from episodes where iteration_id = $1 and purpose = $2",
    )
    .bind(iteration)
    .bind(purpose)
    .execute(conn)
    .await?;
    Ok(())
}

/// How many episodes an iteration played for a purpose, and why the first came to nothing, if all did: each failed
/// technically or was truncated before its first step.
///
/// # Errors
/// See [`StoreError`].
pub async fn all_without_steps(
    conn: &mut PgConnection,
    iteration: IterationId,
    purpose: Purpose,
) -> Result<Option<(i64, String)>, StoreError> {
    Ok(sqlx::query_as(
        "-- episodes::all_without_steps
         select count(*), (array_agg(coalesce(error, 'truncated before its first step: ' || truncated_by)
             order by temperature, ordinal))[1]
         from episodes where iteration_id = $1 and purpose = $2
         having count(*) > 0 and bool_and(turns = 0 or end_reason = 'failed')",
    )
    .bind(iteration)
    .bind(purpose)
    .fetch_optional(conn)
    .await?)
}

/// What an iteration's evaluation came to, per temperature.
///
/// # Errors
/// See [`StoreError`].
pub async fn evaluation(
    conn: &mut PgConnection,
    iteration: IterationId,
) -> Result<Vec<EvaluationTally>, StoreError> {
    Ok(sqlx::query_as(
        "-- episodes::evaluation
         select temperature, count(*) filter (where end_reason <> 'failed') as episodes,
             count(*) filter (where success) as successes,
             count(*) filter (where end_reason = 'truncated') as truncated,
             count(*) filter (where end_reason = 'failed') as failed,
             coalesce(sum(turns) filter (where end_reason <> 'failed'), 0) as turns,
             avg(episode_return) as mean_return
         from episodes where iteration_id = $1 and purpose = 'evaluate'
         group by temperature order by temperature",
    )
    .bind(iteration)
    .fetch_all(conn)
    .await?)
}
