//! What a job would take, told without making it.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    AppState,
    problem::Problem,
    submission::{self, SpecText},
};
use crate::{
    domain::spec::JobSpec,
    estimate::{self, Estimate},
    store::{datasets, read::observed},
};

/// A spec that could be submitted, and what it would take.
#[derive(Serialize, ToSchema)]
pub struct Estimated {
    /// What it would take.
    #[serde(flatten)]
    pub(super) estimate: Estimate,
    /// What a submission would warn of.
    pub(super) warnings: Vec<String>,
}

/// Checks a spec as a submission would, and estimates what the job would take; makes no job. Counts follow
/// from the spec and, where that does not decide, from what earlier jobs measured on this installation; each
/// figure says what it is based on, and is null where nothing is known.
#[utoipa::path(
    post, path = "/v1/jobs:estimate", tag = "jobs", operation_id = "estimate_job",
    request_body(content((JobSpec = "application/json"), (JobSpec = "application/yaml"))),
    responses(
        (status = 200, description = "It can be submitted as it is", body = Estimated),
        (status = 400, body = Problem, description = "Neither JSON nor YAML", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON or YAML", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "An impossible spec; `errors` names all that is wrong", content_type = "application/problem+json"),
    )
)]
pub(super) async fn estimate(
    State(state): State<AppState>,
    body: SpecText,
) -> Result<Json<Estimated>, Problem> {
    let admitted = submission::read(&state, &body.text, body.format).await?;
    let estimate = of(&state, &admitted.spec).await?;
    Ok(Json(Estimated { estimate, warnings: admitted.warnings }))
}

/// What a spec would take.
pub(super) async fn of(state: &AppState, spec: &JobSpec) -> Result<Estimate, Problem> {
    let mut conn = state.store.acquire().await?;
    let alike = observed::alike(&mut conn, spec).await?;
    let pace = observed::pace(&mut conn, &spec.model).await?;
    let mut logged = 0;
    for name in &spec.datasets {
        logged += datasets::size(&mut conn, name).await?.unwrap_or(0);
    }
    Ok(estimate::estimate(spec, &alike, &pace, logged))
}
