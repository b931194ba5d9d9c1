//! Overlapping intervals: which interval owns an address, and intersections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A half-open interval. If several intervals cover an address, the one with the greatest priority owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval<P> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) priority: P,
}

/// A range of addresses and the number of the interval that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) owner: usize,
}

/// The stretches that `intervals` cover, sorted and disjoint. See [`Flattener::flatten`].
pub(crate) fn flatten<P: Ord + Copy>(intervals: impl IntoIterator<Item = Interval<P>>) -> Vec<Stretch> {
    let intervals = intervals.into_iter();
    let mut stretches = Vec::with_capacity(intervals.size_hint().0);
    Flattener::default().flatten(intervals, &mut stretches);
    stretches
}

/// Flattens many lists of intervals with the same buffers.
///
/// The fields hold the intervals that have begun. Intervals that start later or are nested deeper are preferred, so
/// most intervals have a greater priority than all intervals before them. Such intervals are on a stack, and the others
/// are in a heap.
pub(crate) struct Flattener<P> {
    /// Priorities ascend.
    nested: Vec<Begun<P>>,
    others: BinaryHeap<Begun<P>>,
}

/// An interval that has begun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Begun<P> {
    priority: P,
    /// If two intervals have equal priorities, the one with the smaller number is preferred.
    number: Reverse<usize>,
    end: u64,
}

impl<P: Ord> Default for Flattener<P> {
    fn default() -> Self {
        Self { nested: Vec::new(), others: BinaryHeap::new() }
    }
}

impl<P: Ord + Copy> Flattener<P> {
    /// Sets `stretches` to the stretches that `intervals` cover, sorted and disjoint. The intervals must be sorted by
    /// start. If two intervals have equal priorities, the first one wins. Takes O(n log n) time, however the intervals
    /// overlap.
    ///
    /// ```text
    /// nested, the inner later and so preferred    a [-----------)      a a b b a a
    ///                                             b     [---)
    /// crossing                                    a [-------)          a a b b b b
    ///                                             b     [-------)
    /// one interval twice, a preferred             a [-------)          a a a a
    ///                                             b [-------)
    /// apart                                       a [---)              a a . b b
    ///                                             b       [---)
    /// ```
    pub(crate) fn flatten(
        &mut self,
        intervals: impl Iterator<Item = Interval<P>>,
        stretches: &mut Vec<Stretch>,
    ) {
        stretches.clear();
        self.nested.clear();
        self.others.clear();
        let mut at = 0;
        for (number, Interval { start, end, priority }) in intervals.enumerate() {
            debug_assert!(at <= start, "sorted by start");
            self.advance(at, start, stretches);
            at = start;
            let new = Begun { priority, number: Reverse(number), end };
            match self.nested.last() {
                Some(last) if last.priority >= priority => self.others.push(new),
                _ => self.nested.push(new),
            }
        }
        self.advance(at, u64::MAX, stretches);
    }

    /// Appends the stretches from `at` to `until`, where no interval begins.
    #[inline]
    fn advance(&mut self, at: u64, until: u64, stretches: &mut Vec<Stretch>) {
        if !self.others.is_empty() {
            return self.advance_with_others(at, until, stretches);
        }
        let mut at = at;
        while let Some(last) = self.nested.last() {
            let (owner, end) = (last.number.0, last.end);
            at = push(stretches, at, end.min(until), owner);
            if end > until {
                break;
            }
            self.nested.pop();
        }
    }

    #[cold]
    fn advance_with_others(&mut self, mut at: u64, until: u64, stretches: &mut Vec<Stretch>) {
        while let Some(Begun { number: Reverse(owner), end, .. }) = self.nested.last().max(self.others.peek())
        {
            let (owner, end) = (*owner, *end);
            at = push(stretches, at, end.min(until), owner);
            if end > until {
                break;
            }
            let is_other = self.nested.last() < self.others.peek();
            _ = if is_other { self.others.pop() } else { self.nested.pop() };
        }
    }
}

/// Appends a stretch unless it is empty, or lengthens the last one. Returns the start of the next stretch.
#[inline]
fn push(stretches: &mut Vec<Stretch>, start: u64, end: u64, owner: usize) -> u64 {
    if start >= end {
        return start;
    }
    match stretches.last_mut() {
        Some(last) if last.owner == owner && last.end == start => last.end = end,
        _ => stretches.push(Stretch { start, end, owner }),
    }
    end
}

/// Sorts `ranges`, and joins those that touch or overlap.
pub(crate) fn join(ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let is_joined = next.0 <= last.1;
        last.1 = if is_joined { last.1.max(next.1) } else { last.1 };
        is_joined
    });
}

/// Adds the intersection of `a` and `b` to `common`. Each of the three lists is sorted and disjoint.
pub(crate) fn intersect(mut a: &[(u64, u64)], mut b: &[(u64, u64)], common: &mut Vec<(u64, u64)>) {
    while let ([first, rest_of_a @ ..], [second, rest_of_b @ ..]) = (a, b) {
        let (start, end) = (first.0.max(second.0), first.1.min(second.1));
        if start < end {
            common.push((start, end));
        }
        if first.1 <= second.1 {
            a = rest_of_a;
        } else {
            b = rest_of_b;
        }
    }
}

/// Adds the parts of `a` that are not in `b` to `rest`. Each of the three lists is sorted and disjoint.
pub(crate) fn subtract(a: &[(u64, u64)], b: &[(u64, u64)], rest: &mut Vec<(u64, u64)>) {
    for &(mut start, end) in a {
        let first = b.partition_point(|range| range.1 <= start);
        for range in b[first..].iter().take_while(|range| range.0 < end) {
            if start < range.0 {
                rest.push((start, range.0));
            }
            start = range.1;
        }
        if start < end {
            rest.push((start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of each address, found by a search of all intervals.
    fn naive(intervals: &[Interval<u64>]) -> Vec<Option<usize>> {
        let owner = |address| {
            let covering =
                intervals.iter().enumerate().filter(|(_, i)| i.start <= address && address < i.end);
            covering
                .max_by_key(|(number, i)| (i.priority, std::cmp::Reverse(*number)))
                .map(|(number, _)| number)
        };
        (0..64).map(owner).collect()
    }

    fn painted(stretches: &[Stretch]) -> Vec<Option<usize>> {
        let mut owners = vec![None; 64];
        let mut at = 0;
        for stretch in stretches {
            assert!(stretch.start >= at && stretch.start < stretch.end, "sorted, none empty: {stretches:?}");
            at = stretch.end;
            (stretch.start..stretch.end)
                .for_each(|address| owners[usize::try_from(address).expect("small")] = Some(stretch.owner));
        }
        owners
    }

    #[test]
    fn every_address_belongs_to_the_preferred_interval() {
        let mut generator = crate::random::Random(1);
        let mut random = |below: u64| generator.below(below);
        for _ in 0..2000 {
            let mut intervals: Vec<Interval<u64>> = (0..random(9))
                .map(|_| {
                    let start = random(60);
                    let end = start + random(64 - start);
                    Interval { start, end, priority: random(4) }
                })
                .collect();
            intervals.sort_by_key(|interval| interval.start);
            assert_eq!(painted(&flatten(intervals.iter().copied())), naive(&intervals), "{intervals:?}");
        }
    }

    #[test]
    fn an_owner_that_goes_on_is_one_stretch() {
        let interval = |start, end, priority| Interval { start, end, priority };
        let stretches = flatten([interval(0, 10, 2), interval(3, 5, 1), interval(4, 12, 1)]);
        let stretch = |start, end, owner| Stretch { start, end, owner };
        assert_eq!(stretches, [stretch(0, 10, 0), stretch(10, 12, 2)]);
    }

    #[test]
    fn a_hundred_thousand_nested_intervals_are_no_problem() {
        let intervals: Vec<Interval<u64>> =
            (0..100_000).map(|n| Interval { start: n, end: 300_000 - n, priority: n }).collect();
        assert_eq!(flatten(intervals.iter().copied()).len(), 199_999);
    }

    #[test]
    fn a_flattener_forgets_the_intervals_before() {
        let interval = |start, end, priority| Interval { start, end, priority };
        let (mut flattener, mut stretches) = (Flattener::default(), Vec::new());
        flattener.flatten([interval(0, u64::MAX, 9)].into_iter(), &mut stretches);
        flattener.flatten([interval(20, 30, 1), interval(25, 40, 0)].into_iter(), &mut stretches);
        let stretch = |start, end, owner| Stretch { start, end, owner };
        assert_eq!(stretches, [stretch(20, 30, 0), stretch(30, 40, 1)]);
    }

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let mut ranges = vec![(20, 30), (0, 5), (5, 8), (22, 25), (29, 40), (50, 60)];
        join(&mut ranges);
        assert_eq!(ranges, [(0, 8), (20, 40), (50, 60)]);
    }

    #[test]
    fn intersections_keep_what_both_have() {
        let common = |a, b| {
            let mut common = Vec::new();
            intersect(a, b, &mut common);
            common
        };
        assert_eq!(common(&[(0, 10), (20, 30)], &[(5, 25), (28, 40)]), [(5, 10), (20, 25), (28, 30)]);
        assert_eq!(common(&[(0, 10)], &[]), []);
    }

    #[test]
    fn differences_keep_what_the_first_alone_has() {
        let rest = |a, b| {
            let mut rest = Vec::new();
            subtract(a, b, &mut rest);
            rest
        };
        assert_eq!(rest(&[(0, 10), (20, 30)], &[(5, 25), (28, 40)]), [(0, 5), (25, 28)]);
        assert_eq!(
            rest(&[(10, 20), (30, 40)], &[(0, 2), (12, 14), (15, 16), (50, 60)]),
            [(10, 12), (14, 15), (16, 20), (30, 40)]
        );
        assert_eq!(rest(&[(10, 20), (22, 30)], &[(0, 40)]), []);
        assert_eq!(rest(&[(0, 10)], &[]), [(0, 10)]);
    }
}
