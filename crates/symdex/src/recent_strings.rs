//! The strings that were read last, in a limited amount of memory.

use crate::answer::StringRange;
use crate::error::Error;
use crate::index::StringPool;

/// How many strings can be found again.
const SLOTS: usize = 4096;
/// Bytes of text from which on [`RecentStrings::make_room`] forgets all strings.
const ENOUGH: usize = 1 << 19;

/// Strings that were read, by their ids. The text has all strings since [`Self::make_room`] last forgot them.
#[derive(Default)]
pub(crate) struct RecentStrings {
    /// The string of each slot. Empty until the first string is read.
    slots: Vec<Slot>,
    text: Vec<u8>,
}

/// A string by its pool and its id plus one, and where it and its readable form lie in the text.
#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    ranges: [StringRange; 2],
}

impl Slot {
    const FREE: Self = Self { key: 0, ranges: [StringRange::NONE; 2] };
}

impl RecentStrings {
    /// Forgets all strings if they take much memory.
    pub(crate) fn make_room(&mut self) {
        if self.text.len() >= ENOUGH {
            self.text.clear();
            self.slots.fill(Slot::FREE);
        }
    }

    /// The text that ranges of strings refer to.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where the string with id `stored` - 1 and its readable form lie in the text; [`StringRange::NONE`] twice for 0.
    /// `read` appends a string that is not there to the text, and its readable form, and returns where that begins.
    #[inline]
    pub(crate) fn string(
        &mut self,
        pool: StringPool,
        stored: u32,
        read: impl FnOnce(u32, &mut Vec<u8>) -> Result<Option<usize>, Error>,
    ) -> Result<[StringRange; 2], Error> {
        let Some(id) = stored.checked_sub(1) else { return Ok(Slot::FREE.ranges) };
        if self.slots.is_empty() {
            self.slots = vec![Slot::FREE; SLOTS];
        }
        let key = u64::from(stored) << 1 | u64::from(pool == StringPool::Files);
        // Ids of neighbouring functions are neighbours, and so are their slots.
        let number = usize::try_from(key % SLOTS as u64).unwrap_or(0);
        let Self { slots, text } = self;
        let Some(slot) = slots.get_mut(number) else { return Ok(Slot::FREE.ranges) };
        if slot.key != key {
            let start = text.len();
            let readable = read(id, text)?;
            *slot = Slot { key, ranges: StringRange::pair(start, readable, text.len()) };
        }
        Ok(slot.ranges)
    }
}
