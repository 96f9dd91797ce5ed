//! The pages: rendered here, kept fresh by htmx and the event stream, readable without either. Every text is
//! escaped.

mod chart;
mod compare;
mod diff;
mod episode;
mod fleet;
mod format;
mod job;
mod jobs;
mod parts;
mod search;
mod transition;

use askama::Template;
use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};

use super::{AppState, problem::Problem};

#[derive(rust_embed::Embed)]
#[folder = "assets/"]
struct Assets;

/// Every page and what it is made of.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(jobs::page))
        .route("/jobs/rows", get(jobs::rows))
        .route("/jobs/{id}", get(job::page))
        .route("/jobs/{id}/live", get(job::live))
        .route("/jobs/{id}/episodes", get(episode::list))
        .route("/jobs/{id}/checkpoints", get(parts::checkpoints))
        .route("/jobs/{id}/events", get(parts::events))
        .route("/jobs/{id}/spec", get(parts::spec))
        .route("/episodes/{id}", get(episode::page))
        .route("/search", get(search::page))
        .route("/search/results", get(search::results))
        .route("/compare", get(compare::page))
        .route("/fleet", get(fleet::page))
        .route("/fleet/live", get(fleet::live))
        .route("/assets/{*file}", get(asset))
}

/// Style and script. They change with the binary alone.
async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let kind = match file.rsplit('.').next() {
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let asset = Assets::get(&file).ok_or_else(|| Problem::not_found("asset", &file))?;
    let hash = asset.metadata.sha256_hash();
    let tag: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    }
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    Ok((headers, asset.data.into_owned()).into_response())
}

fn render(page: &impl Template) -> Result<Html<String>, Problem> {
    page.render().map(Html).map_err(|error| {
        tracing::error!(%error, "a page cannot be rendered");
        Problem::with_status(StatusCode::INTERNAL_SERVER_ERROR, "the page is broken")
    })
}
