//! The results of an audit.

use std::collections::BTreeMap;
use std::fmt;

use crate::classes::Class;
use crate::expected::Position;

/// How many unexplained differences are stored in full.
pub(crate) const MAX_SHOWN: usize = 20;

/// The share of the addresses above which an undescribed class is a finding.
const MAX_SHARE: f64 = 0.01;

/// The results of an audit.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditReport {
    /// Addresses that were compared, each under both line policies.
    pub addresses: u64,
    /// Of these, addresses that only the symbol table covers.
    pub symbol_table_only: u64,
    /// Addresses at which the two policies have different lines.
    pub statement_differs: u64,
    /// The results for each peer, by its name.
    pub peers: BTreeMap<&'static str, PeerReport>,
    /// The number of differences that no class explains.
    pub unexplained_len: u64,
    /// Of these, addresses at which symdex itself does not answer as the rules say.
    pub wrong_len: u64,
    /// The first differences that no class explains, in address order.
    pub unexplained: Vec<Difference>,
    /// For each slice whose symbol table the builder reads differently from the rules: the first function that differs.
    pub wrong_symbols: Vec<String>,
    /// For each slice of which no answer was compared: what is in the debug file, and why nothing was compared.
    pub nothing_compared: Vec<String>,
    /// The size of the code with answers; all 0 if only some addresses were compared.
    pub coverage: Coverage,
}

/// How the answers of one peer compare with those of symdex.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerReport {
    /// Addresses at which they are equal.
    pub agreements: u64,
    /// Differences that the debug file explains, by class. An address may count in several.
    pub classes: BTreeMap<Class, ClassCount>,
}

/// How often a class was found.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Addresses.
    pub count: u64,
    /// The lowest address.
    pub example: Difference,
}

/// An address at which answers differ.
#[non_exhaustive]
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
    /// The name of the peer.
    pub peer: &'static str,
    /// What the peer answers.
    pub theirs: String,
    /// The DIEs and rows around the address; empty for a difference that a class explains.
    pub around: String,
}

/// Bytes of the executable sections that have answers.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// All.
    pub executable: u64,
    /// With a function in the index's `dwarf` table.
    pub ours_function: u64,
    /// With a function or a line in the index's `dwarf` table.
    pub ours: u64,
    /// With a function, by the rules.
    pub expected_function: u64,
    /// With a function or a line, by the rules.
    pub expected: u64,
}

impl AuditReport {
    /// `count` as a fraction of the addresses.
    #[must_use]
    pub fn share(&self, count: u64) -> f64 {
        count as f64 / self.addresses.max(1) as f64
    }

    /// Why the index does not pass; empty if it does.
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
        failures
    }

    /// The classes that explain more than 1 % of the addresses and are not described
    /// ([`Class::described`]), a sentence for each. They need a review: a class may explain too much.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let is_finding = |class: &Class, count: u64| self.share(count) > MAX_SHARE && !class.is_described();
        let of_peer = |(peer, theirs): (&&'static str, &PeerReport)| {
            let found = theirs.classes.iter().filter(|(class, counted)| is_finding(class, counted.count));
            let finding = |(class, counted): (&Class, &ClassCount)| {
                let (name, count, all) = (class.name(), counted.count, self.addresses);
                format!(
                    "the class {name:?} of {peer} explains {count} of {all} addresses and is not described"
                )
            };
            found.map(finding).collect::<Vec<_>>()
        };
        self.peers.iter().flat_map(of_peer).collect()
    }

    /// What is wrong with the index's own answers, without the comparison with peers; empty if they are right. An index
    /// of which nothing was compared is not right.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if self.wrong_len != 0 {
            let Self { wrong_len, addresses, .. } = self;
            failures.push(format!("{wrong_len} of {addresses} answers are not those of the debug file"));
        }
        failures.extend(self.nothing_compared.iter().map(|why| format!("nothing was compared: {why}")));
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

    /// The results for `peer`.
    pub(crate) fn peer(&mut self, peer: &'static str) -> &mut PeerReport {
        self.peers.entry(peer).or_default()
    }

    /// Counts a difference that no class explains.
    pub(crate) fn unexplained(&mut self, difference: impl FnOnce() -> Difference) {
        self.unexplained_len += 1;
        if self.unexplained.len() < MAX_SHOWN {
            self.unexplained.push(difference());
        }
    }

    /// Counts `size` bytes at `position`.
    pub(crate) fn cover(&mut self, position: &Position, size: u64) {
        let weight = |counts: bool| if counts { size } else { 0 };
        self.coverage.expected_function += weight(position.function.is_some());
        self.coverage.expected += weight(position.unit().is_some());
    }

    /// Adds the results for higher addresses, or for another debug file.
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
        self.nothing_compared.extend(higher.nothing_compared);
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
    }
}

impl PeerReport {
    pub(crate) fn count(&mut self, class: Class, difference: impl FnOnce() -> Difference) {
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
    /// The report as text, with an example of each class.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |count| 100.0 * self.share(count);
        writeln!(f, "addresses    {}", self.addresses)?;
        writeln!(f, "symbol table {} of them are known to it alone", self.symbol_table_only)?;
        writeln!(f, "statement    another line than exact at {} addresses", self.statement_differs)?;
        let Coverage { executable, ours_function, ours, .. } = self.coverage;
        if executable != 0 {
            writeln!(f, "coverage     {ours} of {executable} bytes, {ours_function} with a function")?;
        }
        for (peer, PeerReport { agreements, classes }) in &self.peers {
            let agree = percent(*agreements);
            writeln!(f, "{}: the same answer at {agreements} addresses ({agree:.3} %)", peer)?;
            for (class, ClassCount { count, example }) in classes {
                writeln!(f, "class        {}: {count} ({:.3} %)", class.name(), percent(*count))?;
                writeln!(f, "  reason     {}", class.reason())?;
                writeln!(f, "  proof      {}", class.proof())?;
                write!(f, "{example}")?;
            }
        }
        self.findings().iter().try_for_each(|finding| writeln!(f, "finding      {finding}"))?;
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
        writeln!(f, "    {:<16}{theirs}", peer)?;
        around.lines().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ADDR2LINE;

    fn difference(offset: u64) -> Difference {
        let text = String::new;
        let (ours, expected, theirs, around) = (text(), text(), text(), text());
        let (what, peer) = (text(), ADDR2LINE);
        Difference { offset, what, ours, expected, peer, theirs, around }
    }

    #[test]
    fn a_class_that_is_frequent_and_not_described_is_a_finding() {
        let report = |class, count| {
            let mut report = AuditReport { addresses: 1000, ..AuditReport::default() };
            (0..count).for_each(|offset| report.peer(ADDR2LINE).count(class, || difference(offset)));
            report
        };
        assert!(!Class::OTHER_UNIT.is_described() && Class::LINE_ZERO.is_described());
        assert_eq!(report(Class::OTHER_UNIT, 10).findings(), Vec::<String>::new());
        let finding =
            "the class \"other unit\" of addr2line explains 11 of 1000 addresses and is not described";
        assert_eq!(report(Class::OTHER_UNIT, 11).findings(), [finding]);
        assert_eq!(report(Class::OTHER_UNIT, 11).failures(), Vec::<String>::new());
        assert_eq!(report(Class::LINE_ZERO, 900).findings(), Vec::<String>::new());
    }

    #[test]
    fn coverage_must_be_what_the_debug_file_says() {
        let failures = |ours, expected| {
            let coverage = Coverage { ours, expected, ..Coverage::default() };
            AuditReport { coverage, ..AuditReport::default() }.failures().len()
        };
        assert_eq!([failures(5, 5), failures(5, 6), failures(5, 4)], [0, 1, 1]);
    }

    #[test]
    fn batches_add_up_and_the_lowest_differences_stay() {
        let batch = |from: u64| {
            let unexplained = (from..from + 15).map(difference).collect();
            let mut batch =
                AuditReport { addresses: 100, unexplained_len: 15, unexplained, ..AuditReport::default() };
            batch.peer(ADDR2LINE).count(Class::ALIASES, || difference(from));
            batch
        };
        let mut report = batch(0);
        report.add(batch(50));
        assert_eq!((report.addresses, report.unexplained_len), (200, 30));
        assert_eq!(report.unexplained.len(), MAX_SHOWN);
        assert_eq!(report.unexplained[MAX_SHOWN - 1].offset, 54);
        assert_eq!(
            report.peers[ADDR2LINE].classes[&Class::ALIASES],
            ClassCount { count: 2, example: difference(0) }
        );
    }
}
