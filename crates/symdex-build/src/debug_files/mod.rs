//! Debug files as a whole: the images in them, and the files of one image.
//!
//! * [`images_in`] lists the images of one file, from its headers.
//! * [`find_image`] finds one image in a file or a folder of debug files. [`ImageFiles`] names all files of that image,
//!   and [`ImageFiles::load`] joins them.
//! * [`InputFiles`] finds the debug files of folders and bundles. The crate `symdex-pipeline` plans and does their
//!   build.
//!
//! ```
//! use symdex_build::debug_files::{InputFiles, find_image, images_in};
//! use symdex_build::{Companions, DirectLookup};
//!
//! let bundle = InputFiles::find(["../../testdata/dsyms/inline-dwarf4.dSYM"]);
//! let files = find_image(bundle, Some("arm64"), |_| true)?;
//! assert_eq!(images_in(files.name())?.len(), 1);
//! let companions = Companions::default();
//! let (image, _failures) = files.load(&companions)?;
//! assert!(DirectLookup::new(&image).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod debug_file;
mod find;
mod image_files;
mod inputs;
mod list;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::Error;

pub use self::debug_file::DebugFile;
pub use self::find::{FindImageError, find_image};
pub use self::image_files::{ImageFiles, JoinedImage};
pub use self::inputs::{InputFiles, UnreadArchives};
pub use self::list::{ListedImage, images_in, slices_of};

/// Why a debug file, or a part of it, could not be read. The message names the file.
#[derive(Debug)]
pub struct FileError {
    path: PathBuf,
    part: Option<String>,
    error: Error,
}

impl FileError {
    /// `error` occurred in the file at `path`.
    pub fn new(path: impl Into<PathBuf>, error: Error) -> Self {
        Self { path: path.into(), part: None, error }
    }

    /// The same error for a part of the file: a slice, or an image of a shared cache.
    #[must_use]
    pub fn in_part(self, part: impl Into<String>) -> Self {
        Self { part: Some(part.into()), ..self }
    }

    /// The file at `path` could not be read.
    #[must_use]
    pub fn unreadable(path: &Path, source: std::io::Error) -> Self {
        Self::new(path, Error::Io { doing: "read", path: path.to_owned(), source })
    }

    /// The headers of the file at `path` listed the image before, but the file no longer has it.
    pub(crate) fn gone(path: &Path) -> Self {
        Self::new(path, gone())
    }

    /// The debug file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Whether the file is no image, but a companion of debug files, such as a package of split units. Given together
    /// with these, it is one of [`Companions::files`](crate::Companions::files).
    #[must_use]
    pub fn is_companion(&self) -> bool {
        matches!(self.error, Error::Companion { .. })
    }
}

fn gone() -> Error {
    Error::Malformed { what: "the image is not there any more".to_owned() }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.error.with_path(&self.path);
        let Some(part) = &self.part else { return f.write_str(&message) };
        let path = self.path.display();
        match message.strip_prefix(&format!("{path}: ")) {
            Some(what) => write!(f, "{path} ({part}): {what}"),
            None => write!(f, "{message} ({part})"),
        }
    }
}

/// Its text includes the text of [`FileError::error`], so it has no source.
impl std::error::Error for FileError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_file_once_and_the_part() {
        let malformed = || FileError::new("a/b", Error::Malformed { what: "x".to_owned() });
        assert_eq!(malformed().to_string(), "a/b: damaged debug file: x");
        assert_eq!(
            malformed().in_part("arm64 slice").to_string(),
            "a/b (arm64 slice): damaged debug file: x"
        );
        let unreadable = || FileError::unreadable("a/b".as_ref(), std::io::Error::other("x"));
        assert_eq!(unreadable().to_string(), "a/b: cannot read: x");
        assert!(std::error::Error::source(&unreadable()).is_none(), "the text has the cause");
        assert_eq!(unreadable().in_part("arm64 slice").to_string(), "a/b (arm64 slice): cannot read: x");
        let part = Error::CachePart { file: "c".into(), uuid: "0".to_owned(), why: "missing".to_owned() };
        let message = FileError::new("a/b", part).in_part("/usr/lib/x").to_string();
        assert_eq!(message, "c: missing; wanted is the part 0 of the shared cache (/usr/lib/x)");
    }
}
