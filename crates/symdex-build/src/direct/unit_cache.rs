//! A cache of units that were read.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::unit_ranges::UnitRanges;

/// The most recently used units, as many as fit into a number of bytes.
pub(super) struct UnitCache<'d> {
    units: FxHashMap<usize, Unit<'d>>,
    /// Units by the time of their last use.
    by_time: BTreeMap<u64, usize>,
    time: u64,
    size: usize,
    max_size: usize,
}

struct Unit<'d> {
    ranges: Arc<UnitRanges<'d>>,
    /// The time of its last use.
    time: u64,
}

impl<'d> UnitCache<'d> {
    pub(super) fn new(max_size: usize) -> Self {
        let (units, by_time) = Default::default();
        Self { units, by_time, time: 0, size: 0, max_size }
    }

    /// The ranges of unit number `unit`, if they are cached.
    pub(super) fn get(&mut self, unit: usize) -> Option<Arc<UnitRanges<'d>>> {
        let used = self.units.get_mut(&unit)?;
        self.time += 1;
        self.by_time.remove(&used.time);
        self.by_time.insert(self.time, unit);
        used.time = self.time;
        Some(Arc::clone(&used.ranges))
    }

    /// Adds the ranges of a unit that is not cached.
    pub(super) fn put(&mut self, unit: usize, ranges: Arc<UnitRanges<'d>>) {
        self.time += 1;
        self.size += ranges.size();
        self.by_time.insert(self.time, unit);
        self.units.insert(unit, Unit { ranges, time: self.time });
        while self.size > self.max_size
            && let Some((_, oldest)) = self.by_time.pop_first()
            && let Some(gone) = self.units.remove(&oldest)
        {
            self.size -= gone.ranges.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use symdex::write::InlineFrame;

    use super::*;

    #[test]
    fn the_units_that_were_used_last_stay_in_the_cache() {
        let frame = InlineFrame { parent: None, name: None, file: None, line: None };
        let unit = || Arc::new(UnitRanges { frames: vec![frame; 10], ..UnitRanges::default() });
        let mut cache = UnitCache::new(2 * unit().size());
        cache.put(1, unit());
        cache.put(2, unit());
        assert!(cache.get(1).is_some());
        cache.put(3, unit());
        assert_eq!([1, 2, 3].map(|number| cache.get(number).is_some()), [true, false, true]);
        // A unit above the limit evicts everything, itself included.
        cache.put(4, Arc::new(UnitRanges { frames: vec![frame; 100], ..UnitRanges::default() }));
        assert_eq!((1..5).filter(|number| cache.get(*number).is_some()).count(), 0);
        assert_eq!(cache.size, 0);
    }
}
