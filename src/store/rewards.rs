//! Rewards that arrive after their episode was stored.

use sqlx::PgConnection;

use super::StoreError;
use crate::{
    domain::ids::{EpisodeId, JobId, TransitionId},
    experience::episode::RewardStatus,
};

/// What became of a reward.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// The step has it now, and these jobs may draw the step.
    Stored(Vec<JobId>),
    /// The step had the same reward already.
    Repeated,
    /// The step has another reward.
    Known(f64),
    /// No reward of this episode is awaited.
    NoneAwaited,
    /// The episode has no such step.
    NoStep,
    /// There is no such episode.
    NoEpisode,
}

/// Gives a step its reward, without a step the last one, and an episode its outcome where that is known too. An episode
/// whose last awaited reward comes is closed; one that had expired may still get it.
///
/// # Errors
/// See [`StoreError`].
pub async fn give(
    conn: &mut PgConnection,
    episode: EpisodeId,
    step: Option<i32>,
    reward: f64,
    success: Option<bool>,
) -> Result<Given, StoreError> {
    // Two rewards of one episode wait for each other: the second sees that none is awaited any more.
    let held: Option<i32> = sqlx::query_scalar(
        "-- rewards::give
         select turns from episodes where id = $1 for update",
    )
    .bind(episode)
    .fetch_optional(&mut *conn)
    .await?;
    if held.is_none() {
        return Ok(Given::NoEpisode);
    }
    let found: Option<(TransitionId, RewardStatus, Option<f64>)> = sqlx::query_as(
        "-- rewards::give
         select id, reward_status, reward from transitions
         where episode_id = $1 and step = coalesce($2, (select max(step) from transitions where episode_id = $1))",
    )
    .bind(episode)
    .bind(step)
    .fetch_optional(&mut *conn)
    .await?;
    let Some((transition, status, known)) = found else { return Ok(Given::NoStep) };
    match (status, known) {
        (RewardStatus::Pending, _) => {}
        (_, Some(known)) if known.to_bits() == reward.to_bits() => return Ok(Given::Repeated),
        (_, Some(known)) => return Ok(Given::Known(known)),
        (_, None) => return Ok(Given::NoneAwaited),
    }
    sqlx::query(
        "-- rewards::give
         update transitions set reward = $2, reward_status = 'observed' where id = $1",
    )
    .bind(transition)
    .bind(reward)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "-- rewards::give
         with steps as (
             select sum(reward) as total, bool_and(reward_status = 'observed') as known
             from transitions where episode_id = $1
         )
         update episodes e set success = coalesce($2, e.success),
             state = case when steps.known then 'closed' else e.state end,
             reward_status = case when steps.known then 'observed' else e.reward_status end,
             episode_return = case when steps.known then steps.total end
         from steps where e.id = $1",
    )
    .bind(episode)
    .bind(success)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "-- rewards::give
         update transition_search s set success = coalesce($2, s.success)
         from transitions t where t.episode_id = $1 and s.transition_id = t.id",
    )
    .bind(episode)
    .bind(success)
    .execute(&mut *conn)
    .await?;
    let jobs = sqlx::query_scalar(
        "-- rewards::give
         update replay set pending = false where transition_id = $1 returning job_id",
    )
    .bind(transition)
    .fetch_all(conn)
    .await?;
    Ok(Given::Stored(jobs))
}

/// Expires episodes whose reward has been awaited for more than `days`; returns how many.
///
/// # Errors
/// See [`StoreError`].
pub async fn expire(conn: &mut PgConnection, days: u16) -> Result<u64, StoreError> {
    let expired = sqlx::query(
        "-- rewards::expire
         update episodes set state = 'expired', reward_status = 'failed'
         where state = 'open' and created_at < now() - make_interval(days => $1)",
    )
    .bind(i32::from(days))
    .execute(conn)
    .await?;
    Ok(expired.rows_affected())
}
