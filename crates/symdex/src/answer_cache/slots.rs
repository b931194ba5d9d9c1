//! The hash table of a cache of answers, and which answers a full cache rejected.

use std::ops::Range;

use super::PLACES;
use crate::names::low_half;

/// The slots that are searched for a hash. This bounds the cost of forged indexes whose hashes collide.
const PROBES: usize = 32;

/// A hash table of places.
#[derive(Default)]
pub(super) struct Slots {
    /// Each slot has bits of a hash and, below them, a place. A free slot is 0.
    slots: Vec<u32>,
    taken: usize,
}

impl Slots {
    pub(super) fn new(len: usize) -> Self {
        Self { slots: vec![0; len], taken: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the table has room for `places` more places. A part of the slots stays free, for short searches.
    pub(super) fn have_room(&self, places: usize) -> bool {
        self.taken + places <= self.slots.len() / 8 * 7
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.taken = 0;
    }

    /// The place in the slots of `hash` for which `is_right` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_right: impl Fn(usize) -> bool) -> Option<u32> {
        let slots = self.slots.get(self.range(hash))?;
        let taken = slots.iter().take_while(|slot| **slot != 0);
        let mut places = taken.filter(|slot| **slot & !PLACES == tag(hash)).map(|slot| slot & PLACES);
        places.find(|place| is_right(*place as usize))
    }

    /// Enters `place`, which is not 0, under `hash`. If all slots of the hash are taken, it replaces the first.
    pub(super) fn enter(&mut self, hash: u64, place: usize) {
        let range = self.range(hash);
        let (Some(slots), Ok(place)) = (self.slots.get_mut(range), u32::try_from(place)) else { return };
        let free = slots.iter().position(|slot| *slot == 0);
        if let Some(slot) = slots.get_mut(free.unwrap_or(0)) {
            *slot = tag(hash) | place;
        }
        self.taken += usize::from(free.is_some());
    }

    /// The slots that `hash` may lead to.
    #[inline]
    fn range(&self, hash: u64) -> Range<usize> {
        // The high half spreads over any number of slots.
        let first = ((hash >> 32) * self.slots.len().saturating_sub(PROBES) as u64) >> 32;
        let first = low_half(first) as usize;
        first..first + PROBES
    }
}

/// The low bits of the hash, above the place in a slot. The high bits choose the slot.
#[inline]
fn tag(hash: u64) -> u32 {
    low_half(hash) & !PLACES
}

/// The hashes of rejected answers, one bit each. Different hashes can have the same bit.
#[derive(Default)]
pub(super) struct Rejected(Vec<u64>);

impl Rejected {
    /// Bytes that the hashes take for a cache with this many slots: four bits for each slot.
    pub(super) fn size(slots: usize) -> usize {
        slots / 2
    }

    /// Inserts a hash. Returns whether it, or another one with its bit, was inserted before.
    pub(super) fn insert(&mut self, hash: u64, slots: usize) -> bool {
        if self.0.is_empty() {
            self.0.resize(Self::size(slots) / size_of::<u64>(), 0);
        }
        let bit = ((hash >> 32) * (self.0.len() as u64 * 64)) >> 32;
        let [low, ..] = bit.to_le_bytes();
        let mask = 1 << (low % 64);
        let Some(word) = self.0.get_mut(low_half(bit / 64) as usize) else { return false };
        let is_known = *word & mask != 0;
        *word |= mask;
        is_known
    }

    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
