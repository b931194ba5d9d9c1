//! Compressed sections.

use std::io::{self, Read};

use crate::limits::Deadline;

/// How a section is compressed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    Zlib,
    Zstd,
}

/// Decompresses `bytes` to `size` bytes.
///
/// # Errors
///
/// The error says what is wrong: the size is above `limit`, or the bytes do not decompress to that size.
pub(super) fn decompress(
    format: Format,
    bytes: &[u8],
    size: u64,
    limit: u64,
    deadline: Deadline,
) -> Result<Vec<u8>, String> {
    if size > limit {
        return Err(format!("it would decompress to {size} bytes; the limit is {limit}"));
    }
    let decompressed = match format {
        Format::Zlib => read(flate2::read::ZlibDecoder::new(bytes), size, deadline),
        Format::Zstd => {
            zstd::stream::read::Decoder::with_buffer(bytes).and_then(|zstd| read(zstd, size, deadline))
        }
    };
    let decompressed = decompressed.map_err(|error| format!("does not decompress: {error}"))?;
    if decompressed.len() as u64 != size {
        return Err(format!("{} bytes once decompressed, {size} are stated", decompressed.len()));
    }
    Ok(decompressed)
}

/// Decompresses `bytes`, an xz stream.
///
/// # Errors
///
/// The error says what is wrong: there are more than `limit` bytes, or they do not decompress.
pub(super) fn decompress_xz(bytes: &[u8], limit: u64, deadline: Deadline) -> Result<Vec<u8>, String> {
    /// In KiB. xz's highest level has a dictionary of 64 MiB; the decoder needs some more.
    const MEMORY: u32 = 65 << 10;
    let mut decompressed = Vec::new();
    let reader = lzma_rust2::XzReader::new_mem_limit(bytes, true, MEMORY);
    Timed { from: reader, deadline }
        .take(limit.saturating_add(1))
        .read_to_end(&mut decompressed)
        .map_err(|error| format!("does not decompress: {error}"))?;
    if decompressed.len() as u64 > limit {
        return Err(format!("it decompresses to more than {limit} bytes, the limit"));
    }
    Ok(decompressed)
}

/// A reader that fails after the deadline.
struct Timed<R> {
    from: R,
    deadline: Deadline,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        /// How many bytes are read between two checks.
        const READ_AT_A_TIME: usize = 1 << 18;
        self.deadline.check().map_err(io::Error::other)?;
        let most = bytes.len().min(READ_AT_A_TIME);
        self.from.read(&mut bytes[..most])
    }
}

/// Reads at most `size` bytes, until the deadline.
fn read(from: impl Read, size: u64, deadline: Deadline) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Pages that are reserved and not written take no memory, so a wrong size costs nothing.
    bytes.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))?;
    Timed { from, deadline }.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stated_has_to_be_there() {
        let text = b"debug information".repeat(100);
        let packed = zstd::stream::encode_all(&text[..], 3).expect("compresses");
        let (size, never) = (text.len() as u64, Deadline::default());
        assert_eq!(decompress(Format::Zstd, &packed, size, size, never), Ok(text));
        let error = |bytes: &[u8], size, limit| {
            decompress(Format::Zstd, bytes, size, limit, never).expect_err("wrong")
        };
        assert!(error(&packed, size, size - 1).contains("the limit is 1699"));
        assert!(error(&packed, size + 1, 1 << 20).contains("1700 bytes once decompressed, 1701 are stated"));
        assert!(error(&packed[..9], size, 1 << 20).contains("does not decompress"));
        assert!(decompress(Format::Zlib, &packed, size, 1 << 20, never).is_err());
    }
}
