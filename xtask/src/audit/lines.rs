//! The output of `cargo xtask audit --lines`: innermost lines by compiler and language, as the tables of docs/AUDIT.md.

use symdex_audit::{AuditReport, Class, LineReport, PeerLines};

use super::llvm::LLVM_SYMBOLIZER;
use super::output::{grouped, row, total};
use super::{Audited, Corpus};

/// Random addresses for each slice, if `--sample` states no other number.
pub(super) const SAMPLE: u64 = 20_000;

/// Producers with fewer addresses of all corpora are summed.
const FEW: u64 = 500;

/// Producers with less than one part in this many of the addresses of a corpus are summed.
const PARTS: u64 = 100;

/// The share of the innermost lines of a slice in which llvm-symbolizer may differ. Slices above it are listed.
const MAX_DIFFERENT: f64 = 0.0002;

/// Three tables: the lines by producer, those of each corpus by producer, and the slices in which llvm-symbolizer has
/// other lines.
pub(super) fn markdown(corpora: &[Corpus]) -> String {
    const COLUMNS: &str = "compiler, language | addresses | line 0, `exact` | line 0, `statement` | policies differ | \
                           `exact` differs | `statement` differs | llvm-symbolizer: class, % |\n";
    const ALIGNED: &str = "--- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
    let mut out = format!("| {COLUMNS}| {ALIGNED}");
    let mut all = AuditReport::default();
    corpora.iter().for_each(|corpus| all.add(total(corpus)));
    for (producer, lines) in by_producer(&all, FEW) {
        out += &row(&producer, cells(&lines));
    }
    out += &format!("\n| files | {COLUMNS}| --- | {ALIGNED}");
    for corpus in corpora {
        let report = total(corpus);
        let few = sum(report.lines.values()).addresses.div_ceil(PARTS);
        for (producer, lines) in by_producer(&report, few) {
            out += &row(&corpus.name, [producer].into_iter().chain(cells(&lines)));
        }
    }
    out += "\n| slice | addresses | `exact` differs | llvm-symbolizer: class, % |\n| --- | ---: | ---: | --- |\n";
    for slice in corpora.iter().flat_map(|corpus| &corpus.slices) {
        let lines = sum(slice.report.lines.values());
        let theirs = of_llvm(&lines);
        if share(&lines, theirs.exact_differs) > MAX_DIFFERENT {
            let counts =
                [grouped(lines.addresses), percent(&lines, theirs.exact_differs), classes(&lines, &theirs)];
            out += &row(&name(slice), counts.into_iter());
        }
    }
    out
}

fn name(slice: &Audited) -> String {
    let file = slice.file.file_name().unwrap_or_default();
    format!("{} {}", file.display(), slice.arch)
}

/// The lines of each producer. Those with fewer than `few` addresses are summed.
fn by_producer(report: &AuditReport, few: u64) -> Vec<(String, LineReport)> {
    let (large, small): (Vec<_>, Vec<_>) = report.lines.iter().partition(|(_, lines)| lines.addresses >= few);
    let others = sum(small.into_iter().map(|(_, lines)| lines));
    let others = (others.addresses != 0).then(|| ("others".to_owned(), others));
    large.into_iter().map(|(producer, lines)| (producer.to_string(), lines.clone())).chain(others).collect()
}

fn cells(lines: &LineReport) -> impl Iterator<Item = String> {
    let theirs = of_llvm(lines);
    let shares = [
        lines.exact_zero,
        lines.statement_zero,
        lines.policies_differ,
        theirs.exact_differs,
        theirs.statement_differs,
    ];
    let shares = shares.map(|count| percent(lines, count));
    [grouped(lines.addresses)].into_iter().chain(shares).chain([classes(lines, &theirs)])
}

/// The classes with at least 0.01 % of the addresses, the largest first.
fn classes(lines: &LineReport, theirs: &PeerLines) -> String {
    let mut counts: Vec<(Class, u64)> =
        theirs.classes.iter().map(|(class, count)| (*class, *count)).collect();
    counts.retain(|(_, count)| share(lines, *count) >= 0.0001);
    counts.sort_by_key(|(class, count)| (std::cmp::Reverse(*count), *class));
    let class =
        |(class, count): &(Class, u64)| format!("{} {:.2}", class.name(), 100.0 * share(lines, *count));
    if counts.is_empty() { "-".to_owned() } else { counts.iter().map(class).collect::<Vec<_>>().join(", ") }
}

fn of_llvm(lines: &LineReport) -> PeerLines {
    lines.peers.get(LLVM_SYMBOLIZER).cloned().unwrap_or_default()
}

fn sum<'a>(lines: impl Iterator<Item = &'a LineReport>) -> LineReport {
    lines.fold(LineReport::default(), |mut sum, lines| {
        sum += lines;
        sum
    })
}

fn share(lines: &LineReport, count: u64) -> f64 {
    count as f64 / lines.addresses.max(1) as f64
}

fn percent(lines: &LineReport, count: u64) -> String {
    format!("{:.2} %", 100.0 * share(lines, count))
}
