//! The log subscriber and the metrics registry.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, fmt};

/// Logs to standard error: `NLAC_LOG` filters (default `warn`), `NLAC_LOG_FORMAT=json` for machines.
pub fn init_logs(default: &str) {
    let filter = EnvFilter::try_from_env("NLAC_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let json = std::env::var("NLAC_LOG_FORMAT").is_ok_and(|format| format == "json");
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second initialisation, in tests, keeps the first.
    let _ = if json { builder.json().try_init() } else { builder.compact().try_init() };
}

/// Collects metrics for `/metrics`.
#[must_use]
pub fn metrics() -> PrometheusHandle {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // A second registry, in tests, leaves the first in place.
    let _ = metrics::set_global_recorder(recorder);
    handle
}

/// A metric's value for one value of its one label, on a rendered page.
#[must_use]
pub fn value(page: &str, name: &str, label: &str, of: &str) -> Option<f64> {
    let line = format!("{name}{{{label}=\"{of}\"}} ");
    page.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok())
}
