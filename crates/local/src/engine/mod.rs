//! The inference engine: continuous batching over a key-value cache with shared prefixes, behind
//! vLLM's HTTP protocol.

mod adapters;
mod api;
mod batch;
mod error;
mod prefix;
mod sampler;
mod wire;

use std::{future::Future, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use nlac_chat::ChatTokenizer;

use crate::model::{Config, LoadError, Weights};

/// How an engine runs.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Hugging Face files of the base model.
    pub model_dir: PathBuf,
    /// The base model's name on the wire.
    pub served_model_name: String,
    /// New tokens in one step, prefill and decode together.
    pub max_batch_tokens: usize,
    /// Sequences in one step.
    pub max_running: usize,
    /// Requests that may wait; more are answered 503.
    pub max_waiting: usize,
    /// Adapters that may be loaded.
    pub max_loras: usize,
    /// Largest adapter rank.
    pub max_lora_rank: usize,
    /// Tokens kept for prompts that share a prefix.
    pub prefix_cache_tokens: usize,
    /// Compute threads; they change no bit of the result.
    pub threads: usize,
}

impl EngineOptions {
    /// Defaults for a model.
    #[must_use]
    pub fn new(model_dir: PathBuf, served_model_name: impl Into<String>) -> Self {
        Self {
            model_dir,
            served_model_name: served_model_name.into(),
            max_batch_tokens: 4096,
            max_running: 256,
            max_waiting: 4096,
            max_loras: 8,
            max_lora_rank: 64,
            prefix_cache_tokens: 200_000,
            threads: 1,
        }
    }
}

/// Why an engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The model cannot be loaded.
    #[error(transparent)]
    Model(#[from] LoadError),
    /// The tokenizer cannot be loaded.
    #[error(transparent)]
    Tokenizer(#[from] nlac_chat::ChatError),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; choose another port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Serving ended with an error.
    #[error("the engine stopped: {0}")]
    Serve(#[from] std::io::Error),
}

/// Serves until `shutdown` resolves. The address is bound before this returns a future that can run, so
/// a port that is taken shows at once.
///
/// # Errors
/// A model that cannot be loaded, or a socket that fails.
pub async fn serve(
    listener: tokio::net::TcpListener,
    options: EngineOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), EngineError> {
    let config = Config::load(&options.model_dir)?;
    let weights = Weights::load(&options.model_dir, &config)?;
    let tokenizer = Arc::new(ChatTokenizer::load(&options.model_dir)?);
    let shared = Arc::new(api::Shared::new(options, config, weights, tokenizer));
    let worker = batch::start(&shared)?;
    let app = api::router(shared.clone());
    let served = axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            shutdown.await;
            // Requests in flight get a moment; a client that holds its connection open does not.
            tokio::time::sleep(Duration::from_millis(10)).await;
        })
        .await;
    shared.stop();
    let joined = tokio::task::spawn_blocking(move || worker.join()).await;
    if !matches!(joined, Ok(Ok(()))) {
        tracing::error!("the engine's compute thread panicked");
    }
    Ok(served?)
}
