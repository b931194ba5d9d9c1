//! Half-open intervals that can overlap, and the search for those that cover an address.

/// An interval of image offsets, and the index of the item it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) item: u32,
}

/// A search finds at most this many intervals. Only hostile files have more over one address, and each costs time at
/// every address.
const MAX_COVERING: usize = 4096;

/// Intervals sorted by start, and a tree of their greatest ends.
#[derive(Default)]
pub(crate) struct Intervals {
    sorted: Vec<Interval>,
    /// A complete binary tree over `sorted` with its root at index 1. Each node has the greatest end below it.
    greatest_end: Vec<u64>,
    leaves: usize,
}

impl Intervals {
    pub(crate) fn new(mut sorted: Vec<Interval>) -> Self {
        sorted.retain(|interval| interval.start < interval.end);
        sorted.sort_unstable();
        let leaves = sorted.len().next_power_of_two();
        let mut greatest_end = vec![0; 2 * leaves];
        for (leaf, interval) in greatest_end[leaves..].iter_mut().zip(&sorted) {
            *leaf = interval.end;
        }
        for node in (1..leaves).rev() {
            greatest_end[node] = greatest_end[2 * node].max(greatest_end[2 * node + 1]);
        }
        Self { sorted, greatest_end, leaves }
    }

    /// All intervals, sorted by start.
    pub(crate) fn all(&self) -> &[Interval] {
        &self.sorted
    }

    /// The intervals that cover `offset`, the innermost first: latest start, then shortest, then the smallest item.
    pub(crate) fn covering(&self, offset: u64, covering: &mut Vec<Interval>) {
        covering.clear();
        let begun = self.sorted.partition_point(|interval| interval.start <= offset);
        if begun != 0 {
            self.visit(1, 0, self.leaves, begun, offset, covering);
        }
        covering.sort_unstable_by_key(|interval| (u64::MAX - interval.start, interval.end, interval.item));
    }

    /// Visits the leaves `first..first + len` below `node` in descending order, without those from `begun` on.
    fn visit(
        &self,
        node: usize,
        first: usize,
        len: usize,
        begun: usize,
        offset: u64,
        out: &mut Vec<Interval>,
    ) {
        if first >= begun || self.greatest_end[node] <= offset || out.len() == MAX_COVERING {
            return;
        }
        if len == 1 {
            out.push(self.sorted[first]);
            return;
        }
        self.visit(2 * node + 1, first + len / 2, len / 2, begun, offset, out);
        self.visit(2 * node, first, len / 2, begun, offset, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covering_is_what_a_linear_scan_finds() {
        let interval = |(item, (start, end)): (u32, (u64, u64))| Interval { start, end, item };
        for count in 0..20u64 {
            let ends = (0..count).map(|i| (i * 7 % 13, i * 7 % 13 + i * 5 % 9));
            let intervals: Vec<Interval> = (0u32..).zip(ends).map(interval).collect();
            let tree = Intervals::new(intervals.clone());
            let mut found = Vec::new();
            for offset in 0..25 {
                tree.covering(offset, &mut found);
                let mut expected: Vec<Interval> = intervals.clone();
                expected.retain(|i| i.start <= offset && offset < i.end);
                expected.sort_by_key(|i| (u64::MAX - i.start, i.end - i.start, i.item));
                assert_eq!(found, expected, "{offset} in {intervals:?}");
            }
        }
    }
}
