//! Names and file paths, numbered as the chunks first need them.

use std::borrow::Cow;

use hashbrown::HashTable;
use symdex::write::{Id32, MAX_STRING};
use xxhash_rust::xxh3::xxh3_64;

/// Distinct strings. Each has a place, given when it first comes up, and a number, given when a chunk first needs it. Most borrow
/// from the debug file, so a string costs these and little more.
#[derive(Default)]
pub(crate) struct Pool<'d> {
    /// A part of the string's hash, and its place.
    places: HashTable<(u32, u32)>,
    strings: Vec<Cow<'d, [u8]>>,
    /// By place.
    numbers: Vec<Option<Id32>>,
    /// The place of each number.
    numbered: Vec<u32>,
    bytes: u64,
    /// Strings left out because they are longer than an index may hold, or the pool had grown to `limit`.
    pub(crate) refused: u64,
    limit: u64,
}

impl<'d> Pool<'d> {
    /// A pool of at most `limit` bytes. Names may overlap in the debug file, so that a small one can state more of them than memory
    /// holds; no real file has more bytes of distinct names than bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// How many strings have numbers.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.numbered.len()).unwrap_or(u32::MAX)
    }

    /// The place of `string`; `None` where it is too long or the pool is full.
    pub(crate) fn place(&mut self, string: Cow<'d, [u8]>) -> Option<Id32> {
        let hash = part_of_hash(&string);
        let is_it = |(other, place): &(u32, u32)| *other == hash && self.strings[*place as usize] == string;
        if let Some((_, place)) = self.places.find(spread(hash), is_it) {
            return Id32::new(u64::from(*place));
        }
        let fits = string.len() <= MAX_STRING && self.bytes + string.len() as u64 <= self.limit;
        let Some(place) = Id32::new(self.strings.len() as u64).filter(|_| fits) else {
            self.refused += 1;
            return None;
        };
        self.bytes += string.len() as u64;
        self.places.insert_unique(spread(hash), (hash, place.get()), |(hash, _)| spread(*hash));
        self.strings.push(string);
        self.numbers.push(None);
        Some(place)
    }

    /// The number of the string at `place`, the next one if it has none yet.
    pub(crate) fn number(&mut self, place: Id32) -> Option<Id32> {
        let number = &mut self.numbers[place.index()];
        if number.is_none() {
            *number = Id32::new(self.numbered.len() as u64);
            self.numbered.push(place.get());
        }
        *number
    }

    /// The strings that have numbers, in the order of these.
    pub(crate) fn into_strings(mut self) -> Vec<Cow<'d, [u8]>> {
        self.places = HashTable::new();
        if self.numbered.len() == self.strings.len() && self.numbered.is_sorted() {
            return self.strings;
        }
        let mut take = |place: &u32| std::mem::take(&mut self.strings[*place as usize]);
        self.numbered.iter().map(&mut take).collect()
    }
}

/// Half of a hash: a table grows without looking at strings, which lie all over the debug file.
fn part_of_hash(string: &[u8]) -> u32 {
    let [_, _, _, _, part @ ..] = xxh3_64(string).to_le_bytes();
    u32::from_le_bytes(part)
}

/// The hash as a table wants it, with something in its upper bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
