//! The one module with `unsafe`: mapping an index file into memory.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

use crate::error::Error;
use crate::file::open_regular_file;
use crate::index::Index;

/// The bytes of a file, mapped into memory and read only.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Maps the file at `path`: a debug file for `symdex_build::slices`, for example. [`Index::open_file`] maps an index.
///
/// The file must not change while it is mapped, as for [`Index::open_file`].
///
/// # Errors
///
/// [`std::io::Error`] if the file cannot be opened or mapped, or is not a regular file.
pub fn map_file(path: &Path) -> std::io::Result<MappedFile> {
    map_open_file(&open_regular_file(path)?)
}

/// Maps an open file, for example a temporary file without a name that an index was written to.
///
/// The file must not change while it is mapped, as for [`Index::open_file`].
///
/// # Errors
///
/// [`std::io::Error`] if the file cannot be mapped.
pub fn map_open_file(file: &File) -> std::io::Result<MappedFile> {
    // SAFETY: the map is read-only and private to this process. The caller ensures that nobody truncates or rewrites
    // the file while it is mapped: symdex publishes its files by rename and never changes one in place.
    unsafe { Mmap::map(file) }.map(MappedFile)
}

/// Maps the bytes of the file at `path` from `start` on, `size` of them, such as an index in a section of an ELF file.
///
/// The file must not change while it is mapped, as for [`Index::open_file`].
///
/// # Errors
///
/// [`std::io::Error`] if the file cannot be opened or mapped, or ends before these bytes do.
pub fn map_file_part(path: &Path, start: u64, size: usize) -> std::io::Result<MappedFile> {
    let file = open_regular_file(path)?;
    if start.checked_add(size as u64).is_none_or(|end| file.metadata().map_or(true, |file| file.len() < end))
    {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    // SAFETY: as for `map_open_file`. The file has these bytes.
    unsafe { MmapOptions::new().offset(start).len(size).map(&file) }.map(MappedFile)
}

impl Index<MappedFile> {
    /// Opens the index file at `path`, mapped into memory.
    ///
    /// Use this for files that only you can change: the file must not change while the index is open. If it is
    /// truncated, reading it kills the process (on Unix with SIGBUS). If a page changes after its checksum was checked,
    /// answers can be wrong. For other files, use [`read_index_file`](crate::read_index_file).
    ///
    /// ```
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = symdex::Index::open_file(path.as_ref())?;
    /// println!("{} {}", index.id(), index.metadata().image_name);
    /// # Ok::<(), symdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read; otherwise as [`Index::open`].
    pub fn open_file(path: &Path) -> Result<Self, Error> {
        Self::open(map_file(path)?)
    }
}
