//! The output of an audit: as text, and as the tables of docs/AUDIT.md.

use std::collections::BTreeSet;

use symdex_audit::{ADDR2LINE, AuditReport, Class, PeerReport};

use super::llvm::LLVM_SYMBOLIZER;
use super::{Audited, Corpus};

/// The sums of each corpus, and the reports of the slices that do not pass. If there are few slices, all their reports.
pub(super) fn text(corpora: &[Corpus]) -> String {
    const FEW: usize = 20;
    let corpus = |corpus: &Corpus| {
        let of_slice = |slice: &&Audited| corpus.slices.len() <= FEW || !slice.report.failures().is_empty();
        let slice = |slice: &Audited| {
            format!("## {} {} {}\n{}\n", slice.file.display(), slice.arch, slice.id, slice.report)
        };
        let unreadable = corpus.unreadable.iter().map(|why| format!("not compared: {why}\n"));
        let sums = match corpus.slices.len() {
            0 | 1 => String::new(),
            len => format!("# {}, {len} slices\n{}\n", corpus.name, total(corpus)),
        };
        corpus.slices.iter().filter(of_slice).map(slice).chain(unreadable).chain([sums]).collect::<String>()
    };
    corpora.iter().map(corpus).collect()
}

/// The sums of a corpus.
pub(super) fn total(corpus: &Corpus) -> AuditReport {
    let mut total = AuditReport::default();
    for Audited { report, .. } in &corpus.slices {
        total.add(report.clone());
    }
    total
}

/// Two tables: the counts for each corpus, and the reason of each class.
pub(super) fn markdown(corpora: &[Corpus]) -> String {
    let mut totals: Vec<AuditReport> = corpora.iter().map(total).collect();
    let mut all = AuditReport::default();
    totals.iter().for_each(|total| all.add(total.clone()));
    totals.push(all);
    let slices: Vec<u64> = corpora.iter().map(|corpus| corpus.slices.len() as u64).collect();
    let all_slices = slices.iter().sum();

    let names = corpora.iter().map(|corpus| corpus.name.as_str()).chain(["all"]);
    let mut out = row("", names.map(str::to_owned));
    out += &row("---", totals.iter().map(|_| "---:".to_owned()));
    let mut numbers = |what: &str, numbers: Vec<u64>| out += &row(what, numbers.into_iter().map(grouped));
    let of = |number: fn(&AuditReport) -> u64| totals.iter().map(number).collect::<Vec<u64>>();
    numbers("slices", slices.into_iter().chain([all_slices]).collect());
    numbers("**addresses**", of(|report| report.addresses));
    numbers("in the symbol table alone", of(|report| report.symbol_table_only));
    numbers("another line under `statement`", of(|report| report.statement_differs));
    numbers("**unexplained**", of(|report| report.unexplained_len));
    numbers("bytes of code", of(|report| report.coverage.executable));
    numbers("answered by symdex", of(|report| report.coverage.ours));
    for peer in [ADDR2LINE, LLVM_SYMBOLIZER] {
        let of = |number: &dyn Fn(&PeerReport) -> u64| -> Vec<u64> {
            totals.iter().map(|total| total.peers.get(peer).map_or(0, number)).collect()
        };
        numbers(&format!("**{peer}**: the same"), of(&|theirs| theirs.agreements));
        let classes: BTreeSet<Class> = totals
            .iter()
            .filter_map(|total| total.peers.get(peer))
            .flat_map(|theirs| theirs.classes.keys().copied())
            .collect();
        for class in &classes {
            let count = |theirs: &PeerReport| theirs.classes.get(class).map_or(0, |counted| counted.count);
            numbers(class.name(), of(&count));
        }
    }
    out + "\n" + &reasons(&totals)
}

/// The reason of each class that was found.
fn reasons(totals: &[AuditReport]) -> String {
    let mut out = String::new();
    out +=
        "| class | why both are right, or only symdex | what is checked at each address |\n|---|---|---|\n";
    let classes: BTreeSet<Class> = totals
        .iter()
        .flat_map(|total| total.peers.values())
        .flat_map(|theirs| theirs.classes.keys().copied())
        .collect();
    for class in &classes {
        out += &format!("| {} | {} | {} |\n", class.name(), class.reason(), class.proof());
    }
    out
}

fn row(head: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {head} | {} |\n", cells.join(" | "))
}

/// `1234567` as `1,234,567`; nothing for 0.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.char_indices() {
        if place != 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
