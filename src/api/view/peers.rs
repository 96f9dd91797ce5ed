//! Engines and trainers, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::peer::{EngineCapabilities, EngineRecord, TrainerCapabilities, TrainerRecord},
    store::peers::{EngineRow, TrainerRow},
};

/// A registered engine and what it can do.
#[derive(Serialize, ToSchema)]
pub struct EngineView {
    /// Its registration.
    #[serde(flatten)]
    pub record: EngineRecord,
    /// What it was found to be able to do; null if it was never reached.
    pub capabilities: Option<EngineCapabilities>,
    /// Why it did not answer when it was last asked; null if it did.
    pub trouble: Option<String>,
    /// When it was last asked.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub checked_at: Option<OffsetDateTime>,
}

impl From<EngineRow> for EngineView {
    fn from(row: EngineRow) -> Self {
        Self {
            record: row.record,
            capabilities: row.capabilities.map(|found| found.0),
            trouble: row.trouble,
            checked_at: row.checked_at,
        }
    }
}

/// A registered trainer and what it can do.
#[derive(Serialize, ToSchema)]
pub struct TrainerView {
    /// Its registration.
    #[serde(flatten)]
    pub record: TrainerRecord,
    /// What it was found to be able to do; null if it was never reached.
    pub capabilities: Option<TrainerCapabilities>,
    /// Why it did not answer when it was last asked; null if it did.
    pub trouble: Option<String>,
    /// When it was last asked.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub checked_at: Option<OffsetDateTime>,
}

impl From<TrainerRow> for TrainerView {
    fn from(row: TrainerRow) -> Self {
        Self {
            record: row.record,
            capabilities: row.capabilities.map(|found| found.0),
            trouble: row.trouble,
            checked_at: row.checked_at,
        }
    }
}
