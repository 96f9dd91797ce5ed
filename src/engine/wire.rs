//! Bodies of vLLM's routes, as far as they are used.

use serde::{Deserialize, Serialize};

use crate::domain::message::Message;

#[derive(Serialize)]
pub(super) struct CompletionBody<'a> {
    pub model: &'a str,
    pub prompt: &'a [u32],
    pub max_tokens: u32,
    pub temperature: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    pub return_token_ids: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<u32>,
    /// Keeps the prefix caches of two adapters apart on engines that key them by name alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_salt: Option<&'a str>,
}

#[derive(Deserialize)]
pub(super) struct CompletionAnswer {
    pub model: String,
    pub choices: Vec<Choice>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub text: String,
    pub finish_reason: Option<String>,
    pub token_ids: Option<Vec<u32>>,
    pub prompt_token_ids: Option<Vec<u32>>,
    pub logprobs: Option<Logprobs>,
}

#[derive(Deserialize)]
pub(super) struct Logprobs {
    pub token_logprobs: Vec<Option<f32>>,
}

#[derive(Serialize)]
pub(super) struct LoadBody<'a> {
    pub lora_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora_path: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Models {
    pub data: Vec<Card>,
}

#[derive(Deserialize)]
pub(super) struct Card {
    pub id: String,
    #[serde(default)]
    pub root: Option<String>,
    #[serde(default)]
    pub max_model_len: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Version {
    pub version: String,
}

#[derive(Serialize)]
pub(super) struct TokenizeBody<'a> {
    pub model: &'a str,
    pub messages: &'a [Message],
    pub add_generation_prompt: bool,
}

#[derive(Deserialize)]
pub(super) struct Tokenized {
    pub tokens: Vec<u32>,
}
