//! The audit log.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    extract::{Params, at_most, limit},
    problem::Problem,
    view::{audit::AuditView, views},
};
use crate::{
    domain::ids::AuditId,
    store::audit::{self, AuditFilter},
};

/// A page of the audit log.
#[derive(Serialize, ToSchema)]
pub struct AuditList {
    /// Newest first.
    data: Vec<AuditView>,
    /// Cursor of the next page: pass it as `after`. Null on the last page.
    next: Option<AuditId>,
}

/// Filters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only actions of keys with this name.
    #[param(max_length = 64)]
    actor: Option<String>,
    /// Only actions on this id or name.
    #[param(max_length = 200)]
    resource: Option<String>,
    /// Cursor from the previous page.
    after: Option<AuditId>,
    /// Rows per page: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists the audit log, newest first: every sign-in and every request that changes something, successful or
/// not.
#[utoipa::path(
    get, path = "/v1/audit", tag = "access", operation_id = "list_audit", params(AuditQuery),
    responses(
        (status = 200, description = "A page of entries", body = AuditList),
        (status = 400, body = Problem, description = "Malformed query", content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Params(query): Params<AuditQuery>,
) -> Result<Json<AuditList>, Problem> {
    let limit = limit(query.limit)?;
    let AuditQuery { actor, resource, after, .. } = &query;
    at_most(64, "actor", actor.as_deref())?;
    at_most(200, "resource", resource.as_deref())?;
    let filter =
        AuditFilter { actor: actor.as_deref(), resource: resource.as_deref(), after: *after };
    let rows = audit::page(&mut *state.store.acquire().await?, &filter, limit).await?;
    let next = rows.last().filter(|_| rows.len() as i64 == limit).map(|entry| entry.id);
    Ok(Json(AuditList { data: views(rows), next }))
}
