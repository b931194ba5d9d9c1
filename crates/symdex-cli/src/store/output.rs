//! The output of the commands of `symdex store`: a line for each index, and totals.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Instant;

use serde::Serialize;
use symdex::ImageId;

use crate::failure::{CommandError, CommandResult, Failure, FailureKind, FailureView, complain};
use crate::text;

/// Prints lines, and counts them for the totals.
pub(super) struct Output {
    json: bool,
    begun: Instant,
    totals: Totals,
    gravest: Option<FailureKind>,
}

/// The totals, as the last line of JSON.
#[derive(Default, Serialize)]
struct Totals {
    indexes: u64,
    /// The bytes that the indexes have in the store.
    stored_size: u64,
    /// The number of indexes by their outcome.
    outcomes: BTreeMap<&'static str, u64>,
    /// By kind.
    failures: BTreeMap<&'static str, u64>,
    seconds: f64,
}

/// A failure, as a line of JSON.
#[derive(Serialize)]
struct FailureLine<'a> {
    store: &'a str,
    id: Option<String>,
    error: FailureView<'a>,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json, begun: Instant::now(), totals: Totals::default(), gravest: None }
    }

    /// Prints a line: `line` as JSON, or `text` for people.
    pub(super) fn line(
        &self,
        line: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), CommandError> {
        if self.json { self.json(line) } else { print(&text()) }
    }

    /// Prints `line` as JSON, if JSON is asked for.
    pub(super) fn json(&self, line: &impl Serialize) -> Result<(), CommandError> {
        if self.json { print(&serde_json::to_string(line).map_err(io::Error::from)?) } else { Ok(()) }
    }

    /// Prints a line for people only.
    pub(super) fn text(&self, text: &str) -> Result<(), CommandError> {
        if self.json { Ok(()) } else { print(text) }
    }

    /// Counts an index that has `size` bytes in the store.
    pub(super) fn count(&mut self, size: u64) {
        self.totals.indexes += 1;
        self.totals.stored_size += size;
    }

    /// Counts an index with this outcome, which has `size` bytes in the store.
    pub(super) fn count_outcome(&mut self, outcome: &'static str, size: u64) {
        self.count(size);
        self.add(outcome, 1);
    }

    /// Adds to the number of one outcome.
    pub(super) fn add(&mut self, outcome: &'static str, number: u64) {
        *self.totals.outcomes.entry(outcome).or_default() += number;
    }

    /// Reports a failure of the index of `id` in the store at the URL `store`; of the store itself, for `None`.
    pub(super) fn fail(
        &mut self,
        store: &str,
        id: Option<&ImageId>,
        failure: &Failure,
    ) -> Result<(), CommandError> {
        self.json(&FailureLine { store, id: id.map(ToString::to_string), error: failure.into() })?;
        complain(&failure.message);
        self.count_failure(failure.kind);
        Ok(())
    }

    /// Counts a failure that was already reported.
    pub(super) fn count_failure(&mut self, kind: FailureKind) {
        *self.totals.failures.entry(kind.name()).or_default() += 1;
        self.gravest = self.gravest.max(Some(kind));
    }

    /// Prints the totals: as JSON on standard output, or on standard error.
    pub(super) fn finish(mut self) -> CommandResult {
        self.totals.seconds = self.begun.elapsed().as_secs_f64();
        if self.json {
            let totals = serde_json::to_string(&self.totals).map_err(io::Error::from)?;
            print(&format!("{{\"totals\":{totals}}}"))?;
        } else {
            let Totals { indexes, stored_size, outcomes, failures, seconds } = &self.totals;
            let words = outcomes.iter().chain(failures).map(|(word, number)| format!("{number} {word}"));
            let words: Vec<_> = words.collect();
            let ending = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
            let (indexes, size) = (text::count(*indexes, "index"), text::size(*stored_size));
            complain(&format!("{indexes}, {size}, in {seconds:.1} s{ending}"));
        }
        Ok(self.gravest)
    }

    /// Prints the totals as JSON. As text, the lines suffice.
    pub(super) fn finish_quietly(self) -> CommandResult {
        if self.json { self.finish() } else { Ok(self.gravest) }
    }
}

fn print(line: &str) -> Result<(), CommandError> {
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}
