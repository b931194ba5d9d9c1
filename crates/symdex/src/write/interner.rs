//! Interns texts: equal texts get the same number.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::write::random_key;

/// Distinct texts, numbered in the order in which they first occur.
pub(crate) struct Interner {
    /// A random key of the hash. Without it, an input could have many texts of one hash.
    key: u64,
    /// An open-addressing table. A slot has the high half of a text's hash and, in its low half, the text's number plus
    /// one. A free slot is 0. Its size is a power of two, and at least half of it is free.
    slots: Vec<u64>,
    /// All texts, one after the other.
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
}

/// The beginning of the search for a text.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    hash: u64,
    /// The first slot of the search, as it was then.
    first: u64,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self { key: random_key(), slots: vec![0; 1 << 10], bytes: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// About how many bytes of memory the texts take. While the table grows, there is also one of twice its size.
    pub(crate) fn size(&self) -> usize {
        3 * size_of_val(&self.slots[..]) + self.bytes.len() + size_of_val(&self.ends[..])
    }

    /// The number of `text`. `None` if it has none.
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        self.slot_of(text, xxh3_64_with_seed(text, self.key)).ok()
    }

    /// The number of `text`, or the free slot for it.
    fn slot_of(&self, text: &[u8], hash: u64) -> Result<u32, usize> {
        let mut slot = self.first_slot(hash);
        while let Some(taken) = self.slots.get(slot).filter(|slot| **slot != 0) {
            let number = number_in(*taken);
            if (taken ^ hash) >> 32 == 0 && self.text(number) == Some(text) {
                return Ok(number);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        Err(slot)
    }

    /// The number of `text`, and whether it is new.
    pub(crate) fn number(&mut self, text: &[u8]) -> (u32, bool) {
        self.number_of(text, self.look_ahead(text))
    }

    /// Begins the search for `text`. The table is larger than the processor's caches, and each access waits for memory.
    /// If the searches for several texts begin before the first one ends, they wait together.
    #[inline]
    pub(crate) fn look_ahead(&self, text: &[u8]) -> Ahead {
        let hash = xxh3_64_with_seed(text, self.key);
        Ahead { hash, first: self.slots.get(self.first_slot(hash)).copied().unwrap_or_default() }
    }

    /// The number of `text`, whose search began with `ahead`, and whether it is new.
    #[inline]
    pub(crate) fn number_of(&mut self, text: &[u8], ahead: Ahead) -> (u32, bool) {
        let Ahead { hash, first } = ahead;
        // A number stays that of its text, even if texts were added since.
        if first != 0 && (first ^ hash) >> 32 == 0 && self.text(number_in(first)) == Some(text) {
            return (number_in(first), false);
        }
        self.search(text, hash)
    }

    fn search(&mut self, text: &[u8], hash: u64) -> (u32, bool) {
        let slot = match self.slot_of(text, hash) {
            Ok(number) => return (number, false),
            Err(slot) => slot,
        };
        // A saturated number is harmless, because a grammar of that many symbols is rejected.
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

    /// The text with this number.
    pub(crate) fn text(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let start =
            number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.bytes.get(start..*self.ends.get(number)?)
    }

    /// The slot at which the search for a text with this hash begins. It depends on the high half of the hash only,
    /// because a slot does not keep the low half.
    fn first_slot(&self, hash: u64) -> usize {
        usize::try_from((hash >> 32).wrapping_mul(self.slots.len() as u64) >> 32).unwrap_or_default()
    }

    fn grow(&mut self) {
        let taken = std::mem::take(&mut self.slots);
        self.slots = vec![0; 2 * taken.len()];
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

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use rustc_hash::FxBuildHasher;

    use super::*;

    /// Texts to which [`FxBuildHasher`] gives the same hash: the first 8 bytes make one factor of its product 0.
    fn colliding(count: usize) -> Vec<Vec<u8>> {
        let mut texts = Vec::new();
        for number in 0..count {
            texts.push(
                [&0x243f_6a88_85a3_08d3_u64.to_le_bytes()[..], format!("{number:08x}").as_bytes()].concat(),
            );
        }
        texts
    }

    /// How many slots lie between the first slot of a text and its own, for all texts together.
    fn steps(interner: &Interner) -> usize {
        let taken = interner.slots.iter().enumerate().filter(|(_, slot)| **slot != 0);
        let mask = interner.slots.len() - 1;
        taken.map(|(place, slot)| place.wrapping_sub(interner.first_slot(*slot)) & mask).sum()
    }

    #[test]
    fn texts_made_to_collide_are_found_in_few_steps() {
        for count in [2000, 4000] {
            let texts = colliding(count);
            let first = FxBuildHasher.hash_one(&texts[0][..]);
            assert!(texts.iter().all(|text| FxBuildHasher.hash_one(&text[..]) == first));
            let mut interner = Interner::new();
            for (number, text) in (0..).zip(&texts) {
                assert_eq!(interner.number(text), (number, true));
            }
            for (number, text) in (0..).zip(&texts) {
                assert_eq!(interner.number(text), (number, false));
            }
            assert!(steps(&interner) < 10 * count, "{} steps for {count} texts", steps(&interner));
        }
    }

    #[test]
    fn hashes_of_texts_depend_on_the_key() {
        let slots = |key| {
            let mut interner = Interner { key, ..Interner::new() };
            colliding(100).iter().for_each(|text| _ = interner.number(text));
            interner.slots
        };
        assert_ne!(slots(1), slots(2));
        assert_eq!(slots(1), slots(1));
    }
}
