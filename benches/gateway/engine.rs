//! An engine that answers at once, in the forms that each gateway asks for.

use std::sync::LazyLock;

use axum::{
    Json, Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Tokens of an answer.
const WRITTEN: usize = 200;
/// The name of the model.
pub const MODEL: &str = "help-desk-base";

/// The words of an answer: nothing that nlac's tokenizer has not.
static TEXT: LazyLock<String> = LazyLock::new(|| vec!["form"; WRITTEN].join(" "));
static LOGPROBS: LazyLock<Vec<f32>> = LazyLock::new(|| vec![-0.25; WRITTEN]);

pub async fn serve(port: u16) {
    let models = || async {
        Json(json!({ "object": "list", "data": [{ "id": MODEL, "max_model_len": 32768 }] }))
    };
    let routes = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/version", get(|| async { Json(json!({ "version": "0.33.0" })) }))
        .route("/v1/models", get(models))
        .route("/v1/load_lora_adapter", post(|| async { "ok" }))
        .route("/v1/completions", post(completion))
        .route("/v1/chat/completions", post(chat))
        .layer(DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    axum::serve(listener, routes).await.unwrap();
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    prompt: &'a RawValue,
}

/// What nlac asks: a prompt of tokens, which the answer repeats.
async fn completion(body: Bytes) -> Json<Value> {
    let asked: Completion<'_> = serde_json::from_slice(&body).unwrap();
    Json(json!({
        "id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL,
        "choices": [{ "index": 0, "text": *TEXT, "finish_reason": "stop", "token_ids": tokens(),
            "prompt_token_ids": asked.prompt, "logprobs": { "token_logprobs": *LOGPROBS } }],
    }))
}

/// What the other gateways ask: a conversation. The answer holds tokens of both, as vLLM's does.
async fn chat(_: Bytes) -> Json<Value> {
    let content: Vec<_> = LOGPROBS
        .iter()
        .map(|logprob| json!({ "token": "form", "logprob": logprob, "top_logprobs": [] }))
        .collect();
    Json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL,
        "prompt_token_ids": vec![7; 500],
        "choices": [{ "index": 0, "finish_reason": "stop", "token_ids": tokens(),
            "message": { "role": "assistant", "content": *TEXT }, "logprobs": { "content": content } }],
        "usage": { "prompt_tokens": 500, "completion_tokens": WRITTEN, "total_tokens": 500 + WRITTEN },
    }))
}

fn tokens() -> Vec<u32> {
    vec![9; WRITTEN]
}
