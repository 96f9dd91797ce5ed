//! What happened to a job, in order, for people and for SSE.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{ids::JobId, text_enum::text_enum};

text_enum!(
    /// What kind of thing happened.
    EventKind {
        /// The job was accepted.
        Submitted = "submitted",
        /// Something that the spec asks for does not hold on the engine or trainer that it names, or an
        /// engine refused a part of the work that the rest goes on without.
        Warned = "warned",
        /// Its first work was planned.
        Started = "started",
        /// A phase of an iteration began.
        PhaseStarted = "phase_started",
        /// An iteration ended; `data` holds its metrics.
        IterationFinished = "iteration_finished",
        /// An adapter was published.
        Published = "published",
        /// Held-out episodes were played.
        Evaluated = "evaluated",
        /// A unit of work failed and will be tried again.
        Retried = "retried",
        /// The job's work waits for an engine or a trainer that cannot be reached.
        Waiting = "waiting",
        /// What the job waited for is back.
        Continued = "continued",
        /// The job's next work cannot be planned; other jobs go on.
        PlanFailed = "plan_failed",
        /// A unit of work was taken over from a process that died.
        Reclaimed = "reclaimed",
        /// No new work is claimed.
        Paused = "paused",
        /// Work goes on.
        Resumed = "resumed",
        /// A user stopped the job.
        Cancelled = "cancelled",
        /// A budget of the spec is reached: the iteration under way is the last.
        BudgetSpent = "budget_spent",
        /// A guard's readings were too high for too long.
        GuardTripped = "guard_tripped",
        /// A version was promoted: it is the one to use.
        Promoted = "promoted",
        /// It is not promoted any more.
        Demoted = "demoted",
        /// The job goes on from an earlier version.
        RolledBack = "rolled_back",
        /// The job failed.
        Failed = "failed",
        /// The job is complete.
        Succeeded = "succeeded",
    }
);

/// One event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the log of all jobs, drawn when it became visible; SSE's event id.
    pub id: i64,
    /// Its job.
    pub job_id: JobId,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What kind.
    pub kind: EventKind,
    /// One sentence for people.
    pub message: String,
    /// The same for programs.
    pub data: serde_json::Value,
}
