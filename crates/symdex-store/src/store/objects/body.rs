//! The body of an object: reading it in parts, and decompressing it with limits.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::GetResult;

use super::errors::Failed;
use crate::store::runtime;

/// An index has at most this many bytes.
const MAX_SIZE: u64 = 64 << 30;
/// An index has at most this many times the bytes of its object, and [`SMALL`] more. Indexes shrink by a fifth.
const MAX_RATIO: u64 = 200;
const SMALL: u64 = 1 << 20;
/// Bytes that a slow connection transfers in a second.
const SLOW: u64 = 1 << 20;
/// How many bytes of an index are written at once. The kernel caches a file in pieces of the sizes in which it was
/// written, up to this one, and larger pieces mostly cause fewer page faults.
const WRITTEN_AT_ONCE: u64 = 2 << 20;
/// The window that a frame may need: 128 MiB.
const MAX_WINDOW_LOG: u32 = 27;

/// What a frame of zstd begins with. An index begins with other bytes.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How long the transfer of `size` bytes may take, if an answer may take `timeout`.
pub(super) fn transfer_time(size: u64, timeout: Duration) -> Duration {
    timeout + Duration::from_secs(size / SLOW)
}

/// Why a body cannot be read.
#[derive(Debug)]
pub(super) enum Failure {
    /// The store does not send it.
    Store(Failed),
    /// It is not what it should be. The text says how.
    Damaged(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failure {}

/// The bytes of an object as they arrive.
pub(super) struct Body {
    /// `None` at the end.
    parts: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    part: Bytes,
    timeout: Duration,
    /// When the whole body must be there.
    deadline: Instant,
}

impl Body {
    /// The body of `object`. Its next bytes may take `timeout`, and all of them [`transfer_time`].
    pub(super) fn new(object: GetResult, timeout: Duration) -> Self {
        let deadline = Instant::now() + transfer_time(object.meta.size, timeout);
        Self { parts: Some(object.into_stream()), part: Bytes::new(), timeout, deadline }
    }
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            let Some(mut parts) = self.parts.take() else { return Ok(0) };
            let timeout = self.timeout.min(self.deadline.saturating_duration_since(Instant::now()));
            let next = runtime::wait(timeout, async move { (parts.next().await, parts) });
            let failed = |error: Failed| io::Error::other(Failure::Store(error));
            let (part, parts) = next.map_err(|error| failed(error.into()))?;
            match part {
                Some(part) => self.part = part.map_err(|error| failed(error.into()))?,
                None => return Ok(0),
            }
            self.parts = Some(parts);
        }
        let len = out.len().min(self.part.len());
        out[..len].copy_from_slice(&self.part.split_to(len));
        Ok(len)
    }
}

/// Writes the index in `body`, an object of `stored_size` bytes, to `out`. The first bytes tell whether it is
/// compressed. `size` is the size of the index that the object states.
///
/// # Errors
///
/// A [`Failure`] if the body cannot be read, is not valid, or has too many bytes or another size than stated. Other
/// errors are those of `out`.
pub(super) fn decode(
    mut body: impl Read,
    stored_size: u64,
    size: Option<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut start = Vec::with_capacity(ZSTD_MAGIC.len());
    body.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut start)?;
    let is_compressed = start == ZSTD_MAGIC;
    let by_ratio =
        if is_compressed { stored_size.saturating_mul(MAX_RATIO).saturating_add(SMALL) } else { stored_size };
    let limit = size.unwrap_or(u64::MAX).min(by_ratio).min(MAX_SIZE);
    let mut body = BufReader::new(io::Cursor::new(start).chain(body));
    let copied = if is_compressed {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(&mut body)?.single_frame();
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        copy(&mut decoder, limit, out)?
    } else {
        copy(&mut body, limit, out)?
    };
    if copied > limit || size.is_some_and(|size| size != copied) {
        return Err(damaged(format!(
            "the object has {} {limit} bytes of index; expected {}",
            if copied > limit { "more than" } else { "fewer than" },
            size.map_or("less".to_owned(), |size| format!("{size}, as its metadata states")),
        )));
    }
    // Bytes that follow are not part of the index.
    if !body.fill_buf()?.is_empty() {
        return Err(damaged("bytes follow the compressed index".to_owned()));
    }
    out.flush()
}

/// Copies at most one byte more than `limit`. Returns how many.
fn copy(from: &mut dyn Read, limit: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut from = from.take(limit.saturating_add(1));
    let (mut buffer, mut copied) = (Vec::new(), 0);
    loop {
        buffer.clear();
        let len = match from.by_ref().take(WRITTEN_AT_ONCE).read_to_end(&mut buffer) {
            // Errors of zstd have no type of their own.
            Err(error) if !error.get_ref().is_some_and(|error| error.is::<Failure>()) => {
                return Err(damaged(format!("the object cannot be decompressed: {error}")));
            }
            len => len?,
        };
        if len == 0 {
            return Ok(copied);
        }
        copied += len as u64;
        out.write_all(&buffer)?;
    }
}

fn damaged(what: String) -> io::Error {
    io::Error::other(Failure::Damaged(what))
}
