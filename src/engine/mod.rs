//! Generation on engines that others host.
//!
//! What comes back is what was asked for, or an error: an answer in another model's name, for another
//! prompt, cut by an abort or without its token ids is never data.

mod pool;
mod vllm;
mod wire;

use std::path::PathBuf;

use async_trait::async_trait;

use crate::{
    domain::{
        fault::Fault,
        generation::{FinishReason, Sampling},
        message::Message,
    },
    net::NetError,
};

pub use pool::Pool;
pub use vllm::Limits;
use vllm::Vllm;

/// A published adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    /// The name that engines know it by; never used for anything else.
    pub name: String,
    /// Directory of its PEFT files, as the engine sees it.
    pub path: PathBuf,
}

/// One text to be generated.
#[derive(Debug, Clone)]
pub struct Request {
    /// The adapter to use; none is the base model.
    pub adapter: Option<Adapter>,
    /// The prompt's tokens.
    pub prompt: Vec<u32>,
    /// How to sample.
    pub sampling: Sampling,
    /// Log-probabilities of the written tokens are wanted.
    pub logprobs: bool,
    /// Requests of one session share a prefix: an episode's turns, the samples of one prompt.
    pub session: u64,
}

/// A generated text.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The engine's registered name.
    pub engine: String,
    /// The model name that it echoed.
    pub model: String,
    /// Tokens of the prompt, as it counted them.
    pub prompt_tokens: u32,
    /// Written tokens, end-of-text included where it was written.
    pub token_ids: Vec<u32>,
    /// Their log-probabilities, natural log.
    pub logprobs: Option<Vec<f32>>,
    /// The text without special tokens.
    pub text: String,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// What an engine says of itself.
#[derive(Debug, Clone)]
pub struct EngineInfo {
    /// Its version.
    pub version: String,
    /// Names it serves.
    pub models: Vec<String>,
    /// Longest sequence, tokens.
    pub max_model_len: Option<u32>,
}

/// Why an engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The network, or an answer that is an error.
    #[error("engine {engine}: {source}")]
    Net {
        /// Registered name.
        engine: String,
        /// What happened.
        source: NetError,
    },
    /// The answer is not for what was asked.
    #[error("engine {engine}: {what}")]
    Wrong {
        /// Registered name.
        engine: String,
        /// In which way.
        what: String,
    },
    /// The engine cut the generation short.
    #[error("engine {engine} aborted the request")]
    Aborted {
        /// Registered name.
        engine: String,
    },
    /// The adapter cannot be loaded there.
    #[error("engine {engine} cannot load adapter {adapter}: {reason}")]
    Load {
        /// Registered name.
        engine: String,
        /// The adapter.
        adapter: String,
        /// Why.
        reason: String,
    },
}

impl EngineError {
    /// Whether it may go better later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Net { source, .. } => match source {
                NetError::Connect { .. } | NetError::Broken { .. } | NetError::Timeout { .. } => {
                    true
                }
                NetError::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502..=504),
                NetError::Decode { .. } => false,
            },
            Self::Aborted { .. } => true,
            Self::Wrong { .. } | Self::Load { .. } => false,
        }
    }

    /// Whether the request itself is wrong, whoever is asked.
    #[must_use]
    const fn is_of_request(&self) -> bool {
        matches!(self, Self::Net { source: NetError::Status { status: 400 | 413 | 422, .. }, .. })
    }

    /// Whether it took a whole deadline to find out.
    #[must_use]
    const fn is_silence(&self) -> bool {
        matches!(self, Self::Net { source: NetError::Timeout { .. }, .. })
    }

    /// What it asks of the queue.
    #[must_use]
    pub fn fault(&self) -> Fault {
        if self.is_transient() { Fault::retry(self) } else { Fault::fail(self) }
    }
}

/// An engine.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Its registered name.
    fn name(&self) -> &str;

    /// Whether requests may carry a seed, so that the same request writes the same text.
    fn takes_seeds(&self) -> bool;

    /// Generates a text. An adapter that this process has not seen on the engine is loaded first.
    async fn generate(&self, request: Request) -> Result<Completion, EngineError>;

    /// Loads an adapter and verifies that it is served from where it should be. Idempotent.
    async fn load(&self, adapter: &Adapter) -> Result<(), EngineError>;

    /// Unloads an adapter; one that is not there is fine.
    async fn unload(&self, name: &str) -> Result<(), EngineError>;

    /// Asks who it is.
    async fn check(&self) -> Result<EngineInfo, EngineError>;

    /// The tokens of a conversation by the engine's own tokenizer and template.
    async fn tokenize_chat(&self, messages: &[Message]) -> Result<Vec<u32>, EngineError>;
}
