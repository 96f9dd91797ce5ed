//! Traces out, by OTLP over HTTP. Off unless OTEL_EXPORTER_OTLP_ENDPOINT or its variant for traces is set; what
//! else there is to set is the standard's, and read by its SDK.

use std::{env, time::Duration};

use opentelemetry::{Key, KeyValue, global, trace::TracerProvider as _};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::{Layer as _, filter::filter_fn};

use super::{BoxedLayer, overview, spans};
use crate::net::Collector;

/// How long the end of the process waits for a collector.
const FLUSH: Duration = Duration::from_secs(5);

/// The pipeline that the environment asks for, if it asks for one.
pub(super) fn provider() -> Result<Option<SdkTracerProvider>, ExporterBuildError> {
    if !is_asked_for(|name| env::var(name).ok()) {
        return Ok(None);
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::on(Handle::current()))
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_id_generator(overview::Ids::default())
        .with_resource(resource())
        .build();
    global::set_text_map_propagator(TraceContextPropagator::new());
    overview::record_by(provider.tracer("nlac"));
    Ok(Some(provider))
}

/// What makes OpenTelemetry spans of [`spans`], and of nothing else: log messages may quote what a model said.
pub(super) fn layer(provider: &SdkTracerProvider) -> BoxedLayer {
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("nlac"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == spans::TARGET))
        .boxed()
}

pub(super) async fn shut_down(provider: SdkTracerProvider) {
    // It blocks its thread; the client that it waits for runs on the others.
    let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH)).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::warn!("the last spans were not delivered");
    }
}

fn is_asked_for(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is =
        |name: &str, value: &str| variable(name).is_some_and(|v| v.eq_ignore_ascii_case(value));
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let named = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    named.into_iter().any(is_set)
        && !is("OTEL_SDK_DISABLED", "true")
        && !is("OTEL_TRACES_EXPORTER", "none")
}

/// Who tells; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let builder = || Resource::builder().with_attribute(version.clone());
    let named = builder().build();
    let name = named.get(&Key::new("service.name"));
    if name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        return builder().with_service_name("nlac").build();
    }
    named
}

#[cfg(test)]
mod tests {
    use super::is_asked_for;

    #[test]
    fn the_standard_variables_decide() {
        let (one, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let asked = |set: &[(&str, &str)]| {
            is_asked_for(|name| {
                set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!asked(&[]) && !asked(&[(one, " ")]));
        assert!(asked(&[(one, "http://c:4318")]) && asked(&[(traces, "http://c/v1/traces")]));
        assert!(!asked(&[(one, "http://c:4318"), ("OTEL_SDK_DISABLED", "TRUE")]));
        assert!(!asked(&[(one, "http://c:4318"), ("OTEL_TRACES_EXPORTER", "none")]));
        assert!(asked(&[(one, "http://c:4318"), ("OTEL_TRACES_EXPORTER", "otlp")]));
    }
}
