//! The encoded chunks, until the index is written.

use std::io::{self, Read, Seek, SeekFrom, Write};

use tempfile::{SpooledTempFile, spooled_tempfile};

use crate::limits::Deadline;

/// How many bytes of chunks are kept in memory until the index is written. If there are more, all are in a temporary
/// file. WebAssembly has no files.
const CHUNKS_IN_MEMORY: usize = if cfg!(target_family = "wasm") { usize::MAX } else { 4 << 20 };

/// Bytes in memory or in a temporary file. Reading and writing fail after the deadline, so that the encoding of chunks
/// ends.
pub(crate) struct Spool {
    file: SpooledTempFile,
    deadline: Deadline,
}

impl Spool {
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self { file: spooled_tempfile(CHUNKS_IN_MEMORY), deadline }
    }

    fn check(&self) -> io::Result<()> {
        if self.deadline.is_over() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl Read for Spool {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.file.read(bytes)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Spool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
