//! What an audit found.

use std::collections::BTreeMap;
use std::fmt;

use super::classes::Class;
use super::expected::Place;
use super::peers::{Peer, Theirs};

/// How many unexplained differences are kept in full.
pub(super) const MAX_SHOWN: usize = 20;

/// The share of the addresses above which a class needs to be named in TRAPS.md or PEERS.md.
const MAX_SHARE: f64 = 0.005;

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditReport {
    /// Addresses that were compared, each under both line policies.
    pub addresses: u64,
    /// Of these, addresses that only the symbol table knows.
    pub symbol_table_only: u64,
    /// Addresses at which the `statement` policy has another line than `exact`.
    pub statement_differs: u64,
    /// How symdex compares with each of the peers that were asked.
    pub peers: BTreeMap<Peer, PeerReport>,
    /// Differences that nothing explains; the first of them are kept.
    pub unexplained_len: u64,
    /// Of these, addresses at which symdex itself does not answer as the rules say.
    pub wrong_len: u64,
    /// The first differences that nothing explains, in address order.
    pub unexplained: Vec<Difference>,
    /// Slices whose symbol table the builder reads otherwise than the rules, and the first function that differs.
    pub wrong_symbols: Vec<String>,
    /// How much code has answers; nothing where not all addresses were compared.
    pub coverage: Coverage,
}

/// How the answers of one peer compare with symdex's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerReport {
    /// Addresses at which they are the same.
    pub agreements: u64,
    /// Differences that the debug file explains, by class. An address may count in several.
    pub classes: BTreeMap<Class, ClassCount>,
}

/// How often a class came up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Addresses.
    pub count: u64,
    /// The lowest one.
    pub example: Difference,
}

/// An address at which answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The image offset.
    pub offset: u64,
    /// What is wrong; empty for a difference that a class explains.
    pub what: String,
    /// What symdex answers, as text.
    pub ours: String,
    /// What the rules say, read from the debug file.
    pub expected: String,
    /// Who answers otherwise.
    pub peer: Peer,
    /// What the peer answers.
    pub theirs: String,
    /// The DIEs and rows around; empty for a difference that a class explains.
    pub around: String,
}

/// Bytes of the executable sections that have answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// All there are.
    pub executable: u64,
    /// With a function in the index's `dwarf` table.
    pub ours_function: u64,
    /// With a function or a line in the index's `dwarf` table.
    pub ours: u64,
    /// With a function, by the rules.
    pub expected_function: u64,
    /// With a function or a line, by the rules.
    pub expected: u64,
    /// With a function in addr2line's answer.
    pub theirs_function: u64,
    /// With any answer of addr2line.
    pub theirs: u64,
}

impl AuditReport {
    /// Which part of the addresses a class takes.
    #[must_use]
    pub fn share(&self, count: u64) -> f64 {
        count as f64 / self.addresses.max(1) as f64
    }

    /// Why the index does not pass; nothing where it does.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.wrong();
        let unexplained = self.unexplained_len - self.wrong_len;
        if unexplained != 0 {
            failures.push(format!(
                "{unexplained} of {} answers differ from a peer's for no known reason",
                self.addresses
            ));
        }
        let Coverage { ours, ours_function, theirs, theirs_function, .. } = self.coverage;
        if ours < theirs || ours_function < theirs_function {
            failures.push(format!(
                "the index covers {ours} bytes, {ours_function} with a function; addr2line {theirs} and {theirs_function}"
            ));
        }
        for (class, ClassCount { count, .. }) in self.peers.values().flat_map(|peer| &peer.classes) {
            if self.share(*count) > MAX_SHARE && class.named_in().is_none() {
                failures.push(format!(
                    "the class {:?} takes {count} of {} addresses",
                    class.name(),
                    self.addresses
                ));
            }
        }
        failures
    }

    /// What is wrong with the index's own answers, whatever others make of the debug file; nothing where they are right.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if self.wrong_len != 0 {
            let Self { wrong_len, addresses, .. } = self;
            failures.push(format!("{wrong_len} of {addresses} answers are not those of the debug file"));
        }
        let of_symbols = |wrong: &String| format!("the symbol table is read otherwise: {wrong}");
        failures.extend(self.wrong_symbols.iter().map(of_symbols));
        let Coverage { ours, ours_function, expected, expected_function, .. } = self.coverage;
        if (ours, ours_function) != (expected, expected_function) {
            failures.push(format!(
                "the index covers {ours} bytes, {ours_function} with a function; the debug file says {expected} and \
                 {expected_function}"
            ));
        }
        failures
    }

    /// What is known of `peer`.
    pub(super) fn peer(&mut self, peer: Peer) -> &mut PeerReport {
        self.peers.entry(peer).or_default()
    }

    /// Counts a difference that nothing explains.
    pub(super) fn unexplained(&mut self, difference: impl FnOnce() -> Difference) {
        self.unexplained_len += 1;
        if self.unexplained.len() < MAX_SHOWN {
            self.unexplained.push(difference());
        }
    }

    /// Counts `size` bytes that are at `place` by the rules, and for which addr2line has this answer.
    pub(super) fn cover(&mut self, place: &Place, theirs: &Theirs<'_>, size: u64) {
        let weight = |counts: bool| if counts { size } else { 0 };
        self.coverage.expected_function += weight(place.function.is_some());
        self.coverage.expected += weight(place.unit().is_some());
        if let Theirs::Frames(frames) = &theirs {
            self.coverage.theirs_function += weight(frames.iter().any(|frame| frame.name.is_some()));
            self.coverage.theirs += weight(!frames.is_empty());
        }
    }

    /// Adds what was found at higher addresses, or in another debug file.
    pub fn add(&mut self, higher: AuditReport) {
        self.addresses += higher.addresses;
        self.symbol_table_only += higher.symbol_table_only;
        self.statement_differs += higher.statement_differs;
        self.unexplained_len += higher.unexplained_len;
        self.wrong_len += higher.wrong_len;
        self.unexplained.extend(higher.unexplained);
        self.unexplained.truncate(MAX_SHOWN);
        for (peer, theirs) in higher.peers {
            self.peer(peer).add(theirs);
        }
        self.wrong_symbols.extend(higher.wrong_symbols);
        self.coverage.add(higher.coverage);
    }
}

impl Coverage {
    fn add(&mut self, other: Coverage) {
        self.executable += other.executable;
        self.ours_function += other.ours_function;
        self.ours += other.ours;
        self.expected_function += other.expected_function;
        self.expected += other.expected;
        self.theirs_function += other.theirs_function;
        self.theirs += other.theirs;
    }
}

impl PeerReport {
    pub(super) fn count(&mut self, class: Class, difference: impl FnOnce() -> Difference) {
        let counted = self.classes.entry(class);
        counted.or_insert_with(|| ClassCount { count: 0, example: difference() }).count += 1;
    }

    fn add(&mut self, higher: PeerReport) {
        self.agreements += higher.agreements;
        for (class, counted) in higher.classes {
            let count = counted.count;
            self.classes.entry(class).or_insert(ClassCount { count: 0, ..counted }).count += count;
        }
    }
}

impl fmt::Display for AuditReport {
    /// A report for a person to read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |count| 100.0 * self.share(count);
        writeln!(f, "addresses    {}", self.addresses)?;
        writeln!(f, "symbol table {} of them are known to it alone", self.symbol_table_only)?;
        writeln!(f, "statement    another line than exact at {} addresses", self.statement_differs)?;
        let Coverage { executable, ours_function, ours, theirs_function, theirs, .. } = self.coverage;
        if executable != 0 {
            writeln!(f, "coverage     {ours} of {executable} bytes, {ours_function} with a function")?;
            writeln!(f, "  addr2line  {theirs}, {theirs_function} with a function")?;
        }
        for (peer, PeerReport { agreements, classes }) in &self.peers {
            let agree = percent(*agreements);
            writeln!(f, "{}: the same answer at {agreements} addresses ({agree:.3} %)", peer.name())?;
            for (class, ClassCount { count, example }) in classes {
                let named = class.named_in().unwrap_or("named nowhere");
                writeln!(f, "class        {}: {count} ({:.3} %; {named})", class.name(), percent(*count))?;
                writeln!(f, "  reason     {}", class.reason())?;
                write!(f, "{example}")?;
            }
        }
        writeln!(f, "unexplained  {}", self.unexplained_len)?;
        self.unexplained.iter().try_for_each(|difference| write!(f, "{difference}"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, what, ours, expected, peer, theirs, around } = self;
        writeln!(f, "  at {offset:#x} {what}")?;
        writeln!(f, "    {:<16}{ours}", "symdex")?;
        if expected != ours {
            writeln!(f, "    {:<16}{expected}", "expected")?;
        }
        writeln!(f, "    {:<16}{theirs}", peer.name())?;
        around.lines().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(offset: u64) -> Difference {
        let text = String::new;
        let (ours, expected, theirs, around) = (text(), text(), text(), text());
        let (what, peer) = (text(), Peer::Addr2line);
        Difference { offset, what, ours, expected, peer, theirs, around }
    }

    #[test]
    fn a_class_that_no_paper_names_must_stay_rare() {
        let report = |class, count| {
            let mut report = AuditReport { addresses: 1000, ..AuditReport::default() };
            (0..count).for_each(|offset| report.peer(Peer::Addr2line).count(class, || difference(offset)));
            report
        };
        assert_eq!(Class::OtherUnit.named_in(), None);
        assert_eq!(report(Class::OtherUnit, 5).failures(), Vec::<String>::new());
        assert_eq!(report(Class::OtherUnit, 6).failures().len(), 1);
        assert_eq!(report(Class::LineZero, 900).failures(), Vec::<String>::new());
    }

    #[test]
    fn coverage_must_be_what_the_debug_file_says_and_no_less_than_addr2lines() {
        let failures = |ours, expected, theirs| {
            let coverage = Coverage { ours, expected, theirs, ..Coverage::default() };
            AuditReport { coverage, ..AuditReport::default() }.failures().len()
        };
        assert_eq!([failures(5, 5, 5), failures(5, 5, 4)], [0, 0]);
        assert_eq!([failures(5, 6, 5), failures(5, 4, 5), failures(5, 5, 6)], [1, 1, 1]);
    }

    #[test]
    fn batches_add_up_and_the_lowest_differences_stay() {
        let batch = |from: u64| {
            let unexplained = (from..from + 15).map(difference).collect();
            let mut batch =
                AuditReport { addresses: 100, unexplained_len: 15, unexplained, ..AuditReport::default() };
            batch.peer(Peer::Addr2line).count(Class::Aliases, || difference(from));
            batch
        };
        let mut report = batch(0);
        report.add(batch(50));
        assert_eq!((report.addresses, report.unexplained_len), (200, 30));
        assert_eq!(report.unexplained.len(), MAX_SHOWN);
        assert_eq!(report.unexplained[MAX_SHOWN - 1].offset, 54);
        assert_eq!(
            report.peers[&Peer::Addr2line].classes[&Class::Aliases],
            ClassCount { count: 2, example: difference(0) }
        );
    }
}
