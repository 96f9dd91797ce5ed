//! Who is told of events.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    event::EventKind,
    ids::{JobId, WebhookId},
    text_enum::text_enum,
};

text_enum!(
    /// What became of telling somebody of an event.
    DeliveryState {
        /// It is tried, or will be tried again.
        Waiting = "waiting",
        /// It was answered with a success.
        Delivered = "delivered",
        /// It was tried for as long as it is.
        Failed = "failed",
    }
);

/// Somebody who is told of events.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Where events are posted to.
    pub url: String,
    /// Kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// Of this job only; null for all.
    pub job_id: Option<JobId>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}
