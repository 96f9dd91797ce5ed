//! Adapter versions.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    ids::{CheckpointId, IterationId, JobId},
    text_enum::text_enum,
    training::TemperatureState,
};

text_enum!(
    /// What an adapter is for.
    CheckpointRole {
        /// Being trained; acts.
        Online = "online",
        /// Its lagging average; makes targets.
        Target = "target",
    }
);

/// One adapter version. Files are never changed after they are published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// Its job.
    pub job_id: JobId,
    /// The iteration that made it.
    pub iteration_id: IterationId,
    /// Online or target.
    pub role: CheckpointRole,
    /// Its number: the iteration's index; 0 is untrained.
    pub version: i32,
    /// The name that engines know it by, never used before: `<job>-<role>-v<N>-<sha8>`.
    pub name: String,
    /// Directory of its PEFT files.
    pub path: String,
    /// Of `adapter_model.safetensors`, hex.
    pub sha256: String,
    /// What it was made from.
    pub parents: Vec<CheckpointId>,
    /// Where the trainer keeps the resumable state (`tinker://…`); online checkpoints only.
    pub trainer_state: Option<String>,
    /// The same of the value critic, where one learns beside the policy.
    pub critic_state: Option<String>,
    /// The same of the target critic, where the critic has one.
    pub target_state: Option<String>,
    /// The weight of the policy's entropy, where it is one.
    pub temperature: Option<TemperatureState>,
    /// Optimizer steps taken up to it.
    pub optimizer_steps: i32,
    /// When the retention rule deleted its files; nothing may use it since.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expired_at: Option<OffsetDateTime>,
    /// When it was recorded.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}
