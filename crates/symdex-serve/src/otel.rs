//! Spans of requests for a collector of OpenTelemetry.

use std::env;

use axum::http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

/// The variables that name the collector, as OpenTelemetry's specification has them.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// What makes the spans, if the environment names a collector. Spans are sent over HTTP, in batches.
pub(crate) fn provider() -> Option<SdkTracerProvider> {
    env::var_os(ENDPOINTS[0]).or_else(|| env::var_os(ENDPOINTS[1]))?;
    // The HTTP client makes its TLS with the provider of the process. It is set already if this fails.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match SpanExporter::builder().with_http().build() {
        Ok(exporter) => {
            // The environment variable OTEL_SERVICE_NAME is preferred to this name.
            let resource = match env::var_os("OTEL_SERVICE_NAME") {
                Some(_) => Resource::builder().build(),
                None => Resource::builder().with_service_name("symdex").build(),
            };
            Some(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
        }
        Err(error) => {
            eprintln!("symdex: no spans are sent to a collector: {error}");
            None
        }
    }
}

/// Gives the spans of this process to `provider`.
pub(crate) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    tracing_opentelemetry::layer().with_tracer(provider.tracer("symdex-serve"))
}

/// Makes `span` a part of the trace that the header `traceparent` names.
pub(crate) fn set_parent(span: &Span, headers: &HeaderMap) {
    // It fails without a collector.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
}

struct Headers<'h>(&'h HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
