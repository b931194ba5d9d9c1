//! Overlapping intervals, flattened.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A half-open interval; where several cover an address, the one with the greatest priority owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval<P> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) priority: P,
}

/// A stretch of addresses and the number of the interval that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) owner: usize,
}

/// The stretches that `intervals` cover, sorted, none overlapping. The intervals must be sorted by start; equal priorities fall
/// to the smaller number. Takes O(n log n), however they overlap.
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
pub(crate) fn flatten<P: Ord + Copy>(intervals: &[Interval<P>]) -> Vec<Stretch> {
    debug_assert!(intervals.is_sorted_by_key(|interval| interval.start));
    let mut stretches: Vec<Stretch> = Vec::with_capacity(intervals.len());
    let mut open = Open { nested: Vec::new(), others: BinaryHeap::new() };
    let mut upcoming = 0;
    let mut at = 0;
    loop {
        // An interval that ended under a preferred one stays until it comes up.
        let owner = loop {
            match open.greatest() {
                Some(number) if intervals[number].end <= at => open.remove_greatest(),
                greatest => break greatest,
            }
        };
        let next = intervals.get(upcoming);
        match (owner, next) {
            (_, Some(interval)) if interval.start <= at => {
                open.add(interval.priority, upcoming);
                upcoming += 1;
            }
            (Some(owner), _) => {
                let end = intervals[owner].end;
                let end = next.map_or(end, |next| next.start.min(end));
                match stretches.last_mut() {
                    Some(last) if last.owner == owner && last.end == at => last.end = end,
                    _ => stretches.push(Stretch { start: at, end, owner }),
                }
                at = end;
            }
            (None, Some(next)) => at = next.start,
            (None, None) => return stretches,
        }
    }
}

/// Intervals that have begun, by number; of equal priorities the smaller number is the greater.
///
/// Most come with a greater priority than all before, as what starts later or lies deeper is preferred: these make a stack.
struct Open<P> {
    /// Ascending.
    nested: Vec<(P, Reverse<usize>)>,
    others: BinaryHeap<(P, Reverse<usize>)>,
}

impl<P: Ord> Open<P> {
    fn add(&mut self, priority: P, number: usize) {
        let new = (priority, Reverse(number));
        match self.nested.last() {
            Some(last) if *last > new => self.others.push(new),
            _ => self.nested.push(new),
        }
    }

    fn greatest(&self) -> Option<usize> {
        self.nested.last().max(self.others.peek()).map(|(_, number)| number.0)
    }

    fn remove_greatest(&mut self) {
        match self.nested.last() < self.others.peek() {
            true => drop(self.others.pop()),
            false => drop(self.nested.pop()),
        }
    }
}

/// Adds to `common` the parts of `a` that lie in `b`; both sorted, none overlapping within itself, and so is what is added.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Who owns each address, found address by address.
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
            assert_eq!(painted(&flatten(&intervals)), naive(&intervals), "{intervals:?}");
        }
    }

    #[test]
    fn an_owner_that_goes_on_is_one_stretch() {
        let interval = |start, end, priority| Interval { start, end, priority };
        let stretches = flatten(&[interval(0, 10, 2), interval(3, 5, 1), interval(4, 12, 1)]);
        let stretch = |start, end, owner| Stretch { start, end, owner };
        assert_eq!(stretches, [stretch(0, 10, 0), stretch(10, 12, 2)]);
    }

    #[test]
    fn a_hundred_thousand_nested_intervals_are_no_problem() {
        let intervals: Vec<Interval<u64>> =
            (0..100_000).map(|n| Interval { start: n, end: 300_000 - n, priority: n }).collect();
        assert_eq!(flatten(&intervals).len(), 199_999);
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
}
