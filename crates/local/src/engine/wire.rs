//! Bodies of vLLM's OpenAI-compatible routes.

use std::collections::BTreeMap;

use nlac_chat::Message;
use serde::{Deserialize, Serialize};

/// Fields that change the answer and that this engine does not have: refused, not ignored.
const UNSUPPORTED: [&str; 16] = [
    "structured_outputs",
    "response_format",
    "logit_bias",
    "best_of",
    "suffix",
    "echo",
    "prompt_logprobs",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "allowed_token_ids",
    "bad_words",
    "min_tokens",
    "tools",
    "use_beam_search",
    "truncate_prompt_tokens",
];

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
    Texts(Vec<String>),
    TokenLists(Vec<Vec<u32>>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Stop {
    One(String),
    Many(Vec<String>),
}

/// What both generation routes understand.
#[derive(Debug, Deserialize)]
pub struct Common {
    pub model: Option<String>,
    pub n: Option<usize>,
    pub seed: Option<i64>,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub top_k: Option<i64>,
    pub min_p: Option<f32>,
    pub stop: Option<Stop>,
    #[serde(default)]
    pub stop_token_ids: Vec<u32>,
    #[serde(default)]
    pub ignore_eos: bool,
    #[serde(default)]
    pub stream: bool,
    #[serde(default)]
    pub stream_options: StreamOptions,
    #[serde(default)]
    pub return_token_ids: bool,
    pub cache_salt: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

impl Common {
    /// A field that asks for what this engine does not have; its neutral values pass.
    pub fn unsupported(&self) -> Option<&str> {
        self.rest.iter().find_map(|(name, value)| {
            let neutral = match value {
                serde_json::Value::Null | serde_json::Value::Bool(false) => true,
                serde_json::Value::Number(n) => {
                    n.as_f64() == Some(0.0)
                        || (name == "repetition_penalty" || name == "best_of")
                            && n.as_f64() == Some(1.0)
                }
                serde_json::Value::Array(a) => a.is_empty(),
                serde_json::Value::Object(o) => {
                    o.is_empty() || o.get("type").is_some_and(|t| t == "text")
                }
                _ => false,
            };
            (!neutral && UNSUPPORTED.contains(&name.as_str())).then_some(name.as_str())
        })
    }
}

#[derive(Debug, Default, Deserialize)]
pub struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
}

#[derive(Debug, Deserialize)]
pub struct CompletionRequest {
    pub prompt: Prompt,
    pub max_tokens: Option<usize>,
    pub logprobs: Option<usize>,
    #[serde(flatten)]
    pub common: Common,
}

#[derive(Debug, Deserialize)]
pub struct ChatRequest {
    pub messages: Vec<Message>,
    pub max_tokens: Option<usize>,
    pub max_completion_tokens: Option<usize>,
    #[serde(default)]
    pub logprobs: bool,
    pub top_logprobs: Option<usize>,
    #[serde(flatten)]
    pub common: Common,
}

#[derive(Debug, Clone, Serialize)]
pub struct Usage {
    pub prompt_tokens: usize,
    pub total_tokens: usize,
    pub completion_tokens: usize,
}

#[derive(Debug, Serialize)]
pub struct Completion<C> {
    pub id: String,
    pub object: &'static str,
    pub created: u64,
    pub model: String,
    pub choices: Vec<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Chat only: at the top level there, per choice in completions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Serialize)]
pub struct TextChoice {
    pub index: usize,
    pub text: String,
    pub logprobs: Option<TextLogprobs>,
    pub finish_reason: Option<&'static str>,
    pub stop_reason: Option<serde_json::Value>,
    pub token_ids: Option<Vec<u32>>,
    pub prompt_token_ids: Option<Vec<u32>>,
    pub prompt_logprobs: Option<()>,
}

#[derive(Debug, Default, Serialize)]
pub struct TextLogprobs {
    pub text_offset: Vec<usize>,
    pub token_logprobs: Vec<Option<f32>>,
    pub tokens: Vec<String>,
    pub top_logprobs: Vec<Option<BTreeMap<String, f32>>>,
}

#[derive(Debug, Serialize)]
pub struct ChatChoice {
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<ChatMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<ChatMessage>,
    pub logprobs: Option<ChatLogprobs>,
    pub finish_reason: Option<&'static str>,
    pub stop_reason: Option<serde_json::Value>,
    pub token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Serialize)]
pub struct ChatMessage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub content: String,
}

#[derive(Debug, Serialize)]
pub struct ChatLogprobs {
    pub content: Vec<ChatLogprob>,
}

#[derive(Debug, Serialize)]
pub struct ChatLogprob {
    pub token: String,
    pub logprob: f32,
    pub bytes: Option<Vec<u8>>,
    pub top_logprobs: Vec<TopLogprob>,
}

#[derive(Debug, Serialize)]
pub struct TopLogprob {
    pub token: String,
    pub logprob: f32,
    pub bytes: Option<Vec<u8>>,
}

#[derive(Debug, Deserialize)]
pub struct TokenizeRequest {
    pub model: Option<String>,
    pub prompt: Option<String>,
    pub messages: Option<Vec<Message>>,
    pub add_special_tokens: Option<bool>,
    pub add_generation_prompt: Option<bool>,
}

#[derive(Debug, Serialize)]
pub struct Tokenized {
    pub count: usize,
    pub max_model_len: usize,
    pub tokens: Vec<u32>,
    pub token_strs: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub struct DetokenizeRequest {
    pub tokens: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub struct Detokenized {
    pub prompt: String,
}

#[derive(Debug, Deserialize)]
pub struct LoadRequest {
    #[serde(default)]
    pub lora_name: String,
    #[serde(default)]
    pub lora_path: String,
}

#[derive(Debug, Serialize)]
pub struct ModelList {
    pub object: &'static str,
    pub data: Vec<ModelCard>,
}

#[derive(Debug, Serialize)]
pub struct ModelCard {
    pub id: String,
    pub object: &'static str,
    pub created: u64,
    pub owned_by: &'static str,
    pub root: String,
    pub parent: Option<String>,
    pub max_model_len: Option<usize>,
    pub permission: Vec<()>,
}
