//! Checkpoints and adapters, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::{
        checkpoint::CheckpointRole,
        ids::{CheckpointId, JobId},
    },
    store::{checkpoints::WantedAdapterRow, read::jobs::CheckpointRow},
};

/// A checkpoint as it is shown.
#[derive(Serialize, ToSchema)]
pub struct CheckpointView {
    /// Its id.
    pub id: CheckpointId,
    /// Its job.
    pub job_id: JobId,
    /// Online or target.
    pub role: CheckpointRole,
    /// Its number: the iteration's index.
    pub version: i32,
    /// The name that engines know it by.
    pub name: String,
    /// Directory of its PEFT files.
    pub path: String,
    /// Of its tensors, hex.
    pub sha256: String,
    /// What it was made from.
    pub parents: Vec<CheckpointId>,
    /// Optimizer steps taken up to it.
    pub optimizer_steps: i32,
    /// Success on held-out episodes at the spec's temperature, where it was evaluated.
    pub success: Option<f64>,
    /// It is the one that people chose to use.
    pub promoted: bool,
    /// Engines that had it loaded when they were last asked.
    pub loaded_on: Vec<String>,
    /// When it was recorded.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// When it could be used.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub published_at: Option<OffsetDateTime>,
    /// When the retention rule (`--keep-versions`) deleted its adapter and its trainer state; null while they are kept.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expired_at: Option<OffsetDateTime>,
}

impl From<CheckpointRow> for CheckpointView {
    fn from(row: CheckpointRow) -> Self {
        Self {
            id: row.id,
            job_id: row.job_id,
            role: row.role,
            version: row.version,
            name: row.name,
            path: row.path,
            sha256: row.sha256,
            parents: row.parents,
            optimizer_steps: row.optimizer_steps,
            success: row.success,
            promoted: row.promoted,
            loaded_on: row.loaded_on,
            created_at: row.created_at,
            published_at: row.published_at,
            expired_at: row.expired_at,
        }
    }
}

/// An adapter that an engine should be able to load.
#[derive(Serialize, ToSchema)]
pub struct WantedAdapter {
    /// Its checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The name that engines know it by; its directory is called so too.
    pub name: String,
    /// SHA-256 of its tensors, hex.
    pub sha256: String,
}

impl From<WantedAdapterRow> for WantedAdapter {
    fn from(row: WantedAdapterRow) -> Self {
        Self { checkpoint_id: row.checkpoint_id, name: row.name, sha256: row.sha256 }
    }
}
