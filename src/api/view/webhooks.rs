//! Deliveries of webhooks, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::{event::EventKind, ids::JobId, webhook::DeliveryState},
    store::webhooks::DeliveryRow,
};

/// What became of telling a webhook of an event.
#[derive(Serialize, ToSchema)]
pub struct DeliveryView {
    /// The event's id; with the webhook's it is sent as `webhook-id`.
    pub event_id: i64,
    /// The event's job.
    pub job_id: JobId,
    /// The event's kind.
    pub kind: EventKind,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: i32,
    /// Why the last try failed.
    pub error: Option<String>,
    /// When it is tried next, while it is waiting.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub due_at: OffsetDateTime,
    /// When it was delivered or given up.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub settled_at: Option<OffsetDateTime>,
}

impl From<DeliveryRow> for DeliveryView {
    fn from(row: DeliveryRow) -> Self {
        Self {
            event_id: row.event_id,
            job_id: row.job_id,
            kind: row.kind,
            state: row.state,
            attempts: row.attempts,
            error: row.error,
            due_at: row.due_at,
            settled_at: row.settled_at,
        }
    }
}
