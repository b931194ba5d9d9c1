//! Answers that are written to memory before they are sent.

use std::io::{self, Write};

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::bodies::IsCounted;
use super::budget::Reserved;
use crate::problem::{Problem, ProblemKind};

/// An answer that is being written. Its memory is reserved while it grows, and given back when the last copy of its
/// bytes is dropped: when the client has read them.
pub(crate) struct WrittenAnswer {
    bytes: Vec<u8>,
    reserved: Reserved,
    /// Why it was not written to its end.
    refused: Option<Problem>,
}

impl WrittenAnswer {
    /// An empty answer. `reserved` is what its request has reserved, and grows with the answer.
    pub(crate) fn new(reserved: Reserved) -> Self {
        Self { bytes: Vec::new(), reserved, refused: None }
    }

    /// What its request has reserved.
    pub(crate) fn reserved(&self) -> &Reserved {
        &self.reserved
    }

    /// The problem for the error of a writer of this answer.
    pub(crate) fn problem(&mut self, error: &impl ToString) -> Problem {
        let internal = || Problem::new(ProblemKind::Internal, error.to_string());
        self.refused.take().unwrap_or_else(internal)
    }

    /// Drops what was written.
    pub(crate) fn restart(&mut self) {
        self.reserved.shrink(0);
        self.bytes = Vec::new();
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Write for WrittenAnswer {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if let Err(problem) = self.reserved.grow(part.len() as u64) {
            self.refused = Some(problem);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRef<[u8]> for WrittenAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl IntoResponse for WrittenAnswer {
    fn into_response(self) -> Response {
        (Extension(IsCounted), self.into_bytes()).into_response()
    }
}

/// `value` as JSON. The bytes count as a part of `reserved` until the last copy of them is dropped.
///
/// # Errors
///
/// A problem `overloaded` if other requests take all memory.
pub(crate) fn json_bytes(value: &impl Serialize, reserved: Reserved) -> Result<Bytes, Problem> {
    let mut written = WrittenAnswer::new(reserved);
    match serde_json::to_writer(&mut written, value) {
        Ok(()) => Ok(written.into_bytes()),
        Err(error) => Err(written.problem(&error)),
    }
}

/// The answer with `value` as JSON. See [`json_bytes`].
///
/// # Errors
///
/// As [`json_bytes`].
pub(crate) fn json_response(value: &impl Serialize, reserved: Reserved) -> Result<Response, Problem> {
    Ok(json_of(json_bytes(value, reserved)?))
}

/// The answer with JSON that is written already, and counts.
pub(crate) fn json_of(bytes: Bytes) -> Response {
    (Extension(IsCounted), [(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}
