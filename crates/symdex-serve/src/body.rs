//! Bodies of requests: limits, time-outs, compression.

use std::io::{self, Read, Write};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use tokio::time::Instant;

use crate::app::App;
use crate::budget::Reserved;
use crate::lane::Lane;
use crate::pace::Pace;
use crate::problem::{Problem, ProblemKind};

/// How much memory is reserved for a request, in multiples of its body: the body and what is read from it. The answer
/// counts separately. Reports of 20 MB with the shortest frames of each format take 1.6 to 4.2 times their size, profiles
/// of Firefox 10 times.
const MEMORY: u64 = 5;

/// zstd allocates its window before it knows how long the contents are: 8 MiB at most.
const MAX_WINDOW_LOG: u32 = 23;

/// A body that was received.
pub(crate) struct Received {
    bytes: Vec<u8>,
    encoding: Encoding,
    reserved: Reserved,
}

#[derive(Clone, Copy)]
enum Encoding {
    None,
    Gzip,
    Zstd,
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
            let part = part.map_err(|_| Problem::bad_request("the body was cut off"))?;
            pace.moved(asked.elapsed(), part.len());
            if (bytes.len() + part.len()) as u64 > self.options.max_body {
                return Err(self.too_large());
            }
            reserved.grow(MEMORY * part.len() as u64)?;
            bytes.extend_from_slice(&part);
        }
        // Text shrinks to about a tenth when it is compressed.
        Lane::set_body(match encoding {
            Encoding::None => bytes.len(),
            Encoding::Gzip | Encoding::Zstd => 10 * bytes.len(),
        });
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
        let mut reader: Box<dyn Read + '_> = match encoding {
            Encoding::None => return Ok((bytes, reserved)),
            Encoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(&bytes[..])),
            Encoding::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(&bytes[..]).map_err(damaged)?;
                decoder.window_log_max(MAX_WINDOW_LOG).map_err(damaged)?;
                Box::new(decoder)
            }
        };
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
        drop(reader);
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

/// An answer that is being written. Its memory counts until it is sent.
struct WrittenAnswer {
    bytes: Vec<u8>,
    reserved: Reserved,
    /// Why it was not written to its end.
    refused: Option<Problem>,
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

/// `value` as JSON. The bytes count as a part of `reserved` until the last copy of them is dropped.
///
/// # Errors
///
/// A problem `overloaded` if other requests take all memory.
pub(crate) fn json_bytes(value: &impl Serialize, reserved: Reserved) -> Result<Bytes, Problem> {
    let mut written = WrittenAnswer { bytes: Vec::new(), reserved, refused: None };
    if let Err(error) = serde_json::to_writer(&mut written, value) {
        let internal = || Problem::new(ProblemKind::Internal, error.to_string());
        return Err(written.refused.unwrap_or_else(internal));
    }
    Ok(Bytes::from_owner(written))
}

/// The answer with `value` as JSON. See [`json_bytes`].
///
/// # Errors
///
/// As [`json_bytes`].
pub(crate) fn json_response(value: &impl Serialize, reserved: Reserved) -> Result<Response, Problem> {
    Ok(json_of(json_bytes(value, reserved)?))
}

/// The answer with JSON that is written already.
pub(crate) fn json_of(bytes: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Problem> {
    let value = headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes());
    match value {
        None | Some(b"" | b"identity") => Ok(Encoding::None),
        Some(b"gzip" | b"x-gzip") => Ok(Encoding::Gzip),
        Some(b"zstd") => Ok(Encoding::Zstd),
        Some(other) => {
            let found = String::from_utf8_lossy(other).into_owned();
            let detail = format!("found `Content-Encoding: {found}`, expected gzip, zstd or none");
            Err(Problem::new(ProblemKind::UnsupportedEncoding, detail))
        }
    }
}

/// An answer in memory that is reserved for it.
pub(crate) struct Guarded {
    bytes: Vec<u8>,
    reserved: Reserved,
}

impl Guarded {
    /// An empty answer. `reserved` is what its request has reserved, and grows with the answer.
    pub(crate) fn new(reserved: Reserved) -> Self {
        Self { bytes: Vec::new(), reserved }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Fails if other requests take all memory.
impl Write for Guarded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reserved.grow(bytes.len() as u64).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The memory is given back when the client has read the answer.
impl IntoResponse for Guarded {
    fn into_response(self) -> Response {
        const PART: usize = 64 << 10;
        let Self { bytes, reserved } = self;
        let length = bytes.len();
        let parts = stream::unfold((Bytes::from(bytes), reserved), async |(mut rest, reserved)| {
            let part = rest.split_to(rest.len().min(PART));
            (!part.is_empty()).then_some((Ok::<_, io::Error>(part), (rest, reserved)))
        });
        ([(header::CONTENT_LENGTH, length)], Body::from_stream(parts)).into_response()
    }
}
