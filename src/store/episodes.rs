//! Episodes.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::{
    StoreError,
    rows::{ROWS, json},
};
use crate::domain::{
    episode::{Episode, Purpose},
    ids::IterationId,
};

/// What an evaluation came to.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct EvaluationTally {
    /// Sampling temperature.
    pub temperature: f32,
    /// Episodes with a known outcome.
    pub episodes: i64,
    /// Those that solved their task.
    pub successes: i64,
    /// Episodes that failed technically.
    pub failed: i64,
    /// Steps of all episodes with a known outcome.
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
                 checkpoint_id, temperature, messages, turns, end_reason, episode_return,
                 reward_status, success, error, created_at)
             select id, job_id, iteration_id, purpose, ordinal, task, seed, checkpoint_id,
                 temperature, messages, turns, end_reason, episode_return, reward_status, success,
                 error, created_at
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
         select temperature, count(success) as episodes, count(*) filter (where success) as successes,
             count(*) filter (where success is null) as failed,
             coalesce(sum(turns) filter (where success is not null), 0) as turns,
             avg(episode_return) as mean_return
         from episodes where iteration_id = $1 and purpose = 'evaluate'
         group by temperature order by temperature",
    )
    .bind(iteration)
    .fetch_all(conn)
    .await?)
}
