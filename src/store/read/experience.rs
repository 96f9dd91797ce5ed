//! Episodes and transitions.

use serde::Serialize;
use sqlx::{PgConnection, types::Json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::{
        annotation::Verdict,
        episode::{EndReason, Purpose, RewardStatus},
        ids::{CheckpointId, EpisodeId, GenerationId, JobId, TransitionId},
        message::Message,
    },
    store::StoreError,
};

/// An episode as it is shown.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct EpisodeView {
    /// Its id.
    pub id: EpisodeId,
    /// Its job.
    pub job_id: JobId,
    /// Number of its iteration.
    pub iteration: i32,
    /// To learn from or to measure.
    pub purpose: Purpose,
    /// Its number among its like.
    pub ordinal: i32,
    /// The task.
    pub task: String,
    /// Seed of the environment.
    pub seed: i64,
    /// The checkpoint that acted; null for imported episodes.
    pub checkpoint_id: Option<CheckpointId>,
    /// Sampling temperature of the policy.
    pub temperature: f32,
    /// The whole conversation.
    #[schema(value_type = Vec<Message>)]
    pub messages: Json<Vec<Message>>,
    /// Steps taken.
    pub turns: i32,
    /// Why it ended.
    pub end_reason: EndReason,
    /// Sum of rewards; null unless observed.
    #[sqlx(rename = "episode_return")]
    #[serde(rename = "return")]
    pub episode_return: Option<f64>,
    /// Why the return is there or not.
    pub reward_status: RewardStatus,
    /// Solved or not; null unless the environment said so.
    pub success: Option<bool>,
    /// What failed.
    pub error: Option<String>,
    /// When it was stored.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

/// Episodes, newest first: of a job, or one by its id.
///
/// # Errors
/// See [`StoreError`].
pub async fn episodes(
    conn: &mut PgConnection,
    job: Option<JobId>,
    one: Option<EpisodeId>,
    purpose: Option<Purpose>,
    after: Option<EpisodeId>,
    limit: i64,
) -> Result<Vec<EpisodeView>, StoreError> {
    Ok(sqlx::query_as(
        "-- read::experience::episodes
         select e.*, i.index as iteration
         from episodes e join iterations i on i.id = e.iteration_id
         where ($1::uuid is null or e.job_id = $1) and ($2::uuid is null or e.id = $2)
             and ($3::text is null or e.purpose = $3) and ($4::uuid is null or e.id < $4)
         order by e.id desc limit $5",
    )
    .bind(job)
    .bind(one)
    .bind(purpose)
    .bind(after)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// A transition as it is shown, with the newest that was said about it.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct TransitionView {
    /// Its id.
    pub id: TransitionId,
    /// Its job.
    pub job_id: JobId,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// Number of its iteration.
    pub iteration: i32,
    /// Its place in the episode.
    pub step: i32,
    /// The conversation before the action.
    #[schema(value_type = Vec<Message>)]
    pub state: Json<Vec<Message>>,
    /// The policy's reply.
    pub action: String,
    /// The part of it that reached the environment; null when it could not be read.
    pub env_action: Option<String>,
    /// What the environment answered.
    pub observation: String,
    /// Reward; null unless observed.
    pub reward: Option<f64>,
    /// Why it is there or not.
    pub reward_status: RewardStatus,
    /// The task ended here.
    pub done: bool,
    /// The episode was cut here.
    pub truncated: bool,
    /// The generation that is the action; null for imported steps.
    pub generation_id: Option<GenerationId>,
    /// Critic loss per token when last learnt from, nats; its priority in replay.
    pub loss: Option<f32>,
    /// How often it was learnt from.
    pub uses: Option<i32>,
    /// The newest verdict on its action.
    pub verdict: Option<Verdict>,
    /// The newest critique.
    pub critique: Option<String>,
    /// The newest refined action.
    pub refinement: Option<String>,
    /// Whether that is another action than this.
    pub changed: Option<bool>,
}

/// Which transitions are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransitionFilter {
    /// Of one job.
    pub job: Option<JobId>,
    /// One by its id.
    pub one: Option<TransitionId>,
    /// With this newest verdict.
    pub verdict: Option<Verdict>,
    /// Whose newest refinement changed the action, or did not.
    pub changed: Option<bool>,
    /// Only those before this one.
    pub after: Option<TransitionId>,
}

/// Transitions, newest first.
///
/// # Errors
/// See [`StoreError`].
pub async fn transitions(
    conn: &mut PgConnection,
    filter: TransitionFilter,
    limit: i64,
) -> Result<Vec<TransitionView>, StoreError> {
    Ok(sqlx::query_as(
        "-- read::experience::transitions
         select t.*, i.index as iteration, p.loss, p.uses, c.verdict, c.text as critique,
             r.text as refinement, r.changed,
             (select coalesce(jsonb_agg(m order by n), '[]') from jsonb_array_elements(e.messages)
              with ordinality as x(m, n) where n <= t.state_len) as state
         from transitions t
         join iterations i on i.id = t.iteration_id
         join episodes e on e.id = t.episode_id
         left join replay p on p.transition_id = t.id
         left join lateral (
             select c.id, c.verdict, g.text from critiques c join generations g on g.id = c.generation_id
             where c.transition_id = t.id order by c.id desc limit 1
         ) c on true
         left join lateral (
             select r.changed, g.text from refinements r join generations g on g.id = r.generation_id
             where r.transition_id = t.id order by r.id desc limit 1
         ) r on true
         where ($1::uuid is null or t.job_id = $1) and ($2::uuid is null or t.id = $2)
             and ($3::text is null or c.verdict = $3) and ($4::bool is null or r.changed = $4)
             and ($5::uuid is null or t.id < $5)
         order by t.id desc limit $6",
    )
    .bind(filter.job)
    .bind(filter.one)
    .bind(filter.verdict)
    .bind(filter.changed)
    .bind(filter.after)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}
