//! Webhooks and their deliveries.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    event::EventKind,
    ids::{JobId, WebhookId},
    text_enum::text_enum,
};

text_enum!(
    /// State of a delivery.
    DeliveryState {
        /// It is being delivered, or will be retried.
        Waiting = "waiting",
        /// The receiver answered with a success.
        Delivered = "delivered",
        /// All attempts failed.
        Failed = "failed",
    }
);

/// A webhook.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct Webhook {
    /// Id.
    pub id: WebhookId,
    /// URL for the POST requests.
    pub url: String,
    /// Kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// Job whose events are sent; null for all jobs.
    pub job_id: Option<JobId>,
    /// When it was created.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}
