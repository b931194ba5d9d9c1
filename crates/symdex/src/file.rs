//! Reading an index file, or only its metadata, without mapping it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::Error;
use crate::format::{FileSection, Header, Metadata};

/// The size of the largest index that [`read_index_file`] reads into memory: 1 GiB.
pub const MAX_READ_SIZE: u64 = 1 << 30;

/// How many bytes are read before the size of the header is known.
const HEAD: u64 = 4096;

/// Reads the index file at `path` into memory. [`Index::open`](crate::Index::open) opens the bytes.
///
/// Use this for files that others can change. If a mapped file is truncated, reading it kills the process. After this
/// function has returned, changes to the file have no effect. If the file changes while it is read, opening the index
/// or a lookup fails.
///
/// The header is checked before the rest is read, so that a file that is not an index costs one read.
///
/// ```
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
/// let bytes = symdex::read_index_file(path.as_ref())?;
/// let index = symdex::Index::open(bytes)?;
/// println!("{} {}", index.id(), index.metadata().image_name);
/// # Ok::<(), symdex::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read, is not a regular file, or does not fit in memory; [`Error::TooLarge`] if
/// it has more than [`MAX_READ_SIZE`] bytes; otherwise the errors that [`Index::open`](crate::Index::open) has for
/// headers.
pub fn read_index_file(path: &Path) -> Result<Vec<u8>, Error> {
    let IndexFile { mut file, size, head: mut bytes, .. } = IndexFile::open(path)?;
    if size > MAX_READ_SIZE {
        return Err(Error::TooLarge { found: size, limit: MAX_READ_SIZE });
    }
    let rest = size.saturating_sub(bytes.len() as u64);
    let reserved = usize::try_from(rest).is_ok_and(|rest| bytes.try_reserve_exact(rest).is_ok());
    if !reserved {
        return Err(io::Error::from(io::ErrorKind::OutOfMemory).into());
    }
    file.by_ref().take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the digest of the index file at `path`, as [`Index::digest`](crate::Index::digest) returns it. Only the
/// header is read and checked.
///
/// ```
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex".as_ref();
/// let index = symdex::Index::open(symdex::read_index_file(path)?)?;
/// assert_eq!(symdex::read_digest(path)?, index.digest());
/// # Ok::<(), symdex::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read or is not a regular file; otherwise the errors that
/// [`Index::open`](crate::Index::open) has for headers.
pub fn read_digest(path: &Path) -> Result<[u8; 16], Error> {
    Ok(IndexFile::open(path)?.header.digest)
}

impl Metadata {
    /// Reads the metadata of the index file at `path`. Only the header and the metadata are read and checked.
    ///
    /// ```
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let metadata = symdex::Metadata::read_file(path.as_ref())?;
    /// println!("{} {}", metadata.id, metadata.image_name);
    /// # Ok::<(), symdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read or is not a regular file; otherwise the errors that
    /// [`Index::open`](crate::Index::open) has for headers and metadata.
    pub fn read_file(path: &Path) -> Result<Self, Error> {
        let IndexFile { mut file, head: mut bytes, header, .. } = IndexFile::open(path)?;
        let [section, ..] = header.sections;
        let size = section.size.min(Self::MAX_BLOCK_SIZE as u64 + 1);
        let end = section.offset.saturating_add(size);
        file.by_ref().take(end.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
        Self::decode(&header.id, FileSection { size, ..section }.within(&bytes))
    }
}

/// An open index file whose header is valid.
struct IndexFile {
    /// Positioned after `head`.
    file: File,
    /// The size of the file, which the header states as well.
    size: u64,
    /// The first bytes of the file.
    head: Vec<u8>,
    header: Header,
}

impl IndexFile {
    fn open(path: &Path) -> Result<Self, Error> {
        let mut file = open_regular_file(path)?;
        let size = file.metadata()?.len();
        let mut head = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut head)?;
        if let Some(header_size) = Header::stated_size(&head) {
            file.by_ref().take((header_size as u64).saturating_sub(HEAD)).read_to_end(&mut head)?;
        }
        let header = Header::decode(&head, size)?;
        Ok(Self { file, size, head, header })
    }
}

/// Opens the file at `path` for reading. A FIFO, a socket or a device is not opened: opening a FIFO waits for its
/// writer, and opening or reading a device can have effects.
///
/// The type is checked before the file is opened. Whoever can replace the file in between can still make this function
/// wait: the standard library has no portable way to open a file without waiting.
///
/// ```
/// let error = symdex::open_regular_file("../../testdata".as_ref()).expect_err("a folder");
/// assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory);
/// ```
///
/// # Errors
///
/// [`io::Error`] if it cannot be opened or is not a regular file. The kind is [`io::ErrorKind::IsADirectory`] for a
/// folder, and [`io::ErrorKind::Unsupported`] for what is neither a file nor a folder.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "neither a file nor a folder"));
    }
    File::open(path)
}
