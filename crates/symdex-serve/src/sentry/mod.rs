//! The requests of Symbolicator, Sentry's symbolication service, for native stack traces. `sources` in a request are
//! ignored: the stores of the server answer.

mod apple;
mod call_site;
mod modules;
mod pending;
mod request;
mod response;
mod symbolicate;

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::multipart::MultipartError;
use axum::extract::rejection::QueryRejection;
use axum::extract::{
    DefaultBodyLimit, FromRequest as _, Multipart, Path, Query, Request as HttpRequest, State,
};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use uuid::Uuid;

use self::pending::{JsonResult, Running};
use self::request::Request;
use self::response::{Complete, Failed};
use self::symbolicate::Symbolicated;
use crate::app::{App, SharedApp};
use crate::limits::{Lane, Received, Reserved, json_bytes, json_of};
use crate::problem::{Problem, ProblemDetails, ProblemKind};

pub(crate) use self::pending::PendingRequests;

/// How much memory the frames and modules of a request take, in multiples of its body.
const MEMORY: u64 = 12;

/// The seconds after which a client should ask for a pending answer.
const RETRY_AFTER: u64 = 5;

/// The requests of Symbolicator. They only read.
pub(crate) fn read_routes() -> Router<SharedApp> {
    // The limit of `App::receive` counts.
    let crash_report = post(apple_crash_report).layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/symbolicate", post(symbolicate))
        .route("/applecrashreport", crash_report)
        .route("/requests/{id}", get(pending_request))
}

/// The parameters of a request.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Parameters {
    /// How many seconds to wait. If the answer is not ready then, it is `pending`, and `GET /requests/{id}` has it
    /// later. Without it, the request waits for the answer.
    timeout: Option<u64>,
}

/// An answer that is not ready.
#[derive(Serialize)]
struct Pending {
    status: &'static str,
    request_id: String,
    retry_after: u64,
}

/// Symbolicates stack traces as Sentry's Symbolicator does for native platforms.
#[utoipa::path(post, path = "/symbolicate", tag = "symbolicator", security(("bearer" = ["read"])), params(Parameters),
    request_body(content = Object, description = "`{\"stacktraces\": [{\"frames\": [{\"instruction_addr\": \"0x1000\"}]}], \
        \"modules\": [{\"type\": \"macho\", \"debug_id\", \"image_addr\", \"image_size\"}], \"signal\", \"options\"}`"),
    responses(
        (status = 200, body = Object, description = "`{\"status\": \"completed\", \"stacktraces\", \"modules\"}`, or \
            `{\"status\": \"pending\", \"request_id\", \"retry_after\"}`"),
        (status = 400, body = ProblemDetails)))]
pub(crate) async fn symbolicate(
    State(app): State<SharedApp>,
    parameters: Result<Query<Parameters>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let parameters = self::parameters(parameters)?;
    let body = app.receive(&headers, body).await?;
    // Requests that are wrong are refused before the client may go away.
    let (request, reserved) = app.run(move |app| read_request(app, body)).await??;
    let work = move |app: &App| {
        let symbolicated = Symbolicated::new(app, request);
        json_bytes(&Complete::new(&symbolicated, None), reserved)
    };
    respond(&app, &parameters, work).await
}

fn read_request(app: &App, body: Received) -> Result<(Request, Reserved), Problem> {
    let (bytes, mut reserved) = app.unpack(body)?;
    reserved.grow(MEMORY * bytes.len() as u64)?;
    Ok((Request::read(&bytes)?, reserved))
}

/// Symbolicates one of Apple's crash reports as Sentry's Symbolicator does. The form has the file
/// `apple_crash_report`, in Apple's text (`.crash`) or JSON (`.ips`).
#[utoipa::path(post, path = "/applecrashreport", tag = "symbolicator", security(("bearer" = ["read"])),
    params(Parameters),
    request_body(content = Object, content_type = "multipart/form-data",
        description = "The part `apple_crash_report` is the report. Other parts are ignored"),
    responses(
        (status = 200, body = Object, description = "As of `POST /symbolicate`, with `timestamp`, `system_info`, \
            `crashed`, `crash_reason` and `crash_details`; `{\"status\": \"failed\", \"message\"}` if the report cannot \
            be read"),
        (status = 400, body = ProblemDetails)))]
pub(crate) async fn apple_crash_report(
    State(app): State<SharedApp>,
    parameters: Result<Query<Parameters>, QueryRejection>,
    request: HttpRequest,
) -> Result<Response, Problem> {
    let parameters = self::parameters(parameters)?;
    let (head, body) = request.into_parts();
    let body = app.receive(&head.headers, body).await?;
    let (bytes, mut reserved) = app.run(move |app| app.unpack(body)).await??;
    reserved.grow(MEMORY * bytes.len() as u64)?;
    let form = HttpRequest::from_parts(head, Body::from(bytes));
    let form = Multipart::from_request(form, &()).await;
    let report = report_of(form.map_err(|wrong| Problem::bad_request(wrong.body_text()))?).await?;
    reserved.grow(symdex_report::most_memory(report.len()) as u64)?;
    let work = move |app: &App| match apple::read(&report) {
        Err(message) => json_bytes(&Failed::new(message), reserved),
        Ok((request, mut crash)) => {
            let symbolicated = Symbolicated::new(app, request);
            crash.set_arch(&symbolicated);
            json_bytes(&Complete::new(&symbolicated, Some(&crash)), reserved)
        }
    };
    respond(&app, &parameters, work).await
}

/// The part `apple_crash_report` of a form.
async fn report_of(mut form: Multipart) -> Result<Bytes, Problem> {
    let wrong = |error: MultipartError| Problem::bad_request(error.body_text());
    let mut report = None;
    while let Some(field) = form.next_field().await.map_err(wrong)? {
        if field.name() == Some("apple_crash_report") {
            report = Some(field.bytes().await.map_err(wrong)?);
        }
    }
    report.ok_or_else(|| Problem::bad_request("the form has no part `apple_crash_report`"))
}

/// The answer of a request that was not ready in time.
#[utoipa::path(get, path = "/requests/{id}", tag = "symbolicator", security(("bearer" = ["read"])),
    params(("id" = String, Path, description = "The `request_id` of the pending answer"), Parameters),
    responses(
        (status = 200, body = Object, description = "The answer, or `pending` again"),
        (status = 404, body = ProblemDetails,
            description = "There is no such request here, or its answer has expired")))]
pub(crate) async fn pending_request(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    parameters: Result<Query<Parameters>, QueryRejection>,
) -> Result<Response, Problem> {
    let parameters = self::parameters(parameters)?;
    let missing = || {
        let detail = "there is no such request on this server; answers are kept for 90 seconds after they are ready, \
             or until newer ones need their memory";
        Problem::new(ProblemKind::NotFound, detail)
    };
    let id: Uuid = id.parse().map_err(|_| missing())?;
    let mut running = app.pending.get(id).ok_or_else(missing)?;
    match wait(&app, &parameters, &mut running).await {
        Some(answer) => Ok(json_of(answer?)),
        None => Ok(pending(id)),
    }
}

fn parameters(parameters: Result<Query<Parameters>, QueryRejection>) -> Result<Parameters, Problem> {
    let wrong = |_| Problem::bad_request("expected a whole number of seconds as `timeout`");
    parameters.map(|Query(parameters)| parameters).map_err(wrong)
}

/// Does `work` on a thread of the pool, and answers with what it writes, or with `pending`.
async fn respond(
    app: &SharedApp,
    parameters: &Parameters,
    work: impl FnOnce(&App) -> JsonResult + Send + 'static,
) -> Result<Response, Problem> {
    let running = {
        let app = SharedApp::clone(app);
        // The answer continues in a separate task, for the same client.
        Lane::current().scope(async move { app.run(work).await? })
    };
    let mut running = Running::start(running);
    match wait(app, parameters, &mut running).await {
        Some(answer) => Ok(json_of(answer?)),
        None => Ok(pending(app.pending.keep(running, Lane::current().client)?)),
    }
}

/// Waits for the answer as long as the client wants. `None` if it is not ready then.
async fn wait(app: &App, parameters: &Parameters, running: &mut Running) -> Option<JsonResult> {
    match parameters.timeout {
        None => Some(running.answer().await),
        // Before the time-out of the server ends the request.
        Some(seconds) => {
            let most = app.options.timeout.mul_f64(0.9);
            running.answer_within(Duration::from_secs(seconds).min(most)).await
        }
    }
}

fn pending(id: Uuid) -> Response {
    Json(Pending { status: "pending", request_id: id.to_string(), retry_after: RETRY_AFTER }).into_response()
}
