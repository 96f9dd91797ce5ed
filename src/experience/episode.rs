//! Episodes and transitions: what happened, written once. They belong to no job.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    context::ContentHash,
    history::{History, Place},
};
use crate::domain::{
    ids::{CheckpointId, EpisodeId, GenerationId, TransitionId},
    text_enum::text_enum,
};

text_enum!(
    /// Where an episode came from.
    Source {
        /// An iteration of a job played it.
        Rollout = "rollout",
        /// It was logged by others and imported.
        Dataset = "dataset",
        /// An external agent played it through the gateway.
        Gateway = "gateway",
    }
);

text_enum!(
    /// Why an iteration played an episode.
    Purpose {
        /// To learn from.
        Collect = "collect",
        /// To measure; its steps are not stored as transitions.
        Evaluate = "evaluate",
    }
);

text_enum!(
    /// Whether something about an episode is still to come.
    EpisodeState {
        /// A reward is awaited.
        Open = "open",
        /// Everything is known that will be.
        Closed = "closed",
        /// A reward was awaited for too long.
        Expired = "expired",
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
        /// Too many replies in a row were no action: `rollout.max_unreadable`.
        Unreadable = "unreadable",
        /// The job's deadline for an episode: `rollout.max_seconds`.
        Deadline = "deadline",
        /// The environment, the log that the episode was imported from, or the agent that played it.
        Environment = "environment",
        /// Its agent called for nothing for too long.
        Idle = "idle",
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

/// What an agent did from a task's beginning to its end.
#[derive(Debug, Clone)]
pub struct Episode {
    /// Its id.
    pub id: EpisodeId,
    /// Where it came from.
    pub source: Source,
    /// The environment; none where it is not known.
    pub environment: Option<String>,
    /// The task, by the environment's own name for it.
    pub task: String,
    /// Seed of the environment's own chance; none where it is not known.
    pub seed: Option<i64>,
    /// The checkpoint that acted; none where another model did.
    pub checkpoint_id: Option<CheckpointId>,
    /// The name of another model that acted, where it is known.
    pub model: Option<String>,
    /// What the agent saw and said.
    pub history: History,
    /// Steps taken.
    pub turns: i32,
    /// Replies that were no action; none where another program read them.
    pub unreadable: Option<i32>,
    /// Why it ended.
    pub end_reason: EndReason,
    /// Sum of rewards; none unless observed.
    pub episode_return: Option<f64>,
    /// Why the return is there or not.
    pub reward_status: RewardStatus,
    /// Whether the task was solved; none unless somebody said so.
    pub success: Option<bool>,
    /// What truncated it; none unless it was truncated.
    pub truncated_by: Option<TruncatedBy>,
    /// What failed, when it failed.
    pub error: Option<String>,
    /// When it was stored.
    pub created_at: OffsetDateTime,
}

impl Episode {
    /// Whether a reward is awaited.
    #[must_use]
    pub fn state(&self) -> EpisodeState {
        match self.reward_status {
            RewardStatus::Pending => EpisodeState::Open,
            _ => EpisodeState::Closed,
        }
    }
}

/// One step of an episode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transition {
    /// Its id.
    pub id: TransitionId,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// Its place in the episode, from 0.
    pub step: i32,
    /// The policy's reply, whole (thought and action), as one text.
    pub action: String,
    /// The part of it that reached the environment; none when nobody could read one.
    pub env_action: Option<String>,
    /// What the environment answered, as one text.
    pub observation: String,
    /// Reward of this step; none unless observed.
    pub reward: Option<f64>,
    /// Why it is there or not.
    pub reward_status: RewardStatus,
    /// The task ended here: no future to bootstrap from.
    pub done: bool,
    /// The episode was cut here: the future exists, unseen.
    pub truncated: bool,
    /// The generation that is the action: weights, prompt, seed, token ids. None for imported steps.
    pub generation_id: Option<GenerationId>,
    /// Log-probability that the policy gave the action among the admissible ones, natural log, at temperature 1; none
    /// where it wrote freely.
    pub choice_logprob: Option<f64>,
    /// Actions that were possible; none where the environment does not say.
    pub admissible: Vec<String>,
    /// Actions that were possible after the step.
    pub next_admissible: Vec<String>,
    /// Goals that the step achieved, where the environment says so.
    pub achieved_goals: Vec<String>,
}

/// Where a step stands in its episode's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The context that the policy saw.
    pub context: i32,
    /// How many of its messages; the action is the next one.
    pub state_len: i32,
    /// The context that the policy sees next.
    pub next_context: i32,
    /// How many of its messages.
    pub next_len: i32,
    /// Hash of the state's content.
    pub state_hash: ContentHash,
}

impl Standing {
    /// A step that was taken at one place of a history and led to another; `hashes` are the history's.
    #[must_use]
    pub fn of(hashes: &[Vec<ContentHash>], state: Place, next: Place) -> Self {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let hash = hashes.get(state.context).and_then(|hashes| hashes.get(state.length));
        Self {
            context: number(state.context),
            state_len: number(state.length),
            next_context: number(next.context),
            next_len: number(next.length),
            state_hash: hash.copied().unwrap_or_default(),
        }
    }
}
