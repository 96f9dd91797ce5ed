//! Logs, metrics and traces: the subscriber, each app's registry of metrics, and the spans.

mod export;
mod meters;
pub mod overview;
pub mod spans;

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, prelude::*};

/// What a trainer is asked, in the order of a run.
pub const TRAINER_OPERATIONS: [&str; 10] = [
    "create_session",
    "create_model",
    "load_weights",
    "forward",
    "forward_backward",
    "optim_step",
    "polyak",
    "save_weights",
    "save_weights_for_sampler",
    "unload_model",
];

pub use meters::{Labels, Meters, value};

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Spans on their way out of this process.
#[must_use = "what is not flushed at the end is lost"]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Sends what has not been sent, for a few seconds at most.
    pub async fn flush(self) {
        if let Some(provider) = self.0 {
            export::shut_down(provider).await;
        }
    }
}

/// Logs to standard error: `NLAC_LOG` filters (default `warn`), `NLAC_LOG_FORMAT=json` for machines.
pub fn init_logs(default: &str) {
    subscribe(vec![logs(default)]);
}

/// Log filter of commands that train on the user's own machine. There a slow statement only shows that the cores are busy.
pub const QUIET: &str = "warn,sqlx::query=error";

/// Logs, and exports traces where the standard OTEL variables name a collector. Within a tokio runtime.
pub fn init(default: &str) -> Traces {
    match export::provider() {
        Ok(Some(provider)) => {
            let mine = export::layer(&provider);
            subscribe(vec![logs(default), mine]);
            Traces(Some(provider))
        }
        Ok(None) => {
            init_logs(default);
            Traces(None)
        }
        Err(error) => {
            init_logs(default);
            tracing::warn!(%error, "traces are not exported; see the OTEL_ variables");
            Traces(None)
        }
    }
}

fn logs(default: &str) -> BoxedLayer {
    let filter = EnvFilter::try_from_env("NLAC_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let json = std::env::var("NLAC_LOG_FORMAT").is_ok_and(|format| format == "json");
    let layer = fmt::layer().with_writer(std::io::stderr);
    if json {
        layer.json().with_filter(filter).boxed()
    } else {
        layer.compact().with_filter(filter).boxed()
    }
}

fn subscribe(layers: Vec<BoxedLayer>) {
    // A second initialisation, in tests, keeps the first.
    let _ = tracing_subscriber::registry().with(layers).try_init();
}
