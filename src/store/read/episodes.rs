//! Episodes.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::{PgConnection, QueryBuilder};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::ids::{CheckpointId, EpisodeId, JobId},
    experience::{
        chat::ChatMessage,
        context::Tool,
        episode::{EndReason, EpisodeState, Purpose, RewardStatus, Source, TruncatedBy},
        history::{Branch, History},
        message::Message,
    },
    store::{StoreError, contexts},
};

/// An episode as it is shown.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct EpisodeView {
    /// Its id.
    pub id: EpisodeId,
    /// Where it came from.
    pub source: Source,
    /// The job whose iteration played it; null unless it is a rollout.
    pub job_id: Option<JobId>,
    /// Number of that iteration.
    pub iteration: Option<i32>,
    /// To learn from or to measure; null unless it is a rollout.
    pub purpose: Option<Purpose>,
    /// Sampling temperature of the policy; null unless it is a rollout.
    pub temperature: Option<f32>,
    /// The dataset that it was imported into; null if it is a rollout.
    pub dataset: Option<String>,
    /// Its number in the iteration or in the dataset.
    pub ordinal: Option<i32>,
    /// The environment; null where it is not known.
    pub environment: Option<String>,
    /// The task.
    pub task: String,
    /// Seed of the environment; null where it is not known.
    pub seed: Option<i64>,
    /// The checkpoint that acted; null where another model did.
    pub checkpoint_id: Option<CheckpointId>,
    /// The name of another model that acted, where it is known.
    pub model: Option<String>,
    /// What the agent saw and said: one conversation, or several where it rewrote its history.
    #[sqlx(skip)]
    pub contexts: Vec<ContextView>,
    /// Whether a reward is still awaited.
    pub state: EpisodeState,
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
    /// Solved or not; null unless somebody said so.
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

/// A conversation as the agent saw it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ContextView {
    /// All of it.
    #[schema(value_type = Vec<ChatMessage>)]
    pub messages: Vec<Message>,
    /// Tools that the agent could call.
    pub tools: Vec<Tool>,
    /// Variables of the model's chat template.
    #[schema(value_type = Object)]
    pub switches: Map<String, Value>,
    /// The earlier context whose first messages it shares, from 0; null where it shares none.
    pub grown_from: Option<usize>,
    /// How many messages it shares with that one.
    pub shared: usize,
}

impl From<&Branch> for ContextView {
    fn from(branch: &Branch) -> Self {
        Self {
            messages: branch.messages.clone(),
            tools: branch.frame.tools.clone(),
            switches: branch.frame.switches.clone(),
            grown_from: branch.grown_from.map(|place| place.context),
            shared: branch.grown_from.map_or(0, |place| place.length),
        }
    }
}

/// Which episodes are shown.
#[derive(Debug, Clone, Copy)]
pub enum Episodes<'a> {
    /// One.
    One(EpisodeId),
    /// Those that iterations of a job played, for one purpose or for all.
    OfJob(JobId, Option<Purpose>),
    /// Those of a dataset.
    OfDataset(&'a str),
}

/// Episodes, newest first, those before `after`.
///
/// # Errors
/// See [`StoreError`].
pub async fn episodes(
    conn: &mut PgConnection,
    which: Episodes<'_>,
    after: Option<EpisodeId>,
    limit: i64,
) -> Result<Vec<EpisodeView>, StoreError> {
    let mut query = QueryBuilder::new(
        "-- read::episodes::episodes
         select e.*, r.job_id, r.purpose, r.temperature, i.index as iteration, s.name as dataset,
             coalesce(r.ordinal, d.ordinal) as ordinal
         from episodes e
         left join rollouts r on r.episode_id = e.id left join iterations i on i.id = r.iteration_id
         left join dataset_episodes d on d.episode_id = e.id
         left join datasets s on s.id = d.dataset_id and s.deleted_at is null where ",
    );
    // Only what is asked for is written down: a plan for everything at once would use no index.
    match which {
        Episodes::One(id) => {
            query.push("e.id = ").push_bind(id);
        }
        Episodes::OfJob(job, purpose) => {
            query.push("r.job_id = ").push_bind(job);
            if let Some(purpose) = purpose {
                query.push(" and r.purpose = ").push_bind(purpose);
            }
        }
        Episodes::OfDataset(name) => {
            query.push("s.name = ").push_bind(name);
        }
    }
    let key = if matches!(which, Episodes::OfJob(..)) { "r.episode_id" } else { "e.id" };
    if let Some(after) = after {
        query.push(" and ").push(key).push(" < ").push_bind(after);
    }
    query.push(" order by ").push(key).push(" desc limit ").push_bind(limit);
    let mut found: Vec<EpisodeView> = query.build_query_as().fetch_all(&mut *conn).await?;
    let ids: Vec<_> = found.iter().map(|episode| episode.id).collect();
    let mut histories: HashMap<EpisodeId, History> = contexts::histories(conn, &ids).await?;
    for episode in &mut found {
        let history = histories.remove(&episode.id).unwrap_or_default();
        episode.contexts = history.branches().iter().map(Into::into).collect();
    }
    Ok(found)
}

/// The episodes that the same job played for the same purpose just after and just before one; none of either around one
/// that no job played.
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
             (select episode_id from rollouts where job_id = $1 and purpose = $2 and episode_id > $3
              order by episode_id limit 1),
             (select episode_id from rollouts where job_id = $1 and purpose = $2 and episode_id < $3
              order by episode_id desc limit 1)",
    )
    .bind(episode.job_id)
    .bind(episode.purpose)
    .bind(episode.id)
    .fetch_one(conn)
    .await?)
}
