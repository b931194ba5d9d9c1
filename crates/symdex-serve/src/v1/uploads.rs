//! `PUT /v1/debug-files` and `PUT /v1/indexes/{id}`: uploads of debug files, and of indexes that were built elsewhere.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use symdex::ImageId;
use utoipa::IntoParams;

use super::images::parse;
use crate::app::{App, SharedApp};
use crate::audit::AUDIT;
use crate::auth::Requester;
use crate::jobs::{Incoming, Job, Jobs, SubmitError, is_sha256, of_disk};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::token::Scope;

/// How long the name of an upload may be, in characters.
const MAX_NAME: usize = 200;
/// The answer to a part of an upload that cannot be resumed.
const NO_SHA256: &str =
    "a part of an upload (Content-Range) needs the SHA-256 of the whole upload in the URL";

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

/// An upload of an index.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct IndexOptions {
    /// The SHA-256 of the whole upload, as 64 hexadecimal digits. With it, the upload may be sent in parts.
    sha256: Option<String>,
    /// The name of the file, for messages.
    #[serde(default)]
    name: String,
    /// Whether the index replaces a different one of the image, whatever the server's rule is. Needs the scope `admin`,
    /// too.
    #[serde(default)]
    replace: bool,
}

/// What a request uploads.
struct Upload {
    options: UploadOptions,
    /// The SHA-256 that the request states, if it may be sent in parts.
    sha256: Option<String>,
    /// Whether indexes are taken.
    indexes: bool,
    /// The image whose index it is; `None` for debug files.
    image: Option<ImageId>,
    requester: Requester,
}

impl UploadOptions {
    /// The last part of the name, without control characters.
    fn name(&self) -> String {
        let name = self.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let name: String = name.chars().filter(|char| !char.is_control()).take(MAX_NAME).collect();
        if name.is_empty() { "upload".to_owned() } else { name }
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
    let Query(options) = options?;
    Upload::of_debug_files(&app, options, None, &headers, requester).receive(&app, &headers, body).await
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
    let Query(options) = options?;
    let sha256 = Some(sha256_of(&sha256)?);
    Upload::of_debug_files(&app, options, sha256, &headers, requester).receive(&app, &headers, body).await
}

/// Sends the index of an image that was built elsewhere, whole or in parts.
///
/// The body is an index file, also compressed with zstd or gzip. All of it is checked. The response is its job, as for
/// a debug file. The job fails if the body has anything but the index of this image.
#[utoipa::path(put, path = "/v1/indexes/{id}", tag = "symdex", security(("bearer" = ["index"])),
    params(("id" = String, Path, description = "The `LC_UUID` or the build id, with or without dashes"),
        ("Content-Range" = Option<String>, Header,
            description = "The range of the upload: `bytes FIRST-LAST/SIZE`. Needs `sha256`"),
        IndexOptions),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 202, body = Job, description = "The check is queued or running; `Location` is the path of the job"),
        (status = 200, body = Job, description = "This upload was checked before, and the stores have the image"),
        (status = 204, description = "More parts are expected; `Upload-Offset` is the number of bytes received so far"),
        (status = 403, body = ProblemDetails, description = "`replace` needs the scope `admin`"),
        (status = 409, body = ProblemDetails, description = "The part does not begin at `Upload-Offset`; or the same \
            upload is being built with `replace` or for another image"),
        (status = 413, body = ProblemDetails, description = "The upload is larger than the server accepts"),
        (status = 422, body = ProblemDetails, description = "The upload has a different SHA-256. It was deleted"),
        (status = 501, body = ProblemDetails, description = "The server does not accept uploads"),
        (status = 507, body = ProblemDetails, description = "The server does not have enough free space")))]
pub(crate) async fn upload_index(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    options: Result<Query<IndexOptions>, QueryRejection>,
    Extension(requester): Extension<Requester>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Query(IndexOptions { sha256, name, replace }) = options?;
    let (image, sha256) = (Some(parse(&id)?), sha256.as_deref().map(sha256_of).transpose()?);
    let options = UploadOptions { name, replace };
    Upload { options, sha256, indexes: true, image, requester }.receive(&app, &headers, body).await
}

impl Upload {
    /// An upload to `/v1/debug-files`. Indexes in it are taken if the request may send indexes.
    fn of_debug_files(
        app: &App,
        options: UploadOptions,
        sha256: Option<String>,
        headers: &HeaderMap,
        requester: Requester,
    ) -> Self {
        let indexes = app.access.check(Scope::Index, headers).is_ok();
        Self { options, sha256, indexes, image: None, requester }
    }

    /// Receives the upload, or a part of it, from `body`, and makes a job of it when it is complete.
    async fn receive(self, app: &SharedApp, headers: &HeaderMap, body: Body) -> Result<Response, Problem> {
        let jobs = Arc::clone(app.jobs()?);
        if self.options.replace {
            app.access.check(Scope::Admin, headers)?;
        }
        let range = headers.get(header::CONTENT_RANGE).map(ContentRange::of).transpose()?;
        let token = self.requester.token.as_deref();
        let incoming = match &self.sha256 {
            Some(sha256) => app.uploads.resume(sha256, token, range.is_none())?,
            None if range.is_some() => return Err(Problem::bad_request(NO_SHA256)),
            None => app.uploads.begin()?,
        };
        let Some(range) = range else {
            check_size(app, &incoming, content_length(headers).unwrap_or(0))?;
            let incoming = receive(app, incoming, body, app.options.max_upload).await?;
            return self.finish(jobs, incoming).await;
        };
        let there = incoming.length();
        let (first, end) = range.bytes.unwrap_or((there, there));
        if first != there || end > range.size {
            let detail =
                format!("{there} bytes of the upload are there; send the part that begins at {there}");
            return Ok(
                (offset_headers(there, None), Problem::new(ProblemKind::Conflict, detail)).into_response()
            );
        }
        check_size(app, &incoming, range.size)?;
        let incoming = receive(app, incoming, body, end - first).await?;
        let there = incoming.length();
        if there < end {
            let detail = format!("the body ends at byte {there}; the header Content-Range states {end}");
            return Err(Problem::bad_request(detail));
        }
        if there == range.size {
            self.finish(jobs, incoming).await
        } else {
            Ok((StatusCode::NO_CONTENT, offset_headers(there, Some(range.size))).into_response())
        }
    }

    /// Makes a job of a whole upload.
    async fn finish(self, jobs: Arc<Jobs>, mut incoming: Incoming) -> Result<Response, Problem> {
        let work = move || {
            let sha256 = incoming.finish()?;
            if let Some(stated) = self.sha256.filter(|stated| *stated != sha256) {
                incoming.discard();
                let detail = format!("found {sha256}, expected {stated}; send the file again from its start");
                return Err(Problem::new(ProblemKind::HashMismatch, detail));
            }
            let Requester { token, client } = self.requester;
            let job = Job {
                token,
                client,
                replace: self.options.replace,
                indexes: self.indexes,
                image: self.image.map(|id| id.to_string()),
                ..Job::new(&sha256, incoming.length(), &self.options.name())
            };
            tracing::info!(
                target: AUDIT,
                action = "upload",
                token = job.token,
                client = client.map(tracing::field::display),
                sha256,
                file = job.name,
                image = job.image,
                "audit"
            );
            let job = jobs.submit(incoming.path(), job).map_err(|error| match error {
                error @ SubmitError::Unfinished(_) => Problem::new(ProblemKind::Conflict, error.to_string())
                    .titled("The same file is being built"),
                SubmitError::Store(error) => error.into(),
                error @ (SubmitError::Full | SubmitError::Busy) => {
                    Problem::overloaded("jobs", error.to_string())
                }
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let indexes = app.access.check(Scope::Index, &headers).is_ok();
    offset_of(&app, &sha256_of(&sha256)?, (None, indexes), &requester).await
}

/// How much of the upload of an index is there, as for a debug file.
#[utoipa::path(head, path = "/v1/indexes/{id}", tag = "symdex", security(("bearer" = ["index"])),
    params(("id" = String, Path, description = "The `LC_UUID` or the build id, with or without dashes"), IndexOptions),
    responses(
        (status = 200, description = "`Upload-Offset` is the number of bytes received so far"),
        (status = 400, description = "`sha256` is missing or malformed"),
        (status = 404, description = "No part of the upload was received")))]
pub(crate) async fn offset_of_index(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    options: Result<Query<IndexOptions>, QueryRejection>,
    Extension(requester): Extension<Requester>,
) -> Result<Response, Problem> {
    let Query(IndexOptions { sha256, .. }) = options?;
    let sha256 = sha256_of(&sha256.unwrap_or_default())?;
    offset_of(&app, &sha256, (Some(parse(&id)?), true), &requester).await
}

/// How much is there of the upload with this SHA-256, for this image, if its indexes are to be taken or not.
async fn offset_of(
    app: &SharedApp,
    sha256: &str,
    (image, indexes): (Option<ImageId>, bool),
    requester: &Requester,
) -> Result<Response, Problem> {
    let jobs = Arc::clone(app.jobs()?);
    let (sha256, token) = (sha256.to_owned(), requester.token.clone());
    let image = image.map(|id| id.to_string());
    let look = move |app: &App| match jobs.current(&sha256, image.as_deref(), indexes)? {
        Some(job) => Ok((Some(job.size), Some(job))),
        None => Ok((app.uploads.received(&sha256, token.as_deref()), None)),
    };
    let found: Result<_, Problem> = app.run(look).await?;
    let (offset, job) = found?;
    let nothing = || Problem::new(ProblemKind::NotFound, "no part of this upload was received");
    let mut headers = offset_headers(offset.ok_or_else(nothing)?, job.as_ref().map(|job| job.size));
    let complete = if job.is_some() { "?1" } else { "?0" };
    headers.insert("upload-complete", HeaderValue::from_static(complete));
    if let Some(job) = &job {
        headers.insert(header::LOCATION, location(job));
    }
    Ok(headers.into_response())
}

/// The headers with the number of bytes that are there, and the size of the whole upload.
fn offset_headers(there: u64, size: Option<u64>) -> HeaderMap {
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

pub(super) fn location(job: &Job) -> HeaderValue {
    // An id has only hexadecimal digits.
    HeaderValue::try_from(format!("/v1/jobs/{}", job.id)).unwrap_or(HeaderValue::from_static("/v1/jobs"))
}

fn sha256_of(text: &str) -> Result<String, Problem> {
    let sha256 = text.to_ascii_lowercase();
    let expected = "expected the SHA-256 of the file as 64 hexadecimal digits; without it, send the whole file to \
                    /v1/debug-files?name=NAME or /v1/indexes/ID";
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
