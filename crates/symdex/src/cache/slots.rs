//! From hashes to places.

use std::ops::Range;

/// Bits of a place.
pub(super) const PLACE_BITS: u32 = 28;
const PLACES: u32 = (1 << PLACE_BITS) - 1;
/// Slots that a hash may lead to, one after the other, until one is empty: hashes that somebody made alike cost no more than this.
const PROBES: usize = 32;

/// A table of places, each at a slot that its hash leads to.
#[derive(Default)]
pub(super) struct Slots {
    /// A place below bits of its hash; 0 for none.
    slots: Vec<u32>,
    taken: usize,
}

impl Slots {
    pub(super) fn new(len: usize) -> Self {
        Self { slots: vec![0; len], taken: 0 }
    }

    /// Bytes that so many slots take.
    pub(super) fn size_of(len: usize) -> usize {
        len * size_of::<u32>()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether so many places more leave enough slots free to find each of them soon.
    pub(super) fn have_room(&self, places: usize) -> bool {
        self.taken + places <= self.slots.len() / 8 * 7
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.taken = 0;
    }

    /// The place that `hash` leads to and that is the right one.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_right: impl Fn(usize) -> bool) -> Option<u32> {
        let slots = self.slots.get(self.range(hash))?;
        let taken = slots.iter().take_while(|slot| **slot != 0);
        let mut places = taken.filter(|slot| **slot & !PLACES == tag(hash)).map(|slot| slot & PLACES);
        places.find(|place| is_right(*place as usize))
    }

    /// Lets `hash` lead to `place`, which is not 0; instead of to another place where it leads to too many.
    pub(super) fn enter(&mut self, hash: u64, place: usize) {
        let range = self.range(hash);
        let (Some(slots), Ok(place)) = (self.slots.get_mut(range), u32::try_from(place)) else { return };
        let free = slots.iter().position(|slot| *slot == 0);
        if let Some(slot) = slots.get_mut(free.unwrap_or_default()) {
            *slot = tag(hash) | place;
        }
        self.taken += usize::from(free.is_some());
    }

    /// The slots that `hash` may lead to.
    #[inline]
    fn range(&self, hash: u64) -> Range<usize> {
        // The high half spreads over any number of slots.
        let first = ((hash >> 32) * self.slots.len().saturating_sub(PROBES) as u64) >> 32;
        let first = usize::try_from(first).unwrap_or_default();
        first..first + PROBES
    }
}

/// Bits of the hash that do not choose the slot, where a slot has room for them.
#[inline]
fn tag(hash: u64) -> u32 {
    u32::try_from(hash & u64::from(!PLACES)).unwrap_or_default()
}
