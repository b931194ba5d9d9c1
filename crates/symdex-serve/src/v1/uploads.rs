//! `PUT /v1/debug-files`: uploads of debug files.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::{App, SharedApp};
use crate::audit::AUDIT;
use crate::auth::Requester;
use crate::jobs::{Incoming, Job, Jobs, SubmitError, is_sha256, of_disk};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::token::Scope;

/// How long the name of an upload may be, in characters.
const MAX_NAME: usize = 200;

/// An upload.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadOptions {
    /// The name of the file, such as `MyApp.app.dSYM.zip`. It is used in messages. A debug file that is in no archive
    /// gives its name to its images.
    #[serde(default)]
    name: String,
    /// Whether the new indexes replace different ones of the same images, whatever the server's rule is. The file is
    /// built even if it was built before. Needs the scope `admin`, too.
    #[serde(default)]
    replace: bool,
}

impl UploadOptions {
    /// The last part of the name, without control characters.
    fn name(&self) -> String {
        let name = self.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let name: String = name.chars().filter(|char| !char.is_control()).take(MAX_NAME).collect();
        if name.is_empty() { "upload".to_owned() } else { name }
    }

    /// Checks that the request with these headers may replace indexes, if it is to.
    fn check(&self, app: &App, headers: &HeaderMap) -> Result<(), Problem> {
        if self.replace {
            app.access.check(Scope::Admin, headers)?;
        }
        Ok(())
    }
}

/// Uploads a debug file or an archive of debug files, and builds its indexes.
///
/// The body is the file itself: a Mach-O or ELF file, or a zip, tar, gzip or zstd archive. The response is the job of
/// its build. Sending the same file again returns the same job.
#[utoipa::path(put, path = "/v1/debug-files", tag = "symdex", security(("bearer" = ["upload"])),
    params(UploadOptions), request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 202, body = Job, description = "The build is queued or running; `Location` is the path of the job"),
        (status = 200, body = Job, description = "This file was built before, and the stores have its images"),
        (status = 403, body = ProblemDetails, description = "`replace` needs the scope `admin`"),
        (status = 409, body = ProblemDetails, description = "With `replace`, if the same file is being built"),
        (status = 413, body = ProblemDetails, description = "The file is larger than the server accepts"),
        (status = 501, body = ProblemDetails, description = "The server does not accept uploads"),
        (status = 507, body = ProblemDetails, description = "The server does not have enough free space")))]
pub(crate) async fn upload(
    State(app): State<SharedApp>,
    options: Result<Query<UploadOptions>, QueryRejection>,
    Extension(requester): Extension<Requester>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let jobs = Arc::clone(app.jobs()?);
    let Query(options) = options?;
    options.check(&app, &headers)?;
    let incoming = app.uploads.begin()?;
    let size = content_length(&headers);
    check_size(&app, &incoming, size.unwrap_or(0))?;
    let incoming = receive(&app, incoming, body, app.options.max_upload).await?;
    finish(jobs, incoming, None, options, requester).await
}

/// Sends a debug file or an archive of debug files whose SHA-256 is known, whole or in parts.
///
/// What has arrived is kept for a day if the connection breaks. `HEAD` then tells how much is there, and the next
/// request sends the rest with `Content-Range: bytes FIRST-LAST/SIZE`.
#[utoipa::path(put, path = "/v1/debug-files/{sha256}", tag = "symdex", security(("bearer" = ["upload"])),
    params(("sha256" = String, Path, description = "The SHA-256 of the whole file, as 64 hexadecimal digits"),
        ("Content-Range" = Option<String>, Header, description = "The range of the file: `bytes FIRST-LAST/SIZE`"),
        UploadOptions),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 202, body = Job, description = "The build is queued or running; `Location` is the path of the job"),
        (status = 200, body = Job, description = "This file was built before, and the stores have its images"),
        (status = 204, description = "More parts are expected; `Upload-Offset` is the number of bytes received so far"),
        (status = 403, body = ProblemDetails, description = "`replace` needs the scope `admin`"),
        (status = 409, body = ProblemDetails,
            description = "The part does not begin at `Upload-Offset`; or `replace`, while the file is being built"),
        (status = 413, body = ProblemDetails, description = "The file is larger than the server accepts"),
        (status = 422, body = ProblemDetails, description = "The file has a different SHA-256. It was deleted"),
        (status = 507, body = ProblemDetails, description = "The server does not have enough free space")))]
pub(crate) async fn upload_part(
    State(app): State<SharedApp>,
    Path(sha256): Path<String>,
    options: Result<Query<UploadOptions>, QueryRejection>,
    Extension(requester): Extension<Requester>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let jobs = Arc::clone(app.jobs()?);
    let Query(options) = options?;
    options.check(&app, &headers)?;
    let sha256 = sha256_of(&sha256)?;
    let range = headers.get(header::CONTENT_RANGE).map(ContentRange::of).transpose()?;
    let incoming = app.uploads.resume(&sha256, requester.token.as_deref(), range.is_none())?;
    let Some(range) = range else {
        check_size(&app, &incoming, content_length(&headers).unwrap_or(0))?;
        let incoming = receive(&app, incoming, body, app.options.max_upload).await?;
        return finish(jobs, incoming, Some(sha256), options, requester).await;
    };
    let there = incoming.length();
    let (first, end) = range.bytes.unwrap_or((there, there));
    if first != there || end > range.size {
        let detail = format!("{there} bytes of the upload are there; send the part that begins at {there}");
        return Ok((offset_of(there, None), Problem::new(ProblemKind::Conflict, detail)).into_response());
    }
    check_size(&app, &incoming, range.size)?;
    let incoming = receive(&app, incoming, body, end - first).await?;
    let there = incoming.length();
    if there < end {
        let detail = format!("the body ends at byte {there}; the header Content-Range states {end}");
        return Err(Problem::bad_request(detail));
    }
    if there == range.size {
        finish(jobs, incoming, Some(sha256), options, requester).await
    } else {
        Ok((StatusCode::NO_CONTENT, offset_of(there, Some(range.size))).into_response())
    }
}

/// How much of an upload is there.
///
/// `Upload-Offset` is the number of bytes. `Upload-Complete: ?1` means that the upload need not be sent: `Location` is
/// its job.
#[utoipa::path(head, path = "/v1/debug-files/{sha256}", tag = "symdex", security(("bearer" = ["upload"])),
    params(("sha256" = String, Path, description = "The SHA-256 of the whole file, as 64 hexadecimal digits")),
    responses(
        (status = 200, description = "`Upload-Offset` is the number of bytes received so far"),
        (status = 404, description = "No part of the upload was received")))]
pub(crate) async fn offset(
    State(app): State<SharedApp>,
    Path(sha256): Path<String>,
    Extension(requester): Extension<Requester>,
) -> Result<Response, Problem> {
    let jobs = Arc::clone(app.jobs()?);
    let sha256 = sha256_of(&sha256)?;
    let look = move |app: &App| match jobs.current(&sha256)? {
        Some(job) => Ok((Some(job.size), Some(job))),
        None => Ok((app.uploads.received(&sha256, requester.token.as_deref()), None)),
    };
    let found: Result<_, Problem> = app.run(look).await?;
    let (offset, job) = found?;
    let nothing = || Problem::new(ProblemKind::NotFound, "no part of this upload was received");
    let mut headers = offset_of(offset.ok_or_else(nothing)?, job.as_ref().map(|job| job.size));
    let complete = if job.is_some() { "?1" } else { "?0" };
    headers.insert("upload-complete", HeaderValue::from_static(complete));
    if let Some(job) = &job {
        headers.insert(header::LOCATION, location(job));
    }
    Ok(headers.into_response())
}

/// The headers with the number of bytes that are there, and the size of the whole upload.
fn offset_of(there: u64, size: Option<u64>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("upload-offset", there.into());
    if let Some(size) = size {
        headers.insert("upload-length", size.into());
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
}

/// Refuses an upload of `size` bytes before it is received.
fn check_size(app: &App, incoming: &Incoming, size: u64) -> Result<(), Problem> {
    let max = app.options.max_upload;
    if size > max {
        let detail = format!("the upload has {size} bytes; this server takes {max}");
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    app.uploads.check_space(size.saturating_sub(incoming.length())).map_err(of_disk)
}

async fn receive(app: &SharedApp, incoming: Incoming, body: Body, max: u64) -> Result<Incoming, Problem> {
    incoming.append(body, max, app.options.idle_timeout, &app.metrics).await
}

/// Makes a job of a whole upload.
async fn finish(
    jobs: Arc<Jobs>,
    mut incoming: Incoming,
    stated: Option<String>,
    options: UploadOptions,
    requester: Requester,
) -> Result<Response, Problem> {
    let work = move || {
        let sha256 = incoming.finish()?;
        if let Some(stated) = stated.filter(|stated| *stated != sha256) {
            incoming.discard();
            let detail = format!("found {sha256}, expected {stated}; send the file again from its start");
            return Err(Problem::new(ProblemKind::HashMismatch, detail));
        }
        let Requester { token, client } = requester;
        let job = Job {
            token,
            client,
            replace: options.replace,
            ..Job::new(&sha256, incoming.length(), &options.name())
        };
        tracing::info!(
            target: AUDIT,
            action = "upload",
            token = job.token,
            client = client.map(tracing::field::display),
            sha256,
            file = job.name,
            "audit"
        );
        let job = jobs.submit(incoming.path(), job).map_err(|error| match error {
            error @ SubmitError::Unfinished(_) => {
                Problem::new(ProblemKind::Conflict, error.to_string()).titled("The same file is being built")
            }
            SubmitError::Store(error) => error.into(),
            error @ (SubmitError::Full | SubmitError::Busy) => Problem::overloaded("jobs", error.to_string()),
        })?;
        // The file has another name now, or is deleted.
        incoming.keep();
        let status = if job.state.is_finished() { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok((status, [(header::LOCATION, location(&job))], Json(job)).into_response())
    };
    // Hashing gigabytes takes long, and must not keep the threads that answer.
    let answer = tokio::task::spawn_blocking(work).await;
    answer.map_err(|_| Problem::new(ProblemKind::Internal, "the upload cannot be checked"))?
}

pub(super) fn location(job: &Job) -> HeaderValue {
    // An id has only hexadecimal digits.
    HeaderValue::try_from(format!("/v1/jobs/{}", job.id)).unwrap_or(HeaderValue::from_static("/v1/jobs"))
}

fn sha256_of(text: &str) -> Result<String, Problem> {
    let sha256 = text.to_ascii_lowercase();
    let expected = "expected the SHA-256 of the file as 64 hexadecimal digits; without it, send the file to \
                    /v1/debug-files?name=NAME";
    if is_sha256(&sha256) { Ok(sha256) } else { Err(Problem::bad_request(expected)) }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The header `Content-Range`.
#[derive(Debug, PartialEq, Eq)]
struct ContentRange {
    /// The half-open range of bytes; `None` for `*`, which sends none.
    bytes: Option<(u64, u64)>,
    /// The size of the whole file.
    size: u64,
}

impl ContentRange {
    fn of(value: &HeaderValue) -> Result<Self, Problem> {
        let expected = "expected `Content-Range: bytes FIRST-LAST/SIZE`, or `bytes */SIZE` without a body";
        value.to_str().ok().and_then(Self::parse).ok_or_else(|| Problem::bad_request(expected))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
        let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
        let size: u64 = number(size)?;
        if range == "*" {
            return Some(Self { bytes: None, size });
        }
        let (first, last) = range.split_once('-')?;
        let (first, end): (u64, u64) = (number(first)?, number(last)?.checked_add(1)?);
        (first < end && end <= size).then_some(Self { bytes: Some((first, end)), size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open_and_inside_of_the_file() {
        let range = |text| ContentRange::parse(text).map(|range| (range.bytes, range.size));
        assert_eq!(range("bytes 0-4/5"), Some((Some((0, 5)), 5)));
        assert_eq!(range("bytes 3-3/5"), Some((Some((3, 4)), 5)));
        assert_eq!(range("bytes */5"), Some((None, 5)));
        for wrong in ["", "bytes", "bytes 0-5/5", "bytes 3-2/5", "bytes 0-4/*", "bytes +0-4/5", "items 0-4/5"]
        {
            assert_eq!(range(wrong), None, "{wrong}");
        }
        assert_eq!(range("bytes 0-18446744073709551615/18446744073709551615"), None);
    }

    #[test]
    fn names_are_short_and_no_paths() {
        let name = |name: &str| UploadOptions { name: name.to_owned(), replace: false }.name();
        assert_eq!(name("MyApp.dSYM.zip"), "MyApp.dSYM.zip");
        assert_eq!(name("../../etc/passwd"), "passwd");
        assert_eq!(name("C:\\a\\b\u{1b}[31m"), "b[31m");
        assert_eq!((name(""), name("a/")), ("upload".to_owned(), "upload".to_owned()));
        assert_eq!(name(&"x".repeat(1000)).len(), MAX_NAME);
    }
}
