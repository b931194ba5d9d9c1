//! A cache of answers, because crash reports ask for the same addresses again and again.

use std::ops::Range;

use crate::answer::{FoundFrame, LinePolicy};
use crate::image::ImageOffset;

/// The slots that an answer may have. A set that is full loses the answer that it has had for longest, more or less.
const WAYS: usize = 8;
/// Slots of the first table. The full table touches more memory than a few answers are worth.
const FIRST: usize = 64;
/// How many times as many slots each further table has. It takes over the answers.
const GROWTH: usize = 16;
/// How many frames the answers have for each slot. If they have more, all are forgotten.
const FRAMES: usize = 4;
/// Binary logarithm of the bytes of a granule. An answer is found from all offsets of its range that are in a granule
/// in which it was asked for.
const GRANULE_BITS: u32 = 5;

/// The frames of answers, in a set-associative table. Their strings are found by [`RecentStrings`].
///
/// [`RecentStrings`]: crate::recent_strings::RecentStrings
#[derive(Default)]
pub(crate) struct AnswerCache {
    /// The slots of the largest table, a multiple of [`WAYS`].
    most: usize,
    slots: Vec<Slot>,
    /// How many answers were put into the table.
    put: usize,
    frames: Vec<FoundFrame>,
}

/// An answer. A free slot has an empty range.
#[derive(Clone, Copy, Default)]
struct Slot {
    key: AnswerKey,
    /// The offsets that have the answer.
    start: u64,
    end: u64,
    /// The positions of its first frame, and after its last one.
    frames: (u32, u32),
}

/// The index, the offset and the policy of a question.
#[derive(Clone, Copy, Default)]
pub(crate) struct AnswerKey {
    asked: u64,
    offset: u64,
}

impl AnswerKey {
    pub(crate) fn new(serial: u64, offset: ImageOffset, policy: LinePolicy) -> Self {
        Self { asked: serial << 1 | u64::from(policy.is_statement()), offset: offset.0 }
    }
}

impl AnswerCache {
    /// A cache of at most `slots` answers.
    pub(crate) fn with_slots(slots: usize) -> Self {
        Self { most: slots / WAYS * WAYS, ..Self::default() }
    }

    /// The frames of the answer to `key`.
    #[inline]
    pub(crate) fn find(&self, key: AnswerKey) -> Option<&[FoundFrame]> {
        let has = |slot: &&Slot| slot.key.asked == key.asked && (slot.start..slot.end).contains(&key.offset);
        let (start, end) = self.slots.get(self.set(key))?.iter().find(has)?.frames;
        self.frames.get(start as usize..end as usize)
    }

    /// Caches the answer to `key`, which all offsets of `range` have.
    pub(crate) fn put(&mut self, key: AnswerKey, range: Range<u64>, frames: &[FoundFrame]) {
        let has_room = |cache: &Self| cache.frames.len() + frames.len() <= cache.slots.len() * FRAMES;
        if self.slots.len() < self.most && (self.put >= self.slots.len() / 2 || !has_room(self)) {
            self.grow();
        }
        if !has_room(self) {
            self.slots.fill(Slot::default());
            self.frames.clear();
        }
        if !has_room(self) {
            return;
        }
        let first = u32::try_from(self.frames.len());
        self.frames.extend_from_slice(frames);
        if let (Ok(first), Ok(end)) = (first, u32::try_from(self.frames.len())) {
            self.keep(Slot { key, start: range.start, end: range.end, frames: (first, end) });
        }
    }

    /// Replaces the table by a larger one with the same answers.
    fn grow(&mut self) {
        let slots = (self.slots.len() * GROWTH).max(FIRST).min(self.most);
        let known = std::mem::replace(&mut self.slots, vec![Slot::default(); slots]);
        self.put = 0;
        known.into_iter().filter(|slot| slot.start < slot.end).for_each(|slot| self.keep(slot));
    }

    fn keep(&mut self, slot: Slot) {
        let set = self.set(slot.key);
        let Some(set) = self.slots.get_mut(set) else { return };
        let free = set.iter().position(|slot| slot.start >= slot.end).unwrap_or(self.put % WAYS);
        if let Some(place) = set.get_mut(free) {
            *place = slot;
            self.put += 1;
        }
    }

    /// The slots that the answer to `key` may have.
    #[inline]
    fn set(&self, key: AnswerKey) -> Range<usize> {
        let granule = key.offset >> GRANULE_BITS;
        let hash = (key.asked << 40 ^ granule).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The high half spreads over any number of sets.
        let set = ((hash >> 32) * (self.slots.len() / WAYS) as u64) >> 32;
        let first = usize::try_from(set).unwrap_or(0) * WAYS;
        first..first + WAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Table;
    use crate::packed::SourceLocation;
    use symdex_testkit::images::Random;

    /// Bytes of each range with an answer.
    const RANGE: u64 = 12;

    fn key(serial: u64, offset: u64, policy: LinePolicy) -> AnswerKey {
        AnswerKey::new(serial, ImageOffset(offset), policy)
    }

    /// The only answer there is to a key: a gap, or frames whose lines tell which it is.
    fn answer(key: AnswerKey) -> (Range<u64>, Vec<FoundFrame>) {
        let start = key.offset - key.offset % RANGE;
        let mut random = Random::new(key.asked << 40 | start);
        let source = |line| SourceLocation { name: 1, file: 2, line };
        let frame = |line| FoundFrame { source: source(line), function_start: None, table: Table::Dwarf };
        let len = random.pick(&[0, 1, 1, 2, 3, 40]);
        (
            start..start + RANGE,
            (0..len).map(|_| frame(u32::try_from(random.below(1 << 32)).unwrap_or(0))).collect(),
        )
    }

    fn lines(frames: &[FoundFrame]) -> Vec<u32> {
        frames.iter().map(|frame| frame.source.line).collect()
    }

    /// Looks up an offset of one of `ranges` ranges, `times` times, in two indexes under both policies. Returns how
    /// many answers were there.
    fn ask(cache: &mut AnswerCache, times: usize, ranges: u64) -> usize {
        let mut random = Random::new(1);
        let mut found = 0;
        for _ in 0..times {
            let (serial, offset) = (random.below(2), random.below(ranges * RANGE));
            let key = key(serial, offset, random.pick(&[LinePolicy::Exact, LinePolicy::Statement]));
            let (range, frames) = answer(key);
            match cache.find(key) {
                Some(known) => {
                    assert_eq!(lines(known), lines(&frames), "{serial} {offset:#x}");
                    found += 1;
                }
                None => cache.put(key, range, &frames),
            }
            assert!(cache.slots.len() <= cache.most && cache.frames.len() <= cache.slots.len() * FRAMES);
        }
        found
    }

    #[test]
    fn what_is_kept_is_what_was_answered() {
        let mut cache = AnswerCache::with_slots(1 << 14);
        let found = ask(&mut cache, 20_000, 200);
        assert!(found > 16_000, "{found}");
    }

    #[test]
    fn what_has_no_room_is_forgotten() {
        let mut cache = AnswerCache::with_slots(1000);
        let found = ask(&mut cache, 40_000, 2000);
        assert!((500..20_000).contains(&found), "{found}");
        assert!(ask(&mut cache, 4000, 20) > 3000, "other addresses");
    }

    #[test]
    fn an_answer_is_there_for_its_whole_range_in_each_granule_that_was_asked_for() {
        const GRANULE: u64 = 1 << GRANULE_BITS;
        let mut cache = AnswerCache::with_slots(1000);
        let key = |offset| key(5, offset, LinePolicy::Exact);
        let range = 10 * GRANULE - 3..13 * GRANULE + 3;
        cache.put(key(11 * GRANULE), range.clone(), &[]);
        assert!(cache.find(key(11 * GRANULE)).is_some() && cache.find(key(12 * GRANULE - 1)).is_some());
        assert!(
            cache.find(key(12 * GRANULE)).is_none() && cache.find(key(11 * GRANULE + (1 << 47))).is_none()
        );
        cache.put(key(range.end - 1), range.clone(), &[]);
        assert!(cache.find(key(range.end - 1)).is_some() && cache.find(key(range.end)).is_none());
    }

    #[test]
    fn no_room_and_too_long_answers_keep_nothing() {
        let mut cache = AnswerCache::with_slots(WAYS - 1);
        assert_eq!(ask(&mut cache, 1000, 10), 0);
        let mut cache = AnswerCache::with_slots(WAYS);
        let (key, range) = (key(1, 1, LinePolicy::Exact), 0..RANGE);
        let frame = FoundFrame {
            source: SourceLocation { name: 0, file: 0, line: 0 },
            function_start: None,
            table: Table::Dwarf,
        };
        cache.put(key, range.clone(), &[frame; WAYS * FRAMES + 1]);
        assert!(cache.find(key).is_none());
        cache.put(key, range, &[frame; WAYS * FRAMES]);
        assert!(cache.find(key).is_some());
    }
}
