//! The audit log: who has sent debug files, and what has changed in the stores. Its entries are events of `tracing`
//! with the target [`AUDIT`].

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use crate::auth::{Access, Requester};
use crate::limits::Client;
use crate::problem::Reason;
use crate::trace::cut;

/// The target of the entries.
pub(crate) const AUDIT: &str = "symdex::audit";

/// How many characters of a path are logged, and of the reason of a refusal.
const MAX_PATH: usize = 200;
const MAX_REASON: usize = 1000;

/// Tells the handlers of requests that change something who sends them, and logs those that are refused or fail.
pub(crate) async fn watch(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    let requester = access.requester(request.headers());
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let what = format!("{} {}", cut(request.method().as_str(), 16), cut(request.uri().path(), MAX_PATH));
    request.extensions_mut().insert(requester.clone());
    let response = next.run(request).await;
    let status = response.status();
    if changes
        && (status.is_client_error() || status.is_server_error())
        && is_logged(&access, &requester, status)
    {
        tracing::info!(
            target: AUDIT,
            action = "refuse",
            token = requester.token,
            client = requester.client.map(tracing::field::display),
            request = what,
            status = status.as_u16(),
            reason = response.extensions().get().map(|reason: &Reason| cut(&reason.text, MAX_REASON)),
            "audit"
        );
    }
    response
}

/// Returns whether a refusal is logged now. Those that need no valid token, or a token of another scope, are logged
/// once a minute for each client, with their count.
fn is_logged(access: &Access, requester: &Requester, status: StatusCode) -> bool {
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return true;
    }
    let client = requester.client.map(Client::at).unwrap_or_default();
    let Requester { token, client: address } = requester.clone();
    let refused = (client, token.clone(), status.as_u16());
    access.refusals.add(refused, move |count| {
        tracing::info!(
            target: AUDIT,
            action = "refuse",
            token,
            client = address.map(tracing::field::display),
            status = status.as_u16(),
            count,
            "audit"
        );
    })
}
