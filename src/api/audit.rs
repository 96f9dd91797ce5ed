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
    /// Pass it as `after` for the next page; null at the end.
    next: Option<AuditId>,
}

/// Which entries.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only what keys of this name did.
    #[param(max_length = 64)]
    actor: Option<String>,
    /// Only what was done to this id or name.
    #[param(max_length = 200)]
    resource: Option<String>,
    /// The cursor that the page before gave.
    after: Option<AuditId>,
    /// Rows: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Reads the audit log, newest first: every request that changes something, whoever sent it and whatever came
/// of it, and every sign-in.
#[utoipa::path(
    get, path = "/v1/audit", tag = "access", operation_id = "list_audit", params(AuditQuery),
    responses(
        (status = 200, description = "A page of entries", body = AuditList),
        (status = 400, body = Problem, description = "A query that cannot be read", content_type = "application/problem+json"),
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
