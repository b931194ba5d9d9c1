//! Failures: messages and exit codes.

use std::io::{self, Write as _};

use serde::{Serialize, Serializer};

pub(crate) use symdex_pipeline::{Failure, FailureKind};

/// The exit code of a command whose gravest failure is of this kind.
pub(crate) fn exit_code(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Other | FailureKind::Killed => 1,
        FailureKind::Usage => 2,
        FailureKind::NotFound => 3,
        FailureKind::Damaged => 4,
        FailureKind::Missing => 5,
        FailureKind::Unsupported => 6,
    }
}

/// A failure in JSON output: `{"kind", "message"}`, and `"limit"` if a child process was killed.
#[derive(Serialize)]
pub(crate) struct FailureView<'f> {
    kind: FailureKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'f str>,
    message: &'f str,
}

impl<'f> From<&'f Failure> for FailureView<'f> {
    fn from(failure: &'f Failure) -> Self {
        Self { kind: failure.kind, limit: failure.limit.as_deref(), message: &failure.message }
    }
}

/// The failure of a thing that has other members in JSON.
pub(crate) fn failure_as_json<S: Serializer>(
    failure: &Option<Failure>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    failure.as_ref().map(FailureView::from).serialize(serializer)
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
        assert_eq!(kinds.map(exit_code), [4, 6, 5, 1, 1, 2, 3]);
        assert!(None < Some(FailureKind::NotFound));
    }
}
