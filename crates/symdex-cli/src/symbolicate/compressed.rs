//! Reports compressed with gzip or zstd, and archives of reports.

use std::io::{BufRead, Read};
use std::path::Path;

use symdex_pipeline::archive::{Compression, Limits};

use crate::failure::{Cause, Failure};

/// The most bytes of an unpacked report.
const MAX_UNPACKED: u64 = 1 << 30;
/// The most unpacked bytes for each packed byte. Logs of the same few lines reach 300.
const MAX_RATIO: u64 = 500;
/// Reports with fewer unpacked bytes may exceed the ratio.
const SMALL: u64 = 16 << 20;

/// Whether a file that begins with `start` is a zip archive with entries.
pub(super) fn is_zip(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04")
}

/// The limits of a zip archive of reports.
pub(super) fn archive_limits() -> Limits {
    Limits { entry_size: MAX_UNPACKED, ratio: MAX_RATIO, ..Limits::default() }
}

/// Whether `bytes` are of a compressed file.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    Compression::of(bytes).is_some()
}

/// Reads a report that may be compressed. Its first bytes tell. `size` is the size of the file.
///
/// # Errors
///
/// [`Failure`] if the file cannot be read, is damaged, or unpacks to too many bytes.
pub(super) fn read(mut file: impl BufRead, size: u64, path: &Path) -> Result<Vec<u8>, Failure> {
    let start = file.fill_buf().map_err(|error| Failure::unreadable(path, &error))?;
    if let Some(compression) = Compression::of(start) {
        let decoder = compression.decoder(file, Compression::MAX_WINDOW_LOG);
        return unpack(decoder.map_err(|error| damaged(path, &error))?, size, path);
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|error| Failure::unreadable(path, &error))?;
    Ok(text)
}

/// Reads all of `unpacked`, which has `packed` bytes before it is unpacked.
fn unpack(unpacked: impl Read, packed: u64, path: &Path) -> Result<Vec<u8>, Failure> {
    let limit = packed.saturating_mul(MAX_RATIO).clamp(SMALL, MAX_UNPACKED);
    let mut text = Vec::new();
    unpacked.take(limit + 1).read_to_end(&mut text).map_err(|error| damaged(path, &error))?;
    if text.len() as u64 > limit {
        let path = path.display();
        let message = format!(
            "{path}: {packed} bytes unpack to more than {limit}, the most that is read; unpack it first"
        );
        return Err(Failure::new(Cause::Unsupported, message));
    }
    Ok(text)
}

fn damaged(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(Cause::Damaged, format!("{}: cannot unpack: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        super::read(bytes, bytes.len() as u64, Path::new("r"))
    }

    #[test]
    fn compressed_reports_are_told_by_their_first_bytes() {
        let text = b"0   App   0x104a343d0 0x104a34000 + 976\n".repeat(40);
        let zstd = zstd::encode_all(&text[..], 1).expect("memory");
        for bytes in [&text, &gzip(&text), &zstd, &[gzip(&text[..40]), gzip(&text[40..])].concat()] {
            assert_eq!(read(bytes).expect("a report"), text);
        }
        let skippable = [&b"\x50\x2a\x4d\x18\x01\0\0\0x"[..], &zstd].concat();
        assert_eq!(read(&skippable).expect("a report"), text);
        for packed in [gzip(&text), zstd] {
            let followed = [&packed[..], b"more"].concat();
            for wrong in [&packed[..packed.len() - 9], &packed[..packed.len() - 1], &followed] {
                let failure = read(wrong).expect_err("damaged");
                assert_eq!(failure.cause, Cause::Damaged, "{}", failure.message);
            }
        }
    }

    #[test]
    fn a_report_that_unpacks_to_far_more_bytes_is_refused() {
        let text = vec![b' '; usize::try_from(SMALL).expect("small")];
        assert_eq!(read(&gzip(&text)).expect("a report").len(), text.len());
        let refused = read(&gzip(&[&text[..], &text].concat())).expect_err("too large");
        assert_eq!(refused.cause, Cause::Unsupported);
        assert!(refused.message.contains("unpack to more than 16777216"), "{}", refused.message);
    }
}
