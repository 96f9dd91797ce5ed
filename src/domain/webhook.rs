//! Who is told of events.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
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

/// What the secret of every webhook is made of: the secrets themselves are kept nowhere.
#[derive(Clone)]
pub struct WebhookKey(Vec<u8>);

impl std::fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookKey(…)")
    }
}

impl WebhookKey {
    /// Of random bytes, at least 32 of them.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= 32).then_some(Self(bytes))
    }

    /// The secret of a webhook, in the form that libraries of standardwebhooks.com read.
    #[must_use]
    pub fn secret(&self, id: WebhookId) -> String {
        format!("whsec_{}", STANDARD.encode(self.bytes(id)))
    }

    /// The value of `webhook-signature` for a message.
    ///
    /// # Errors
    /// A body that is not UTF-8.
    pub fn sign(
        &self,
        id: WebhookId,
        message: &str,
        unix_time: i64,
        body: &[u8],
    ) -> Result<String, String> {
        standardwebhooks::Webhook::from_bytes(self.bytes(id))
            .and_then(|secret| secret.sign(message, unix_time, body))
            .map_err(|e| e.to_string())
    }

    fn bytes(&self, id: WebhookId) -> Vec<u8> {
        // A key of any length is one that HMAC takes.
        Hmac::<Sha256>::new_from_slice(&self.0)
            .map(|mac| mac.chain_update(id.0.as_bytes()).finalize().into_bytes().to_vec())
            .unwrap_or_default()
    }
}
