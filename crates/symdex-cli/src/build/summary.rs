//! The output of `symdex build` for each image.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use symdex::{Grade, Index, Partial, Seen, Table};
use symdex_build::TextCoverage;
use symdex_build::can_be_avoided;
use symdex_pipeline::{BuiltIndex, Verified};
use symdex_store::{PublishOutcome, PutOptions, StoreReader};

use super::common::{Reporting, Verbosity};
use crate::failure::{CommandError, Failure, complain};
use crate::output::Output;
use crate::text;

/// The result for one image. With `--json`, it is one line.
#[derive(Serialize)]
pub(crate) struct ImageSummary {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) arch: String,
    /// The debug file.
    pub(super) file: String,
    /// Other files of the image. Their symbols are in the index, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined: Vec<String>,
    /// The path of the index, or where it is in the first store; `None` if it was not published.
    location: Option<String>,
    /// Where it is in the other stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    copies: Vec<String>,
    pub(super) index_size: u64,
    debug_size: u64,
    pub(super) has_dwarf: bool,
    /// The grade of the new index.
    pub(super) grade: Grade,
    units: u64,
    failed_units: u64,
    functions: u64,
    ranges: u64,
    symbols: u64,
    /// What was found in the debug file.
    seen: Seen,
    chunks: u64,
    coverage: TextCoverage,
    dropped: BTreeMap<String, u64>,
    hidden_names: u64,
    partial: Vec<Partial>,
    warnings: Vec<String>,
    verified: Option<Verified>,
    /// The outcome in the first store; `None` if the index has a wrong answer and was therefore not published.
    #[serde(serialize_with = "in_one_word")]
    pub(super) outcome: Option<PublishOutcome>,
    pub(super) conflict: bool,
    seconds: f64,
}

impl ImageSummary {
    /// Whether a part of the debug file could not be read.
    pub(super) fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }
}

fn in_one_word<S: Serializer>(outcome: &Option<PublishOutcome>, serializer: S) -> Result<S::Ok, S::Error> {
    outcome_words(outcome.as_ref()).0.serialize(serializer)
}

/// Puts the index into all `stores`, unless `--verify` found it to be wrong. If a store fails, the others still get it.
/// The outcome is that of the first store.
pub(crate) fn publish(
    built: BuiltIndex,
    stores: &StoreReader,
    options: &PutOptions,
) -> Result<ImageSummary, Failure> {
    let file = PathBuf::from(&built.file);
    let index = Index::open(built.as_ref()).map_err(|error| Failure::index(&file, &error))?;
    let (mut warnings, verified) = (built.warnings.clone(), built.verified.clone());
    let is_right = verified.as_ref().is_none_or(|verified| verified.wrong.is_empty());
    let outcomes = if is_right {
        let published = stores.publish_in_all(&index, options);
        published.map_err(|error| Failure::from(error).of_path(&file))?
    } else {
        Vec::new()
    };
    for outcome in &outcomes {
        if let PublishOutcome::Repaired { damage } = outcome {
            warnings.push(format!("the old index is replaced: {damage}"));
        }
    }
    if let Some(unexplained) = verified.as_ref().map(|verified| verified.unexplained).filter(|n| *n != 0) {
        warnings.push(format!(
            "addr2line differs at {} for no known reason",
            text::count(unexplained, "address")
        ));
    }
    let mut locations =
        stores.stores().iter().take(outcomes.len()).map(|store| store.store().location(index.id()));
    let metadata = index.metadata();
    let counts = metadata.counts;
    Ok(ImageSummary {
        name: metadata.image_name.clone(),
        id: metadata.id.to_string(),
        arch: metadata.arch.name.clone(),
        file: file.display().to_string(),
        joined: built.joined.iter().map(|path| path.display().to_string()).collect(),
        conflict: outcomes.iter().any(PublishOutcome::is_conflict),
        location: locations.next(),
        copies: locations.collect(),
        index_size: built.index_size,
        debug_size: built.debug_size,
        has_dwarf: built.has_dwarf,
        grade: metadata.grade(),
        units: counts.units,
        failed_units: built.failed_units,
        functions: counts.functions,
        ranges: counts.ranges,
        symbols: counts.symbols,
        seen: counts.seen,
        chunks: Table::ALL.map(|table| metadata.chunk_len(table)).iter().sum(),
        coverage: built.coverage,
        dropped: built.dropped.clone(),
        hidden_names: built.hidden_names,
        partial: metadata.partial.clone(),
        warnings,
        verified,
        outcome: outcomes.into_iter().next(),
        seconds: built.time.as_secs_f64(),
    })
}

/// The outcome in one word and as text; `None` if the index was not published.
pub(crate) fn outcome_words(outcome: Option<&PublishOutcome>) -> (&'static str, &'static str) {
    let sentence = match outcome {
        Some(PublishOutcome::Written) => "written",
        Some(PublishOutcome::Unchanged) => "unchanged: the same index exists",
        Some(PublishOutcome::Repaired { .. }) => "written, in place of a damaged index",
        Some(PublishOutcome::Kept) => "not written: the existing index of this id is kept",
        Some(PublishOutcome::Replaced) => "written, in place of another index of this id",
        Some(PublishOutcome::ConflictKept) => "conflict: a different index of this id exists and is kept",
        Some(PublishOutcome::ConflictReplaced) => {
            "conflict: a different index of this id existed and is replaced"
        }
        None => "not published: its answers differ from the debug file",
    };
    (outcome.map_or("rejected", PublishOutcome::name), sentence)
}

/// Prints the summary, and warnings on standard error. If `are_many`, the totals say how many images have no debug
/// information. Returns how many losses are not printed, because no file can avoid them.
pub(super) fn report(
    summary: &ImageSummary,
    output: &Output,
    reporting: &Reporting,
    are_many: bool,
) -> Result<u64, CommandError> {
    match (reporting.json, reporting.verbosity()) {
        (false, Verbosity::Quiet) => {}
        _ => output.line(summary, || human(summary))?,
    }
    let ImageSummary { file, arch, partial, warnings, verified, .. } = summary;
    let say = |kind: &str, what: &str| {
        complain(&format!("{kind}: {file} ({arch}): {}", text::printable(what.into())));
    };
    let wrong = verified.iter().flat_map(|verified| &verified.wrong);
    wrong.for_each(|wrong| say("not published", wrong));
    if reporting.verbosity() == Verbosity::Quiet {
        return Ok(0);
    }
    if summary.grade == Grade::Nothing || !summary.has_dwarf && !are_many {
        say("warning", what_is_indexed(summary));
    }
    warnings.iter().for_each(|warning| say("warning", warning));
    let is_reported =
        |partial: &&Partial| reporting.verbosity() == Verbosity::Verbose || can_be_avoided(&partial.reason);
    let (reported, others): (Vec<_>, Vec<_>) = partial.iter().partition(is_reported);
    reported.iter().for_each(|partial| say("warning", &text::partial(partial)));
    Ok(others.iter().fold(0, |sum: u64, partial| sum.saturating_add(partial.count)))
}

/// What the index of an image without debug information has.
fn what_is_indexed(summary: &ImageSummary) -> &'static str {
    match summary.grade {
        Grade::Nothing => "nothing to answer: the index is empty",
        Grade::Bounds => "no debug information and no names: only the bounds of functions are indexed",
        _ => "no debug information: only the symbol table is indexed",
    }
}

/// The number of functions in the index, and of those that were found if they are more.
fn functions(ImageSummary { functions, seen, .. }: &ImageSummary) -> String {
    match functions.cmp(&seen.functions) {
        Ordering::Less => format!("{functions} of {}", text::count(seen.functions, "function")),
        _ => text::count(*functions, "function"),
    }
}

fn human(summary: &ImageSummary) -> String {
    let ImageSummary { name, id, arch, location, index_size, debug_size, .. } = summary;
    let ImageSummary { units, ranges, symbols, seconds, outcome, .. } = summary;
    let (_, outcome) = outcome_words(outcome.as_ref());
    let [debug_size, index_size] = [*debug_size, *index_size].map(text::size);
    let [units, ranges, symbols] = [(units, "unit"), (ranges, "range"), (symbols, "symbol")]
        .map(|(number, noun)| text::count(*number, noun));
    let counts = format!("{units}, {}, {ranges}, {symbols}", functions(summary));
    let name = text::printable(name.into());
    let location = location.as_deref().map(|location| format!("{location}: ")).unwrap_or_default();
    let verified = summary.verified.as_ref();
    let verified = verified
        .map(|verified| format!(", {} compared", text::count(verified.addresses, "answer")))
        .unwrap_or_default();
    let joined: String =
        summary.joined.iter().map(|path| format!("    with the symbols of {path}\n")).collect();
    format!(
        "{id}  {arch}  {name}\n{joined}    \
         {debug_size} -> {index_size}, {counts}, {seconds:.2} s\n    {location}{outcome}{verified}"
    )
}
