//! Jobs and their iterations, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::{
        ids::{CheckpointId, IterationId, JobId},
        job::{JobStatus, Phase},
        spec::JobSpec,
    },
    store::read::jobs::{IterationRow, JobRow},
};

/// A job as it is shown.
#[derive(Serialize, ToSchema)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Name of the key that submitted it; `local` where nobody signs in.
    pub owner: String,
    /// Where it stands.
    pub status: JobStatus,
    /// What was asked for.
    pub spec: JobSpec,
    /// Why it failed, with the remedy.
    pub error: Option<String>,
    /// The engine or trainer that its work waits for, because it cannot be reached; null while nothing waits.
    pub waiting_for: Option<String>,
    /// What the last try to reach it said.
    pub waiting_why: Option<String>,
    /// Since when it waits.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub waiting_since: Option<OffsetDateTime>,
    /// Why its next work cannot be planned; null while it can.
    pub plan_error: Option<String>,
    /// The iteration that is under way, or the last one.
    pub iteration: Option<i32>,
    /// Its phase.
    pub phase: Option<Phase>,
    /// Units of work of the phase that are done.
    pub units_done: Option<i64>,
    /// Units of work of the phase.
    pub units: Option<i64>,
    /// Success on held-out episodes of the untrained adapter, at the spec's temperature.
    pub success_before: Option<f64>,
    /// The newest such success.
    pub success: Option<f64>,
    /// The checkpoint that people chose to use; null until one is promoted.
    pub promoted_checkpoint_id: Option<CheckpointId>,
    /// Its version.
    pub promoted_version: Option<i32>,
    /// Its adapter's name: what to give as `model` to the engine, which keeps it loaded.
    pub promoted_name: Option<String>,
    /// When its last iteration will be done, at the pace of its newest ones, to the second; null unless it is
    /// running and has a pace. It moves when an iteration is done, not with the clock.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub estimated_finish_at: Option<OffsetDateTime>,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// When its first work was planned.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<OffsetDateTime>,
    /// When it reached a final status.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<OffsetDateTime>,
}

impl From<JobRow> for JobView {
    fn from(row: JobRow) -> Self {
        Self {
            id: row.id,
            owner: row.owner,
            status: row.status,
            spec: row.spec.0,
            error: row.error,
            waiting_for: row.waiting_for,
            waiting_why: row.waiting_why,
            waiting_since: row.waiting_since,
            plan_error: row.plan_error,
            iteration: row.iteration,
            phase: row.phase,
            units_done: row.units_done,
            units: row.units,
            success_before: row.success_before,
            success: row.success,
            promoted_checkpoint_id: row.promoted_checkpoint_id,
            promoted_version: row.promoted_version,
            promoted_name: row.promoted_name,
            estimated_finish_at: row.estimated_finish_at,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        }
    }
}

/// An iteration as it is shown.
#[derive(Serialize, ToSchema)]
pub struct IterationView {
    /// Its id.
    pub id: IterationId,
    /// Its number; 0 is the untrained adapter.
    pub index: i32,
    /// What is under way.
    pub phase: Phase,
    /// Units of work of the phase that wait or are under way.
    pub units_open: i64,
    /// Those that are done.
    pub units_done: i64,
    /// When it was planned.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub started_at: OffsetDateTime,
    /// When its last phase ended.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<OffsetDateTime>,
}

impl From<IterationRow> for IterationView {
    fn from(row: IterationRow) -> Self {
        Self {
            id: row.id,
            index: row.index,
            phase: row.phase,
            units_open: row.units_open,
            units_done: row.units_done,
            started_at: row.started_at,
            finished_at: row.finished_at,
        }
    }
}
