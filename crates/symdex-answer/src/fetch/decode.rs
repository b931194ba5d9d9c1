//! Decompresses a fetched file, with limits, and checks what it is.

use std::cell::Cell;
use std::io::{self, BufReader, Read, Write};
use std::time::Instant;

use flate2::read::ZlibDecoder;
use symdex_pipeline::DiskSpace;
use symdex_pipeline::archive::Compression;

use super::error::{Failure, of_read};
use super::options::FetchOptions;

/// A debug file has at most this many times the bytes of its compressed form, and [`SMALL`] more. DWARF shrinks to a
/// fifth or a tenth.
const MAX_RATIO: u64 = 200;
const SMALL: u64 = 1 << 20;

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A Mach-O or ELF file, not compressed.
    DebugFile,
    Compressed(Compression),
    Zlib,
    Other,
}

impl Content {
    pub(crate) fn of(head: [u8; 4]) -> Self {
        match head {
            [0x7f, b'E', b'L', b'F'] => Self::DebugFile,
            // Mach-O, and universal files.
            [0xce | 0xcf, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe | 0xbf] => Self::DebugFile,
            // The method is deflate with a window of 32 KiB, and the two bytes are a multiple of 31.
            [0x78, flags, ..] if (0x7800 | u32::from(flags)).is_multiple_of(31) => Self::Zlib,
            _ => Compression::of(&head).map_or(Self::Other, Self::Compressed),
        }
    }
}

/// Reads the first bytes of `from`. Bytes that a short file lacks are 0.
pub(crate) fn head_of(from: &mut dyn Read) -> io::Result<[u8; 4]> {
    let mut head = [0; 4];
    let mut len = 0;
    while len < head.len() {
        match from.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// Writes the debug file in `body` to `out`. Returns its size.
///
/// # Errors
///
/// [`Failure`] if it cannot be read or written, is damaged, is no debug file, is too large, or takes too long.
pub(crate) fn decode(
    mut body: impl Read,
    options: &FetchOptions,
    deadline: Instant,
    out: &mut dyn Write,
) -> Result<u64, Failure> {
    let head = head_of(&mut body).map_err(|error| of_read(error, "it cannot be read"))?;
    let arrived = Cell::new(0);
    let body = Arriving { body: (&head[..]).chain(body), read: &arrived, options, deadline };
    match Content::of(head) {
        Content::DebugFile => copy(body, &arrived, options, out),
        Content::Zlib => copy(ZlibDecoder::new(body), &arrived, options, out),
        Content::Compressed(compression) => {
            let decoder = compression.decoder(BufReader::new(body), Compression::MAX_WINDOW_LOG);
            let decoder = decoder.map_err(|error| of_read(error, "it cannot be decompressed"))?;
            copy(decoder, &arrived, options, out)
        }
        Content::Other => Err(not_a_debug_file(head)),
    }
}

fn not_a_debug_file(head: [u8; 4]) -> Failure {
    let head: Vec<_> = head.iter().map(|byte| format!("{byte:02x}")).collect();
    Failure::lasting(format!(
        "it is no debug file: it begins with {}; expected ELF or Mach-O, plain or compressed with gzip, zlib or zstd",
        head.join(" ")
    ))
}

/// The bytes of a source as they arrive.
struct Arriving<'o, R> {
    body: R,
    read: &'o Cell<u64>,
    options: &'o FetchOptions,
    deadline: Instant,
}

impl<R: Read> Read for Arriving<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline {
            return Err(Failure::lasting("it is not complete within the time for one image").into_io());
        }
        let len = self.body.read(out)?;
        self.read.set(self.read.get() + len as u64);
        if self.read.get() > self.options.max_size {
            return Err(too_large(self.options.max_size).into_io());
        }
        if let Some(on_bytes) = &self.options.on_bytes {
            on_bytes(0, len as u64);
        }
        Ok(len)
    }
}

pub(crate) fn too_large(limit: u64) -> Failure {
    Failure::lasting(format!("it has more than {limit} bytes, the limit for debug files"))
}

/// Copies the debug file in `from` to `out`. `arrived` is how many bytes the source has sent.
fn copy(
    mut from: impl Read,
    arrived: &Cell<u64>,
    options: &FetchOptions,
    out: &mut dyn Write,
) -> Result<u64, Failure> {
    let broken = |error| of_read(error, "it cannot be decompressed");
    let head = head_of(&mut from).map_err(broken)?;
    if Content::of(head) != Content::DebugFile {
        return Err(not_a_debug_file(head));
    }
    let written = |result: io::Result<()>| {
        result.map_err(|error| Failure::lasting(format!("its temporary file cannot be written: {error}")))
    };
    let mut space = options.space.as_ref().map(DiskSpace::reserve);
    let mut write = |part: &[u8]| {
        let room = space.as_mut().map_or(Ok(()), |space| space.take(part.len() as u64));
        written(room.and_then(|()| out.write_all(part)))
    };
    write(&head)?;
    let (mut buffer, mut size) = (vec![0; 128 << 10], head.len() as u64);
    loop {
        let len = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            len => len.map_err(broken)?,
        };
        if len == 0 {
            written(out.flush())?;
            return Ok(size);
        }
        size += len as u64;
        if size > options.max_size {
            return Err(too_large(options.max_size));
        }
        if size > arrived.get().saturating_mul(MAX_RATIO).saturating_add(SMALL) {
            let reason = format!("it grows to more than {MAX_RATIO} times its size when it is decompressed");
            return Err(Failure::lasting(reason));
        }
        write(&buffer[..len])?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn elf(len: usize) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend((0..len).map(|at| {
            u8::try_from(at % 251).expect("a byte") ^ u8::try_from(at >> 8 & 0xff).expect("a byte")
        }));
        bytes
    }

    fn decoded(body: &[u8], max_size: u64) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(3600);
        let options = FetchOptions::new().max_size(max_size);
        let size = decode(body, &options, deadline, &mut out).map_err(|failure| failure.reason)?;
        assert_eq!(size, out.len() as u64);
        Ok(out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn forms(bytes: &[u8]) -> [Vec<u8>; 4] {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(bytes).expect("memory");
        let zstd = zstd::encode_all(bytes, 3).expect("memory");
        [bytes.to_vec(), gzip(bytes), zlib.finish().expect("memory"), zstd]
    }

    #[test]
    fn plain_and_compressed_files_are_the_same() {
        let file = elf(700_000);
        for form in forms(&file) {
            assert!(decoded(&form, 1 << 20) == Ok(file.clone()));
        }
    }

    #[test]
    fn cut_files_and_damaged_files_fail() {
        let file = elf(70_000);
        for form in &forms(&file)[1..] {
            for cut in [5, form.len() / 2, form.len() - 1] {
                let error = decoded(&form[..cut], 1 << 20).expect_err("it is cut");
                assert!(error.contains("decompressed"), "{error}");
            }
        }
        // The checksum comes last.
        let mut wrong = gzip(&file);
        let checksum = wrong.len() - 8;
        wrong[checksum] ^= 1;
        for form in [wrong, [gzip(&file), b"more".to_vec()].concat()] {
            assert!(decoded(&form, 1 << 20).expect_err("damaged").contains("decompressed"));
        }
        let mut damaged = gzip(&file);
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        assert!(decoded(&damaged, 1 << 20).expect_err("damaged").contains("decompressed"));
    }

    #[test]
    fn other_files_are_refused() {
        for other in [&b"<html>"[..], b"", b"\x7f", &gzip(b"<html>"), &gzip(&gzip(&elf(9)))] {
            let error = decoded(other, 1 << 20).expect_err("no debug file");
            assert!(error.contains("no debug file") && error.contains("expected ELF or Mach-O"), "{error}");
        }
    }

    #[test]
    fn a_file_that_does_not_fit_the_disk_fails() {
        let space = DiskSpace::measured_by(10, || Ok(Some(10)));
        let options = FetchOptions::new().space(space);
        let deadline = Instant::now() + Duration::from_secs(3600);
        for form in forms(&elf(70_000)) {
            let mut out = Vec::new();
            let error = decode(&form[..], &options, deadline, &mut out).expect_err("no room").reason;
            assert!(out.is_empty() && error.contains("the limit of `min_free`"), "{error}");
        }
    }

    #[test]
    fn files_over_the_limit_fail_at_once() {
        let file = elf(70_000);
        for form in forms(&file) {
            let error = decoded(&form, 50_000).expect_err("too large");
            assert!(error.contains("50000 bytes"), "{error}");
        }
        let mut zeros = b"\x7fELF".to_vec();
        zeros.resize(8 << 20, 0);
        for form in &forms(&zeros)[1..] {
            let error = decoded(form, u64::MAX).expect_err("a bomb");
            assert!(error.contains("200 times"), "{error}");
        }
    }
}
