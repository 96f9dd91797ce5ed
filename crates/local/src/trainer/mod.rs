//! The trainer: LoRA training behind the Tinker API, in JSON as SkyRL speaks it.
//!
//! Losses are summed over tokens, as Tinker sums. Requests run in the order in which they arrive, on
//! one compute thread; `(model_id, seq_id)` de-duplicates what must not happen twice. Models live in
//! memory, saved states on disk: after a restart a client creates a model and loads a state into it.

mod api;
mod compute;
mod futures;
mod wire;

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    engine::EngineError,
    model::{Config, Weights},
};

/// How a trainer runs.
#[derive(Debug, Clone)]
pub struct TrainerOptions {
    /// Hugging Face files of the base model.
    pub model_dir: PathBuf,
    /// The base model's name on the wire.
    pub base_model: String,
    /// Where states and adapters are saved.
    pub checkpoints: PathBuf,
    /// Adapters that may be under training at once.
    pub max_models: usize,
    /// Largest rank.
    pub max_lora_rank: usize,
    /// Compute threads; they change no bit of the result.
    pub threads: usize,
}

impl TrainerOptions {
    /// Defaults for a model.
    #[must_use]
    pub fn new(model_dir: PathBuf, base_model: impl Into<String>, checkpoints: PathBuf) -> Self {
        let base_model = base_model.into();
        Self { model_dir, base_model, checkpoints, max_models: 16, max_lora_rank: 64, threads: 1 }
    }
}

/// Alpha of every adapter, as in SkyRL: the scale is 32 / rank.
pub const ALPHA: f32 = 32.0;

/// Serves until `shutdown` resolves.
///
/// # Errors
/// A model that cannot be loaded, or a socket that fails.
pub async fn serve(
    listener: tokio::net::TcpListener,
    options: TrainerOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), EngineError> {
    let config = Config::load(&options.model_dir)?;
    let weights = Weights::load(&options.model_dir, &config)?;
    std::fs::create_dir_all(&options.checkpoints)?;
    let (shared, jobs) = api::Shared::new(options);
    let shared = Arc::new(shared);
    let futures = shared.futures.clone();
    let options = shared.options.clone();
    let worker = std::thread::Builder::new()
        .name("trainer".into())
        .spawn(move || compute::Compute::new(options, config, weights, futures).run(&jobs))?;
    let served = axum::serve(listener, api::router(shared.clone()))
        .with_graceful_shutdown(async move {
            shutdown.await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        })
        .await;
    shared.stop();
    if !matches!(tokio::task::spawn_blocking(move || worker.join()).await, Ok(Ok(()))) {
        tracing::error!("the trainer's compute thread panicked");
    }
    Ok(served?)
}
