//! Logs: a line for each request, with its id. Nothing of a report is logged.

use std::io::{self, IsTerminal as _};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;
use tracing_subscriber::fmt::time::SystemTime;

/// Writes logs to standard error: lines for people on a terminal, otherwise JSON. Does nothing if the process has a
/// subscriber for `tracing` already.
pub fn init_logging() {
    let builder = tracing_subscriber::fmt().with_writer(io::stderr).with_timer(SystemTime).with_target(false);
    // It fails if there is a subscriber.
    let _ = match io::stderr().is_terminal() {
        true => builder.try_init(),
        false => builder.json().flatten_event(true).with_ansi(false).try_init(),
    };
}

/// Logs a request, in a span that has its id and the trace that it belongs to.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let trace = trace_id(request.headers()).unwrap_or_default();
    let span = tracing::info_span!("request", method = %request.method(), route, id, trace);
    async move {
        let response = next.run(request).await;
        let status = response.status().as_u16();
        let ms = started.elapsed().as_secs_f64() * 1e3;
        match status {
            500.. => tracing::warn!(status, ms, "answered"),
            _ => tracing::info!(status, ms, "answered"),
        }
        response
    }
    .instrument(span)
    .await
}

/// The id of the trace in the header `traceparent` (W3C Trace Context): `00-<trace>-<parent>-<flags>`.
fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut parts = headers.get("traceparent")?.to_str().ok()?.split('-');
    let (_version, trace) = (parts.next()?, parts.next()?);
    (trace.len() == 32 && trace.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(trace)
}
