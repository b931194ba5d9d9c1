//! The lines that the units of one compiler and language have.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::classes::Class;

/// The innermost lines of addresses whose units have the same [`Producer`](crate::Producer).
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineReport {
    /// Addresses that a unit covers.
    pub addresses: u64,
    /// Of these, addresses whose line is 0 under `exact`.
    pub exact_zero: u64,
    /// Of these, addresses whose line is 0 under `statement`.
    pub statement_zero: u64,
    /// Addresses at which the two policies have different files or lines.
    pub policies_differ: u64,
    /// How the lines of each peer compare with these, by its name.
    pub peers: BTreeMap<&'static str, PeerLines>,
}

/// How the innermost lines of a peer compare with those of symdex.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerLines {
    /// Addresses at which the peer has another line than `exact`.
    pub exact_differs: u64,
    /// Addresses at which the peer has a line other than 0, and `statement` another one.
    pub statement_differs: u64,
    /// Addresses at which any part of the answers differs, by class. An address may count in several.
    pub classes: BTreeMap<Class, u64>,
}

/// The lines of an address: that of each policy and that of a peer, in their innermost frames.
#[derive(Clone, Copy)]
pub(crate) struct AnsweredLines {
    pub(crate) exact: Option<u32>,
    pub(crate) statement: Option<u32>,
}

impl LineReport {
    /// Counts an address with these lines.
    pub(crate) fn count(&mut self, lines: AnsweredLines, policies_differ: bool) {
        self.addresses += 1;
        self.exact_zero += u64::from(lines.exact == Some(0));
        self.statement_zero += u64::from(lines.statement == Some(0));
        self.policies_differ += u64::from(policies_differ);
    }

    /// Counts the answer of `peer` at that address: its line, and the classes of the differences between the answers.
    pub(crate) fn count_peer(
        &mut self,
        peer: &'static str,
        lines: AnsweredLines,
        theirs: Option<u32>,
        classes: &[Class],
    ) {
        let peer = self.peers.entry(peer).or_default();
        peer.exact_differs += u64::from(theirs != lines.exact);
        let has_line = theirs.is_some_and(|line| line != 0);
        peer.statement_differs += u64::from(has_line && theirs != lines.statement);
        classes.iter().for_each(|class| *peer.classes.entry(*class).or_default() += 1);
    }
}

impl AddAssign<&Self> for LineReport {
    /// Adds the counts of other addresses.
    fn add_assign(&mut self, other: &Self) {
        self.addresses += other.addresses;
        self.exact_zero += other.exact_zero;
        self.statement_zero += other.statement_zero;
        self.policies_differ += other.policies_differ;
        for (name, theirs) in &other.peers {
            let peer = self.peers.entry(name).or_default();
            peer.exact_differs += theirs.exact_differs;
            peer.statement_differs += theirs.statement_differs;
            theirs
                .classes
                .iter()
                .for_each(|(class, count)| *peer.classes.entry(*class).or_default() += count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ADDR2LINE;

    #[test]
    fn lines_are_counted_for_each_policy_and_peer() {
        let mut report = LineReport::default();
        let addresses = [
            // Equal lines; line 0 that `statement` replaces; a peer without a line; another line.
            (Some(5), Some(5), Some(5)),
            (Some(0), Some(5), Some(0)),
            (Some(7), Some(7), None),
            (Some(7), Some(7), Some(8)),
        ];
        for (exact, statement, theirs) in addresses {
            let lines = AnsweredLines { exact, statement };
            report.count(lines, exact != statement);
            report.count_peer(ADDR2LINE, lines, theirs, &[Class::LINE_ZERO]);
        }
        let counts = (report.addresses, report.exact_zero, report.statement_zero, report.policies_differ);
        assert_eq!(counts, (4, 1, 0, 1));
        let mut sum = report.clone();
        sum += &report;
        let peer = &sum.peers[ADDR2LINE];
        assert_eq!((peer.exact_differs, peer.statement_differs), (4, 2));
        assert_eq!(peer.classes[&Class::LINE_ZERO], 8);
    }
}
