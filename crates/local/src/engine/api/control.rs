//! Everything but generation: models, adapters, tokens, health, metrics.

use std::{
    fmt::Write as _,
    sync::{Arc, atomic::Ordering},
};

use axum::{Json, extract::State, extract::rejection::JsonRejection};
use serde_json::json;

use super::Shared;
use crate::engine::{
    batch::Message,
    error::ApiError,
    wire::{
        DetokenizeRequest, Detokenized, LoadRequest, ModelCard, ModelList, TokenizeRequest,
        Tokenized,
    },
};

type Body<T> = Result<Json<T>, JsonRejection>;

/// The body, or vLLM's 400.
pub(super) fn parse<T>(body: Body<T>) -> Result<T, ApiError> {
    body.map(|Json(body)| body).map_err(|e| ApiError::bad_request(e.body_text()))
}

pub(super) async fn models(State(shared): State<Arc<Shared>>) -> Json<ModelList> {
    let base = shared.options.served_model_name.clone();
    let data = shared
        .adapters
        .all()
        .into_iter()
        .map(|served| ModelCard {
            object: "model",
            created: shared.started,
            owned_by: "nlac",
            root: served.path.as_ref().unwrap_or(&shared.options.model_dir).display().to_string(),
            parent: served.path.is_some().then(|| base.clone()),
            max_model_len: served.path.is_none().then_some(shared.config.max_position_embeddings),
            permission: Vec::new(),
            id: served.name,
        })
        .collect();
    Json(ModelList { object: "list", data })
}

pub(super) async fn load(
    State(shared): State<Arc<Shared>>,
    body: Body<LoadRequest>,
) -> Result<String, ApiError> {
    let request = parse(body)?;
    let name = request.lora_name.clone();
    let loading = tokio::task::spawn_blocking(move || {
        let Shared { adapters, config, options, .. } = &*shared;
        adapters.load(&request.lora_name, &request.lora_path, config, options)
    });
    loading.await.map_err(|e| ApiError::internal(e.to_string()))??;
    Ok(format!("Success: LoRA adapter '{name}' added successfully."))
}

pub(super) async fn unload(
    State(shared): State<Arc<Shared>>,
    body: Body<LoadRequest>,
) -> Result<String, ApiError> {
    let name = parse(body)?.lora_name;
    let id = shared.adapters.unload(&name)?;
    shared.send(Message::Forget(id));
    Ok(format!("Success: LoRA adapter '{name}' removed successfully."))
}

pub(super) async fn tokenize(
    State(shared): State<Arc<Shared>>,
    body: Body<TokenizeRequest>,
) -> Result<Json<Tokenized>, ApiError> {
    let request = parse(body)?;
    shared.adapters.find(request.model.as_deref())?;
    let tokens = match (request.messages, request.prompt) {
        (Some(messages), _) => {
            shared.tokenizer.encode_chat(&messages, request.add_generation_prompt.unwrap_or(true))
        }
        (None, Some(prompt)) => {
            shared.tokenizer.encode(&prompt, request.add_special_tokens.unwrap_or(true))
        }
        (None, None) => return Err(ApiError::bad_request("prompt or messages is required")),
    }
    .map_err(|e| ApiError::bad_request(e.to_string()))?;
    let max_model_len = shared.config.max_position_embeddings;
    Ok(Json(Tokenized { count: tokens.len(), max_model_len, tokens, token_strs: None }))
}

pub(super) async fn detokenize(
    State(shared): State<Arc<Shared>>,
    body: Body<DetokenizeRequest>,
) -> Result<Json<Detokenized>, ApiError> {
    let tokens = parse(body)?.tokens;
    let prompt = shared
        .tokenizer
        .decode(&tokens, false)
        .map_err(|e| ApiError::bad_request(e.to_string()))?;
    Ok(Json(Detokenized { prompt }))
}

pub(super) async fn version() -> Json<serde_json::Value> {
    Json(json!({ "version": concat!("nlac-local-", env!("CARGO_PKG_VERSION")) }))
}

pub(super) async fn server_load(State(shared): State<Arc<Shared>>) -> Json<serde_json::Value> {
    let gauges = &shared.gauges;
    let load = gauges.running.load(Ordering::Relaxed) + gauges.waiting.load(Ordering::Relaxed);
    Json(json!({ "server_load": load }))
}

pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> String {
    let gauges = &shared.gauges;
    let read = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    let mut text = String::new();
    let model = &shared.options.served_model_name;
    let mut line = |kind: &str, name: &str, value: f64| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE vllm:{name} {kind}");
        let _ = writeln!(text, "vllm:{name}{{engine=\"0\",model_name=\"{model}\"}} {value}");
    };
    line("gauge", "num_requests_running", read(&gauges.running) as f64);
    line("gauge", "num_requests_waiting", read(&gauges.waiting) as f64);
    line("gauge", "kv_cache_usage_perc", f64::from_bits(read(&gauges.cache_usage)));
    line("counter", "prefix_cache_queries_total", read(&gauges.prefix_queries) as f64);
    line("counter", "prefix_cache_hits_total", read(&gauges.prefix_hits) as f64);
    line("counter", "prompt_tokens_total", read(&gauges.prompt_tokens) as f64);
    line("counter", "generation_tokens_total", read(&gauges.generated_tokens) as f64);
    text
}
