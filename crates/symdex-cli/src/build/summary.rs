//! The output of `symdex build` for each image.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use symdex::{Grade, Index, Partial, Seen, Table};
use symdex_build::TextCoverage;
use symdex_build::can_be_avoided;
use symdex_pipeline::{BuiltIndex, PublishedIndex, Verified};
use symdex_store::{PublishOutcome, PutOptions, StoreReader};

use super::common::{Reporting, Verbosity};
use crate::failure::{CommandError, Failure, complain, with_options};
use crate::output::Output;
use crate::text;

/// The result for one image. With `--json`, it is one line.
#[derive(Serialize)]
pub(crate) struct ImageSummary {
    #[serde(flatten)]
    pub(crate) published: PublishedIndex,
    /// Where the index is in the other stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    copies: Vec<String>,
    units: u64,
    failed_units: u64,
    ranges: u64,
    /// What was found in the debug file.
    seen: Seen,
    chunks: u64,
    coverage: TextCoverage,
    dropped: BTreeMap<String, u64>,
    hidden_names: u64,
    pub(super) partial: Vec<Partial>,
    verified: Option<Verified>,
    /// The outcome in the first store; `None` if the index has a wrong answer and was therefore not published.
    #[serde(skip)]
    pub(crate) outcome: Option<PublishOutcome>,
}

/// Puts the index into all `stores`, unless `--verify` found it to be wrong. If a store fails, the others still get it.
/// The outcome is that of the first store.
pub(crate) fn publish(
    built: BuiltIndex,
    stores: &StoreReader,
    options: &PutOptions,
) -> Result<ImageSummary, Failure> {
    publish_by(built, |index| {
        let outcomes = stores.publish_in_all(index, options)?;
        let locations = stores.stores().iter().map(|store| store.store().location(index.id()));
        Ok(outcomes.into_iter().zip(locations).collect())
    })
}

/// Publishes the index with `put`, unless `--verify` found it to be wrong. `put` returns the outcome and the location
/// in each store.
pub(super) fn publish_by(
    built: BuiltIndex,
    put: impl FnOnce(&Index<&[u8]>) -> Result<Vec<(PublishOutcome, String)>, Failure>,
) -> Result<ImageSummary, Failure> {
    let file = PathBuf::from(&built.file);
    let index = Index::open(built.as_ref()).map_err(|error| Failure::index(&file, &error))?;
    let verified = built.verified.clone();
    let is_right = verified.as_ref().is_none_or(|verified| verified.wrong.is_empty());
    let published =
        if is_right { put(&index).map_err(|failure| failure.of_path(&file))? } else { Vec::new() };
    let (outcomes, locations): (Vec<_>, Vec<_>) = published.into_iter().unzip();
    let mut locations = locations.into_iter();
    let metadata = index.metadata();
    let mut published = PublishedIndex::new(&built, metadata, &outcomes, locations.next());
    published.warnings.iter_mut().for_each(|warning| *warning = with_options(warning));
    if let Some(unexplained) = verified.as_ref().map(|verified| verified.unexplained).filter(|n| *n != 0) {
        let addresses = text::count(unexplained, "address");
        published.warnings.push(format!("addr2line differs at {addresses} for no known reason"));
    }
    Ok(ImageSummary {
        published,
        copies: locations.collect(),
        units: metadata.counts.units,
        failed_units: built.failed_units,
        ranges: metadata.counts.ranges,
        seen: metadata.counts.seen,
        chunks: Table::ALL.iter().map(|table| metadata.chunk_len(*table)).sum(),
        coverage: built.coverage,
        dropped: built.dropped.clone(),
        hidden_names: built.hidden_names,
        partial: metadata.partial.clone(),
        verified,
        outcome: outcomes.into_iter().next(),
    })
}

/// The outcome as text; `None` if the index was not published.
pub(crate) fn sentence(outcome: Option<&PublishOutcome>) -> &'static str {
    match outcome {
        Some(PublishOutcome::Written) => "written",
        Some(PublishOutcome::Unchanged) => "unchanged: the same index exists",
        Some(PublishOutcome::Repaired { .. }) => "written, in place of a damaged index",
        Some(PublishOutcome::Kept) => "not written: the existing index of this id is kept",
        Some(PublishOutcome::Replaced) => "written, in place of another index of this id",
        Some(PublishOutcome::ConflictKept) => {
            "conflict: another debug file has this id, and its index is kept"
        }
        Some(PublishOutcome::ConflictReplaced) => {
            "conflict: another debug file has this id, and its index is replaced"
        }
        None => "not published: its answers differ from the debug file",
    }
}

/// Prints the summary.
pub(super) fn print(
    summary: &ImageSummary,
    output: &Output,
    reporting: &Reporting,
) -> Result<(), CommandError> {
    match (reporting.json, reporting.verbosity()) {
        (false, Verbosity::Quiet) => Ok(()),
        _ => output.line(summary, || human(summary)),
    }
}

/// Prints warnings on standard error. If `are_many`, the totals say how many images have no debug information. Returns
/// how many losses are not printed, because no file can avoid them.
pub(super) fn warn(summary: &ImageSummary, reporting: &Reporting, are_many: bool) -> u64 {
    let ImageSummary { published, partial, verified, .. } = summary;
    let PublishedIndex { file, arch, warnings, grade, has_dwarf, .. } = published;
    let say = |kind: &str, what: &str| {
        complain(&format!("{kind}: {file} ({arch}): {}", text::printable(what.into())));
    };
    let wrong = verified.iter().flat_map(|verified| &verified.wrong);
    wrong.for_each(|wrong| say("not published", wrong));
    if reporting.verbosity() == Verbosity::Quiet {
        return 0;
    }
    if *grade == Grade::Nothing || !has_dwarf && !are_many {
        say("warning", what_is_indexed(*grade));
    }
    warnings.iter().for_each(|warning| say("warning", warning));
    let is_reported =
        |partial: &&Partial| reporting.verbosity() == Verbosity::Verbose || can_be_avoided(&partial.reason);
    let (reported, others): (Vec<_>, Vec<_>) = partial.iter().partition(is_reported);
    reported.iter().for_each(|partial| say("warning", &text::partial(partial)));
    others.iter().fold(0, |sum: u64, partial| sum.saturating_add(partial.count))
}

/// What the index of an image without debug information has.
fn what_is_indexed(grade: Grade) -> &'static str {
    match grade {
        Grade::Nothing => "nothing to answer: the index is empty",
        Grade::Bounds => "no debug information and no names: only the bounds of functions are indexed",
        _ => "no debug information: only the symbol table is indexed",
    }
}

/// The number of functions in the index, and of those that were found if they are more.
fn functions(functions: u64, seen: &Seen) -> String {
    match functions.cmp(&seen.functions) {
        Ordering::Less => format!("{functions} of {}", text::count(seen.functions, "function")),
        _ => text::count(functions, "function"),
    }
}

fn human(summary: &ImageSummary) -> String {
    let ImageSummary { published, units, ranges, seen, outcome, .. } = summary;
    let PublishedIndex { name, id, arch, location, index_size, debug_size, .. } = published;
    let PublishedIndex { symbols, seconds, joined, .. } = published;
    let outcome = sentence(outcome.as_ref());
    let [debug_size, index_size] = [*debug_size, *index_size].map(text::size);
    let [units, ranges, symbols] = [(units, "unit"), (ranges, "range"), (symbols, "symbol")]
        .map(|(number, noun)| text::count(*number, noun));
    let counts = format!("{units}, {}, {ranges}, {symbols}", functions(published.functions, seen));
    let name = text::printable(name.into());
    let location = location.as_deref().map(|location| format!("{location}: ")).unwrap_or_default();
    let verified = summary.verified.as_ref();
    let verified = verified
        .map(|verified| format!(", {} compared", text::count(verified.addresses, "answer")))
        .unwrap_or_default();
    let joined: String = joined.iter().map(|path| format!("    with the symbols of {path}\n")).collect();
    format!(
        "{id}  {arch}  {name}\n{joined}    \
         {debug_size} -> {index_size}, {counts}, {seconds:.2} s\n    {location}{outcome}{verified}"
    )
}
