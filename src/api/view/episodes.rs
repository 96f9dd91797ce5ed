//! Episodes, as they are sent.

use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::ids::{CheckpointId, EpisodeId, JobId},
    experience::{
        chat::ChatMessage,
        context::Tool,
        episode::{EndReason, EpisodeState, Purpose, RewardStatus, Source, TruncatedBy},
        history::Branch,
        message::Message,
    },
    store::read::episodes::EpisodeRow,
};

/// An episode as it is shown.
#[derive(Serialize, ToSchema)]
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
    pub contexts: Vec<ContextView>,
    /// Whether a reward is still awaited.
    pub state: EpisodeState,
    /// Steps taken.
    pub turns: i32,
    /// Replies that were no action; null where another program read them.
    pub unreadable: Option<i32>,
    /// Why it ended.
    pub end_reason: EndReason,
    /// Sum of rewards; null unless observed.
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

impl From<EpisodeRow> for EpisodeView {
    fn from(row: EpisodeRow) -> Self {
        Self {
            id: row.id,
            source: row.source,
            job_id: row.job_id,
            iteration: row.iteration,
            purpose: row.purpose,
            temperature: row.temperature,
            dataset: row.dataset,
            ordinal: row.ordinal,
            environment: row.environment,
            task: row.task,
            seed: row.seed,
            checkpoint_id: row.checkpoint_id,
            model: row.model,
            contexts: row.history.branches().iter().map(Into::into).collect(),
            state: row.state,
            turns: row.turns,
            unreadable: row.unreadable,
            end_reason: row.end_reason,
            episode_return: row.episode_return,
            reward_status: row.reward_status,
            success: row.success,
            truncated_by: row.truncated_by,
            error: row.error,
            created_at: row.created_at,
        }
    }
}

/// A conversation as the agent saw it.
#[derive(Serialize, ToSchema)]
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
            messages: branch.messages.to_vec(),
            tools: branch.frame.tools.clone(),
            switches: branch.frame.switches.clone(),
            grown_from: branch.grown_from.map(|place| place.context),
            shared: branch.shared(),
        }
    }
}
