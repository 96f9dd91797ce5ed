//! Datasets: logged episodes, sent as lines of JSON.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    episodes::{EpisodeList, page},
    extract::{Params, Whole, limit},
    idempotency::{self, Once},
    problem::Problem,
    view::{datasets::Dataset, views},
};
use crate::{
    domain::{access::Actor, ids::EpisodeId},
    experience::{imported::Imported, logged::LoggedEpisode},
    store::{
        StoreError, datasets,
        deletion::{self, Marked},
        read::episodes::Episodes,
    },
};

/// Largest body of one request, bytes; a file is sent in pieces.
pub(super) const MOST: usize = 32 << 20;

/// All datasets.
#[derive(Serialize, ToSchema)]
pub struct DatasetList {
    /// By name.
    data: Vec<Dataset>,
}

/// What became of the lines.
#[derive(Serialize, ToSchema)]
pub struct ImportReport {
    /// Episodes that were stored.
    stored: usize,
    /// Episodes that were there already, by their id or content.
    repeated: usize,
    /// Lines that cannot be learnt from.
    refused: Vec<RefusedLine>,
}

/// A line that cannot be learnt from.
#[derive(Serialize, ToSchema)]
pub struct RefusedLine {
    /// Its number in the body, from 1; empty lines count.
    line: usize,
    /// Why.
    reason: String,
}

/// Lists datasets.
#[utoipa::path(
    get, path = "/v1/datasets", tag = "datasets", operation_id = "list_datasets",
    responses((status = 200, description = "All datasets", body = DatasetList))
)]
pub(super) async fn list(State(state): State<AppState>) -> Result<Json<DatasetList>, Problem> {
    let mut conn = state.store.acquire().await?;
    Ok(Json(DatasetList { data: views(datasets::list(&mut conn).await?) }))
}

/// Deletes a dataset. Jobs that have learnt from it keep what they learnt from; the rest of its episodes is removed in the
/// background.
#[utoipa::path(
    delete, path = "/v1/datasets/{name}", tag = "datasets", operation_id = "delete_dataset",
    params(("name" = String, Path, description = "A dataset")),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 404, body = Problem, description = "No such dataset", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "A job that is not over names it", content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let mut tx = state.store.begin().await?;
    match deletion::mark_dataset(&mut tx, &name).await? {
        Marked::Done => {
            tx.commit().await.map_err(StoreError::from)?;
            Ok(StatusCode::NO_CONTENT)
        }
        Marked::Unknown => Err(Problem::not_found("dataset", name)),
        Marked::Needed(job) => {
            Err(Problem::conflict(format!("job {job} names the dataset and may still go on"))
                .remedy("cancel the job, wait for its end, or delete it if it failed"))
        }
    }
}

/// Which episodes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DatasetEpisodeQuery {
    /// The cursor that the page before gave.
    after: Option<EpisodeId>,
    /// Rows: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists the episodes of a dataset, newest first.
#[utoipa::path(
    get, path = "/v1/datasets/{name}/episodes", tag = "datasets", operation_id = "list_dataset_episodes",
    params(("name" = String, Path, description = "A dataset"), DatasetEpisodeQuery),
    responses(
        (status = 200, description = "A page of episodes", body = EpisodeList),
        (status = 400, body = Problem, description = "A query that cannot be read", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such dataset", content_type = "application/problem+json"),
    )
)]
pub(super) async fn episodes(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Params(query): Params<DatasetEpisodeQuery>,
) -> Result<Json<EpisodeList>, Problem> {
    let limit = limit(query.limit)?;
    let mut conn = state.store.acquire().await?;
    if datasets::size(&mut conn, &name).await?.is_none() {
        return Err(Problem::not_found("dataset", name));
    }
    page(&mut conn, Episodes::OfDataset(&name), query.after, limit).await
}

/// Adds logged episodes to a dataset. Sent again, the same lines change nothing.
#[utoipa::path(
    post, path = "/v1/datasets/{name}/episodes", tag = "datasets", operation_id = "import_episodes",
    params(
        ("name" = String, Path, description = "Lower-case letters, digits and dashes, 63 at most"),
        ("Idempotency-Key" = Option<String>, Header, description = idempotency::ABOUT, min_length = 1, max_length = 255, pattern = "^[!-~]+$"),
    ),
    request_body(
        content = String, content_type = "application/x-ndjson",
        description = "One episode per line: `messages` in chat format (tool calls included) or, if the agent \
                       rewrote its history, `steps` with the `messages` and the `reply` of each call; and \
                       `rewards` per action (null where one is awaited), `return`, `success` or \
                       `\"pending\": true`; optionally `id`, `task`, `model`, `tools`, `truncated`. 32 MiB at most."
    ),
    responses(
        (status = 200, description = "What became of the lines", body = ImportReport),
        (status = 400, body = Problem, description = "Not a name, or not UTF-8", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "The idempotency key was used for another request", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as lines of JSON", content_type = "application/problem+json"),
    )
)]
pub(super) async fn import(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Extension(actor): Extension<Actor>,
    headers: HeaderMap,
    once: Once<Whole>,
) -> Result<Json<ImportReport>, Problem> {
    let mut once = once.of("import_episodes");
    let Whole(body) = once.body()?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/x-ndjson")) {
        let detail = "the body must be sent as application/x-ndjson";
        return Err(Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
            .remedy("add the header `Content-Type: application/x-ndjson`"));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 63 || !name.chars().all(allowed) {
        return Err(Problem::bad_request(format!("{name:?} is not a name of a dataset"))
            .remedy("use lower-case letters, digits and dashes, 63 at most"));
    }
    let now = state.clock.now();
    // Much of it is work: other requests do not wait for it.
    let read = tokio::task::spawn_blocking(move || read(&body, now));
    let (episodes, refused) = read.await.map_err(|e| {
        tracing::error!(error = %e, "lines could not be read");
        Problem::broken_off()
    })??;
    let sent = episodes.len();
    let mut tx = state.store.begin().await?;
    // The lines are stored once in any case; the key must not have been used for others.
    once.keep(&mut tx, &actor, &name).await?;
    let stored = datasets::insert_many(&mut tx, &name, episodes).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(Json(ImportReport { stored, repeated: sent - stored, refused }))
}

/// The episodes of a body, and the lines that are none.
fn read(body: &[u8], now: OffsetDateTime) -> Result<(Vec<Imported>, Vec<RefusedLine>), Problem> {
    let text = std::str::from_utf8(body)
        .map_err(|e| Problem::bad_request(format!("the body is not UTF-8: {e}")))?;
    let (mut episodes, mut refused) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let episode = LoggedEpisode::parse(text);
        match episode.and_then(|e| e.into_rows(now).map_err(|e| e.to_string())) {
            Ok(episode) => episodes.push(episode),
            Err(reason) => refused.push(RefusedLine { line, reason }),
        }
    }
    Ok((episodes, refused))
}
