//! Streams, which cannot be read at any place, as files.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};

/// Copies `stream`, such as standard input, to a temporary file without a name, and returns the file. A zip archive can
/// only be read from a file, because its directory is at its end.
///
/// # Errors
///
/// [`io::Error`] if the stream cannot be read or the file cannot be written, and if the stream has more than `limit`
/// bytes.
pub fn spool(stream: impl Read, limit: u64) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let copied = io::copy(&mut stream.take(limit.saturating_add(1)), &mut file)?;
    if copied > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes, the limit of --max-unpacked")));
    }
    file.flush()?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_becomes_a_file_up_to_the_limit() {
        let mut bytes = Vec::new();
        spool(&b"abc"[..], 3).expect("short enough").read_to_end(&mut bytes).expect("read");
        assert_eq!(bytes, b"abc");
        let error = spool(io::repeat(0), 1 << 20).expect_err("too long");
        assert!(error.to_string().contains("the limit of --max-unpacked"), "{error}");
    }
}
