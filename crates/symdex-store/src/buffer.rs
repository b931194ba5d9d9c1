//! A buffer for an index that is built and not yet published.

use std::io::{self, Write};
use std::ops::Deref;

use symdex::MappedFile;
use tempfile::{SpooledData, SpooledTempFile, spooled_tempfile};

/// Indexes up to this size stay in memory.
const IN_MEMORY: usize = 4 << 20;

/// A buffer for a new index: memory, or a temporary file if the index has more than 4 MiB.
///
/// The temporary file has no name. It is deleted when the buffer, or the [`IndexBytes`] made from it, is dropped.
///
/// ```
/// use std::io::Write as _;
/// use symdex::Index;
/// use symdex_store::{IndexBuffer, IndexFolder, PublishOutcome};
///
/// let mut buffer = IndexBuffer::new();
/// // A builder writes the index, for example `symdex_build::build_into`.
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
/// buffer.write_all(&std::fs::read(path)?)?;
///
/// let index = Index::open(buffer.into_bytes()?)?;
/// # let root = tempfile::tempdir()?;
/// # let path = root.path();
/// assert_eq!(IndexFolder::new(path).publish(&index)?.outcome, PublishOutcome::Written);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct IndexBuffer(SpooledTempFile);

/// The bytes of an index, in memory or mapped: those that were written to an [`IndexBuffer`], or those of a store.
#[derive(Debug)]
pub struct IndexBytes(Bytes);

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    File(MappedFile),
}

impl IndexBuffer {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self(spooled_tempfile(IN_MEMORY))
    }

    /// The bytes that were written.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the temporary file cannot be mapped.
    pub fn into_bytes(self) -> io::Result<IndexBytes> {
        Ok(IndexBytes(match self.0.into_inner() {
            SpooledData::InMemory(bytes) => Bytes::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Bytes::File(symdex::map_open_file(&file)?),
        }))
    }
}

impl Default for IndexBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for IndexBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(with_folder)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(with_folder)
    }
}

/// An error of the temporary file, with the folder and what helps.
fn with_folder(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let help = "free space there, or name another folder with TMPDIR";
    let message =
        format!("cannot keep the index in a temporary file in {}: {error}; {help}", folder.display());
    io::Error::new(error.kind(), message)
}

impl From<Vec<u8>> for IndexBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::Memory(bytes))
    }
}

impl From<MappedFile> for IndexBytes {
    fn from(file: MappedFile) -> Self {
        Self(Bytes::File(file))
    }
}

impl IndexBytes {
    /// Whether the bytes are those of a mapped file, which take no memory of their own.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Bytes::File(_))
    }
}

impl Deref for IndexBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Memory(bytes) => bytes,
            Bytes::File(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for IndexBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_folder_of_the_temporary_file_and_keeps_its_kind() {
        // An interrupted write is repeated, which depends on its kind.
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Interrupted] {
            let error = with_folder(kind.into());
            let folder = format!("in {}: {kind}", std::env::temp_dir().display());
            assert!(error.kind() == kind && error.to_string().contains(&folder), "{error}");
            assert!(error.to_string().ends_with("with TMPDIR"), "{error}");
        }
    }

    #[test]
    fn small_and_large_indexes_read_as_written() {
        for size in [0, 1, IN_MEMORY, IN_MEMORY + 1] {
            let mut buffer = IndexBuffer::new();
            buffer.write_all(&vec![7; size]).expect("written");
            let bytes = buffer.into_bytes().expect("mapped");
            assert!(bytes.len() == size && bytes.iter().all(|byte| *byte == 7), "{size}");
            assert_eq!(matches!(bytes.0, Bytes::File(_)), size > IN_MEMORY);
        }
    }
}
