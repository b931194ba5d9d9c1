//! Re-Pair in rounds: replaces pairs of symbols that recur by rules.
//!
//! A round counts the pairs in a sketch, a table of counters by hash. It then goes from left to right and merges each
//! pair whose counter is high and not below that of the pair one symbol further on. If two pairs share a counter, a
//! rule may be created that saves nothing. Such rules are removed at the end.

use std::cell::Cell;

use crate::write::random_key;

/// Binary logarithms of table sizes: the smallest size, and the largest size of a [`Sketch`].
const MIN_BITS: u32 = 10;
const MAX_BITS: u32 = 20;
/// The end of each string of a sequence. It is larger than all symbols and is not paired with any.
pub(super) const END: u32 = !ALONE;
/// Marks a symbol that makes no frequent pair with the one before. The mark stays until one of the two changes.
const ALONE: u32 = 1 << 31;
/// A pair must recur this often before it is worth a rule.
const MIN_COUNT: u8 = 4;
/// The most rounds. Each round nests rules at most one level deeper. The rounds run three times, for tokens, phrases
/// and names, which makes 27 levels. Folding words into a token, tokens into a phrase, and a name into a few symbols
/// takes 6, 16 and 13 levels more. These are 62 levels; readers accept 64.
const MAX_ROUNDS: u32 = 9;
/// A round that merges less than one in this many symbols is the last one.
const LAST_GAIN: usize = 32;

/// Rules: symbols that stand for two others. They are numbered from `first` on. The parts of a rule have lower numbers.
pub(super) struct Rules<'s> {
    pub(super) first: u32,
    pub(super) pairs: Vec<[u32; 2]>,
    /// A random odd factor of the hash of a pair. Without it, an input could have many pairs of one hash.
    key: u64,
    /// An open-addressing table of the indexes of `pairs`; [`END`] for a free slot. At least half of it is free.
    slots: Vec<u32>,
    stop: Stop<'s>,
}

/// Whether to stop, if the encoding takes about this many bytes of memory. The result is then not used.
pub(crate) type Stop<'s> = &'s (dyn Fn(usize) -> bool + Sync);

impl<'s> Rules<'s> {
    /// An empty set of rules. The symbols below `first` are not rules.
    pub(super) fn new(first: u32, stop: Stop<'s>) -> Self {
        Self { first, pairs: Vec::new(), key: random_key() | 1, slots: vec![END; 1 << MIN_BITS], stop }
    }

    /// About how many bytes of memory the rules take. While the table grows, there is also the old one.
    pub(super) fn size(&self) -> usize {
        size_of_val(&self.pairs[..]) + size_of_val(&self.slots[..]) / 2 * 3
    }

    /// The two parts of `symbol`. Returns `None` if `symbol` is not a rule.
    pub(super) fn parts(&self, symbol: u32) -> Option<[u32; 2]> {
        self.pairs.get(symbol.checked_sub(self.first)? as usize).copied()
    }

    /// The symbol that stands for `left` and `right`.
    pub(super) fn symbol(&mut self, left: u32, right: u32) -> u32 {
        // A saturated number is harmless, because a grammar of that many symbols is rejected.
        let symbol = |rule: u32| self.first.saturating_add(rule).min(END - 1);
        let slot = self.slot([left, right]);
        if let Some(rule) = self.slots.get(slot).filter(|rule| **rule != END) {
            return symbol(*rule);
        }
        let rule = u32::try_from(self.pairs.len()).unwrap_or(END - 1);
        let symbol = symbol(rule);
        self.pairs.push([left, right]);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = rule;
        }
        if self.pairs.len() > self.slots.len() / 2 {
            self.grow();
        }
        symbol
    }

    /// The slot that has the number of `pair`, or where it belongs.
    #[inline]
    fn slot(&self, pair @ [left, right]: [u32; 2]) -> usize {
        let mut slot = self.first_slot(left, right);
        while let Some(rule) = self.slots.get(slot).filter(|rule| **rule != END) {
            if self.pairs.get(*rule as usize) == Some(&pair) {
                break;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// The slot at which the search for a pair begins.
    #[inline]
    fn first_slot(&self, left: u32, right: u32) -> usize {
        let hash = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(self.key);
        usize::try_from(hash >> (u64::BITS - self.slots.len().ilog2())).unwrap_or_default()
    }

    fn grow(&mut self) {
        self.slots = vec![END; 2 * self.slots.len()];
        for (rule, pair) in (0..).zip(&self.pairs) {
            let slot = self.slot(*pair);
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = rule;
            }
        }
    }

    /// Merges the symbols at the end of `string` until no more than `at_most` are left.
    pub(super) fn fold(&mut self, string: &mut Vec<u32>, at_most: usize) {
        while string.len() > at_most {
            let merged = (string.len() - at_most).min(string.len() / 2);
            let tail = string.split_off(string.len() - 2 * merged);
            let pairs = tail.chunks_exact(2).filter_map(|pair| pair.try_into().ok());
            string.extend(pairs.map(|[left, right]: [u32; 2]| self.symbol(left, right)));
        }
    }

    /// Replaces recurring pairs in the strings of `sequence` by rules until few recur. Each string ends with [`END`],
    /// and another [`END`] follows the last string.
    pub(super) fn replace(&mut self, sequence: &mut Vec<u32>) {
        let (mut sketch, mut next) = (Sketch::default(), Sketch::default());
        sketch.clear(sequence.len());
        let mut last = END;
        for symbol in sequence.iter_mut() {
            let before = std::mem::replace(&mut last, *symbol);
            if before == END || *symbol == END {
                *symbol |= ALONE;
            } else {
                sketch.add(before, *symbol);
            }
        }
        for _ in 0..MAX_ROUNDS {
            if (self.stop)(self.size() + size_of_val(&sequence[..])) {
                break;
            }
            next.clear(sequence.len());
            let len = self.merge(sequence, &sketch, &mut next);
            let gain = sequence.len() - len;
            sequence.truncate(len);
            if gain < len / LAST_GAIN {
                break;
            }
            std::mem::swap(&mut sketch, &mut next);
        }
        sequence.iter_mut().for_each(|symbol| *symbol &= !ALONE);
    }

    /// Replaces the pairs that are frequent in `sketch` by rules, and counts the remaining pairs in `next`. Returns how
    /// many symbols remain; they are at the start of `sequence`.
    fn merge(&mut self, sequence: &mut [u32], sketch: &Sketch, next: &mut Sketch) -> usize {
        let sequence = Cell::from_mut(sequence).as_slice_of_cells();
        let (mut symbols, mut merged) = (sequence.iter().map(Cell::get), sequence.iter());
        let (Some(mut left), Some(mut right)) = (symbols.next(), symbols.next()) else {
            return sequence.len();
        };
        let mut last = END;
        // `count` is how often `symbol` occurs after the symbol that was pushed before it.
        let mut push = |symbol: u32, count: u8| {
            let symbol = symbol & !ALONE;
            let before = std::mem::replace(&mut last, symbol);
            let alone = count < MIN_COUNT || before == END || symbol == END;
            if !alone {
                next.add(before, symbol);
            }
            if let Some(place) = merged.next() {
                place.set(symbol | if alone { ALONE } else { 0 });
            }
        };
        let mut before = 0;
        let mut here = sketch.count(left, right);
        while let Some(after) = symbols.next() {
            let there = sketch.count(right, after);
            if here >= MIN_COUNT && here >= there {
                push(self.symbol(left & !ALONE, right & !ALONE), u8::MAX);
                // A symbol follows `after`, because the sequence ends with two symbols that are not paired.
                (left, right, before) = (after, symbols.next().unwrap_or(END | ALONE), u8::MAX);
                here = sketch.count(left, right);
            } else {
                push(left, before);
                (left, right, before, here) = (right, after, here, there);
            }
        }
        push(left, 0);
        push(right, 0);
        sequence.len() - merged.len()
    }
}

/// The index of a pair's counter: the high bits of the pair times an odd number made of the golden ratio. These bits
/// depend on all bits of the pair. The hash has no random key, because the rules depend on the counters, and the bytes
/// of an index depend on the rules.
#[inline]
fn hash(left: u32, right: u32) -> usize {
    let pair = u64::from(left) << 32 | u64::from(right);
    usize::try_from(pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36).unwrap_or_default()
}

/// About how often each pair occurs. A count is at least the true one, but at most 255. Counts of two bytes would
/// distinguish frequent pairs, but half of them would not fit the processor's cache.
#[derive(Default)]
struct Sketch {
    /// The counters. How many there are is a power of two.
    counts: Vec<u8>,
}

impl Sketch {
    /// Forgets all pairs, and makes room for a sequence of `len` symbols.
    fn clear(&mut self, len: usize) {
        self.counts.clear();
        self.counts.resize(1 << (len.max(1).ilog2() + 1).clamp(MIN_BITS, MAX_BITS), 0);
    }

    #[inline]
    fn add(&mut self, left: u32, right: u32) {
        let slot = hash(left, right) & (self.counts.len() - 1);
        if let Some(count) = self.counts.get_mut(slot) {
            *count = count.saturating_add(1);
        }
    }

    /// How often `right` occurs after `left`; 0 if `right` is marked [`ALONE`].
    #[inline]
    fn count(&self, left: u32, right: u32) -> u8 {
        if right & ALONE != 0 {
            return 0;
        }
        let slot = hash(left & !ALONE, right) & (self.counts.len() - 1);
        self.counts.get(slot).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps to find all pairs, under a new key.
    fn steps_of(pairs: &[(u32, u32)]) -> usize {
        let mut rules = Rules::new(0, &|_| false);
        for _ in 0..2 {
            assert!((0..).zip(pairs).all(|(rule, (left, right))| rules.symbol(*left, *right) == rule));
        }
        let mask = rules.slots.len() - 1;
        let steps = |(left, right): &(u32, u32)| {
            rules.slot([*left, *right]).wrapping_sub(rules.first_slot(*left, *right)) & mask
        };
        pairs.iter().map(steps).sum()
    }

    #[test]
    fn pairs_made_to_collide_are_found_in_few_steps() {
        /// The inverse of the factor of [`hash`].
        const INVERSE: u64 = 0xf1de_83e1_9937_733d;
        for count in [2000u32, 4000] {
            let half = |half: u64| u32::try_from(half & 0xffff_ffff).expect("32 bits");
            let pairs = (1..=u64::from(count)).map(|number| number.wrapping_mul(INVERSE));
            let pairs: Vec<_> = pairs.map(|pair| (half(pair >> 32), half(pair))).collect();
            assert!(pairs.iter().all(|(left, right)| hash(*left, *right) == 0), "they collide without a key");
            // A few keys separate these pairs badly. An attacker who chooses the names does not know the key.
            let mut steps: Vec<usize> = (0..9).map(|_| steps_of(&pairs)).collect();
            steps.sort_unstable();
            let steps = steps[4];
            assert!(steps < 10 * pairs.len(), "{steps} steps for {count} pairs");
        }
    }
}
