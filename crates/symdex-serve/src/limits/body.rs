//! Bodies of requests: limits, time-outs, compression.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;
use symdex_pipeline::archive::Compression;
use tokio::time::Instant;

use super::budget::Reserved;
use super::lane::Lane;
use super::pace::Pace;
use crate::app::App;
use crate::problem::{Problem, ProblemKind};

/// How much memory is reserved for a request, in multiples of its body: the body and what is read from it. Frames,
/// stacks and images of reports count separately ([`symdex_report::most_memory`]), as does the answer. The test program
/// `memory` of symdex-report has as much for each format.
const MEMORY: u64 = 8;

/// zstd allocates its window before it knows how long the contents are: 8 MiB at most.
const MAX_WINDOW_LOG: u32 = 23;

/// The parts of a body, from a client that sends them fast enough.
pub(crate) struct BodyParts {
    parts: BodyDataStream,
    pace: Pace,
    max: u64,
    length: u64,
}

impl BodyParts {
    /// The parts of `body`, of at most `max` bytes. `patience` is the longest time for which the client may keep the
    /// server waiting.
    pub(crate) fn new(body: Body, max: u64, patience: Duration) -> Self {
        Self { parts: body.into_data_stream(), pace: Pace::new(patience), max, length: 0 }
    }

    /// The next part; `None` at the end.
    ///
    /// # Errors
    ///
    /// A problem if the body is longer, is cut off or is too slow, or if other requests take all memory.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let asked = Instant::now();
        let late = |_| Problem::new(ProblemKind::Timeout, "the client is sending too slowly");
        let part = tokio::time::timeout(self.pace.left(), self.parts.next()).await.map_err(late)?;
        let Some(part) = part.transpose().map_err(Problem::of_body)? else { return Ok(None) };
        self.pace.moved(asked.elapsed(), part.len());
        self.length += part.len() as u64;
        if self.length > self.max {
            let detail = format!("the body has more than {} bytes", self.max);
            return Err(Problem::new(ProblemKind::TooLarge, detail));
        }
        Ok(Some(part))
    }
}

/// A body that was received.
pub(crate) struct Received {
    bytes: Vec<u8>,
    /// `None` if it is not compressed.
    encoding: Option<Compression>,
    reserved: Reserved,
}

impl App {
    /// Receives a body of at most [`max_body`](crate::ServerOptions::max_body) bytes.
    ///
    /// # Errors
    ///
    /// A problem if the body is larger, compressed by another method, or too slow, or if other requests take all
    /// memory.
    pub(crate) async fn receive(&self, headers: &HeaderMap, body: Body) -> Result<Received, Problem> {
        let encoding = encoding(headers)?;
        let stated =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if stated.is_some_and(|length: u64| length > self.options.max_body) {
            return Err(self.too_large());
        }
        let (mut reserved, mut bytes) = (self.budget.reserve(), Vec::new());
        let mut parts = BodyParts::new(body, self.options.max_body, self.options.idle_timeout);
        while let Some(part) = parts.next().await? {
            reserved.grow(MEMORY * part.len() as u64)?;
            bytes.extend_from_slice(&part);
        }
        // Text shrinks to about a tenth when it is compressed.
        Lane::set_body(bytes.len() * if encoding.is_some() { 10 } else { 1 });
        Ok(Received { bytes, encoding, reserved })
    }

    /// The bytes of a body, decompressed, and the memory that is reserved for them. This blocks.
    ///
    /// # Errors
    ///
    /// A problem if the compressed bytes are damaged, or too large when they are decompressed.
    pub(crate) fn unpack(&self, body: Received) -> Result<(Vec<u8>, Reserved), Problem> {
        let Received { bytes, encoding, mut reserved } = body;
        let damaged = |error| Problem::bad_request(format!("the compressed body is damaged: {error}"));
        let Some(compression) = encoding else { return Ok((bytes, reserved)) };
        let mut reader = compression.decoder(&bytes[..], MAX_WINDOW_LOG).map_err(damaged)?;
        let mut unpacked = Vec::new();
        let mut part = [0; 64 << 10];
        loop {
            let length = reader.read(&mut part).map_err(damaged)?;
            if length == 0 {
                break;
            }
            if (unpacked.len() + length) as u64 > self.options.max_body {
                return Err(self.too_large());
            }
            reserved.grow(MEMORY * length as u64)?;
            unpacked.extend_from_slice(&part[..length]);
        }
        Ok((unpacked, reserved))
    }

    fn too_large(&self) -> Problem {
        let limit = self.options.max_body;
        Problem::new(
            ProblemKind::TooLarge,
            format!("a body may have {limit} bytes, before and after it is decompressed"),
        )
    }
}

/// How a body is compressed; `None` if it is not.
fn encoding(headers: &HeaderMap) -> Result<Option<Compression>, Problem> {
    let value = headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes());
    match value {
        None | Some(b"" | b"identity") => Ok(None),
        Some(b"gzip" | b"x-gzip") => Ok(Some(Compression::Gzip)),
        Some(b"zstd") => Ok(Some(Compression::Zstd)),
        Some(other) => {
            let found = String::from_utf8_lossy(other).into_owned();
            let detail = format!("found `Content-Encoding: {found}`, expected gzip, zstd or none");
            Err(Problem::new(ProblemKind::UnsupportedEncoding, detail))
        }
    }
}
