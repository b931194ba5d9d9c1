//! Interns texts: equal texts get the same number.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// Distinct texts, numbered in the order in which they first occur.
pub(super) struct Interner {
    /// An open-addressing table: the high half of a text's hash above its number plus one; 0 for a free slot. Its size
    /// is a power of two, and at least half of it is free.
    slots: Vec<u64>,
    /// All texts, one behind the other.
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl Interner {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; 1 << 10], bytes: Vec::new(), ends: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of `text`, and whether it is new.
    pub(super) fn number(&mut self, text: &[u8]) -> (u32, bool) {
        let hash = FxBuildHasher.hash_one(text);
        let mut slot = self.first_slot(hash);
        while let Some(taken) = self.slots.get(slot).filter(|slot| **slot != 0) {
            let number = number_in(*taken);
            if (taken ^ hash) >> 32 == 0 && self.text(number) == Some(text) {
                return (number, false);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        // Saturated numbers are as good as any: a grammar of that many symbols is refused.
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = hash & !0xffff_ffff | u64::from(number.saturating_add(1));
        }
        if self.ends.len() > self.slots.len() / 2 {
            self.grow();
        }
        (number, true)
    }

    fn text(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let start =
            number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.bytes.get(start..*self.ends.get(number)?)
    }

    /// Where the search for a text of this hash begins. The high half is all that is known of a text that has its slot.
    fn first_slot(&self, hash: u64) -> usize {
        usize::try_from((hash >> 32).wrapping_mul(self.slots.len() as u64) >> 32).unwrap_or_default()
    }

    fn grow(&mut self) {
        let taken = std::mem::take(&mut self.slots);
        self.slots = vec![0; 4 * taken.len()];
        for taken in taken.into_iter().filter(|slot| *slot != 0) {
            let mut slot = self.first_slot(taken);
            while self.slots.get(slot).is_some_and(|slot| *slot != 0) {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = taken;
            }
        }
    }
}

fn number_in(slot: u64) -> u32 {
    u32::try_from(slot & 0xffff_ffff).unwrap_or_default().wrapping_sub(1)
}
