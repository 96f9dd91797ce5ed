//! Events, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{domain::event::EventKind, store::read::jobs::EventRow};

/// An event as it is sent.
#[derive(Serialize, ToSchema)]
pub struct EventView {
    /// Its place in the log; SSE's event id.
    pub id: i64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub at: OffsetDateTime,
    /// What kind.
    pub kind: EventKind,
    /// One sentence for people.
    pub message: String,
    /// The same for programs.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

impl From<EventRow> for EventView {
    fn from(row: EventRow) -> Self {
        Self { id: row.id, at: row.at, kind: row.kind, message: row.message, data: row.data }
    }
}
