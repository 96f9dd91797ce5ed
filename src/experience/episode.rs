//! Episodes and transitions: what happened, written once.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{context::Tool, message::Message};
use crate::domain::{
    ids::{CheckpointId, EpisodeId, GenerationId, IterationId, JobId, TransitionId},
    text_enum::text_enum,
};

text_enum!(
    /// Why an episode was played.
    Purpose {
        /// To learn from.
        Collect = "collect",
        /// Logged by others; its steps are learnt from like collected ones.
        Import = "import",
        /// To measure; its steps are not stored as transitions.
        Evaluate = "evaluate",
    }
);

text_enum!(
    /// Why an episode ended.
    EndReason {
        /// The task itself ended it, with its real reward (a turn limit that is part of the task included).
        Terminated = "terminated",
        /// A limit that is not part of the task cut it: its steps are kept, and its end is not known. In success rates
        /// it counts as not solved.
        Truncated = "truncated",
        /// The engine or the environment failed; counted, shown, trains nothing.
        Failed = "failed",
    }
);

text_enum!(
    /// What cut an episode that did not come to its end. None of it is part of the task.
    TruncatedBy {
        /// The conversation, or what may still be written, no longer fits in the engine's context.
        Context = "context",
        /// The job's step cap: `rollout.max_steps`.
        Steps = "steps",
        /// The job's deadline for an episode: `rollout.max_seconds`.
        Deadline = "deadline",
        /// The environment, or the log that the episode was imported from.
        Environment = "environment",
    }
);

text_enum!(
    /// Why a reward is there, or is not. A missing reward is never 0.
    RewardStatus {
        /// The environment gave it.
        Observed = "observed",
        /// Somebody still has to give it.
        Pending = "pending",
        /// It could not be had.
        Failed = "failed",
        /// The episode was cut before it came.
        Truncated = "truncated",
    }
);

/// One rollout.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Episode {
    /// Its id.
    pub id: EpisodeId,
    /// Its job.
    pub job_id: JobId,
    /// Its iteration.
    pub iteration_id: IterationId,
    /// Why it was played.
    pub purpose: Purpose,
    /// Its number among the iteration's episodes of this purpose and temperature.
    pub ordinal: i32,
    /// The task, by the environment's own name for it.
    pub task: String,
    /// Seed of the environment's own chance.
    pub seed: i64,
    /// The online checkpoint that acted; null for imported episodes.
    pub checkpoint_id: Option<CheckpointId>,
    /// Sampling temperature of the policy.
    pub temperature: f32,
    /// The whole conversation.
    pub messages: Vec<Message>,
    /// Tools that the agent could call.
    pub tools: Vec<Tool>,
    /// Steps taken.
    pub turns: i32,
    /// Why it ended.
    pub end_reason: EndReason,
    /// Sum of rewards; null unless observed.
    pub episode_return: Option<f64>,
    /// Why the return is there or not.
    pub reward_status: RewardStatus,
    /// Whether the task was solved; null unless the environment said so.
    pub success: Option<bool>,
    /// What truncated it; null unless it was truncated.
    pub truncated_by: Option<TruncatedBy>,
    /// What failed, when it failed.
    pub error: Option<String>,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// One step of an episode. Its state is the first `state_len` messages of the episode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transition {
    /// Its id.
    pub id: TransitionId,
    /// Its job.
    pub job_id: JobId,
    /// Its iteration.
    pub iteration_id: IterationId,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// Its place in the episode, from 0.
    pub step: i32,
    /// How many messages of the episode came before the action.
    pub state_len: i32,
    /// How many messages of the episode the policy sees next.
    pub next_len: i32,
    /// The policy's reply, whole (thought and action).
    pub action: String,
    /// The part of it that reached the environment; null when it could not be parsed.
    pub env_action: Option<String>,
    /// What the environment answered.
    pub observation: String,
    /// Reward of this step; null unless observed.
    pub reward: Option<f64>,
    /// Why it is there or not.
    pub reward_status: RewardStatus,
    /// The task ended here: no future to bootstrap from.
    pub done: bool,
    /// The episode was cut here: the future exists, unseen.
    pub truncated: bool,
    /// The generation that is the action: weights, prompt, seed, token ids. Null for imported steps.
    pub generation_id: Option<GenerationId>,
}
