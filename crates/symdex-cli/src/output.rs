//! The output of commands that go through images or indexes: a line for each, and totals.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Instant;

use serde::Serialize;

use crate::failure::{Cause, CommandError, CommandResult, Failure, FailureView, complain, note};
use crate::text;

/// Prints lines, and counts them for the totals.
pub(crate) struct Output {
    json: bool,
    begun: Instant,
    totals: Totals,
    gravest: Option<Cause>,
    /// The last message of a failure. A store that cannot be reached fails in the same way for each image.
    last_message: String,
    /// Whether the work goes on after standard output was closed.
    outlives_reader: bool,
}

/// The totals, as the last line of JSON.
#[derive(Default, Serialize)]
struct Totals {
    indexes: u64,
    /// The bytes of the indexes. `symdex store` counts those in the store, compressed or not.
    size: u64,
    /// The number of indexes by their outcome, and of other things that were found.
    outcomes: BTreeMap<&'static str, u64>,
    /// By reason.
    failures: BTreeMap<Cow<'static, str>, u64>,
    seconds: f64,
}

/// The input that has failed, in JSON.
#[derive(Serialize)]
struct Input {
    /// `None` if the failure concerns no single file.
    file: Option<String>,
}

/// A failure, as a line of JSON.
#[derive(Serialize)]
struct FailureLine<'a, T> {
    #[serde(flatten)]
    of: &'a T,
    error: FailureView<'a>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let (begun, totals) = (Instant::now(), Totals::default());
        Self { json, begun, totals, gravest: None, last_message: String::new(), outlives_reader: false }
    }

    /// The output of a build. A closed pipe is no error: the other indexes are still wanted.
    pub(crate) fn of_build(json: bool) -> Self {
        Self { outlives_reader: true, ..Self::new(json) }
    }

    /// Prints a line: `line` as JSON, or `text` for people.
    pub(crate) fn line(
        &self,
        line: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), CommandError> {
        if self.json { self.json(line) } else { self.print(&text()) }
    }

    /// Whether JSON is asked for.
    #[cfg(feature = "stores")]
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `line` as JSON, if JSON is asked for.
    pub(crate) fn json(&self, line: &impl Serialize) -> Result<(), CommandError> {
        if self.json { self.print(&serde_json::to_string(line).map_err(io::Error::from)?) } else { Ok(()) }
    }

    /// Prints a line for people only.
    pub(crate) fn text(&self, text: &str) -> Result<(), CommandError> {
        if self.json { Ok(()) } else { self.print(text) }
    }

    /// Counts an index of `size` bytes.
    pub(crate) fn count(&mut self, size: u64) {
        self.totals.indexes += 1;
        self.totals.size += size;
    }

    /// Counts bytes of no index.
    #[cfg(feature = "stores")]
    pub(crate) fn add_size(&mut self, size: u64) {
        self.totals.size += size;
    }

    /// Adds to the number of one outcome.
    pub(crate) fn add(&mut self, outcome: &'static str, number: u64) {
        if number != 0 {
            *self.totals.outcomes.entry(outcome).or_default() += number;
        }
    }

    /// Reports and counts a failure. The members of `of` say in JSON what has failed. A message that was just printed
    /// is not printed again.
    pub(crate) fn fail(&mut self, of: &impl Serialize, failure: &Failure) -> Result<(), CommandError> {
        self.count_failure(failure);
        if failure.message != self.last_message {
            complain(&failure.message);
            self.last_message.clone_from(&failure.message);
        }
        self.json(&FailureLine { of, error: failure.into() })
    }

    /// Reports and counts the failure of the input at its path.
    pub(crate) fn fail_input(&mut self, failure: &Failure) -> Result<(), CommandError> {
        let file = failure.path.as_ref().map(|path| path.display().to_string());
        self.fail(&Input { file }, failure)
    }

    /// Counts a failure that was already reported.
    pub(crate) fn count_failure(&mut self, failure: &Failure) {
        *self.totals.failures.entry(failure.reason.clone()).or_default() += 1;
        self.graver(failure.cause);
    }

    /// The exit code is that of `cause`, unless something graver has failed.
    pub(crate) fn graver(&mut self, cause: Cause) {
        self.gravest = self.gravest.max(Some(cause));
    }

    fn print(&self, line: &str) -> Result<(), CommandError> {
        match writeln!(io::stdout().lock(), "{line}") {
            Err(error) if self.outlives_reader && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }

    /// The number of an outcome, or for `None` of all indexes.
    pub(crate) fn number(&self, outcome: Option<&str>) -> u64 {
        outcome.map_or(self.totals.indexes, |word| self.totals.outcomes.get(word).copied().unwrap_or(0))
    }

    /// The gravest failure so far.
    pub(crate) fn gravest(&self) -> Option<Cause> {
        self.gravest
    }

    /// Prints the totals: as JSON on standard output, or on standard error. Returns the gravest failure.
    pub(crate) fn finish(mut self) -> CommandResult {
        self.totals.seconds = self.begun.elapsed().as_secs_f64();
        if self.json {
            let totals = serde_json::to_string(&self.totals).map_err(io::Error::from)?;
            self.print(&format!("{{\"totals\":{totals}}}"))?;
        } else {
            let Totals { indexes, size, outcomes, failures, seconds } = &self.totals;
            let (indexes, size) = (text::count(*indexes, "index"), text::size(*size));
            let (outcomes, failures) = (list(": ", outcomes), list("; failed: ", failures));
            note(&format!("{indexes}, {size}, in {seconds:.1} s{outcomes}{failures}"));
        }
        Ok(self.gravest)
    }

    /// Prints the totals as JSON. As text, the lines suffice.
    pub(crate) fn finish_quietly(self) -> CommandResult {
        if self.json { self.finish() } else { Ok(self.gravest) }
    }
}

/// The counts in words, after `before`: `3 written, 1 unchanged`. Empty if there are none.
fn list<W: AsRef<str>>(before: &str, counts: &BTreeMap<W, u64>) -> String {
    let words = counts.iter().map(|(word, number)| format!("{number} {}", word.as_ref().replace('_', " ")));
    let words = words.collect::<Vec<_>>().join(", ");
    if words.is_empty() { words } else { format!("{before}{words}") }
}
