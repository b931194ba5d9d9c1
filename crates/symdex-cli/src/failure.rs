//! Failures: messages and exit codes.

use std::io::{self, Write as _};

use serde::{Serialize, Serializer};

pub(crate) use symdex::Cause;
pub(crate) use symdex_pipeline::Failure;

/// The exit code of a command whose gravest failure has this cause.
pub(crate) fn exit_code(cause: Cause) -> u8 {
    match cause {
        Cause::Usage => 2,
        Cause::NotFound => 3,
        Cause::Damaged | Cause::Lost => 4,
        Cause::Missing => 5,
        Cause::Unsupported => 6,
        _ => 1,
    }
}

/// The options that set what messages of the libraries name.
const OPTIONS: [(&str, &str); 15] = [
    ("`allow_empty`", "--allow-empty"),
    ("`debug_dirs`", "--debug-dir"),
    ("limit of `entries`", "limit of --max-entries"),
    ("limit of `entry_size`", "limit of --max-entry-size"),
    ("give it with `id`", "give it with --id"),
    ("`insecure_public`", "--insecure-public"),
    ("map it instead", "map it instead, with --map"),
    ("`max_memory`", "--max-memory"),
    ("`max_seconds`", "--max-seconds"),
    ("`min_free`", "--min-free"),
    ("limit of `nesting`", "limit of --max-nesting"),
    ("limit of `ratio`", "limit of --max-ratio"),
    ("its own with `state`", "its own with --state"),
    ("`symbol_maps`", "--symbol-map"),
    ("limit of `unpacked`", "limit of --max-unpacked"),
];

/// `message` with the options of the command.
pub(crate) fn with_options(message: &str) -> String {
    OPTIONS.iter().fold(message.to_owned(), |text, (name, option)| text.replace(name, option))
}

/// A failure in JSON output: `{"kind", "message"}`, and `"limit"` if a child process was killed.
#[derive(Serialize)]
pub(crate) struct FailureView<'f> {
    kind: Cause,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'f str>,
    message: String,
}

impl<'f> From<&'f Failure> for FailureView<'f> {
    fn from(failure: &'f Failure) -> Self {
        let message = with_options(&failure.message);
        Self { kind: failure.cause, limit: failure.limit.as_deref(), message }
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
            _ => Failure::new(Cause::Other, format!("cannot write to standard output: {error}")).into(),
        }
    }
}

/// The result of a command: the gravest failure that it has reported, if any.
pub(crate) type CommandResult = Result<Option<Cause>, CommandError>;

/// Prints a line on standard error that is neither a failure nor a warning, such as totals. Continuous-integration
/// services show lines that begin with `symdex:` as errors.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a message on standard error. It is lost if standard error is closed.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "symdex: {}", with_options(message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_failure_decides() {
        let mut causes = [
            Cause::Usage,
            Cause::Damaged,
            Cause::NotFound,
            Cause::Other,
            Cause::Lost,
            Cause::Unsupported,
            Cause::Missing,
            Cause::Unavailable,
            Cause::Limit,
        ];
        causes.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(causes.map(exit_code), [4, 4, 6, 5, 1, 1, 1, 2, 3]);
        assert!(None < Some(Cause::NotFound));
    }
}
