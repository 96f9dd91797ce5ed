//! Checkpoints.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    extract::{Id, Params, limit},
    problem::Problem,
};
use crate::{
    domain::ids::{CheckpointId, JobId},
    store::{
        jobs,
        read::jobs::{self as read_jobs, CheckpointView},
    },
};

/// A page of checkpoints.
#[derive(Serialize, ToSchema)]
pub struct CheckpointList {
    /// Newest first.
    data: Vec<CheckpointView>,
    /// Pass it as `after` for the next page; null at the end.
    next: Option<CheckpointId>,
}

/// Which checkpoints.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CheckpointQuery {
    /// The cursor that the page before gave.
    after: Option<CheckpointId>,
    /// Rows: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists a job's checkpoints, newest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/checkpoints", tag = "jobs", operation_id = "list_checkpoints",
    params(("id" = JobId, Path), CheckpointQuery),
    responses(
        (status = 200, description = "A page of checkpoints", body = CheckpointList),
        (status = 400, body = Problem, description = "A query that cannot be read", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job", content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
    Params(query): Params<CheckpointQuery>,
) -> Result<Json<CheckpointList>, Problem> {
    let limit = limit(query.limit)?;
    let mut conn = state.store.acquire().await?;
    if jobs::get(&mut conn, id).await?.is_none() {
        return Err(Problem::not_found("job", id));
    }
    let data = read_jobs::checkpoints(&mut conn, Some(id), None, query.after, limit).await?;
    let next = data.last().filter(|_| data.len() as i64 == limit).map(|c| c.id);
    Ok(Json(CheckpointList { data, next }))
}

/// Reads a checkpoint.
#[utoipa::path(
    get, path = "/v1/checkpoints/{id}", tag = "jobs", operation_id = "get_checkpoint",
    params(("id" = CheckpointId, Path)),
    responses(
        (status = 200, description = "The checkpoint", body = CheckpointView),
        (status = 400, body = Problem, description = "Not an id", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such checkpoint", content_type = "application/problem+json"),
    )
)]
pub(super) async fn read(
    State(state): State<AppState>,
    Id(id): Id<CheckpointId>,
) -> Result<Json<CheckpointView>, Problem> {
    let mut conn = state.store.acquire().await?;
    let mut found = read_jobs::checkpoints(&mut conn, None, Some(id), None, 1).await?;
    found.pop().map(Json).ok_or_else(|| Problem::not_found("checkpoint", id))
}
