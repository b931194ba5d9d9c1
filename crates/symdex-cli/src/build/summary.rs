//! What `symdex build` says of each image.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use serde::Serialize;
use symdex::{Index, Partial, Table};
use symdex_audit::{ADDR2LINE, AuditReport};
use symdex_build::{BuildReport, TextCoverage};
use symdex_store::{IndexFolder, PublishOutcome, Published};

use super::Finished;
use crate::failure::{Failure, FailureView, Stop, complain};
use crate::text;

/// What there is to say of an image; with `--json` the line for it.
#[derive(Serialize)]
pub(super) struct ImageSummary {
    image: String,
    id: String,
    arch: String,
    /// The debug file.
    file: String,
    /// Other files of the image, whose symbols are in the index too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined: Vec<String>,
    /// `None` where the index was not published.
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
    /// The outcome in a sentence.
    #[serde(skip)]
    fate: &'static str,
    pub(super) conflict: bool,
    seconds: f64,
}

/// Bytes of executable sections, and how many of them each table has answers for.
#[derive(Serialize)]
struct CoverageView {
    executable: u64,
    dwarf: u64,
    dwarf_function: u64,
    symbol_table: u64,
}

/// How the index compares with the debug file.
#[derive(Serialize)]
struct VerifiedView {
    addresses: u64,
    agreements: u64,
    /// Addresses at which addr2line answers otherwise, by the reason why.
    explained: BTreeMap<&'static str, u64>,
    /// Addresses at which it does so for no known reason.
    unexplained: u64,
    /// Why the index is not published; empty where it is right.
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
    /// Whether the index was not published because it is not right.
    pub(super) fn is_rejected(&self) -> bool {
        self.index.is_none()
    }

    /// Whether the debug file could not be read whole.
    pub(super) fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }
}

/// Prints `value` as one line of JSON on standard output.
pub(super) fn print_line(value: &impl Serialize) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string(value)?)
}

/// A failed input as `--json` has it.
#[derive(Serialize)]
struct FailedInput<'f> {
    /// `None` if the failure concerns no single file.
    input: Option<String>,
    error: FailureView<'f>,
}

/// Tells of a failure on standard error, and with `json` on standard output too.
pub(super) fn report_failure(failure: &Failure, json: bool) -> Result<(), Stop> {
    complain(&failure.message);
    if json {
        let input = failure.path.as_ref().map(|path| path.display().to_string());
        print_line(&FailedInput { input, error: failure.view() })?;
    }
    Ok(())
}

/// Puts the index into `folder`, unless it was verified and is not right.
pub(super) fn publish(finished: Finished, folder: &IndexFolder) -> Result<ImageSummary, Failure> {
    let Finished { file, joined, debug_size, built, audit, time } = finished;
    let index = Index::open(built.bytes).map_err(|error| Failure::index(&file, &error))?;
    let verified = audit.as_ref().map(VerifiedView::new);
    let is_right = verified.as_ref().is_none_or(|verified| verified.wrong.is_empty());
    let published = is_right.then(|| folder.publish(&index)).transpose();
    let published = published.map_err(|error| Failure::from(error).of_path(&file))?;
    let mut warnings = built.warnings;
    if let Some(Published { outcome: PublishOutcome::Repaired { damage }, .. }) = &published {
        warnings.push(format!("the index that was there is replaced: {damage}"));
    }
    if let Some(unexplained) = verified.as_ref().map(|verified| verified.unexplained).filter(|n| *n != 0) {
        warnings.push(format!(
            "addr2line answers otherwise at {}, for no known reason",
            text::count(unexplained, "address")
        ));
    }
    let outcome = published.as_ref().map(|published| &published.outcome);
    let (word, fate) = words(outcome);
    let metadata = index.metadata();
    let counts = metadata.counts;
    let BuildReport { has_dwarf, failed_units, dropped, hidden_names, coverage, .. } = built.report;
    let TextCoverage { executable, dwarf, dwarf_function, symbol_table } = coverage;
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
        fate,
        seconds: time.as_secs_f64(),
    })
}

/// What became of the index, in a word and in a sentence; `None` where it was not to be published.
fn words(outcome: Option<&PublishOutcome>) -> (&'static str, &'static str) {
    match outcome {
        Some(PublishOutcome::Written) => ("written", "written"),
        Some(PublishOutcome::Unchanged) => ("unchanged", "unchanged, the same index was there"),
        Some(PublishOutcome::Repaired { .. }) => ("repaired", "written in the place of a damaged index"),
        Some(PublishOutcome::ConflictKept) => {
            ("kept", "conflict: another index of this id was there, and stays")
        }
        Some(PublishOutcome::ConflictReplaced) => {
            ("replaced", "conflict: another index of this id was there, and is replaced")
        }
        None => ("rejected", "not published: its answers are not those of the debug file"),
    }
}

/// Prints the summary, and on standard error what may cost answers; but for what the totals say, where there are many images.
pub(super) fn report(summary: &ImageSummary, json: bool, are_many: bool) -> Result<(), Stop> {
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
    let ImageSummary { units, functions, ranges, symbols, seconds, fate, .. } = summary;
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
         {debug_size} -> {index_size}, {counts}, {seconds:.2} s\n    {index}{fate}{verified}\n"
    )
}
