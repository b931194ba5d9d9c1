//! `GET /v1/jobs/{id}`: the builds of uploads.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::{IntoParams, ToSchema};

use super::accepts;
use super::uploads::location;
use crate::app::{App, SharedApp};
use crate::audit::AUDIT;
use crate::auth::{Granted, Requester};
use crate::jobs::{Changed, Job, JobProgress, JobState, Jobs, Timestamp};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::token::Scope;

/// How often a server that follows a job of another server reads it.
const POLL: Duration = Duration::from_secs(1);

/// A job in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobSummary {
    id: String,
    /// The name of the upload.
    name: String,
    /// The size of the upload, in bytes.
    size: u64,
    state: JobState,
    #[schema(value_type = String)]
    created: Timestamp,
    #[schema(value_type = Option<String>)]
    finished: Option<Timestamp>,
    /// The number of images that have an index now.
    images: usize,
    /// The number of files, or parts of files, without an index.
    failures: usize,
    /// Why no store accepts the indexes. Such a job waits for an operator, unless it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_error: Option<String>,
}

impl From<&Job> for JobSummary {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id.clone(),
            name: job.name.clone(),
            size: job.size,
            state: job.state,
            created: job.created,
            finished: job.finished,
            images: job.images.len(),
            failures: job.failures.len(),
            store_error: job.store_error.clone(),
        }
    }
}

/// Which jobs are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    /// Only jobs with this state.
    state: Option<JobState>,
}

/// Lists jobs, the newest first: all with the scope `admin`, and those of the token with the scopes `upload` or
/// `index`. Finished jobs are kept for a week by default. A job with the state `unpublished` waits for an operator.
#[utoipa::path(get, path = "/v1/jobs", tag = "symdex",
    security(("bearer" = ["admin"]), ("bearer" = ["upload"]), ("bearer" = ["index"])),
    params(JobsQuery), responses((status = 200, body = Vec<JobSummary>)))]
pub(crate) async fn jobs(
    State(app): State<SharedApp>,
    query: Result<Query<JobsQuery>, QueryRejection>,
    Extension(requester): Extension<Requester>,
    Extension(granted): Extension<Granted>,
) -> Result<Response, Problem> {
    let Query(JobsQuery { state }) = query?;
    let list = move |app: &App| {
        let is_wanted =
            |job: &Job| is_of(job, &requester, granted) && state.is_none_or(|state| job.state == state);
        let summary = |job: &Job| is_wanted(job).then(|| JobSummary::from(job));
        app.jobs().map(|jobs| Json(jobs.list(summary).into_iter().flatten().collect::<Vec<_>>()))
    };
    Ok(app.respond(list).await)
}

/// Whether a request with this scope may manage the job: that of an uploader only jobs of the same token.
fn is_of(job: &Job, requester: &Requester, Granted(scope): Granted) -> bool {
    scope == Scope::Admin || job.token.is_some() && job.token == requester.token
}

/// Logs that the client does `action` to a job.
fn audit(requester: &Requester, action: &'static str, job: &Job) {
    tracing::info!(
        target: AUDIT,
        action,
        token = requester.token,
        client = requester.client.map(tracing::field::display),
        sha256 = job.sha256,
        file = job.name,
        "audit"
    );
}

/// Cancels a job that has not finished, and ends its build. The job has failed then, and its upload is deleted. Indexes
/// that it has published stay. With the scopes `upload` or `index`, only a job of the same token.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "symdex",
    security(("bearer" = ["admin"]), ("bearer" = ["upload"]), ("bearer" = ["index"])),
    params(("id" = String, Path, description = "The id of the job")),
    responses(
        (status = 200, body = Job, description = "The job, which has failed"),
        (status = 403, body = ProblemDetails, description = "The job is of another token"),
        (status = 404, body = ProblemDetails),
        (status = 409, body = ProblemDetails, description = "The job has finished")))]
pub(crate) async fn cancel(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    Extension(requester): Extension<Requester>,
    Extension(granted): Extension<Granted>,
) -> Result<Json<Job>, Problem> {
    let jobs = Arc::clone(app.jobs()?);
    read(&app, &id).await?;
    if !jobs.view(&id, |job| is_of(job, &requester, granted)).ok_or_else(|| missing(&id))? {
        let detail = "the job was sent with another token; canceling it needs the scope `admin`";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    let address = requester.client.map(|client| client.to_string());
    let by = requester.token.clone().or(address).unwrap_or_default();
    let why = "only a job that has not finished can be canceled";
    let job = changed(&app, id, why, move |jobs, id| jobs.cancel(id, &by)).await?;
    audit(&requester, "cancel", &job);
    Ok(Json(job))
}

/// Builds a job before all others that wait.
#[utoipa::path(post, path = "/v1/jobs/{id}/first", tag = "symdex", security(("bearer" = ["admin"])),
    params(("id" = String, Path, description = "The id of the job")),
    responses(
        (status = 200, body = Job, description = "The job, which is the next one"),
        (status = 404, body = ProblemDetails),
        (status = 409, body = ProblemDetails, description = "The job does not wait for its build")))]
pub(crate) async fn first(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    Extension(requester): Extension<Requester>,
) -> Result<Json<Job>, Problem> {
    let why = "only a job with the state `queued` can be put first";
    let job = changed(&app, id, why, Jobs::put_first).await?;
    audit(&requester, "first", &job);
    Ok(Json(job))
}

/// The job after `change`. A conflict for the reason `why` if nothing was changed.
async fn changed(
    app: &SharedApp,
    id: String,
    why: &str,
    change: impl FnOnce(&Jobs, &str) -> Changed + Send + 'static,
) -> Result<Job, Problem> {
    let (jobs, wanted) = (Arc::clone(app.jobs()?), id.clone());
    match app.run(move |_| change(&jobs, &wanted)).await??.ok_or_else(|| missing(&id))? {
        (job, true) => Ok(job),
        (job, false) => {
            let detail = format!("{why}; the state of this one is `{}`", job.state);
            Err(Problem::new(ProblemKind::Conflict, detail).titled("The job has another state"))
        }
    }
}

/// Builds an upload again whose indexes no store has accepted: a job with the state `unpublished`.
#[utoipa::path(post, path = "/v1/jobs/{id}/resume", tag = "symdex", security(("bearer" = ["admin"])),
    params(("id" = String, Path, description = "The id of the job")),
    responses(
        (status = 202, body = Job, description = "The build is queued; `Location` is the path of the job"),
        (status = 404, body = ProblemDetails),
        (status = 409, body = ProblemDetails, description = "The job does not wait for an operator")))]
pub(crate) async fn resume(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let why = "only a job with the state `unpublished` is resumed";
    let job = changed(&app, id, why, Jobs::resume).await?;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location(&job))], Json(job)).into_response())
}

/// Reads the job if another server may have changed it.
async fn read(app: &SharedApp, id: &str) -> Result<(), Problem> {
    let jobs = Arc::clone(app.jobs()?);
    if jobs.is_of_others(id) {
        let id = id.to_owned();
        app.run(move |_| jobs.read(&id)).await??;
    }
    Ok(())
}

fn missing(id: &str) -> Problem {
    let detail = format!(
        "there is no job `{id}` on this server, which keeps finished jobs for a while only; send the file again to \
         follow its build"
    );
    Problem::new(ProblemKind::NotFound, detail)
}

/// The build of an upload.
///
/// With `Accept: text/event-stream`, the answer follows the job until it has finished or waits for an operator: an
/// event `job` with the job, at first and whenever its state changes, and events `progress` with its `id`, `state` and
/// `progress` between them.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "symdex",
    security(("bearer" = ["upload"]), ("bearer" = ["index"])),
    params(("id" = String, Path, description = "The id of the job")),
    responses((status = 200, body = Job), (status = 404, body = ProblemDetails)))]
pub(crate) async fn job(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    read(&app, &id).await?;
    if accepts(&headers, "text/event-stream") {
        let (changes, stopping) = app.jobs()?.follow(&id).ok_or_else(|| missing(&id))?;
        let follower = Follower { app, id, changes, stopping, told: None };
        let events = Sse::new(follower.events()).keep_alive(KeepAlive::default());
        // Proxies such as nginx would keep the events back.
        let unbuffered = [("x-accel-buffering", HeaderValue::from_static("no"))];
        return Ok((unbuffered, events).into_response());
    }
    let job = move |app: &App| app.jobs()?.view(&id, Job::clone).ok_or_else(|| missing(&id)).map(Json);
    Ok(app.respond(job).await)
}

/// A client that follows a job.
struct Follower {
    app: SharedApp,
    id: String,
    changes: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    /// The state that the client was told last.
    told: Option<JobState>,
}

/// What a client is told.
enum News {
    Job(Box<Job>),
    Progress(JobUpdate),
}

impl News {
    /// What a client is told that was told the state `told`.
    fn of(job: &Job, told: Option<JobState>) -> Self {
        if told == Some(job.state) {
            Self::Progress(JobUpdate { id: job.id.clone(), state: job.state, progress: job.progress })
        } else {
            Self::Job(Box::new(job.clone()))
        }
    }

    fn state(&self) -> JobState {
        match self {
            Self::Job(job) => job.state,
            Self::Progress(progress) => progress.state,
        }
    }
}

/// The members of a job that change while it is built.
#[derive(Serialize)]
struct JobUpdate {
    id: String,
    state: JobState,
    progress: JobProgress,
}

impl Follower {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut follower| {
            let event = follower.next().await?;
            Some((Ok(event), follower))
        })
    }

    /// The next event; `None` when the job has finished or waits for an operator, or the server stops.
    async fn next(&mut self) -> Option<Event> {
        if self.told.is_some_and(JobState::is_at_rest) {
            return None;
        }
        if self.told.is_some() {
            loop {
                let is_changed = tokio::select! {
                    // An error means that the job was removed.
                    changed = self.changes.changed() => changed.map(|()| true).ok()?,
                    _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                    () = tokio::time::sleep(POLL) => false,
                };
                if is_changed {
                    break;
                }
                read(&self.app, &self.id).await.ok()?;
            }
        }
        let (id, told) = (self.id.clone(), self.told);
        let work = move |app: &App| {
            let news = app.jobs().ok()?.view(&id, |job| News::of(job, told))?;
            let event = match &news {
                News::Job(job) => Event::default().event("job").json_data(job),
                News::Progress(progress) => Event::default().event("progress").json_data(progress),
            };
            // A job has only text and numbers, which are always JSON.
            Some((news.state(), event.unwrap_or_default()))
        };
        let (state, event) = self.app.run_when_free(work).await.ok()??;
        self.told = Some(state);
        Some(event)
    }
}
