//! Entries of the audit log, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::ids::{AuditId, KeyId},
    store::audit::AuditRow,
};

/// What somebody did.
#[derive(Serialize, ToSchema)]
pub struct AuditView {
    /// Its id.
    pub id: AuditId,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub at: OffsetDateTime,
    /// The key; null while sign-in is off, and for a sign-in that failed.
    pub key_id: Option<KeyId>,
    /// The key's name; `local` while sign-in is off, `unknown` for a sign-in that failed.
    pub actor: String,
    /// HTTP method.
    pub method: String,
    /// The route as it is declared.
    #[schema(example = "/v1/jobs/{id}/cancel")]
    pub route: String,
    /// What it was done to: the id or name in the path, or that of what was made.
    pub resource: Option<String>,
    /// HTTP status of the answer; null if none was given, as when the client went away.
    pub status: Option<i32>,
}

impl From<AuditRow> for AuditView {
    fn from(row: AuditRow) -> Self {
        Self {
            id: row.id,
            at: row.at,
            key_id: row.key_id,
            actor: row.actor,
            method: row.method,
            route: row.route,
            resource: row.resource,
            status: row.status,
        }
    }
}
