//! Jobs and their iterations.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    ids::{IterationId, JobId},
    spec::JobSpec,
    text_enum::text_enum,
};

text_enum!(
    /// Where a job stands.
    JobStatus {
        /// Accepted; no work exists yet.
        Queued = "queued",
        /// Work is planned and claimed.
        Running = "running",
        /// No new work is claimed until it is resumed; what is in flight finishes.
        Paused = "paused",
        /// Every iteration of the spec is done.
        Succeeded = "succeeded",
        /// A unit of work failed for good; the job's error says why.
        Failed = "failed",
        /// Stopped by a user; what is in flight is dropped.
        Cancelled = "cancelled",
    }
);

impl JobStatus {
    /// Nothing will happen to the job any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

text_enum!(
    /// The part of an iteration that is under way; phases run in this order.
    Phase {
        /// The policy acts in the environment.
        Collect = "collect",
        /// Transitions are replayed: targets, critiques, refinements become training examples.
        Annotate = "annotate",
        /// The trainer steps, then saves its state and the adapter.
        Learn = "learn",
        /// The adapter becomes a checkpoint, the target follows, engines load both.
        Publish = "publish",
        /// Held-out episodes are played.
        Evaluate = "evaluate",
        /// The critic's health is measured and the guards look at the iteration.
        Assess = "assess",
        /// The iteration is over.
        Done = "done",
    }
);

/// A submitted job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// What was asked for; never changes.
    pub spec: JobSpec,
    /// Name of the key that submitted it; `local` where nobody signs in.
    pub owner: String,
    /// Where it stands.
    pub status: JobStatus,
    /// Why it failed, with the remedy; only when it failed.
    pub error: Option<String>,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When its first work was planned.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When it reached a final status.
    #[serde(with = "time::serde::rfc3339::option")]
    pub finished_at: Option<OffsetDateTime>,
}

/// One round of a job. Round 0 has no collection: it publishes and evaluates the untrained adapter.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Iteration {
    /// Its id.
    pub id: IterationId,
    /// The job it belongs to.
    pub job_id: JobId,
    /// Its number, from 0.
    pub index: i32,
    /// What is under way.
    pub phase: Phase,
    /// The version that it starts from; -1 before the first.
    pub base: i32,
    /// A budget is spent: no iteration follows.
    pub last: bool,
    /// The version that the next one starts from, if a guard sent the job back.
    pub roll_back_to: Option<i32>,
    /// When it was planned.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// When its last phase ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub finished_at: Option<OffsetDateTime>,
}
