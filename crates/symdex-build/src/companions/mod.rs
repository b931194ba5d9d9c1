//! Companions, the files that a debug file refers to: the folders to search for them, and the memory of these files
//! and of decompressed sections.

mod search;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use symdex::ImageId;
use symdex::MappedFile;
use typed_arena::Arena;

use crate::debug_files::DebugFile;
use crate::error::Error;
use crate::limits::{Deadline, StopFlag};

pub(crate) use self::search::{Candidate, DWZ, NOT_FOUND, Reference, Refusal};

/// Owns bytes that images borrow: decompressed sections, and the files that a debug file refers to.
///
/// It must outlive the images that are loaded with it. The bytes stay in memory until it is dropped, so use one for
/// each debug file, not one for a whole program.
#[derive(Default)]
pub struct Companions {
    /// Folders of debug files such as `/usr/lib/debug`. Files in them are found by build id in `.build-id`, or by the
    /// path of the binary.
    debug_dirs: Vec<PathBuf>,
    /// Files that were given together with debug files, by their names. Those in archives have other paths.
    given: BTreeMap<OsString, Vec<PathBuf>>,
    max_memory: Option<usize>,
    max_seconds: Option<u64>,
    wanted_address: Cell<Option<u64>>,
    stop: StopFlag,
    deadline: Cell<Deadline>,
    /// Whether something was omitted because of `max_memory`.
    is_exceeded: Cell<bool>,
    /// How many bytes `buffers` has.
    kept: Cell<usize>,
    buffers: Arena<Vec<u8>>,
    maps: Arena<MappedFile>,
}

impl Companions {
    /// An empty owner. Files that an image refers to are searched beside it and in `debug_dirs`.
    #[must_use]
    pub fn new(debug_dirs: Vec<PathBuf>) -> Self {
        Self { debug_dirs, ..Self::default() }
    }

    /// `files` were given together with the debug files: packages and object files of split units, and supplementary
    /// files. Each is used for the debug files that refer to it by its id.
    #[must_use]
    pub fn files(mut self, files: &[DebugFile]) -> Self {
        for file in files {
            let name = file.entry().file_name().unwrap_or_default();
            self.given.entry(name.to_owned()).or_default().push(file.path().to_owned());
        }
        self
    }

    /// How many bytes of decompressed sections may be kept. An image that needs more fails with [`Error::TooLarge`].
    /// Give [`BuildOptions::max_memory`](crate::BuildOptions::max_memory) the same limit: it counts these bytes, too.
    #[must_use]
    pub fn max_memory(self, bytes: usize) -> Self {
        Self { max_memory: Some(bytes), ..self }
    }

    /// How many seconds the loading of an image may take. An image that takes longer fails with [`Error::TooSlow`].
    /// Give [`BuildOptions::max_seconds`](crate::BuildOptions::max_seconds) the same limit: it counts this time, too.
    /// `None` is no limit.
    #[must_use]
    pub fn max_seconds(self, seconds: Option<u64>) -> Self {
        Self { max_seconds: seconds, ..self }
    }

    /// Makes images that are loaded from now on have the code at `address`, as stated in the file, if their code lies
    /// more than 4 GiB apart. An index cannot cover such code as a whole; [`Image::outside`](crate::Image::outside)
    /// states what an image lacks. `None`, the default, loads the part with most code.
    pub fn load_near(&self, address: Option<u64>) {
        self.wanted_address.set(address);
    }

    pub(crate) fn wanted_address(&self) -> Option<u64> {
        self.wanted_address.get()
    }

    /// Ends with [`Error::Stopped`] once the flag is set. The default is no flag.
    #[must_use]
    pub fn stop(self, stop: StopFlag) -> Self {
        Self { stop, ..self }
    }

    /// Begins to load an image.
    pub(crate) fn begin(&self) {
        self.deadline.set(Deadline::after(self.max_seconds).stopped_by(self.stop));
        self.is_exceeded.set(false);
    }

    /// When the image has to be loaded.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline.get()
    }

    /// How many bytes of decompressed sections are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.get()
    }

    /// How many bytes may still be kept.
    pub(crate) fn left(&self) -> u64 {
        self.max_memory.map_or(u64::MAX, |limit| limit.saturating_sub(self.kept()) as u64)
    }

    /// Checks that `bytes` more may be kept.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub(crate) fn check(&self, bytes: u64) -> Result<(), Error> {
        self.is_exceeded.set(self.is_exceeded.get() || bytes > self.left());
        self.check_loaded()
    }

    /// Checks that no limit was exceeded during loading.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] and [`Error::TooSlow`].
    pub(crate) fn check_loaded(&self) -> Result<(), Error> {
        self.deadline().check()?;
        match self.max_memory.filter(|_| self.is_exceeded.get()) {
            Some(limit) => Err(Error::TooLarge { limit, what: "its decompressed sections" }),
            None => Ok(()),
        }
    }

    /// Keeps `bytes`.
    pub(crate) fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.kept.set(self.kept().saturating_add(bytes.capacity()));
        self.buffers.alloc(bytes)
    }

    /// The debug folders.
    pub(crate) fn debug_dirs(&self) -> impl Iterator<Item = &Path> {
        self.debug_dirs.iter().map(PathBuf::as_path)
    }

    /// Maps the file at `path` into memory.
    pub(crate) fn map(&self, path: &Path) -> io::Result<&[u8]> {
        Ok(self.maps.alloc(symdex::map_file(path)?))
    }

    /// Maps the companion at `path` into memory. Returns `None` if there is no such file.
    pub(crate) fn open(&self, path: &Path) -> Option<Result<&[u8], Refusal>> {
        match self.map(path) {
            Ok(bytes) => Some(Ok(bytes)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(Err(Refusal::unreadable(error)))
            }
            Err(_) => None,
        }
    }

    /// The paths that a file with this build id can have: `.build-id/0c/37c502...debug` in each debug folder.
    pub fn by_build_id(&self, id: &ImageId) -> impl Iterator<Item = PathBuf> {
        self.in_build_id(id, "debug")
    }
}

/// The last part of `path`.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(OsStr::to_string_lossy).unwrap_or_default().into_owned()
}

/// A path from debug information. Returns `None` if it is longer than any path can be.
pub(crate) fn path_of(name: &[u8]) -> Option<PathBuf> {
    /// The limit of Linux. The limit of macOS is a quarter of it.
    const LONGEST: usize = 4096;
    (name.len() <= LONGEST).then(|| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
}

/// The start of a name from a debug file, for messages. The name may be as long as the file.
pub(crate) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 300;
    match name.get(..LONGEST) {
        Some(beginning) if name.len() > LONGEST => format!("{}...", String::from_utf8_lossy(beginning)),
        _ => String::from_utf8_lossy(name).into_owned(),
    }
}

impl std::fmt::Debug for Companions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Companions({:?}, {} buffers, {} files)",
            self.debug_dirs,
            self.buffers.len(),
            self.maps.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_end_are_cut() {
        assert!(path_of(&[b'a'; 4097]).is_none());
        assert_eq!((shown(&[b'a'; 300]).len(), shown(&[b'a'; 9000]).len()), (300, 303));
    }
}
