//! Compressed reports: gzip and zstd, and the entries of zip archives.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder};
use symdex_pipeline::archive::Compression;

use crate::failure::{Failure, FailureKind};

/// The most bytes of an unpacked report.
const MAX_UNPACKED: u64 = 1 << 30;
/// The most unpacked bytes for each packed byte. Logs of the same few lines reach 300.
const MAX_RATIO: u64 = 500;
/// Reports with fewer unpacked bytes may exceed the ratio.
const SMALL: u64 = 16 << 20;
/// The most entries of an archive that are read.
const MAX_ENTRIES: usize = 100_000;

/// The first bytes of a zip archive with entries.
const ZIP: &[u8] = b"PK\x03\x04";

/// Whether the file at `path` is a zip archive.
pub(super) fn is_zip(path: &Path) -> bool {
    let mut start = [0; ZIP.len()];
    // A pipe can be read only once.
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == ZIP
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

/// An entry of a zip archive.
pub(super) struct ZipEntry {
    /// The path in the archive.
    pub(super) name: PathBuf,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

/// Returns the files in the zip archive at `path`, in the order of its directory.
///
/// # Errors
///
/// [`Failure`] if the archive cannot be read, is damaged or has too many entries.
pub(super) fn entries(path: &Path) -> Result<Vec<ZipEntry>, Failure> {
    let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file, &mut buffer).map_err(|error| damaged(path, &error))?;
    let mut headers = archive.entries(&mut buffer);
    let mut found = Vec::new();
    while let Some(header) = headers.next_entry().map_err(|error| damaged(path, &error))? {
        if found.len() == MAX_ENTRIES {
            let message = format!("{}: more than {MAX_ENTRIES} entries; unpack it first", path.display());
            return Err(Failure::new(FailureKind::Unsupported, message));
        }
        if !header.is_dir() {
            let name = String::from_utf8_lossy(header.file_path().as_bytes());
            let name = PathBuf::from(name.trim_start_matches('/'));
            found.push(ZipEntry { name, place: header.wayfinder(), method: header.compression_method() });
        }
    }
    Ok(found)
}

impl ZipEntry {
    /// Reads the entry from the archive at `archive`. `path` is the path of the entry in messages.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the entry cannot be read, is damaged, or unpacks to too many bytes.
    pub(super) fn read(&self, archive: &Path, path: &Path) -> Result<Vec<u8>, Failure> {
        let file = File::open(archive).map_err(|error| Failure::unreadable(path, &error))?;
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let zip = ZipArchive::from_file(file, &mut buffer).map_err(|error| damaged(path, &error))?;
        let entry = zip.get_entry(self.place).map_err(|error| damaged(path, &error))?;
        let (start, end) = entry.compressed_data_range();
        let packed = BufReader::new(entry.reader());
        let size = end - start;
        match self.method {
            CompressionMethod::STORE => unpack(entry.verifying_reader(packed), size, path),
            CompressionMethod::DEFLATE => {
                unpack(entry.verifying_reader(DeflateDecoder::new(packed)), size, path)
            }
            other => {
                let message = format!(
                    "{}: compressed with method {}; expected deflate or none; unpack the archive first",
                    path.display(),
                    other.as_u16()
                );
                Err(Failure::new(FailureKind::Unsupported, message))
            }
        }
    }

    /// The number of packed bytes.
    pub(super) fn size(&self) -> u64 {
        self.place.compressed_size_hint()
    }
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
        return Err(Failure::new(FailureKind::Unsupported, message));
    }
    Ok(text)
}

fn damaged(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Damaged, format!("{}: cannot unpack: {error}", path.display()))
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
                assert_eq!(failure.kind, FailureKind::Damaged, "{}", failure.message);
            }
        }
    }

    #[test]
    fn a_report_that_unpacks_to_far_more_bytes_is_refused() {
        let text = vec![b' '; usize::try_from(SMALL).expect("small")];
        assert_eq!(read(&gzip(&text)).expect("a report").len(), text.len());
        let refused = read(&gzip(&[&text[..], &text].concat())).expect_err("too large");
        assert_eq!(refused.kind, FailureKind::Unsupported);
        assert!(refused.message.contains("unpack to more than 16777216"), "{}", refused.message);
    }
}
