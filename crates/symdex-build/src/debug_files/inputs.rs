//! The debug files of a build or a search.

use std::path::{Path, PathBuf};

use super::{DebugFile, FileError};
use crate::error::Error;
use crate::input::{FoundFiles, SpecialFiles, search};

/// The debug files of a build, in order, and the companions to which they may refer. At most the first 48 bytes of each
/// were read.
#[derive(Debug, Default)]
pub struct InputFiles {
    files: Vec<Result<DebugFile, FileError>>,
    archives: Vec<UnreadArchives>,
    special: SpecialFiles,
}

/// Archives in a folder of debug files. They may hold debug files, but are not read.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadArchives {
    /// The folder that was searched.
    pub folder: PathBuf,
    /// The archives in it and in the folders below it.
    pub archives: Vec<PathBuf>,
}

impl InputFiles {
    /// Finds the debug files that `paths` stand for, as [`find`](crate::find) does.
    #[must_use]
    pub fn find<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut files = Self::default();
        paths.into_iter().for_each(|path| files.add(path.as_ref()));
        files
    }

    /// Adds the debug files that `path` stands for, and the companions in it if it is a folder.
    pub fn add(&mut self, path: &Path) {
        let FoundFiles { debug_files, companions, archives, special, .. } = search(path);
        self.special.extend(special);
        // The error for a folder without debug files names the archives itself.
        let has_none = matches!(debug_files[..], [Err(Error::NoDebugFile { .. })]);
        if !archives.is_empty() && !has_none {
            self.archives.push(UnreadArchives { folder: path.to_owned(), archives });
        }
        let failed = |error| FileError::new(path, error);
        self.files.extend(companions.into_iter().map(DebugFile::on_disk).map(Ok));
        self.files.extend(debug_files.into_iter().map(|found| found.map(DebugFile::on_disk).map_err(failed)));
    }

    /// Adds a file from an archive if it may be a debug file. Returns whether the file was added.
    pub fn add_unpacked(&mut self, file: DebugFile) -> bool {
        match file.is_debug_file() {
            Ok(true) => self.files.push(Ok(file)),
            Ok(false) => return false,
            Err(error) => self.files.push(Err(FileError::unreadable(file.name(), error))),
        }
        true
    }

    /// Adds a file, which need not be a debug file. Reading it then reports that.
    pub fn add_file(&mut self, file: DebugFile) {
        self.files.push(Ok(file));
    }

    /// The files, and why others cannot be read.
    pub fn files(&self) -> &[Result<DebugFile, FileError>] {
        &self.files
    }

    /// What [`files`](Self::files) returns.
    #[must_use]
    pub fn into_files(self) -> Vec<Result<DebugFile, FileError>> {
        self.files
    }

    /// Archives beside the debug files.
    #[must_use]
    pub fn unread_archives(&self) -> &[UnreadArchives] {
        &self.archives
    }

    /// FIFOs, sockets and devices in the folders.
    #[must_use]
    pub fn special_files(&self) -> &SpecialFiles {
        &self.special
    }
}
