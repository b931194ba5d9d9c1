//! Names and file paths, numbered as the chunks first need them.

use std::borrow::Cow;

use hashbrown::HashTable;
use symdex::write::{Id32, MAX_STRING};
use xxhash_rust::xxh3::xxh3_64;

/// A string and a part of its hash.
#[derive(Clone, Debug)]
pub(crate) struct Hashed<'d> {
    pub(crate) string: Cow<'d, [u8]>,
    hash: u32,
}

impl<'d> Hashed<'d> {
    pub(crate) fn new(string: Cow<'d, [u8]>) -> Self {
        let [_, _, _, _, part @ ..] = xxh3_64(&string).to_le_bytes();
        Self { hash: u32::from_le_bytes(part), string }
    }
}

/// The numbers of distinct strings, each with the part of its string's hash: a table grows without looking at strings, which lie all
/// over the debug file.
#[derive(Default)]
pub(crate) struct Numbers(HashTable<(u32, u32)>);

impl Numbers {
    /// The number of `string`, if it has one; `string_of` knows the strings that have.
    pub(crate) fn find<'s>(&self, string: &Hashed<'_>, string_of: impl Fn(u32) -> &'s [u8]) -> Option<u32> {
        let is_it = |(hash, number): &(u32, u32)| {
            *hash == string.hash && {
                // Linkers keep one copy of a string, which need not be read again.
                let known = string_of(*number);
                std::ptr::eq(known, &*string.string) || *known == *string.string
            }
        };
        self.0.find(spread(string.hash), is_it).map(|(_, number)| *number)
    }

    /// Gives a number to a string that has none.
    pub(crate) fn insert(&mut self, string: &Hashed<'_>, number: u32) {
        self.0.insert_unique(spread(string.hash), (string.hash, number), |(hash, _)| spread(*hash));
    }
}

/// A part of a hash as a table wants it, with something in its upper bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Names and files of an index.
#[derive(Default)]
pub(crate) struct Pools<'d> {
    pub(crate) names: Pool<'d>,
    pub(crate) files: Pool<'d>,
}

/// Distinct strings. Each has a place, given when it first comes up, and a number, given when a chunk first needs it. Most borrow
/// from the debug file, so a string costs these and little more.
#[derive(Default)]
pub(crate) struct Pool<'d> {
    places: Numbers,
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

    /// The place of `string`; `None` where it is too long or the pool is full.
    pub(crate) fn place(&mut self, string: &Hashed<'d>) -> Option<Id32> {
        if let Some(place) = self.places.find(string, |place| &self.strings[place as usize]) {
            return Id32::new(place.into());
        }
        let len = string.string.len();
        let fits = len <= MAX_STRING && self.bytes + len as u64 <= self.limit;
        let Some(place) = Id32::new(self.strings.len() as u64).filter(|_| fits) else {
            self.refused += 1;
            return None;
        };
        self.bytes += len as u64;
        self.places.insert(string, place.get());
        self.strings.push(string.string.clone());
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
        self.places = Numbers::default();
        if self.numbered.len() == self.strings.len() && self.numbered.is_sorted() {
            return self.strings;
        }
        let mut take = |place: &u32| std::mem::take(&mut self.strings[*place as usize]);
        self.numbered.iter().map(&mut take).collect()
    }
}
