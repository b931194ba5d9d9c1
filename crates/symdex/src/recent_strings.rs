//! The strings that were read last, in a limited amount of memory.

use crate::answer::StringRange;
use crate::error::Error;
use crate::index::StringPool;

/// The least slots.
const FEWEST: usize = 16;
/// Slots of the first table.
const FIRST: usize = 512;
/// How many times as many slots each further table has. It takes over the strings.
const GROWTH: usize = 16;
/// Bytes of text for each slot, from which on [`RecentStrings::make_room`] forgets all strings.
const ENOUGH: usize = 120;

/// Strings that were read, by their index and id. The text has all strings since [`Self::make_room`] last forgot them.
#[derive(Default)]
pub(crate) struct RecentStrings {
    /// The slots of the largest table, a power of two.
    most: usize,
    /// A string has one of two slots. The first of both was used last.
    slots: Vec<[Slot; 2]>,
    text: Vec<u8>,
}

/// A string by the serial number of its index, and its id plus one with its pool, and where it and its readable form
/// lie in the text.
#[derive(Clone, Copy)]
struct Slot {
    serial: u64,
    key: u64,
    ranges: [StringRange; 2],
}

impl Slot {
    const FREE: Self = Self { serial: 0, key: 0, ranges: [StringRange::NONE; 2] };
}

impl RecentStrings {
    /// At most `slots` strings, but as many as the frames of an answer share.
    pub(crate) fn with_slots(slots: usize) -> Self {
        Self { most: 1 << slots.max(FEWEST).ilog2(), ..Self::default() }
    }

    /// Enlarges the table if the strings take much memory. If it cannot grow, forgets all strings.
    pub(crate) fn make_room(&mut self) {
        if self.text.len() < self.slots.len() * 2 * ENOUGH {
            return;
        }
        let slots = (self.slots.len() * 2 * GROWTH).max(FIRST).min(self.most) / 2;
        if slots == self.slots.len() {
            self.text.clear();
            self.slots.fill([Slot::FREE; 2]);
            return;
        }
        let known = std::mem::replace(&mut self.slots, vec![[Slot::FREE; 2]; slots]);
        for slot in known.into_iter().flatten().filter(|slot| slot.key != 0) {
            if let Some([first, second]) = self.set(slot.serial, slot.key) {
                *second = std::mem::replace(first, slot);
            }
        }
    }

    /// The slots that the string may have.
    #[inline]
    fn set(&mut self, serial: u64, key: u64) -> Option<&mut [Slot; 2]> {
        // Ids of neighbouring functions are neighbours, and so are their slots.
        let other = (serial << 1 | key & 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (other >> 32).wrapping_add(key >> 1) & (self.slots.len() as u64).wrapping_sub(1);
        self.slots.get_mut(usize::try_from(place).ok()?)
    }

    /// The text that ranges of strings refer to.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where the string with id `stored` - 1 and its readable form lie in the text; [`StringRange::NONE`] twice for 0.
    /// `read` appends a string of the index `serial` that is not there to the text, and its readable form, and returns
    /// where that begins.
    #[inline]
    pub(crate) fn string(
        &mut self,
        serial: u64,
        pool: StringPool,
        stored: u32,
        read: impl FnOnce(u32, &mut Vec<u8>) -> Result<Option<usize>, Error>,
    ) -> Result<[StringRange; 2], Error> {
        let Some(id) = stored.checked_sub(1) else { return Ok(Slot::FREE.ranges) };
        let key = u64::from(stored) << 1 | u64::from(pool == StringPool::Files);
        let Some([slot, second]) = self.set(serial, key) else { return Ok(Slot::FREE.ranges) };
        if (slot.serial, slot.key) != (serial, key) {
            std::mem::swap(slot, second);
        }
        if (slot.serial, slot.key) == (serial, key) {
            return Ok(slot.ranges);
        }
        let start = self.text.len();
        let readable = read(id, &mut self.text)?;
        let ranges = StringRange::pair(start, readable, self.text.len());
        if let Some([slot, _]) = self.set(serial, key) {
            *slot = Slot { serial, key, ranges };
        }
        Ok(ranges)
    }
}
