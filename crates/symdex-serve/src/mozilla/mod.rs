//! The requests of Eliot, Mozilla's symbolication service: the Firefox Profiler, samply and the tools around Mozilla's
//! crash reports send them. They name modules by Breakpad's debug ids, and addresses by offsets.

mod lookup;
mod request;
mod response;

use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;

use self::lookup::Lookup;
use self::response::{ResponseV4, ResponseV5};
use crate::app::{App, SharedApp};
use crate::limits::json_response;
use crate::problem::{Problem, ProblemDetails};

/// The requests of Eliot. They only read.
pub(crate) fn read_routes() -> Router<SharedApp> {
    Router::new().route("/symbolicate/v5", post(v5)).route("/symbolicate/v4", post(v4))
}

/// Symbolicates stacks as Mozilla's Eliot does: functions, files, lines and inlined functions.
#[utoipa::path(post, path = "/symbolicate/v5", tag = "eliot", security(("bearer" = ["read"])),
    params(("Debug" = Option<String>, Header, description = "`true` adds `debug` with counts and times")),
    request_body(content = Object, description = "`{\"jobs\": [{\"memoryMap\": [[name, debug id]], \
        \"stacks\": [[[module index, offset]]]}]}` with at most 10 jobs, or one job without `jobs`"),
    responses(
        (status = 200, body = Object, description = "`{\"results\": [{\"stacks\", \"found_modules\"}]}`"),
        (status = 400, body = ProblemDetails, description = "The title says what is wrong"),
        (status = 503, body = ProblemDetails, description = "A store that may have a module cannot be queried")))]
pub(crate) async fn v5(
    State(app): State<SharedApp>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let has_debug = headers.get("debug").is_some_and(|value| !matches!(value.as_bytes(), b"" | b"false"));
    let body = app.receive(&headers, body).await?;
    let work = move |app: &App| {
        let (bytes, reserved) = app.unpack(body)?;
        let started = Instant::now();
        let jobs = request::jobs(&bytes)?;
        let lookup = Lookup::new(app, &jobs, bytes.len())?;
        let debug = has_debug.then(|| lookup.debug(&jobs, started.elapsed()));
        json_response(&ResponseV5::new(&jobs, &lookup, debug), reserved)
    };
    app.run(work).await?
}

/// Symbolicates stacks as Mozilla's Eliot does in its older version: names of functions only, without inlined ones.
#[utoipa::path(post, path = "/symbolicate/v4", tag = "eliot", security(("bearer" = ["read"])),
    request_body(content = Object, description = "`{\"memoryMap\": [[name, debug id]], \
        \"stacks\": [[[module index, offset]]]}`"),
    responses(
        (status = 200, body = Object, description = "`{\"symbolicatedStacks\": [[\"outer (in libt.dylib)\"]], \
            \"knownModules\": [true]}`"),
        (status = 400, body = ProblemDetails, description = "The title says what is wrong"),
        (status = 503, body = ProblemDetails, description = "A store that may have a module cannot be queried")))]
pub(crate) async fn v4(
    State(app): State<SharedApp>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = app.receive(&headers, body).await?;
    let work = move |app: &App| {
        let (bytes, reserved) = app.unpack(body)?;
        let jobs = [request::job(&bytes)?];
        let lookup = Lookup::new(app, &jobs, bytes.len())?;
        let [job] = &jobs;
        json_response(&ResponseV4::new(job, &lookup), reserved)
    };
    app.run(work).await?
}
