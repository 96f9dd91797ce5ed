//! Datasets, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::store::datasets::DatasetRow;

/// A dataset as it is shown.
#[derive(Serialize, ToSchema)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Episodes in it.
    pub episodes: i64,
    /// Actions in them.
    pub transitions: i64,
    /// Episodes whose reward is awaited.
    pub open: i64,
    /// Share of episodes that were solved, of those that say; null if none says.
    pub success: Option<f64>,
    /// When its first episode came.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

impl From<DatasetRow> for Dataset {
    fn from(row: DatasetRow) -> Self {
        Self {
            name: row.name,
            episodes: row.episodes,
            transitions: row.transitions,
            open: row.open,
            success: row.success,
            created_at: row.created_at,
        }
    }
}
