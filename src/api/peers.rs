//! Engines and trainers.

use axum::{
    Json,
    extract::{Path, State},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::{
    AppState,
    extract::Valid,
    problem::Problem,
    view::{
        peers::{EngineView, TrainerView},
        views,
    },
};
use crate::{
    domain::peer::{EngineKind, EngineRecord, TrainerKind, TrainerRecord},
    store::peers::{self, EngineRow},
};

/// All engines.
#[derive(Serialize, ToSchema)]
pub struct EngineList {
    /// By name.
    data: Vec<EngineView>,
}

/// All trainers.
#[derive(Serialize, ToSchema)]
pub struct TrainerList {
    /// By name.
    data: Vec<TrainerView>,
}

/// An engine's registration.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PutEngine {
    /// Protocol.
    #[garde(skip)]
    kind: EngineKind,
    /// `http://host:port` of every replica. All replicas serve the same base model and see the same adapter
    /// files.
    #[garde(length(min = 1, max = 64), inner(pattern("^https?://"), custom(without_secrets)))]
    #[schema(min_items = 1, max_items = 64, example = json!(["http://10.0.0.1:8000", "http://10.0.0.2:8000"]))]
    urls: Vec<String>,
    /// Replicas that get no new requests. Requests in progress finish, and then the replica can be stopped.
    #[garde(length(max = 64))]
    #[schema(max_items = 64)]
    #[serde(default)]
    draining: Vec<String>,
    /// Name of the base model on the engine.
    #[garde(length(min = 1, max = 200))]
    #[schema(min_length = 1, max_length = 200)]
    base_model: String,
    /// Name of the model in specs (`model.base`), if engine and trainer use different names for it. The
    /// default is `base_model`.
    #[garde(inner(length(min = 1, max = 200)))]
    #[schema(min_length = 1, max_length = 200)]
    model: Option<String>,
    /// Directory of the base model's tokenizer and chat template, as this service sees it. Not needed for the
    /// kinds `tgi` and `openai`.
    #[garde(inner(length(min = 1, max = 4096)))]
    #[schema(min_length = 1, max_length = 4096)]
    model_dir: Option<String>,
    /// Directory of the adapters as the engine sees it, if that differs from this service's path: another
    /// mount, or the directory of `nlac sync`.
    #[garde(inner(length(min = 1, max = 4096)))]
    #[schema(min_length = 1, max_length = 4096)]
    adapter_dir: Option<String>,
    /// Whether requests have a seed, so that the same request gives the same text. Set it to false for
    /// engines that fail on seeds, such as vLLM 0.32's build for CPUs. Seeds are then not recorded.
    #[garde(skip)]
    #[serde(default = "yes")]
    seeds: bool,
    /// Environment variable of this service with the engine's API key. Its name begins with `NLAC_PEER_KEY_`.
    /// `<name>_ORIGINS` lists the origins that may receive the key. The key itself is not stored.
    #[garde(inner(pattern("^NLAC_PEER_KEY_[A-Z0-9_]{1,80}$")))]
    #[schema(pattern = "^NLAC_PEER_KEY_[A-Z0-9_]{1,80}$", example = "NLAC_PEER_KEY_OPENAI")]
    api_key_env: Option<String>,
    /// Milliseconds after which an unanswered request is also sent to another replica. The first answer
    /// counts. By default never.
    #[garde(inner(range(min = 1, max = 600_000)))]
    #[schema(minimum = 1, maximum = 600_000)]
    hedge_ms: Option<i32>,
}

const fn yes() -> bool {
    true
}

/// A trainer's registration.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PutTrainer {
    /// Protocol.
    #[garde(skip)]
    kind: TrainerKind,
    /// `http://host:port`.
    #[garde(pattern("^https?://"), custom(without_secrets))]
    #[schema(pattern = "^https?://", example = "http://127.0.0.1:8001")]
    url: String,
    /// Name of the base model on the trainer.
    #[garde(length(min = 1, max = 200))]
    #[schema(min_length = 1, max_length = 200)]
    base_model: String,
    /// Name of the model in specs (`model.base`). The default is `base_model`.
    #[garde(inner(length(min = 1, max = 200)))]
    #[schema(min_length = 1, max_length = 200)]
    model: Option<String>,
    /// Environment variable of this service with the trainer's API key. Its name begins with
    /// `NLAC_PEER_KEY_`. `<name>_ORIGINS` lists the origins that may receive the key.
    #[garde(inner(pattern("^NLAC_PEER_KEY_[A-Z0-9_]{1,80}$")))]
    #[schema(pattern = "^NLAC_PEER_KEY_[A-Z0-9_]{1,80}$", example = "NLAC_PEER_KEY_TINKER")]
    api_key_env: Option<String>,
}

/// Lists engines.
#[utoipa::path(
    get, path = "/v1/engines", tag = "peers", operation_id = "list_engines",
    responses((status = 200, description = "All engines", body = EngineList))
)]
pub(super) async fn engines(State(state): State<AppState>) -> Result<Json<EngineList>, Problem> {
    let mut conn = state.store.acquire().await?;
    Ok(Json(EngineList { data: views(peers::engines(&mut conn).await?) }))
}

/// Lists trainers.
#[utoipa::path(
    get, path = "/v1/trainers", tag = "peers", operation_id = "list_trainers",
    responses((status = 200, description = "All trainers", body = TrainerList))
)]
pub(super) async fn trainers(State(state): State<AppState>) -> Result<Json<TrainerList>, Problem> {
    let mut conn = state.store.acquire().await?;
    Ok(Json(TrainerList { data: views(peers::trainers(&mut conn).await?) }))
}

/// Registers an engine, or changes its registration.
#[utoipa::path(
    put, path = "/v1/engines/{name}", tag = "peers", operation_id = "put_engine",
    params(("name" = String, Path)), request_body = PutEngine,
    responses(
        (status = 200, description = "Registered, with its capabilities", body = EngineView),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Content-Type is not JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "Invalid registration", content_type = "application/problem+json"),
    )
)]
pub(super) async fn put_engine(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(body): Valid<PutEngine>,
) -> Result<Json<EngineView>, Problem> {
    if let Some(unknown) = body.draining.iter().find(|url| !body.urls.contains(url)) {
        return Err(Problem::unprocessable(format!("draining: {unknown} is not among urls"))
            .remedy("list only registered replicas; remove a replica from urls if it is gone"));
    }
    if body.kind.serves_adapters() && body.model_dir.is_none() {
        return Err(Problem::unprocessable(format!("model_dir is missing for kind {}", body.kind))
            .remedy("set it to a directory with the model's tokenizer.json and chat template"));
    }
    check_key(&state, body.api_key_env.as_deref(), &body.urls)?;
    let record = EngineRecord {
        name: named(name)?,
        kind: body.kind,
        urls: body.urls,
        draining: body.draining,
        model: body.model.unwrap_or_else(|| body.base_model.clone()),
        base_model: body.base_model,
        model_dir: body.model_dir,
        adapter_dir: body.adapter_dir,
        seeds: body.seeds,
        api_key_env: body.api_key_env,
        hedge_ms: body.hedge_ms,
    };
    peers::put_engine(&mut *state.store.acquire().await?, &record).await?;
    let found = state.discover.engine(&record).await;
    let mut conn = state.store.acquire().await?;
    peers::note_engine(&mut conn, &record.name, &found).await?;
    let all = peers::engines(&mut conn).await?;
    let row = all.into_iter().find(|row| row.record.name == record.name);
    let row = row.ok_or_else(|| Problem::not_found("engine", record.name))?;
    Ok(Json(row.into()))
}

/// One of an engine's replicas.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct ReplicaChoice {
    /// Registered URL of the replica.
    #[garde(length(min = 1, max = 500))]
    #[schema(min_length = 1, max_length = 500, example = "http://10.0.0.1:8000")]
    url: String,
}

/// Drains a replica: it gets no new requests, and requests in progress finish.
#[utoipa::path(
    post, path = "/v1/engines/{name}/drain", tag = "peers", operation_id = "drain_replica",
    params(("name" = String, Path)), request_body = ReplicaChoice,
    responses(
        (status = 200, description = "It gets no new requests", body = EngineView),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such engine", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Content-Type is not JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "No such replica", content_type = "application/problem+json"),
    )
)]
pub(super) async fn drain(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(choice): Valid<ReplicaChoice>,
) -> Result<Json<EngineView>, Problem> {
    set_draining(&state, &name, &choice.url, true).await
}

/// Resumes a drained replica.
#[utoipa::path(
    post, path = "/v1/engines/{name}/resume", tag = "peers", operation_id = "resume_replica",
    params(("name" = String, Path)), request_body = ReplicaChoice,
    responses(
        (status = 200, description = "It gets requests again", body = EngineView),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such engine", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Content-Type is not JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "No such replica", content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(choice): Valid<ReplicaChoice>,
) -> Result<Json<EngineView>, Problem> {
    set_draining(&state, &name, &choice.url, false).await
}

async fn set_draining(
    state: &AppState,
    name: &str,
    url: &str,
    draining: bool,
) -> Result<Json<EngineView>, Problem> {
    let mut conn = state.store.acquire().await?;
    let find = |all: Vec<EngineRow>| all.into_iter().find(|row| row.record.name == name);
    let gone = || Problem::not_found("engine", name);
    let engine = find(peers::engines(&mut conn).await?).ok_or_else(gone)?;
    if !engine.record.urls.iter().any(|known| known == url) {
        let known = engine.record.urls.join(", ");
        return Err(Problem::unprocessable(format!(
            "{url} is not a replica of {name}; its replicas are {known}"
        ))
        .remedy("choose one of them"));
    }
    peers::set_draining(&mut conn, name, url, draining).await?;
    let engine = find(peers::engines(&mut conn).await?).ok_or_else(gone)?;
    Ok(Json(engine.into()))
}

/// Registers a trainer, or changes its registration.
#[utoipa::path(
    put, path = "/v1/trainers/{name}", tag = "peers", operation_id = "put_trainer",
    params(("name" = String, Path)), request_body = PutTrainer,
    responses(
        (status = 200, description = "Registered, with its capabilities", body = TrainerView),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Content-Type is not JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "Invalid registration", content_type = "application/problem+json"),
    )
)]
pub(super) async fn put_trainer(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(body): Valid<PutTrainer>,
) -> Result<Json<TrainerView>, Problem> {
    check_key(&state, body.api_key_env.as_deref(), std::slice::from_ref(&body.url))?;
    let record = TrainerRecord {
        name: named(name)?,
        kind: body.kind,
        url: body.url,
        model: body.model.unwrap_or_else(|| body.base_model.clone()),
        base_model: body.base_model,
        api_key_env: body.api_key_env,
    };
    peers::put_trainer(&mut *state.store.acquire().await?, &record).await?;
    let found = state.discover.trainer(&record).await;
    let mut conn = state.store.acquire().await?;
    peers::note_trainer(&mut conn, &record.name, &found).await?;
    let all = peers::trainers(&mut conn).await?;
    let row = all.into_iter().find(|row| row.record.name == record.name);
    let row = row.ok_or_else(|| Problem::not_found("trainer", record.name))?;
    Ok(Json(row.into()))
}

/// Rejects a key that the service lacks, or that is not allowed for these URLs, before the first request
/// needs it.
pub(super) fn check_key(
    state: &AppState,
    variable: Option<&str>,
    urls: &[String],
) -> Result<(), Problem> {
    let Some(name) = variable else { return Ok(()) };
    state.discover.may_send_key(name, urls).map_err(|e| Problem::unprocessable(e.to_string()))
}

/// Rejects parts of a URL that may be secret, because URLs are shown.
pub(super) fn without_secrets(url: &str, _: &()) -> garde::Result {
    match Url::parse(url) {
        Err(error) => Err(garde::Error::new(format!("not a URL: {error}"))),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(garde::Error::new(
                "a URL must not contain a user or a password: put the key into a variable and name it in api_key_env",
            ))
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            Err(garde::Error::new("a URL must end with its path: remove `?` and `#`"))
        }
        Ok(_) => Ok(()),
    }
}

pub(super) fn named(name: String) -> Result<String, Problem> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 100 && name.chars().all(fine) {
        return Ok(name);
    }
    Err(Problem::unprocessable(format!("{name:?} is not a valid name"))
        .remedy("use letters, digits, dashes and underscores, at most 100"))
}
