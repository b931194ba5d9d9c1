//! What a supervisor asks: is the process alive, can it answer.

use axum::extract::State;
use axum::http::StatusCode;

use crate::app::SharedApp;

/// The process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, description = "The process is alive")))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The server can answer: a thread of the pool is free within the time-out, and it is not told to stop.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "The server can answer"),
    (status = 503, description = "The server is stopping, or overloaded")))]
pub(crate) async fn ready(State(app): State<SharedApp>) -> Result<&'static str, StatusCode> {
    match app.is_stopping() {
        true => Err(StatusCode::SERVICE_UNAVAILABLE),
        false => app.run(|_| "ready\n").await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE),
    }
}
