//! An episode that an agent plays.

use time::OffsetDateTime;

use crate::domain::{
    ids::{CheckpointId, EpisodeId, JobId},
    text_enum::text_enum,
};

text_enum!(
    /// How an agent's episode stands.
    OpenedState {
        /// Its agent may call the model.
        Open = "open",
        /// It is over, and stored as experience.
        Ended = "ended",
        /// Its agent threw it away: nothing is learnt from it.
        Discarded = "discarded",
    }
);

/// An episode that an agent plays through the gateway.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Opened {
    /// Its id; once it has ended, that of the stored episode.
    pub id: EpisodeId,
    /// The job whose policy answers, and that learns from it; none where it belongs to no job.
    pub job_id: Option<JobId>,
    /// The registered chat engine that answers instead of the job's policy.
    pub engine: Option<String>,
    /// The checkpoint that answers all calls; none where the newest does.
    pub checkpoint_id: Option<CheckpointId>,
    /// Name of the API key that opened it.
    pub owner: String,
    /// The agent's own name for it.
    pub name: Option<String>,
    /// The task, by the agent's own name for it; empty where it has none.
    pub task: String,
    /// Temperature in place of what the agent asks for.
    pub temperature: Option<f32>,
    /// Most tokens of an answer in place of what the agent asks for.
    pub max_tokens: Option<i32>,
    /// Most calls.
    pub most_calls: i32,
    /// Seconds without a call after which it is truncated.
    pub idle_seconds: i32,
    /// How it stands.
    pub state: OpenedState,
    /// Calls that are stored.
    pub calls: i32,
    /// When it was opened.
    pub created_at: OffsetDateTime,
    /// When it was last called, or opened.
    pub last_call_at: OffsetDateTime,
    /// When it ended; none while it is open.
    pub ended_at: Option<OffsetDateTime>,
}
