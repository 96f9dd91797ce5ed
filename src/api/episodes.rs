//! Episodes.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    extract::{Id, Params, limit},
    problem::Problem,
    view::{episodes::EpisodeView, views},
};
use crate::{
    domain::ids::{EpisodeId, JobId},
    experience::episode::Purpose,
    store::{
        jobs,
        read::episodes::{self, EpisodeRow, Episodes},
    },
};

/// A page of episodes.
#[derive(Serialize, ToSchema)]
pub struct EpisodeList {
    /// Newest first.
    data: Vec<EpisodeView>,
    /// Cursor of the next page: pass it as `after`. Null on the last page.
    next: Option<EpisodeId>,
}

/// Filters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EpisodeQuery {
    /// Only training episodes, or only evaluation episodes.
    purpose: Option<Purpose>,
    /// Cursor from the previous page.
    after: Option<EpisodeId>,
    /// Rows per page: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists the episodes that a job played, newest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/episodes", tag = "experience", operation_id = "list_episodes",
    params(("id" = JobId, Path), EpisodeQuery),
    responses(
        (status = 200, description = "A page of episodes", body = EpisodeList),
        (status = 400, body = Problem, description = "Malformed query", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job", content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
    Params(query): Params<EpisodeQuery>,
) -> Result<Json<EpisodeList>, Problem> {
    let limit = limit(query.limit)?;
    let mut conn = state.store.acquire().await?;
    if jobs::get(&mut conn, id).await?.is_none() {
        return Err(Problem::not_found("job", id));
    }
    let EpisodeQuery { purpose, after, .. } = query;
    page(&mut conn, Episodes::OfJob(id, purpose), after, limit).await
}

/// A page of episodes.
pub(super) async fn page(
    conn: &mut PgConnection,
    which: Episodes<'_>,
    after: Option<EpisodeId>,
    limit: i64,
) -> Result<Json<EpisodeList>, Problem> {
    let rows = episodes::episodes(conn, which, after, limit).await?;
    let next = rows.last().filter(|_| rows.len() as i64 == limit).map(|e| e.id);
    Ok(Json(EpisodeList { data: views(rows), next }))
}

/// Reads an episode.
#[utoipa::path(
    get, path = "/v1/episodes/{id}", tag = "experience", operation_id = "get_episode",
    params(("id" = EpisodeId, Path)),
    responses(
        (status = 200, description = "The episode", body = EpisodeView),
        (status = 400, body = Problem, description = "Not an id", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such episode", content_type = "application/problem+json"),
    )
)]
pub(super) async fn read(
    State(state): State<AppState>,
    Id(id): Id<EpisodeId>,
) -> Result<Json<EpisodeView>, Problem> {
    let mut conn = state.store.acquire().await?;
    Ok(Json(one(&mut conn, id).await?.into()))
}

/// One episode.
pub(super) async fn one(conn: &mut PgConnection, id: EpisodeId) -> Result<EpisodeRow, Problem> {
    let mut found = episodes::episodes(conn, Episodes::One(id), None, 1).await?;
    found.pop().ok_or_else(|| Problem::not_found("episode", id))
}
