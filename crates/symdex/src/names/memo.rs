//! Names that were put together before.

use crate::index::Pool;

/// Names that a memo passes over before it starts: a few answers are sooner made without one.
const UNHURRIED: u32 = 256;
/// Longer texts are not kept.
const LONGEST: usize = 512;
/// Bits of a name's number in a key.
const NUMBER_BITS: u32 = 32;

/// The names of some indexes that were asked for last: each has one place in a table, and its text lies in a ring where newer ones
/// overwrite the oldest.
#[derive(Default)]
pub(crate) struct Memo {
    /// Bytes that the memo may take, about.
    capacity: usize,
    asked: u32,
    slots: Vec<Slot>,
    ring: Vec<u8>,
    /// Bytes that were ever put into the ring, those passed over at its end included.
    written: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// Index and number, plus one; 0 for none.
    key: u64,
    /// What [`Memo::written`] was before the text, above 16 bits of its length.
    place: u64,
}

impl Memo {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// String `number` of this pool of the index with this serial number.
    #[inline]
    pub(super) fn get(&self, of: (u64, Pool), number: u32) -> Option<&[u8]> {
        let key = key(of, number)?;
        let Slot { key: kept, place } = *self.slots.get(self.slot(key))?;
        let (at, len) = (place >> 16, usize::try_from(place & 0xffff).ok()?);
        let is_there = kept == key && self.written - at <= self.ring.len() as u64;
        let start = usize::try_from(at % self.ring.len().max(1) as u64).ok()?;
        self.ring.get(start..start + len).filter(|_| is_there)
    }

    /// Keeps string `number`.
    pub(super) fn put(&mut self, of: (u64, Pool), number: u32, text: &[u8]) {
        let Some(key) = key(of, number).filter(|_| text.len() <= LONGEST) else { return };
        if self.slots.is_empty() {
            self.asked += 1;
            if self.asked <= UNHURRIED || self.capacity < 64 * LONGEST {
                return;
            }
            // Names have some 100 bytes. With two slots for each few lose theirs to another.
            self.slots = vec![Slot::default(); self.capacity / 4 / size_of::<Slot>()];
            self.ring = vec![0; self.capacity - self.capacity / 4];
        }
        let size = self.ring.len() as u64;
        if self.written % size + text.len() as u64 > size {
            self.written = self.written.next_multiple_of(size);
        }
        let start = usize::try_from(self.written % size).unwrap_or_default();
        if let Some(place) = self.ring.get_mut(start..start + text.len()) {
            place.copy_from_slice(text);
        }
        let (slot, place) = (self.slot(key), self.written << 16 | text.len() as u64);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = Slot { key, place };
        }
        self.written += text.len() as u64;
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        // The high half of the product spreads over any number of slots.
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from((hash * self.slots.len() as u64) >> 32).unwrap_or_default()
    }
}

/// `None` for an index of a number that no process gets to.
#[inline]
fn key((serial, pool): (u64, Pool), number: u32) -> Option<u64> {
    let fits = serial >> (62 - NUMBER_BITS) == 0;
    let pool = serial << 1 | u64::from(pool == Pool::Files);
    fits.then_some((pool << NUMBER_BITS | u64::from(number)) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Random;

    #[test]
    fn a_memo_gives_what_was_put_or_nothing() {
        let mut random = Random::new(1);
        let mut memo = Memo::with_capacity(64 * LONGEST);
        let text = |serial: u64, number: u32| {
            let len = (serial * 37 + u64::from(number) * 11) % (LONGEST as u64 + 40);
            vec![number.to_le_bytes()[0] ^ serial.to_le_bytes()[0]; usize::try_from(len).expect("small")]
        };
        let (mut kept, mut asked) = (0, 0);
        for _ in 0..50_000 {
            let (serial, number) = (random.below(3), u32::try_from(random.below(60)).expect("small"));
            match memo.get((serial, Pool::Names), number) {
                Some(found) => {
                    assert_eq!(found, text(serial, number));
                    kept += 1;
                }
                None => memo.put((serial, Pool::Names), number, &text(serial, number)),
            }
            asked += 1;
        }
        assert!((asked / 10..asked).contains(&kept), "{kept} of {asked} were kept");
        assert_eq!(memo.slots.len() * size_of::<Slot>() + memo.ring.len(), 64 * LONGEST);
    }

    #[test]
    fn a_memo_of_no_bytes_keeps_nothing() {
        let mut memo = Memo::with_capacity(0);
        for _ in 0..2 * UNHURRIED {
            memo.put((1, Pool::Files), 2, b"text");
            assert_eq!(memo.get((1, Pool::Files), 2), None);
        }
    }
}
