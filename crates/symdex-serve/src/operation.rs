//! What supervisors ask: is the process alive, can it answer, what has it counted.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::app::SharedApp;
use crate::jobs::JobState;
use crate::problem::{Problem, ProblemDetails, ProblemKind};

/// The process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, description = "The process is alive")))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The server can answer: every store can be queried, a thread of the pool is free within the time-out, and it is not
/// told to stop.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "The server can answer"),
    (status = 503, body = ProblemDetails,
        description = "A store cannot be queried, or the server is stopping or overloaded")))]
pub(crate) async fn ready(State(app): State<SharedApp>) -> Result<&'static str, Problem> {
    if app.is_stopping() {
        return Err(Problem::overloaded("the server is stopping"));
    }
    match &app.store_health.unready().await[..] {
        [] => app.run(|_| "ready\n").await,
        stores => Err(Problem::new(ProblemKind::StoreFailed, stores.join("; "))),
    }
}

/// Counts and latencies in the text format of OpenMetrics.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(("bearer" = ["admin"])),
    responses((status = 200, description = "Counts and latencies in the text format of OpenMetrics")))]
pub(crate) async fn metrics(State(app): State<SharedApp>) -> Response {
    let unpublished = app.jobs().map_or(0, |jobs| jobs.count(JobState::Unpublished));
    app.metrics.refresh(app.budget.free(), unpublished, &app.symbolicator);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.to_text()).into_response()
}
