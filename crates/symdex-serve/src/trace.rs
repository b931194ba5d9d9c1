//! Logs: a line for each request, with its id. Nothing of a report is logged.

use std::io::{self, IsTerminal as _};
use std::time::Instant;

use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::auth::{self, KnownToken};

/// What a process needs to log. When it is dropped, the spans that wait for a collector are sent.
#[must_use = "spans are lost when the process ends before this is dropped"]
#[derive(Debug)]
pub struct Logging {
    #[cfg(feature = "otel")]
    provider: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Writes logs to standard error: lines for people on a terminal, otherwise JSON. Does nothing if the process has a
/// subscriber for `tracing` already.
///
/// With the feature `otel`, spans are also sent to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, if it is
/// set.
pub fn init_logging() -> Logging {
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    let layer = if io::stderr().is_terminal() {
        layer.boxed()
    } else {
        layer.json().flatten_event(true).with_span_list(false).with_ansi(false).boxed()
    };
    let registry = tracing_subscriber::registry().with(layer.with_filter(LevelFilter::INFO));
    #[cfg(feature = "otel")]
    {
        let provider = crate::otel::provider();
        let spans =
            provider.as_ref().map(|provider| crate::otel::layer(provider).with_filter(LevelFilter::INFO));
        // It fails if there is a subscriber.
        let _ = registry.with(spans).try_init();
        Logging { provider }
    }
    #[cfg(not(feature = "otel"))]
    {
        let _ = registry.try_init();
        Logging {}
    }
}

#[cfg(feature = "otel")]
impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.provider.as_ref().map(|provider| provider.shutdown()) {
            eprintln!("symdex: the last spans were not sent: {error}");
        }
    }
}

/// How many characters of the id of a request are logged.
const MAX_ID: usize = 64;

/// Logs a request, in a span that has its id and the trace that it belongs to.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let id = cut(id, MAX_ID);
    let method = cut(request.method().as_str(), 16);
    let client = auth::peer().map(tracing::field::display);
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let received = length.and_then(|length| length.parse::<u64>().ok());
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let trace = trace_id(request.headers()).unwrap_or_default();
    let span = tracing::info_span!("request", method, route, id, trace);
    #[cfg(feature = "otel")]
    crate::otel::set_parent(&span, request.headers());
    async move {
        let response = next.run(request).await;
        let status = response.status().as_u16();
        let ms = started.elapsed().as_secs_f64() * 1e3;
        let token = response.extensions().get().map(|token: &KnownToken| token.name.as_str());
        let sent = response.body().size_hint().exact();
        match status {
            500.. => tracing::warn!(status, ms, client, token, received, sent, "answered"),
            _ => tracing::info!(status, ms, client, token, received, sent, "answered"),
        }
        response
    }
    .instrument(span)
    .await
}

/// The first `max` characters of `text`.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let end = text.char_indices().nth(max).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// The id of the trace in the header `traceparent` (W3C Trace Context): `00-<trace>-<parent>-<flags>`.
fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut parts = headers.get("traceparent")?.to_str().ok()?.split('-');
    let (_version, trace) = (parts.next()?, parts.next()?);
    (trace.len() == 32 && trace.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(trace)
}
