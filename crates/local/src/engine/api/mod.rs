//! vLLM's routes.

mod control;
mod generate;
mod stream;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    routing::{get, post},
};
use nlac_chat::ChatTokenizer;

use super::{EngineOptions, adapters::Adapters, batch::Message};
use crate::model::{Config, Weights};

/// What handlers and the compute thread share.
pub struct Shared {
    pub options: EngineOptions,
    pub config: Config,
    pub tokenizer: Arc<ChatTokenizer>,
    pub adapters: Adapters,
    pub gauges: Gauges,
    pub started: u64,
    requests: AtomicU64,
    jobs: Mutex<(Sender<Message>, Option<Receiver<Message>>)>,
}

/// Counters that `/metrics` shows.
#[derive(Default)]
pub struct Gauges {
    pub running: AtomicU64,
    pub waiting: AtomicU64,
    pub prompt_tokens: AtomicU64,
    pub generated_tokens: AtomicU64,
    pub prefix_queries: AtomicU64,
    pub prefix_hits: AtomicU64,
    /// Bits of an f64.
    pub cache_usage: AtomicU64,
}

impl Shared {
    pub fn new(
        options: EngineOptions,
        config: Config,
        weights: Weights,
        tokenizer: Arc<ChatTokenizer>,
    ) -> Self {
        let (sender, receiver) = channel();
        Self {
            adapters: Adapters::new(options.served_model_name.clone(), weights),
            options,
            config,
            tokenizer,
            gauges: Gauges::default(),
            started: seconds(),
            requests: AtomicU64::new(0),
            jobs: Mutex::new((sender, Some(receiver))),
        }
    }

    /// The compute thread's end of the queue; there is one.
    pub fn take_jobs(&self) -> Receiver<Message> {
        let mut jobs = self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        jobs.1.take().unwrap_or_else(|| channel().1)
    }

    pub fn send(&self, message: Message) {
        let jobs = self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A compute thread that has gone drops the reply channel, which the waiting handler sees.
        let _ = jobs.0.send(message);
    }

    pub fn stop(&self) {
        self.send(Message::Stop);
    }

    fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// All routes.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/completions", post(generate::completions))
        .route("/v1/chat/completions", post(generate::chat))
        .route("/v1/models", get(control::models))
        .route("/v1/load_lora_adapter", post(control::load))
        .route("/v1/unload_lora_adapter", post(control::unload))
        .route("/tokenize", post(control::tokenize))
        .route("/detokenize", post(control::detokenize))
        .route("/health", get(|| async {}))
        .route("/ping", get(|| async {}))
        .route("/version", get(control::version))
        .route("/load", get(control::server_load))
        .route("/metrics", get(control::metrics))
        .with_state(shared)
}
