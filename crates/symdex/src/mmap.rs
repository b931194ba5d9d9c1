//! The one module with `unsafe`: mapping an index file into memory.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::error::Error;
use crate::index::Index;

/// Maps the file at `path`.
///
/// # Errors
///
/// [`std::io::Error`] where the file cannot be opened or mapped.
pub fn map_file(path: &Path) -> std::io::Result<Mmap> {
    // A directory opens on Unix, and maps as "no such device"; opening a pipe waits for its writer. Say what it is instead.
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a regular file, which alone can be mapped"));
    }
    map_open_file(&File::open(path)?)
}

/// Maps an open file, one without a name for example.
///
/// # Errors
///
/// [`std::io::Error`] where the file cannot be mapped.
pub fn map_open_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and private to this process. What stays with the caller is that nobody truncates or
    // rewrites the file meanwhile: symdex publishes its files by rename and never changes one in place.
    unsafe { Mmap::map(file) }
}

impl Index<Mmap> {
    /// Opens the index file at `path`, mapped into memory.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the file cannot be read, else as [`Index::open`].
    pub fn open_file(path: &Path) -> Result<Self, Error> {
        Self::open(map_file(path)?)
    }
}
