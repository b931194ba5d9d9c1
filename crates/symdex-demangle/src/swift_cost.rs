//! The number of nodes that a Swift name expands to, estimated before the demangler reads it.
//!
//! The demangler keeps a name as a tree in which substitutions share subtrees. It visits the tree of each function,
//! variable and subscript as if nothing were shared, so a name of 150 bytes can take seconds. If a declaration has
//! an opaque result type, the demangler also mangles it again, in time quadratic in its nesting.
//!
//! The estimate is an upper bound. It reads the name once, without its grammar. Each operator is one node. A
//! substitution (`A`) expands to at most the nodes before its definition. Each identifier defines one substitution, and
//! so does the letter of a nominal type after it. So number 5 is defined no later than the sixth of these, and no later
//! than its first reference.
//!
//! Digits are the length of an identifier, or, before `_` and after the operators of specializations, a number. Both
//! readings are followed, and joined where they meet.

use std::collections::BTreeMap;

/// How often a name can repeat a substitution at once.
const MAX_REPEATED: usize = 2048;

/// The most digits of a number whose value matters: no name is longer.
const MAX_DIGITS: usize = 6;

/// The number of substitutions that have separate bounds. Later ones count as all nodes before the reference.
const MAX_SUBSTITUTIONS: usize = 512;

/// One way to read the name up to a position.
#[derive(Clone, Default)]
struct Reading {
    nodes: u64,
    /// For each substitution, the most nodes that it can expand to.
    substitutions: Vec<u64>,
    /// How many of them are certain to be defined.
    defined: usize,
}

impl Reading {
    fn define(&mut self) {
        self.defined += 1;
        if self.substitutions.len() < self.defined.min(MAX_SUBSTITUTIONS) {
            self.substitutions.push(self.nodes);
        }
    }

    fn refer(&mut self, number: usize, times: u64) {
        while self.substitutions.len() <= number.min(MAX_SUBSTITUTIONS - 1) {
            self.substitutions.push(self.nodes);
        }
        let nodes = self.substitutions.get(number).copied().unwrap_or(self.nodes);
        self.nodes = self.nodes.saturating_add(nodes.saturating_mul(times));
    }

    /// Joins the readings of two ways to one position.
    fn join(&mut self, other: Self) {
        self.nodes = self.nodes.max(other.nodes);
        self.defined = self.defined.min(other.defined);
        // A substitution that only one of them has can be defined as late as here.
        let known = self.substitutions.len().min(other.substitutions.len());
        self.substitutions.truncate(known);
        for (nodes, others) in self.substitutions.iter_mut().zip(other.substitutions) {
            *nodes = others.max(*nodes);
        }
    }
}

/// What a name costs the demangler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The most nodes that the name can expand to; `u64::MAX` if there are more than the limit.
    pub(super) nodes: u64,
    /// Whether the name can have an opaque type (`Qr`, `QR`).
    pub(super) has_opaque_type: bool,
}

/// Returns what `name` costs. The estimate ends where the name has more than `limit` nodes.
pub(super) fn estimate(name: &str, limit: u64) -> Estimate {
    let prefixes = ["_T0", "$s", "$S", "$e", "_$s", "_$S", "_$e"];
    let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name).as_bytes();
    let specialized = name.windows(2).position(|pair| {
        matches!(pair, [b'T', b'f' | b'g' | b'G' | b'B' | b't' | b's' | b'S' | b'i' | b'p' | b'P'])
    });
    let mut scan = Scan {
        name,
        specialized: specialized.unwrap_or(name.len()),
        number_ends: number_ends(name),
        readings: BTreeMap::new(),
        has_opaque_type: false,
    };
    scan.readings.insert(0, Reading { nodes: 1, ..Reading::default() });
    while let Some((at, reading)) = scan.readings.pop_first() {
        if at >= name.len() {
            return Estimate { nodes: reading.nodes, has_opaque_type: scan.has_opaque_type };
        }
        if reading.nodes > limit {
            break;
        }
        scan.token(at, reading);
    }
    Estimate { nodes: u64::MAX, has_opaque_type: scan.has_opaque_type }
}

/// For each position of `name`, the end of the digits there.
fn number_ends(name: &[u8]) -> Vec<usize> {
    let mut ends = vec![name.len(); name.len()];
    let mut end = name.len();
    for (at, byte) in name.iter().enumerate().rev() {
        if !byte.is_ascii_digit() {
            end = at;
        }
        if let Some(ends) = ends.get_mut(at) {
            *ends = end;
        }
    }
    ends
}

struct Scan<'a> {
    name: &'a [u8],
    /// Where the first operator of a specialization can be. After it, numbers need no `_`.
    specialized: usize,
    /// See [`number_ends`].
    number_ends: Vec<usize>,
    has_opaque_type: bool,
    /// The readings that arrive at each position.
    readings: BTreeMap<usize, Reading>,
}

impl Scan<'_> {
    fn look(&self, at: usize) -> u8 {
        self.name.get(at).copied().unwrap_or_default()
    }

    fn continue_at(&mut self, at: usize, reading: Reading) {
        match self.readings.get_mut(&at) {
            Some(other) => other.join(reading),
            None => _ = self.readings.insert(at, reading),
        }
    }

    fn token(&mut self, at: usize, mut reading: Reading) {
        match self.look(at) {
            b'A' => {
                let before = at.checked_sub(1).map_or(0, |at| self.look(at));
                let is_second_level = self.name.get(..at).is_some_and(|before| before.ends_with(b"Sc"));
                if is_second_level
                    || matches!(before, b'B' | b'H' | b'M' | b'Q' | b'S' | b'T' | b'X' | b'Y' | b'f')
                {
                    self.operator(at, reading.clone());
                }
                self.substitutions(at + 1, reading);
            }
            // A repeated type of the standard library: `S2i`.
            b'S' if self.look(at + 1).is_ascii_digit() => {
                let (times, end) = self.number(at + 1);
                let mut repeated = reading.clone();
                repeated.nodes = repeated.nodes.saturating_add(4 * times.min(MAX_REPEATED) as u64);
                self.continue_at(end, repeated);
                self.operator(at, reading);
            }
            b'0'..=b'9' => {
                if self.may_be_number(at) {
                    self.operator(at, reading.clone());
                }
                if let Some(end) = self.identifier(at) {
                    reading.nodes += 1;
                    // After `zC`, it is the name of a C type, which is not a substitution.
                    if self.name.get(..at).is_some_and(|before| !before.ends_with(b"zC")) {
                        reading.define();
                        if matches!(self.look(end), b'C' | b'V' | b'O' | b'P') {
                            reading.define();
                        }
                    }
                    self.continue_at(end, reading);
                }
            }
            b'Q' => {
                self.has_opaque_type |= matches!(self.look(at + 1), b'r' | b'R');
                self.operator(at, reading);
            }
            // The rest is a suffix, which the demangler copies.
            b'.' => self.continue_at(self.name.len(), reading),
            _ => self.operator(at, reading),
        }
    }

    /// A character that is one node.
    fn operator(&mut self, at: usize, mut reading: Reading) {
        reading.nodes += 1;
        self.continue_at(at + 1, reading);
    }

    /// The number at `at`, `usize::MAX` if it has more than [`MAX_DIGITS`], and the position after it.
    fn number(&self, at: usize) -> (usize, usize) {
        let end = self.number_ends.get(at).copied().unwrap_or(at);
        let digits = self.name.get(at..end).unwrap_or_default();
        if digits.len() > MAX_DIGITS {
            return (usize::MAX, end);
        }
        (digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')), end)
    }

    /// Returns whether the digits at `at` can be something other than an identifier's length.
    fn may_be_number(&self, at: usize) -> bool {
        let (_, end) = self.number(at);
        self.look(end) == b'_' || at > self.specialized
    }

    /// The end of the identifier at `at`: its length and its text, or, after a `0`, letters of earlier words and texts.
    fn identifier(&self, at: usize) -> Option<usize> {
        let mut at = at;
        let (mut has_words, mut is_encoded) = (false, false);
        if self.look(at) == b'0' {
            at += 1;
            is_encoded = self.look(at) == b'0';
            has_words = !is_encoded;
            at += usize::from(is_encoded);
        }
        loop {
            while has_words && self.look(at).is_ascii_alphabetic() {
                has_words = self.look(at).is_ascii_lowercase();
                at += 1;
            }
            if self.look(at) == b'0' {
                return Some(at + 1);
            }
            let (len, text) = self.number(at);
            at = text + usize::from(is_encoded && self.look(text) == b'_');
            at = at.checked_add(len).filter(|end| len > 0 && *end <= self.name.len())?;
            if !has_words {
                return Some(at);
            }
        }
    }

    /// References to substitutions: `A`, already read, and letters, the last of which is a capital. A number before a
    /// letter repeats it. With `_` instead of a letter, the number counts from the 27th substitution.
    fn substitutions(&mut self, at: usize, mut reading: Reading) {
        let mut at = at;
        loop {
            let (number, end) = self.number(at);
            let has_number = end > at;
            let times = if has_number { number.min(MAX_REPEATED) as u64 } else { 1 };
            at = end + 1;
            match self.look(end) {
                b'_' => reading.refer(if has_number { number.min(self.name.len()) + 27 } else { 26 }, 1),
                letter @ b'A'..=b'Z' => reading.refer(usize::from(letter - b'A'), times),
                letter @ b'a'..=b'z' => {
                    reading.refer(usize::from(letter - b'a'), times);
                    continue;
                }
                // The demangler accepts no other character.
                _ => return,
            }
            return self.continue_at(at, reading);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_SWIFT_NODES;

    /// A function whose parameter is a dictionary of dictionaries, each of which is the key and the value of the next.
    fn doubling(levels: u8) -> String {
        let values: String = (0..levels).map(|level| format!("A{}G", char::from(b'C' + level))).collect();
        format!("$s4Demo1fyy{}SiSg{values}F", "SDy".repeat(levels.into()))
    }

    #[test]
    fn shared_parts_count_each_time() {
        let counts = [1, 4, 8, 12].map(|levels| estimate(&doubling(levels), u64::MAX - 1).nodes);
        assert!(counts.is_sorted() && counts[3] > 1 << 12, "{counts:?}");
        assert_eq!(crate::demangle(doubling(4).as_bytes()), "f(_:)");
        // It would take seconds.
        let name = doubling(22);
        assert_eq!(estimate(&name, MAX_SWIFT_NODES).nodes, u64::MAX);
        assert_eq!(crate::demangle(name.as_bytes()), name);
    }

    #[test]
    fn opaque_types_are_operators_and_no_parts_of_identifiers() {
        for (name, expected) in [
            ("$s4Demo4viewQryF", true),
            ("$s4Demo13QRCodeScannerV4loadyyF", false),
            ("$s4Demo4loadyyF", false),
        ] {
            assert_eq!(estimate(name, 100).has_opaque_type, expected, "{name}");
        }
    }

    #[test]
    fn long_runs_of_digits_are_read_once() {
        let name = format!("$sTfx{}", "1".repeat(crate::limits::MAX_SWIFT_NAME));
        assert_eq!(estimate(&name, MAX_SWIFT_NODES).nodes, name.len() as u64 - 1);
    }

    #[test]
    fn names_without_shared_parts_have_a_node_for_each_operator_and_identifier() {
        for (name, expected) in [("$s4Demo4loadyyF", 6), ("$s4Demo4loadyyFTA.12", 8), ("_T04Demo4loadyyF", 6)]
        {
            assert_eq!(estimate(name, 100).nodes, expected, "{name}");
        }
    }
}
