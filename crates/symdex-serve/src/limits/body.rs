//! Bodies of requests: limits, time-outs, compression.

use axum::body::Body;
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
        let late = |_| Problem::new(ProblemKind::Timeout, "the body did not arrive in time");
        let mut reserved = self.budget.reserve();
        let mut pace = Pace::new(self.options.idle_timeout);
        let (mut bytes, mut parts) = (Vec::new(), body.into_data_stream());
        loop {
            let asked = Instant::now();
            let part = tokio::time::timeout(pace.left(), parts.next()).await.map_err(late)?;
            let Some(part) = part else { break };
            let part = part.map_err(Problem::of_body)?;
            pace.moved(asked.elapsed(), part.len());
            if (bytes.len() + part.len()) as u64 > self.options.max_body {
                return Err(self.too_large());
            }
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
