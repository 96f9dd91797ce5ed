//! Episodes.

use sqlx::{PgConnection, QueryBuilder, types::Json};

use super::{StoreError, generations::ROWS};
use crate::domain::{episode::Episode, ids::IterationId};

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
}

/// Stores episodes.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(conn: &mut PgConnection, episodes: &[Episode]) -> Result<(), StoreError> {
    for rows in episodes.chunks(ROWS) {
        QueryBuilder::new(
            "-- episodes::insert_many
             insert into episodes (id, job_id, iteration_id, purpose, ordinal, task, seed, checkpoint_id,
                 temperature, messages, turns, end_reason, episode_return, reward_status, success,
                 error, created_at) ",
        )
        .push_values(rows, |mut row, e| {
            row.push_bind(e.id)
                .push_bind(e.job_id)
                .push_bind(e.iteration_id)
                .push_bind(e.purpose)
                .push_bind(e.ordinal)
                .push_bind(&e.task)
                .push_bind(e.seed)
                .push_bind(e.checkpoint_id)
                .push_bind(e.temperature)
                .push_bind(Json(&e.messages))
                .push_bind(e.turns)
                .push_bind(e.end_reason)
                .push_bind(e.episode_return)
                .push_bind(e.reward_status)
                .push_bind(e.success)
                .push_bind(&e.error)
                .push_bind(e.created_at);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
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
             coalesce(sum(turns) filter (where success is not null), 0) as turns
         from episodes where iteration_id = $1 and purpose = 'evaluate'
         group by temperature order by temperature",
    )
    .bind(iteration)
    .fetch_all(conn)
    .await?)
}
