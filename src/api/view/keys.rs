//! API keys, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::{access::Scope, ids::KeyId},
    store::keys::KeyRow,
};

/// A key as it is shown: all but its secret.
#[derive(Serialize, ToSchema)]
pub struct KeyView {
    /// Its id.
    pub id: KeyId,
    /// Whose it is; what jobs and the audit log call them.
    pub name: String,
    /// The secret's first characters, to recognise it by.
    pub prefix: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Requests that it may make in a minute.
    pub requests_per_minute: i32,
    /// Name of the key that made it.
    pub created_by: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// When it ends by itself; null if it does not.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<OffsetDateTime>,
    /// When it was revoked; null if it was not.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<OffsetDateTime>,
    /// When it was last used, to the minute; null if it never was.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<OffsetDateTime>,
}

impl From<KeyRow> for KeyView {
    fn from(row: KeyRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            prefix: row.prefix,
            scopes: row.scopes.0,
            requests_per_minute: row.requests_per_minute,
            created_by: row.created_by,
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
        }
    }
}
