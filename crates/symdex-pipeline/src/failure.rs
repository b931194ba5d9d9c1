//! Why something has no index: [`Failure`].

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use symdex::Cause;
use symdex_build::debug_files::FileError;

use crate::archive::Fault;
use crate::isolate::ChildError;

/// Why an input, or a part of it, has no index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The cause.
    pub cause: Cause,
    /// Which file, what is wrong, what was expected, what to do.
    pub message: String,
    /// A few words by which failures of many files are counted.
    pub reason: Cow<'static, str>,
    /// The input that failed; `None` if the failure concerns no single file.
    #[serde(serialize_with = "path_to_json", deserialize_with = "path_of_json")]
    pub path: Option<PathBuf>,
    /// The limit that ended the child process: [`Death::limit`](crate::isolate::Death::limit).
    pub limit: Option<Box<str>>,
}

/// JSON cannot have a path that is not UTF-8, except as an [`OsString`].
fn path_to_json<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.as_os_str()).serialize(serializer)
}

fn path_of_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    Ok(Option::<OsString>::deserialize(deserializer)?.map(PathBuf::from))
}

impl Failure {
    /// A failure that concerns no single file. Its reason is the name of its cause.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into(), reason: cause.name().into(), path: None, limit: None }
    }

    /// The same failure, for the input at `path`.
    #[must_use]
    pub fn of_path(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// The same failure, counted by this `reason`.
    #[must_use]
    pub fn because(self, reason: &'static str) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// The file at `path` cannot be used because of `what`.
    #[must_use]
    pub fn of_file(path: &Path, cause: Cause, what: &str) -> Self {
        Self::new(cause, format!("{}: {what}", path.display())).of_path(path)
    }

    /// `path` could not be read.
    #[must_use]
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::of_file(path, Cause::of_io(error), &format!("cannot read: {error}")).because("not readable")
    }

    /// The headers of the file at `path` listed an image, but the file no longer has it.
    pub(crate) fn gone(path: &Path) -> Self {
        Self::of_file(path, Cause::Damaged, "the image is not there any more")
    }

    /// There is no folder for temporary files.
    #[must_use]
    pub fn no_temporary_folder(error: &io::Error) -> Self {
        Self::new(Cause::Other, format!("cannot make a folder for temporary files: {error}"))
    }

    /// The archive `name` has no debug file.
    #[must_use]
    pub fn archive_without_debug_files(name: &Path) -> Self {
        let what =
            "no debug file in this archive; expected a .dSYM bundle or a linked Mach-O or ELF file inside";
        Self::of_file(name, Cause::Missing, what).because("archive without debug files")
    }

    /// The index at `path` is not taken. `advice` says what to do with it instead.
    pub(crate) fn refused_index(path: &Path, advice: &str) -> Self {
        let what = format!("an index, and not a debug file: {advice}");
        Self::of_file(path, Cause::Unsupported, &what).because("not a debug file")
    }

    /// The index at `path` could not be opened or read.
    #[must_use]
    pub fn index(path: &Path, error: &symdex::Error) -> Self {
        match error {
            symdex::Error::Io(error) => Self::unreadable(path, error),
            error => Self::of_file(path, error.cause(), &error.to_string()),
        }
    }

    /// The debug file at `path` could not be read, or its index could not be built.
    #[must_use]
    pub fn debug_file(path: &Path, error: &symdex_build::Error) -> Self {
        Self::new(error.cause(), error.with_path(path)).of_path(path).because(reason_of(error))
    }

    /// The child for the file at `path` has ended, or has not begun.
    pub(crate) fn of_child(path: &Path, error: &ChildError) -> Self {
        let limit = match error {
            ChildError::Ended(death) => Some(death.limit().into()),
            ChildError::NotStarted { .. } => None,
        };
        Self { limit, ..Self::of_file(path, error.cause(), &error.to_string()) }
    }
}

/// A debug file, or a part of it, could not be read, or its index could not be built.
impl From<&FileError> for Failure {
    fn from(error: &FileError) -> Self {
        Self { message: error.to_string(), ..Self::debug_file(error.path(), error.error()) }
    }
}

/// Its text is the whole message.
impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::from(&error)
    }
}

/// An archive, or an entry of it, is not read.
impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Self {
        let cause = fault.kind.cause();
        let reason = match cause {
            Cause::Damaged => "damaged archive",
            Cause::Unsupported => "refused in an archive",
            _ => "not readable",
        };
        Self::new(cause, fault.to_string()).of_path(Path::new(&fault.archive)).because(reason)
    }
}

/// An index could not be found, opened or published.
impl From<symdex_store::Error> for Failure {
    fn from(error: symdex_store::Error) -> Self {
        use symdex_store::Error;
        let failure = Self::new(error.cause(), error.to_string());
        match &error {
            Error::Unreadable { path, error } => Self::unreadable(path, error),
            Error::Index { path, .. }
            | Error::NewerIndex { path, .. }
            | Error::OtherImage { path, .. }
            | Error::NotPublished { path, .. } => failure.of_path(path),
            _ => failure,
        }
    }
}

/// The short reason of an error of a debug file.
fn reason_of(error: &symdex_build::Error) -> &'static str {
    use symdex_build::Error;
    match error {
        Error::NotADebugFile { .. } => "not a debug file",
        Error::NotASymbolFile { .. } => "not a symbol file",
        Error::NoId => "without an id",
        Error::Truncated { .. } => "cut short",
        Error::NothingFound { .. } => "nothing to answer",
        Error::NothingIndexed { .. } => "nothing indexed",
        Error::NoSuchArch { .. } => "without the architecture",
        Error::NoDebugFile { .. } => "folder without debug files",
        Error::CachePart { .. } => "in need of a missing part of a shared cache",
        Error::Io { doing: "read", .. } => "not readable",
        error => error.cause().name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_json() {
        let failure = Failure::of_file("a".as_ref(), Cause::NotFound, "x");
        let json = serde_json::to_string(&failure).expect("JSON");
        assert!(json.contains(&format!("{:?}", Cause::NotFound.name())), "{json}");
        assert_eq!(serde_json::from_str::<Failure>(&json).expect("the same"), failure);
    }
}
