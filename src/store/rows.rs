//! Many rows as one parameter. A statement that names every value grows with its rows: Postgres parses and
//! plans ten thousand parameters each time, and every connection keeps the texts.

use serde::Serialize;

use super::StoreError;
use crate::experience::context::ContentHash;

/// Most rows of a statement, so that a parameter stays within some megabytes.
pub(super) const ROWS: usize = 1000;

/// Rows for `json_populate_recordset(null::TABLE, $1::json)`: their fields are columns by name, others are
/// left out.
///
/// # Errors
/// A row that cannot be said in JSON.
pub(super) fn json<T: Serialize>(rows: &[T]) -> Result<String, StoreError> {
    serde_json::to_string(rows).map_err(|e| sqlx::Error::Encode(e.into()).into())
}

/// Bytes as Postgres reads them in JSON.
pub(super) fn bytes(hash: &ContentHash) -> String {
    format!("\\x{}", hex::encode(hash))
}
