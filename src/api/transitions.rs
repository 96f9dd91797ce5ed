//! Transitions, and everything that was said about one.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    extract::{Id, Params, limit},
    problem::Problem,
};
use crate::{
    domain::{
        annotation::Verdict,
        ids::{JobId, TransitionId},
    },
    store::{
        jobs,
        read::{
            annotations::{self, Annotations},
            experience::{self, TransitionFilter, TransitionView},
        },
    },
};

/// A page of transitions.
#[derive(Serialize, ToSchema)]
pub struct TransitionList {
    /// Newest first.
    data: Vec<TransitionView>,
    /// Pass it as `after` for the next page; null at the end.
    next: Option<TransitionId>,
}

/// Which transitions.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TransitionQuery {
    /// Only those whose newest verdict is this.
    verdict: Option<Verdict>,
    /// Only those whose newest refinement changed the action, or did not.
    changed: Option<bool>,
    /// The cursor that the page before gave.
    after: Option<TransitionId>,
    /// Rows: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists a job's transitions, newest first, each with its newest critique and refinement.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/transitions", tag = "experience", operation_id = "list_transitions",
    params(("id" = JobId, Path), TransitionQuery),
    responses(
        (status = 200, description = "A page of transitions", body = TransitionList),
        (status = 400, body = Problem, description = "A query that cannot be read", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job", content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
    Params(query): Params<TransitionQuery>,
) -> Result<Json<TransitionList>, Problem> {
    let limit = limit(query.limit)?;
    let mut conn = state.store.acquire().await?;
    if jobs::get(&mut conn, id).await?.is_none() {
        return Err(Problem::not_found("job", id));
    }
    let TransitionQuery { verdict, changed, after, .. } = query;
    let filter = TransitionFilter { job: Some(id), one: None, verdict, changed, after };
    let data = experience::transitions(&mut conn, filter, limit).await?;
    let next = data.last().filter(|_| data.len() as i64 == limit).map(|t| t.id);
    Ok(Json(TransitionList { data, next }))
}

/// Reads a transition.
#[utoipa::path(
    get, path = "/v1/transitions/{id}", tag = "experience", operation_id = "get_transition",
    params(("id" = TransitionId, Path)),
    responses(
        (status = 200, description = "The transition", body = TransitionView),
        (status = 400, body = Problem, description = "Not an id", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such transition", content_type = "application/problem+json"),
    )
)]
pub(super) async fn read(
    State(state): State<AppState>,
    Id(id): Id<TransitionId>,
) -> Result<Json<TransitionView>, Problem> {
    let mut conn = state.store.acquire().await?;
    let filter = TransitionFilter { one: Some(id), ..TransitionFilter::default() };
    let mut found = experience::transitions(&mut conn, filter, 1).await?;
    found.pop().map(Json).ok_or_else(|| Problem::not_found("transition", id))
}

/// Reads everything that was derived from a transition: predictions, Bellman targets, critiques and
/// refinements of every iteration, each with what made it.
#[utoipa::path(
    get, path = "/v1/transitions/{id}/critiques", tag = "experience",
    operation_id = "list_critiques", params(("id" = TransitionId, Path)),
    responses(
        (status = 200, description = "All annotations", body = Annotations),
        (status = 400, body = Problem, description = "Not an id", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such transition", content_type = "application/problem+json"),
    )
)]
pub(super) async fn critiques(
    State(state): State<AppState>,
    Id(id): Id<TransitionId>,
) -> Result<Json<Annotations>, Problem> {
    let mut conn = state.store.acquire().await?;
    let filter = TransitionFilter { one: Some(id), ..TransitionFilter::default() };
    if experience::transitions(&mut conn, filter, 1).await?.is_empty() {
        return Err(Problem::not_found("transition", id));
    }
    Ok(Json(annotations::of_transition(&mut conn, id).await?))
}
