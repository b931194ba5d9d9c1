//! Errors as answers: problem details of RFC 9457.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::unasked::UnaskedImage;
use symdex::Cause;

/// How many characters of a quoted text a detail has. Requests can have any text.
const MAX_QUOTED: usize = 100;
/// How many characters a detail has. A quoted text may have quotes.
const MAX_DETAIL: usize = 2000;

/// When a client should ask again after a store has failed.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// The kinds of problem. Their names are stable: clients may compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    UnsupportedEncoding,
    NotAReport,
    Conflict,
    HashMismatch,
    Timeout,
    Overloaded,
    UploadsOff,
    DiskFull,
    StoreFailed,
    Internal,
}

impl ProblemKind {
    /// The status, the last part of `type`, and the title.
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, "bad-request", "The request is malformed"),
            Self::Unauthorized => {
                (StatusCode::UNAUTHORIZED, "unauthorized", "The request has no valid token")
            }
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "The request is not allowed"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The path has other methods")
            }
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request is too large"),
            Self::UnsupportedEncoding => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-encoding",
                "The encoding of the body is not supported",
            ),
            Self::NotAReport => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "not-a-report",
                "The body is not a report that symdex reads",
            ),
            Self::Conflict => {
                (StatusCode::CONFLICT, "conflict", "The upload does not continue what is there")
            }
            Self::HashMismatch => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "hash-mismatch",
                "The upload has another SHA-256 than its path states",
            ),
            Self::UploadsOff => {
                (StatusCode::NOT_IMPLEMENTED, "uploads-off", "This server does not take uploads")
            }
            Self::DiskFull => (
                StatusCode::INSUFFICIENT_STORAGE,
                "disk-full",
                "The server does not have enough free space for the upload",
            ),
            Self::StoreFailed => {
                (StatusCode::SERVICE_UNAVAILABLE, "store-failed", "A store of indexes cannot be queried")
            }
            Self::Timeout => (StatusCode::GATEWAY_TIMEOUT, "timeout", "The answer took too long"),
            Self::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "overloaded", "The server is overloaded"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "The server has failed"),
        }
    }
}

/// An error as the client sees it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Problem {
    kind: ProblemKind,
    /// The title, if it is not that of the kind.
    title: Option<String>,
    detail: String,
    /// The images that a store could not be queried for.
    images: Vec<UnaskedImage>,
    /// When the client should try again.
    retry_after: Option<Duration>,
    /// What the server lacks for the request, in a word for the metrics.
    lack: Option<&'static str>,
}

/// Why a request was refused: an extension of the answer, for the audit log and the metrics.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) text: String,
    /// What the server lacks, if the status is 503.
    pub(crate) lack: Option<&'static str>,
}

/// The body of an answer that is an error (RFC 9457).
#[derive(Serialize, ToSchema)]
pub(crate) struct ProblemDetails {
    /// `urn:symdex:problem:` and the kind. It is stable.
    #[serde(rename = "type")]
    kind: String,
    /// The kind in words.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What is wrong with this request: what was found, and what was expected.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    /// With `store-failed`: the images that no source answers, 100 at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<UnaskedImage>,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let is_store = kind == ProblemKind::StoreFailed;
        let (retry_after, lack) = (is_store.then_some(STORE_RETRY), is_store.then_some("store"));
        Self { kind, title: None, detail: shortened(&detail.into()), images: Vec::new(), retry_after, lack }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::BadRequest, detail)
    }

    /// The body of the request cannot be read.
    pub(crate) fn of_body(error: axum::Error) -> Self {
        let refused = error.into_inner().downcast::<Self>();
        refused.map_or_else(|_| Self::bad_request("the body was cut off"), |problem| *problem)
    }

    /// The same problem, which lists these images.
    pub(crate) fn with_images(self, images: Vec<UnaskedImage>) -> Self {
        Self { images, ..self }
    }

    /// The same problem with this title.
    pub(crate) fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// The body of the answer.
    pub(crate) fn details(self) -> ProblemDetails {
        let (status, name, title) = self.kind.parts();
        ProblemDetails {
            kind: format!("urn:symdex:problem:{name}"),
            title: self.title.unwrap_or_else(|| title.to_owned()),
            status: status.as_u16(),
            detail: self.detail,
            images: self.images,
        }
    }

    /// A store has failed, or its index cannot be read. The message may have paths of the server, so it is only logged.
    pub(crate) fn of_store(error: &symdex_store::Error) -> Self {
        if matches!(error.cause(), Cause::Unsupported | Cause::Lost | Cause::Damaged) {
            tracing::warn!(%error, "an index cannot be read");
            let detail = "it is damaged or of another version; upload its debug file again";
            return Self::new(ProblemKind::Internal, detail).titled("The index cannot be read");
        }
        tracing::warn!(%error, "a store cannot be queried");
        Self::new(ProblemKind::StoreFailed, "the log of the server says why; try again later")
    }

    /// The server has no room for the request now. `lack` is a word for the metrics that says of what.
    pub(crate) fn overloaded(lack: &'static str, detail: impl Into<String>) -> Self {
        let (retry_after, lack) = (Some(Duration::from_secs(1)), Some(lack));
        Self { retry_after, lack, ..Self::new(ProblemKind::Overloaded, detail) }
    }
}

/// The parameters of the URL are wrong.
impl From<QueryRejection> for Problem {
    fn from(error: QueryRejection) -> Self {
        Self::bad_request(error.body_text())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (kind, retry_after) = (self.kind, self.retry_after);
        let (status, name, _) = kind.parts();
        let reason = Reason { text: format!("{name}: {}", self.detail), lack: self.lack };
        let mut response = (status, Json(self.details())).into_response();
        response.extensions_mut().insert(reason);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(after) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs()));
        }
        if kind == ProblemKind::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// `detail` with at most [`MAX_QUOTED`] characters between two quotes, and [`MAX_DETAIL`] in all.
fn shortened(detail: &str) -> String {
    let (mut short, mut quote, mut quoted, mut length) = (String::new(), None, 0, 0);
    for c in detail.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => quoted += 1,
            None if matches!(c, '`' | '"') => (quote, quoted) = (Some(c), 0),
            None => {}
        }
        if quote.is_some() && quoted > MAX_QUOTED {
            if quoted == MAX_QUOTED + 1 {
                short.push_str("...");
            }
            continue;
        }
        short.push(c);
        length += 1;
        if length == MAX_DETAIL {
            return short + "...";
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_cut_and_other_text_is_not() {
        let detail = |detail: &str| Problem::bad_request(detail).detail;
        let ordinary = "unknown field `ad`, expected one of `id`, `addresses` at line 1 column 5";
        assert_eq!(detail(ordinary), ordinary);
        let (long, cut) = ("\u{7f}".repeat(60_000_000), "\u{7f}".repeat(MAX_QUOTED));
        assert_eq!(
            detail(&format!("`{long}`: an id is hexadecimal")),
            format!("`{cut}...`: an id is hexadecimal")
        );
        let text = format!("invalid value: string \"{long}\", expected an address");
        assert_eq!(detail(&text), format!("invalid value: string \"{cut}...\", expected an address"));
        let quotes = detail(&"`".repeat(1_000_000));
        assert_eq!(quotes.len(), MAX_DETAIL + 3);
    }
}
