//! Finding the pairs of symbols that recur, without counting any of them exactly.
//!
//! This is Re-Pair in rounds. A round first adds each pair to a sketch, a table of counters that pairs are hashed to, then walks
//! from left to right and merges a pair where its counter is high and not below that of the pair one further on. A counter that
//! two pairs share only makes a rule that is not worth it; those go in the end.

use rustc_hash::FxHashMap;

/// What is behind each string of a sequence. Nothing is ever paired with it.
pub(super) const END: u32 = u32::MAX;
/// A pair must recur this often before it is worth a rule.
const MIN_COUNT: u32 = 4;
/// The most rounds; each makes expansions at most one rule deeper.
pub(super) const MAX_ROUNDS: u32 = 20;
/// The round is the last one that merges less than one in this many symbols.
const LAST_GAIN: usize = 64;

/// Symbols that stand for two others, numbered from `first` on: each one's parts have lower numbers.
pub(super) struct Rules {
    pub(super) first: u32,
    pub(super) pairs: Vec<[u32; 2]>,
    numbers: FxHashMap<u64, u32>,
}

impl Rules {
    /// No rules yet, above `first` other symbols.
    pub(super) fn new(first: u32) -> Self {
        Self { first, pairs: Vec::new(), numbers: FxHashMap::default() }
    }

    /// The two parts of `symbol`; `None` for one that is no rule.
    pub(super) fn parts(&self, symbol: u32) -> Option<[u32; 2]> {
        self.pairs.get(symbol.checked_sub(self.first)? as usize).copied()
    }

    /// The symbol that stands for `left` and `right`.
    pub(super) fn symbol(&mut self, left: u32, right: u32) -> u32 {
        let pair = packed(left, right);
        if let Some(number) = self.numbers.get(&pair) {
            return *number;
        }
        // Saturated numbers are as good as any: a grammar of that many symbols is refused.
        let number =
            self.first.saturating_add(u32::try_from(self.pairs.len()).unwrap_or(u32::MAX)).min(END - 1);
        self.pairs.push([left, right]);
        self.numbers.insert(pair, number);
        number
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

    /// Replaces the pairs that recur in the strings of `sequence`, again and again. Each string ends with [`END`], the last with two.
    pub(super) fn replace(&mut self, sequence: &mut Vec<u32>) {
        let mut sketch = Sketch::new(sequence.len());
        let mut merged = Vec::with_capacity(sequence.len());
        for _ in 0..MAX_ROUNDS {
            sketch.count_all(sequence);
            self.merge(sequence, &sketch, &mut merged);
            let gain = sequence.len() - merged.len();
            std::mem::swap(sequence, &mut merged);
            if gain < merged.len() / LAST_GAIN {
                break;
            }
        }
    }

    fn merge(&mut self, sequence: &[u32], sketch: &Sketch, merged: &mut Vec<u32>) {
        merged.clear();
        let mut symbols = sequence.iter().copied();
        let (Some(mut left), Some(mut right)) = (symbols.next(), symbols.next()) else { return };
        let mut here = sketch.count(left, right);
        while let Some(after) = symbols.next() {
            let there = sketch.count(right, after);
            if here >= MIN_COUNT && here >= there {
                merged.push(self.symbol(left, right));
                // There is a symbol behind `after`: the sequence ends with two that nothing is paired with.
                (left, right) = (after, symbols.next().unwrap_or(END));
                here = sketch.count(left, right);
            } else {
                merged.push(left);
                (left, right, here) = (right, after, there);
            }
        }
        merged.extend([left, right]);
    }
}

fn packed(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// About how often each pair occurs: at least as often as it does.
struct Sketch {
    counts: Vec<u32>,
    shift: u32,
}

impl Sketch {
    /// A sketch for sequences of `len` symbols.
    fn new(len: usize) -> Self {
        let bits = len.max(1).ilog2().clamp(10, 20);
        Self { counts: vec![0; 1 << bits], shift: u64::BITS - bits }
    }

    fn slot(&self, left: u32, right: u32) -> usize {
        // The high bits of a product with an odd number of no pattern, the golden ratio's, depend on all bits of the pair.
        usize::try_from(packed(left, right).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift)
            .unwrap_or_default()
    }

    fn count_all(&mut self, sequence: &[u32]) {
        self.counts.fill(0);
        let mut left = END;
        for &right in sequence {
            if left != END && right != END {
                let slot = self.slot(left, right);
                if let Some(count) = self.counts.get_mut(slot) {
                    *count += 1;
                }
            }
            left = right;
        }
    }

    fn count(&self, left: u32, right: u32) -> u32 {
        if left == END || right == END {
            return 0;
        }
        self.counts.get(self.slot(left, right)).copied().unwrap_or_default()
    }
}
