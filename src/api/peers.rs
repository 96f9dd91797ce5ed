//! Engines and trainers.

use axum::{
    Json,
    extract::{Path, State},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AppState, extract::Valid, problem::Problem};
use crate::store::peers::{self, EngineRecord, TrainerRecord};

/// All engines.
#[derive(Serialize, ToSchema)]
pub struct EngineList {
    /// By name.
    data: Vec<EngineRecord>,
}

/// All trainers.
#[derive(Serialize, ToSchema)]
pub struct TrainerList {
    /// By name.
    data: Vec<TrainerRecord>,
}

/// Dialects of engines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// vLLM's protocol with run-time LoRA.
    Vllm,
}

/// Protocols of trainers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrainerKind {
    /// The Tinker API, as hosted, as nlac's own trainers and as SkyRL's FSDP and Megatron backends speak it:
    /// losses are summed over tokens.
    Tinker,
    /// SkyRL's JAX backend: the same operations, but losses are averaged per sequence, and gradients are
    /// not clipped.
    SkyrlJax,
}

impl TrainerKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tinker => "tinker",
            Self::SkyrlJax => "skyrl_jax",
        }
    }
}

/// An engine's registration.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PutEngine {
    /// Its dialect.
    #[garde(skip)]
    #[serde(rename = "kind")]
    _kind: EngineKind,
    /// `http://host:port` of every replica; all serve the same base model and see the same adapter files.
    #[garde(length(min = 1, max = 64), inner(pattern("^https?://")))]
    #[schema(min_items = 1, max_items = 64, example = json!(["http://10.0.0.1:8000", "http://10.0.0.2:8000"]))]
    urls: Vec<String>,
    /// The base model's name on the wire.
    #[garde(length(min = 1, max = 200))]
    #[schema(min_length = 1, max_length = 200)]
    base_model: String,
    /// Directory with the base model's tokenizer and chat template, as this service sees it.
    #[garde(length(min = 1, max = 4096))]
    #[schema(min_length = 1, max_length = 4096)]
    model_dir: String,
    /// Whether requests may carry a seed, so that the same request writes the same text. Set it to false for
    /// engines that fail on seeds (vLLM 0.32's build for CPUs dies of one); seeds are then not recorded either.
    #[garde(skip)]
    #[serde(default = "yes")]
    seeds: bool,
}

const fn yes() -> bool {
    true
}

/// A trainer's registration.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PutTrainer {
    /// Its protocol.
    #[garde(skip)]
    kind: TrainerKind,
    /// `http://host:port`.
    #[garde(pattern("^https?://"))]
    #[schema(pattern = "^https?://", example = "http://127.0.0.1:8001")]
    url: String,
    /// The base model's name on the wire.
    #[garde(length(min = 1, max = 200))]
    #[schema(min_length = 1, max_length = 200)]
    base_model: String,
}

/// Lists engines.
#[utoipa::path(
    get, path = "/v1/engines", tag = "peers", operation_id = "list_engines",
    responses((status = 200, description = "All engines", body = EngineList))
)]
pub(super) async fn engines(State(state): State<AppState>) -> Result<Json<EngineList>, Problem> {
    let mut conn = state.store.acquire().await?;
    Ok(Json(EngineList { data: peers::engines(&mut conn).await? }))
}

/// Lists trainers.
#[utoipa::path(
    get, path = "/v1/trainers", tag = "peers", operation_id = "list_trainers",
    responses((status = 200, description = "All trainers", body = TrainerList))
)]
pub(super) async fn trainers(State(state): State<AppState>) -> Result<Json<TrainerList>, Problem> {
    let mut conn = state.store.acquire().await?;
    Ok(Json(TrainerList { data: peers::trainers(&mut conn).await? }))
}

/// Registers an engine, or changes its registration.
#[utoipa::path(
    put, path = "/v1/engines/{name}", tag = "peers", operation_id = "put_engine",
    params(("name" = String, Path)), request_body = PutEngine,
    responses(
        (status = 200, description = "Registered", body = EngineRecord),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "An impossible registration", content_type = "application/problem+json"),
    )
)]
pub(super) async fn put_engine(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(body): Valid<PutEngine>,
) -> Result<Json<EngineRecord>, Problem> {
    let record = EngineRecord {
        name: named(name)?,
        kind: "vllm".into(),
        urls: body.urls,
        base_model: body.base_model,
        model_dir: body.model_dir,
        seeds: body.seeds,
    };
    peers::put_engine(&mut *state.store.acquire().await?, &record).await?;
    Ok(Json(record))
}

/// Registers a trainer, or changes its registration.
#[utoipa::path(
    put, path = "/v1/trainers/{name}", tag = "peers", operation_id = "put_trainer",
    params(("name" = String, Path)), request_body = PutTrainer,
    responses(
        (status = 200, description = "Registered", body = TrainerRecord),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "An impossible registration", content_type = "application/problem+json"),
    )
)]
pub(super) async fn put_trainer(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(body): Valid<PutTrainer>,
) -> Result<Json<TrainerRecord>, Problem> {
    let record = TrainerRecord {
        name: named(name)?,
        kind: body.kind.name().into(),
        url: body.url,
        base_model: body.base_model,
    };
    peers::put_trainer(&mut *state.store.acquire().await?, &record).await?;
    Ok(Json(record))
}

fn named(name: String) -> Result<String, Problem> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 100 && name.chars().all(fine) {
        return Ok(name);
    }
    Err(Problem::unprocessable(format!("{name:?} is not a name"))
        .remedy("use letters, digits, dashes and underscores, at most 100"))
}
