//! The audit log: who has sent debug files, and what has changed in the stores. Its entries are events of `tracing`
//! with the target [`AUDIT`].

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use crate::auth::Access;
use crate::problem::Reason;

/// The target of the entries.
pub(crate) const AUDIT: &str = "symdex::audit";

/// Tells the handlers of requests that change something who sends them, and logs those that are refused or fail.
pub(crate) async fn watch(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    let requester = access.requester(request.headers());
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let what = format!("{} {}", request.method(), request.uri().path());
    request.extensions_mut().insert(requester.clone());
    let response = next.run(request).await;
    let status = response.status();
    if changes && (status.is_client_error() || status.is_server_error()) {
        tracing::info!(
            target: AUDIT,
            action = "refuse",
            token = requester.token,
            client = requester.client.map(tracing::field::display),
            request = what,
            status = status.as_u16(),
            reason = response.extensions().get().map(|Reason(reason)| reason.as_str()),
            "audit"
        );
    }
    response
}
