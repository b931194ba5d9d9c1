//! The output of `symdex build` for each image.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use serde::Serialize;
use symdex::{Index, Partial, Table};
use symdex_audit::{ADDR2LINE, AuditReport};
use symdex_build::{BuildReport, TextCoverage};
use symdex_store::{IndexFolder, PublishOutcome, Published};

use super::FinishedIndex;
use crate::failure::{CommandError, Failure, FailureView, complain};
use crate::text;

/// The result for one image. With `--json`, it is one line.
#[derive(Serialize)]
pub(super) struct ImageSummary {
    pub(super) image: String,
    pub(super) id: String,
    pub(super) arch: String,
    /// The debug file.
    pub(super) file: String,
    /// Other files of the image. Their symbols are in the index, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined: Vec<String>,
    /// The path of the index; `None` if it was not published.
    index: Option<String>,
    pub(super) index_size: u64,
    debug_size: u64,
    pub(super) has_dwarf: bool,
    units: u64,
    failed_units: u64,
    functions: u64,
    ranges: u64,
    symbols: u64,
    chunks: u64,
    coverage: CoverageView,
    dropped: BTreeMap<&'static str, u64>,
    hidden_names: u64,
    partial: Vec<Partial>,
    warnings: Vec<String>,
    verified: Option<VerifiedView>,
    pub(super) outcome: &'static str,
    /// The outcome as text for people.
    #[serde(skip)]
    outcome_text: &'static str,
    pub(super) conflict: bool,
    seconds: f64,
}

/// The size of the executable sections, and how much of it each table answers, in bytes.
#[derive(Serialize)]
struct CoverageView {
    executable: u64,
    dwarf: u64,
    dwarf_function: u64,
    symbol_table: u64,
}

/// The comparison of the index with the debug file.
#[derive(Serialize)]
struct VerifiedView {
    addresses: u64,
    agreements: u64,
    /// The number of addresses at which addr2line differs, by reason.
    explained: BTreeMap<&'static str, u64>,
    /// The number of addresses at which it differs for no known reason.
    unexplained: u64,
    /// Why the index is not published; empty if it is right.
    wrong: Vec<String>,
}

impl VerifiedView {
    fn new(report: &AuditReport) -> Self {
        let AuditReport { addresses, unexplained_len, wrong_len, .. } = *report;
        let unexplained = unexplained_len - wrong_len;
        let addr2line = report.peers.get(ADDR2LINE);
        let classes = addr2line.into_iter().flat_map(|peer| &peer.classes);
        let explained = classes.map(|(class, counted)| (class.name(), counted.count)).collect();
        let agreements = addr2line.map_or(0, |peer| peer.agreements);
        Self { addresses, agreements, explained, unexplained, wrong: report.wrong() }
    }
}

impl ImageSummary {
    /// Whether the index has a wrong answer and was therefore not published.
    pub(super) fn is_rejected(&self) -> bool {
        self.index.is_none()
    }

    /// Whether a part of the debug file could not be read.
    pub(super) fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }
}

/// Prints `value` as one line of JSON on standard output.
pub(super) fn print_line(value: &impl Serialize) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string(value)?)
}

/// An input that failed, as a line of JSON.
#[derive(Serialize)]
struct FailedInput<'f> {
    /// `None` if the failure concerns no single file.
    input: Option<String>,
    error: FailureView<'f>,
}

/// Reports a failure on standard error, and with `json` on standard output, too.
pub(super) fn report_failure(failure: &Failure, json: bool) -> Result<(), CommandError> {
    complain(&failure.message);
    if json {
        let input = failure.path.as_ref().map(|path| path.display().to_string());
        print_line(&FailedInput { input, error: failure.view() })?;
    }
    Ok(())
}

/// Publishes the index in `folder`, unless `--verify` found it to be wrong.
pub(super) fn publish(finished: FinishedIndex, folder: &IndexFolder) -> Result<ImageSummary, Failure> {
    let FinishedIndex { file, joined, debug_size, bytes, mut warnings, report, audit, time } = finished;
    let index = Index::open(bytes).map_err(|error| Failure::index(&file, &error))?;
    let verified = audit.as_ref().map(VerifiedView::new);
    let is_right = verified.as_ref().is_none_or(|verified| verified.wrong.is_empty());
    let published = is_right.then(|| folder.publish(&index)).transpose();
    let published = published.map_err(|error| Failure::from(error).of_path(&file))?;
    if let Some(Published { outcome: PublishOutcome::Repaired { damage }, .. }) = &published {
        warnings.push(format!("the old index is replaced: {damage}"));
    }
    if let Some(unexplained) = verified.as_ref().map(|verified| verified.unexplained).filter(|n| *n != 0) {
        warnings.push(format!(
            "addr2line differs at {} for no known reason",
            text::count(unexplained, "address")
        ));
    }
    let outcome = published.as_ref().map(|published| &published.outcome);
    let (word, outcome_text) = words(outcome);
    let metadata = index.metadata();
    let counts = metadata.counts;
    let BuildReport { has_dwarf, failed_units, dropped, hidden_names, coverage, .. } = report;
    let TextCoverage { executable, dwarf, dwarf_function, symbol_table, .. } = coverage;
    Ok(ImageSummary {
        image: metadata.image_name.clone(),
        id: metadata.id.to_string(),
        arch: metadata.arch.name.clone(),
        file: file.display().to_string(),
        joined: joined.iter().map(|path| path.display().to_string()).collect(),
        conflict: outcome.is_some_and(PublishOutcome::is_conflict),
        index: published.map(|published| published.path.display().to_string()),
        index_size: index.as_bytes().len() as u64,
        debug_size,
        has_dwarf,
        units: counts.units,
        failed_units,
        functions: counts.functions,
        ranges: counts.ranges,
        symbols: counts.symbols,
        chunks: Table::ALL.map(|table| metadata.chunk_len(table)).iter().sum(),
        coverage: CoverageView { executable, dwarf, dwarf_function, symbol_table },
        dropped,
        hidden_names,
        partial: metadata.partial.clone(),
        warnings,
        verified,
        outcome: word,
        outcome_text,
        seconds: time.as_secs_f64(),
    })
}

/// The outcome in one word and as text; `None` if the index was not published.
fn words(outcome: Option<&PublishOutcome>) -> (&'static str, &'static str) {
    match outcome {
        Some(PublishOutcome::Written) => ("written", "written"),
        Some(PublishOutcome::Unchanged) => ("unchanged", "unchanged: the same index exists"),
        Some(PublishOutcome::Repaired { .. }) => ("repaired", "written, in place of a damaged index"),
        Some(PublishOutcome::ConflictKept) => {
            ("kept", "conflict: a different index of this id exists and is kept")
        }
        Some(PublishOutcome::ConflictReplaced) => {
            ("replaced", "conflict: a different index of this id existed and is replaced")
        }
        None => ("rejected", "not published: its answers differ from the debug file"),
    }
}

/// Prints the summary, and warnings on standard error. If `are_many`, the totals say
/// how many images have no debug information.
pub(super) fn report(summary: &ImageSummary, json: bool, are_many: bool) -> Result<(), CommandError> {
    match json {
        true => print_line(summary)?,
        false => write!(io::stdout().lock(), "{}", human(summary))?,
    }
    let ImageSummary { file, arch, partial, warnings, verified, .. } = summary;
    let say = |kind: &str, what: &str| {
        complain(&format!("{kind}: {file} ({arch}): {}", text::printable(what.into())));
    };
    if !summary.has_dwarf && !are_many {
        say("warning", "no debug information: only the symbol table is indexed");
    }
    warnings.iter().for_each(|warning| say("warning", warning));
    partial.iter().for_each(|partial| say("warning", &text::partial(partial)));
    let wrong = verified.iter().flat_map(|verified| &verified.wrong);
    wrong.for_each(|wrong| say("not published", wrong));
    Ok(())
}

fn human(summary: &ImageSummary) -> String {
    let ImageSummary { image, id, arch, index, index_size, debug_size, .. } = summary;
    let ImageSummary { units, functions, ranges, symbols, seconds, outcome_text, .. } = summary;
    let [debug_size, index_size] = [*debug_size, *index_size].map(text::size);
    let counts = [(units, "unit"), (functions, "function"), (ranges, "range"), (symbols, "symbol")];
    let counts = counts.map(|(number, noun)| text::count(*number, noun)).join(", ");
    let image = text::printable(image.into());
    let index = index.as_deref().map(|index| format!("{index}: ")).unwrap_or_default();
    let verified = summary.verified.as_ref();
    let verified = verified
        .map(|verified| format!(", {} compared", text::count(verified.addresses, "answer")))
        .unwrap_or_default();
    let joined: String =
        summary.joined.iter().map(|path| format!("    with the symbols of {path}\n")).collect();
    format!(
        "{id}  {arch}  {image}\n{joined}    \
         {debug_size} -> {index_size}, {counts}, {seconds:.2} s\n    {index}{outcome_text}{verified}\n"
    )
}
