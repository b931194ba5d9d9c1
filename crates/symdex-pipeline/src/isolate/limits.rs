//! The limits of a child, and the files that it may read.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How many files a child may have open at one time.
#[cfg(unix)]
pub(crate) const OPEN_FILES: u64 = 256;
/// Seconds of CPU time that a thread may use in addition, so that the child can report itself that it takes too long.
#[cfg(unix)]
const CPU_GRACE: u64 = 2;

/// How much a child may use. The default is no limit, one thread, and 256 open files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub(crate) memory: Option<u64>,
    pub(crate) seconds: Option<u64>,
    pub(crate) threads: u64,
    pub(crate) file_size: Option<u64>,
}

impl Limits {
    /// No limits of memory, time and file sizes; one thread; 256 open files.
    #[must_use]
    pub fn new() -> Self {
        Self { memory: None, seconds: None, threads: 1, file_size: None }
    }

    /// How many bytes of memory the child may allocate. Mapped files do not count on Linux. A child that needs more
    /// ends with [`Death::OutOfMemory`](crate::isolate::Death::OutOfMemory).
    #[must_use]
    pub fn memory(self, bytes: Option<u64>) -> Self {
        Self { memory: bytes, ..self }
    }

    /// How many seconds the child may take for each result. The parent then kills it. The limit of its CPU time for
    /// each result is 2 s more than this, for each thread.
    #[must_use]
    pub fn seconds(self, seconds: Option<u64>) -> Self {
        Self { seconds, ..self }
    }

    /// How many threads the child uses. It scales the limit of CPU time, and limits nothing itself.
    #[must_use]
    pub fn threads(self, threads: u64) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// How many bytes each file that the child writes may have.
    #[must_use]
    pub fn file_size(self, bytes: Option<u64>) -> Self {
        Self { file_size: bytes, ..self }
    }

    /// The limit of CPU time for one result, in seconds.
    #[cfg(unix)]
    pub(crate) fn cpu_seconds(&self) -> Option<u64> {
        self.seconds.map(|seconds| seconds.saturating_add(CPU_GRACE).saturating_mul(self.threads))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

/// The files that a child may open, where the system can enforce this.
///
/// Paths are kept as [`OsString`], because JSON cannot have a [`PathBuf`] that is not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub(crate) read: BTreeSet<OsString>,
    pub(crate) temporary: Option<OsString>,
}

impl Access {
    /// No files.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The child may also read the file at `path`, or everything below the folder `path`.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.insert(path.into().into());
        self
    }

    /// The child may also read the debug file at `path` and the files that it may refer to: those in its folder and
    /// below it, those in `Resources` of its bundle, and those in a folder `.dwz` above it. A link in these folders
    /// that leads to a file elsewhere cannot be followed.
    #[must_use]
    pub fn debug_file(mut self, path: &Path) -> Self {
        self.read.insert(path.into());
        // A path without a folder is relative to the current one.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        for folder in absolute.ancestors().skip(1) {
            let dwz = folder.join(".dwz");
            if dwz.is_dir() {
                self.read.insert(dwz.into());
            }
        }
        let Some(folder) = absolute.parent() else { return self };
        let is_in_bundle = folder.file_name() == Some(OsStr::new("DWARF"));
        let folder = folder.parent().filter(|_| is_in_bundle).unwrap_or(folder);
        // The root folder has everything. Of a file in it, only the file itself can be read.
        if folder.parent().is_some() {
            self.read.insert(folder.into());
        }
        self
    }

    /// The child may also make temporary files without names in the folder `path`.
    #[must_use]
    pub fn temporary_files_in(mut self, path: impl Into<PathBuf>) -> Self {
        self.temporary = Some(path.into().into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn cpu_time_grows_with_the_threads() {
        let limits = Limits::new().seconds(Some(5)).threads(4);
        assert_eq!(limits.cpu_seconds(), Some(28));
        assert_eq!(limits.clone().seconds(Some(0)).cpu_seconds(), Some(8));
        assert_eq!(limits.seconds(None).cpu_seconds(), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_debug_file_comes_with_its_folder_or_bundle_but_never_with_the_root() {
        let read = |path: &str| Access::none().debug_file(path.as_ref()).read.into_iter().collect::<Vec<_>>();
        assert_eq!(read("/up/load/liba.so"), ["/up/load", "/up/load/liba.so"]);
        let dwarf = "/up/A.dSYM/Contents/Resources/DWARF/A";
        assert_eq!(read(dwarf), ["/up/A.dSYM/Contents/Resources", dwarf]);
        assert_eq!(read("/liba.so"), ["/liba.so"]);
    }

    #[cfg(unix)]
    #[test]
    fn paths_that_are_not_utf8_survive_json() {
        use std::os::unix::ffi::OsStrExt;
        let access = Access::none().read(OsStr::from_bytes(b"/a\xff"));
        let json = serde_json::to_string(&access).expect("JSON");
        assert_eq!(serde_json::from_str::<Access>(&json).expect("the same"), access);
    }
}
