//! The paths, and what every request passes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::SharedApp;
use crate::auth;
use crate::problem::{Problem, ProblemKind};
use crate::token::Scope;
use crate::{audit, headers, limits, metrics, mozilla, openapi, operation, page, sentry, trace, v1};

/// The header of [`mozilla`].
const DEBUG: HeaderName = HeaderName::from_static("debug");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The routes of each scope.
pub(crate) fn router(app: &SharedApp) -> Router {
    let open = Router::new()
        .route("/healthz", get(operation::alive))
        .route("/readyz", get(operation::ready))
        .route("/openapi.json", get(openapi::openapi));
    let read = v1::read_routes().merge(mozilla::read_routes()).merge(sentry::read_routes());
    let admin = v1::admin_routes().route("/metrics", get(operation::metrics));
    let routes = open
        .merge(page::routes())
        .merge(scoped(app, &[Scope::Read], read))
        .merge(watched(app, scoped(app, &[Scope::Admin], admin)))
        .merge(watched(app, scoped(app, &[Scope::Admin, Scope::Index, Scope::Upload], v1::job_routes())))
        .layer(from_fn_with_state(SharedApp::clone(app), in_time))
        // Uploads may take longer. They have a time-out for each part.
        .merge(watched(app, scoped(app, &[Scope::Upload], v1::upload_routes())))
        .merge(watched(app, scoped(app, &[Scope::Index], v1::index_routes())))
        .merge(watched(app, scoped(app, &[Scope::Index, Scope::Upload], v1::follow_routes())))
        .fallback(|| async {
            Problem::new(ProblemKind::NotFound, "this path does not exist; see /openapi.json")
        })
        .method_not_allowed_fallback(|| async { Problem::new(ProblemKind::MethodNotAllowed, "") });
    with_layers(app, routes).with_state(SharedApp::clone(app))
}

/// `routes`, for tokens that have one of `scopes`.
fn scoped(app: &SharedApp, scopes: &'static [Scope], routes: Router<SharedApp>) -> Router<SharedApp> {
    let check = move |state, request, next| auth::require(scopes, state, request, next);
    // Answers are for their client only, and change with the stores.
    let uncached = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    routes
        .route_layer(from_fn_with_state(Arc::clone(&app.access), check))
        .route_layer(SetResponseHeaderLayer::if_not_present(uncached.0, uncached.1))
}

/// `routes`, whose refusals are in the audit log.
fn watched(app: &SharedApp, routes: Router<SharedApp>) -> Router<SharedApp> {
    routes.route_layer(from_fn_with_state(Arc::clone(&app.access), audit::watch))
}

/// What every request passes, the last layer first.
fn with_layers(app: &SharedApp, routes: Router<SharedApp>) -> Router<SharedApp> {
    let panicked = |_| Problem::new(ProblemKind::Internal, "").into_response();
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(SharedApp::clone(app), close_if_stopping))
        .layer(from_fn(headers::check))
        .layer(from_fn_with_state(app.budget.clone(), limits::watch_bodies))
        .layer(from_fn_with_state(Arc::clone(&app.metrics), metrics::measure))
        .layer(from_fn(trace::log))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(SetRequestIdLayer::new(REQUEST_ID, MakeRequestUuid))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(cors(&app.options.cors_origins))
}

/// Ends a request that takes too long. Its work on a thread of the pool runs to its end, and counts until then.
async fn in_time(State(app): State<SharedApp>, request: Request, next: Next) -> Result<Response, Problem> {
    let answered = tokio::time::timeout(app.options.timeout, next.run(request)).await;
    answered.map_err(|_| Problem::new(ProblemKind::Timeout, "the answer was not ready in time"))
}

/// Answers of a server that stops close their connections, so that clients open the next one elsewhere.
async fn close_if_stopping(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if app.is_stopping() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Lets pages of `origins` read answers. `*` is every origin.
fn cors(origins: &[String]) -> CorsLayer {
    let is_any = origins.iter().any(|origin| origin == "*");
    let origins = origins.iter().filter_map(|origin| origin.parse::<HeaderValue>().ok());
    CorsLayer::new()
        .allow_origin(if is_any {
            AllowOrigin::any()
        } else {
            AllowOrigin::list(origins.filter(|origin| origin != "*"))
        })
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, header::CONTENT_ENCODING, DEBUG])
        .max_age(Duration::from_secs(600))
}
