//! Failures: messages and exit codes.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use symdex_build::debug_files::{FileError, JobError};

use crate::text;

/// The kinds of failure, the least grave first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    /// All files could be read, but they do not have what was asked for, such as an address or an architecture.
    NotFound,
    /// The command line or an address is wrong.
    Usage,
    /// Any other failure, for example a folder that cannot be written.
    Other,
    /// The child process that read a file was ended by a limit.
    Killed,
    /// A file is missing.
    Missing,
    /// A file is of a kind or version that is not read.
    Unsupported,
    /// A file is damaged.
    Damaged,
}

impl FailureKind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            FailureKind::Other | FailureKind::Killed => 1,
            FailureKind::Usage => 2,
            FailureKind::NotFound => 3,
            FailureKind::Damaged => 4,
            FailureKind::Missing => 5,
            FailureKind::Unsupported => 6,
        }
    }

    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FailureKind::Other => "other",
            FailureKind::Killed => "killed",
            FailureKind::Usage => "usage",
            FailureKind::NotFound => "not_found",
            FailureKind::Damaged => "damaged",
            FailureKind::Missing => "missing",
            FailureKind::Unsupported => "unsupported",
        }
    }

    /// The kind that has this name in JSON; [`FailureKind::Other`] if none has.
    pub(crate) fn of_name(name: &str) -> Self {
        const KINDS: [FailureKind; 7] = [
            FailureKind::NotFound,
            FailureKind::Usage,
            FailureKind::Other,
            FailureKind::Killed,
            FailureKind::Missing,
            FailureKind::Unsupported,
            FailureKind::Damaged,
        ];
        KINDS.into_iter().find(|kind| kind.name() == name).unwrap_or(FailureKind::Other)
    }

    pub(crate) fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => FailureKind::Missing,
            _ => FailureKind::Other,
        }
    }

    pub(crate) fn of_index(error: &symdex::Error) -> Self {
        match error {
            symdex::Error::Io(error) => FailureKind::of_io(error),
            error if error.is_damage() => FailureKind::Damaged,
            error if error.is_unsupported() => FailureKind::Unsupported,
            _ => FailureKind::Other,
        }
    }

    fn of_debug_file(error: &symdex_build::Error) -> Self {
        use symdex_build::Error;
        match error {
            Error::NoSuchArch { .. } => FailureKind::NotFound,
            Error::NoDebugFile { .. } | Error::CachePart { .. } => FailureKind::Missing,
            // Only a file that cannot be read is a missing input. A folder that cannot be created is not.
            Error::Io { doing: "read", source, .. } => FailureKind::of_io(source),
            Error::Index(error) => FailureKind::of_index(error),
            error if error.is_damage() => FailureKind::Damaged,
            error if error.is_unsupported() => FailureKind::Unsupported,
            _ => FailureKind::Other,
        }
    }
}

/// A failure with its message: which file, what is wrong, what was expected, what to do.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    /// A short reason, by which failures of many files are counted.
    pub(crate) reason: Cow<'static, str>,
    /// The input that failed; `None` if the failure concerns no single file.
    pub(crate) path: Option<PathBuf>,
    /// The limit that ended the child process, in one word.
    pub(crate) limit: Option<Box<str>>,
}

/// A failure in JSON output.
#[derive(Serialize)]
pub(crate) struct FailureView<'f> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'f str>,
    message: &'f str,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), reason: kind.name().into(), path: None, limit: None }
    }

    /// The failure in JSON output: `{"kind", "message"}`, and `"limit"` if a child process was killed.
    pub(crate) fn view(&self) -> FailureView<'_> {
        FailureView { kind: self.kind.name(), limit: self.limit.as_deref(), message: &self.message }
    }

    /// The same failure, for the input at `path`.
    pub(crate) fn of_path(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// `path` could not be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let message = format!("{}: cannot read: {error}", path.display());
        Self { reason: "not readable".into(), ..Self::new(FailureKind::of_io(error), message) }.of_path(path)
    }

    /// The index at `path` could not be opened or read.
    pub(crate) fn index(path: &Path, error: &symdex::Error) -> Self {
        match error {
            symdex::Error::Io(error) => Self::unreadable(path, error),
            error => {
                Self::new(FailureKind::of_index(error), format!("{}: {error}", path.display())).of_path(path)
            }
        }
    }

    /// The debug file at `path` could not be read, or its index could not be built.
    pub(crate) fn debug_file(path: &Path, error: &symdex_build::Error) -> Self {
        let message = error.with_path(path);
        Self { reason: reason(error).into(), ..Self::new(FailureKind::of_debug_file(error), message) }
            .of_path(path)
    }
}

/// A debug file, or a part of it, could not be read, or its index could not be built.
impl From<&FileError> for Failure {
    fn from(error: &FileError) -> Self {
        Self { message: error.to_string(), ..Self::debug_file(error.path(), error.error()) }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::from(&error)
    }
}

impl From<JobError<'_>> for Failure {
    fn from(error: JobError<'_>) -> Self {
        match error {
            JobError::File(error) => error.into(),
            error => {
                let reason = "without the architecture";
                Self { reason: reason.into(), ..Self::new(FailureKind::NotFound, error.to_string()) }
            }
        }
    }
}

/// An index could not be found, opened or published.
impl From<symdex_store::Error> for Failure {
    fn from(error: symdex_store::Error) -> Self {
        use symdex_store::Error;
        let (kind, path) = match &error {
            Error::Unreadable { path, error } => return Self::unreadable(path, error),
            Error::AmbiguousId { folder, prefix, ids } => {
                let (folder, ids) = (folder.display(), text::list(ids));
                let message = format!("{folder}: several ids begin with {prefix}: {ids}; give more digits");
                return Self::new(FailureKind::Usage, message);
            }
            Error::Index { path, error } | Error::NewerIndex { path, error } => {
                (FailureKind::of_index(error), path)
            }
            Error::OtherImage { path, .. } => (FailureKind::NotFound, path),
            Error::NotPublished { path, .. } => (FailureKind::Other, path),
            Error::DamagedObject { .. } | Error::LostValue { .. } => {
                return Self::new(FailureKind::Damaged, error.to_string());
            }
            Error::NotCompiled { .. } => return Self::new(FailureKind::Unsupported, error.to_string()),
            _ => return Self::new(FailureKind::Other, error.to_string()),
        };
        Self::new(kind, error.to_string()).of_path(path)
    }
}

/// The short reason of an error of a debug file.
fn reason(error: &symdex_build::Error) -> &'static str {
    use symdex_build::Error;
    match error {
        Error::NotADebugFile { .. } => "not a debug file",
        Error::Truncated { .. } => "cut short",
        Error::Malformed { .. } => "malformed",
        Error::Unsupported { .. } => "unsupported",
        Error::NoSuchArch { .. } => "without the architecture",
        Error::NoDebugFile { .. } => "folder without debug files",
        Error::CachePart { .. } => "in need of a missing part of a shared cache",
        Error::Io { doing: "read", .. } => "not readable",
        error => FailureKind::of_debug_file(error).name(),
    }
}

/// Why a command ends before its work is done.
#[derive(Debug)]
pub(crate) enum CommandError {
    Failure(Failure),
    /// Standard output is a pipe whose reader has closed it.
    PipeClosed,
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        CommandError::Failure(failure)
    }
}

/// Writing to standard output failed. Errors of other files become a [`Failure`] that names the file.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::PipeClosed,
            _ => Failure::new(FailureKind::Other, format!("cannot write to standard output: {error}")).into(),
        }
    }
}

/// The result of a command: the gravest failure that it has reported, if any.
pub(crate) type CommandResult = Result<Option<FailureKind>, CommandError>;

/// Prints a message on standard error. It is lost if standard error is closed.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "symdex: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_failure_decides() {
        let mut kinds = [
            FailureKind::Usage,
            FailureKind::Damaged,
            FailureKind::NotFound,
            FailureKind::Other,
            FailureKind::Unsupported,
            FailureKind::Missing,
            FailureKind::Killed,
        ];
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(kinds.map(FailureKind::exit_code), [4, 6, 5, 1, 1, 2, 3]);
        kinds.iter().for_each(|kind| assert_eq!(FailureKind::of_name(kind.name()), *kind));
        assert!(None < Some(FailureKind::NotFound));
    }
}
