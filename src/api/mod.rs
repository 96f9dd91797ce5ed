//! HTTP in and out: reads the store, enqueues. Never algorithms, engines, trainers or environments.

use std::sync::Arc;

use axum::Router;
use tokio_util::sync::CancellationToken;

use crate::{domain::clock::Clock, store::Store};

/// What handlers share.
#[derive(Clone)]
pub struct AppState {
    /// The database.
    pub store: Store,
    /// Business time.
    pub clock: Arc<dyn Clock>,
    /// Renders the Prometheus page.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Ends open streams.
    pub shutdown: CancellationToken,
    /// Content hashes of a prompt set, or why there is none.
    pub prompt_hashes: Arc<dyn Fn(&str) -> Result<serde_json::Value, String> + Send + Sync>,
}

pub fn router(state: AppState) -> Router { Router::new().with_state(state) }
