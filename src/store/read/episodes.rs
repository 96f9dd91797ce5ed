//! Episodes.

use serde::Serialize;
use sqlx::{PgConnection, QueryBuilder, types::Json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::ids::{CheckpointId, EpisodeId, JobId},
    experience::{
        chat::ChatMessage,
        context::Tool,
        episode::{EndReason, Purpose, RewardStatus, TruncatedBy},
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
    #[schema(value_type = Vec<ChatMessage>)]
    pub messages: Json<Vec<Message>>,
    /// Tools that the agent could call.
    #[schema(value_type = Vec<Tool>)]
    pub tools: Json<Vec<Tool>>,
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
    /// What truncated it; null unless it was truncated.
    pub truncated_by: Option<TruncatedBy>,
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
    let mut query = QueryBuilder::new(
        "-- read::episodes::episodes
         select e.*, i.index as iteration
         from episodes e join iterations i on i.id = e.iteration_id where true",
    );
    // Only what is asked for is written down: a plan for everything at once would use no index.
    if let Some(job) = job {
        query.push(" and e.job_id = ").push_bind(job);
    }
    if let Some(one) = one {
        query.push(" and e.id = ").push_bind(one);
    }
    if let Some(purpose) = purpose {
        query.push(" and e.purpose = ").push_bind(purpose);
    }
    if let Some(after) = after {
        query.push(" and e.id < ").push_bind(after);
    }
    query.push(" order by e.id desc limit ").push_bind(limit);
    Ok(query.build_query_as().fetch_all(conn).await?)
}

/// The episodes of the same job and purpose just after and just before one.
///
/// # Errors
/// See [`StoreError`].
pub async fn neighbours(
    conn: &mut PgConnection,
    episode: &EpisodeView,
) -> Result<(Option<EpisodeId>, Option<EpisodeId>), StoreError> {
    Ok(sqlx::query_as(
        "-- read::episodes::neighbours
         select
             (select id from episodes where job_id = $1 and purpose = $2 and id > $3 order by id limit 1),
             (select id from episodes where job_id = $1 and purpose = $2 and id < $3
              order by id desc limit 1)",
    )
    .bind(episode.job_id)
    .bind(episode.purpose)
    .bind(episode.id)
    .fetch_one(conn)
    .await?)
}
