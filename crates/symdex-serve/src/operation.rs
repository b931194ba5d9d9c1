//! What supervisors ask: is the process alive, can it answer, what has it counted.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};

use crate::app::SharedApp;
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::token::Scope;

/// The process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, description = "The process is alive")))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The server can answer: a store can be queried, a thread of the pool is free within the time-out, and it is not told to
/// stop. With the scope `read`, the answer names the stores that cannot be queried.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "The server can answer"),
    (status = 503, body = ProblemDetails,
        description = "No store can be queried, or the server is stopping or overloaded")))]
pub(crate) async fn ready(State(app): State<SharedApp>, headers: HeaderMap) -> Result<String, Problem> {
    if app.is_stopping() {
        return Err(Problem::overloaded("stopping", "the server is stopping"));
    }
    let stores = app.store_health.stores().await;
    let mut wrong: Vec<_> = stores.iter().filter_map(|(_, wrong)| wrong.as_deref()).collect();
    let is_ready = stores.is_empty() || wrong.len() < stores.len();
    if app.access.check(Scope::Read, &headers).is_err() {
        wrong.clear();
    }
    if !is_ready {
        let detail = if wrong.is_empty() { "no store can be queried".to_owned() } else { wrong.join("; ") };
        return Err(Problem::new(ProblemKind::StoreFailed, detail));
    }
    let lines = ["ready"].into_iter().chain(wrong).map(|line| format!("{line}\n"));
    let text = lines.collect();
    app.run(|_| text).await
}

/// Counts and latencies in the text format of OpenMetrics.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(("bearer" = ["admin"])),
    responses((status = 200, description = "Counts and latencies in the text format of OpenMetrics")))]
pub(crate) async fn metrics(State(app): State<SharedApp>) -> Response {
    for (url, wrong) in app.store_health.stores().await {
        app.metrics.set_up(url, wrong.is_none());
    }
    app.metrics.refresh(&app);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.to_text()).into_response()
}
