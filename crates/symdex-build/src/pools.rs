//! Names and file paths, numbered in the order in which chunks first need them.

use std::borrow::Cow;

use hashbrown::HashTable;
use symdex::write::{MAX_STRING, NonMaxU32};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::keyed::process_key;

/// A string and a part of its hash. The hash has a random key, so that no file can have many names of one hash.
#[derive(Clone, Debug)]
pub(crate) struct Hashed<'d> {
    pub(crate) string: Cow<'d, [u8]>,
    hash: u32,
}

impl<'d> Hashed<'d> {
    pub(crate) fn new(string: Cow<'d, [u8]>) -> Self {
        let [_, _, _, _, part @ ..] = xxh3_64_with_seed(&string, process_key()).to_le_bytes();
        Self { hash: u32::from_le_bytes(part), string }
    }
}

impl Hashed<'_> {
    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self) + if let Cow::Owned(text) = &self.string { text.len() } else { 0 }
    }
}

/// Finds the numbers of distinct strings. The table keeps a part of each string's hash, so that it grows without
/// reading the strings, which are scattered over the debug file.
#[derive(Default)]
pub(crate) struct StringTable(HashTable<(u32, u32)>);

impl StringTable {
    /// The number of `string`, if it has one. `string_of` returns the string of a number.
    pub(crate) fn find<'s>(&self, string: &Hashed<'_>, string_of: impl Fn(u32) -> &'s [u8]) -> Option<u32> {
        let is_it = |(hash, number): &(u32, u32)| {
            *hash == string.hash && {
                // Linkers keep one copy of a string, so the bytes are rarely compared.
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

/// Spreads a part of a hash over 64 bits, because the table uses the upper bits, too.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Names and files of an index.
#[derive(Default)]
pub(crate) struct Pools<'d> {
    pub(crate) names: Pool<'d>,
    pub(crate) files: Pool<'d>,
}

impl Pools<'_> {
    /// About how many bytes of memory they take.
    pub(crate) fn size(&self) -> usize {
        self.names.size() + self.files.size()
    }
}

/// Distinct strings. Each gets a place when it is added, and a number when a chunk first needs it. Most strings borrow
/// from the debug file.
#[derive(Default)]
pub(crate) struct Pool<'d> {
    places: StringTable,
    strings: Vec<Cow<'d, [u8]>>,
    /// The number of each string, by place.
    numbers: Vec<Option<NonMaxU32>>,
    /// The place of each number.
    numbered: Vec<u32>,
    bytes: u64,
    /// How many bytes of strings do not borrow from the debug file.
    owned: usize,
    /// How many strings were left out because they are longer than an index may hold, or because the pool was full.
    pub(crate) refused: u64,
    limit: u64,
}

impl<'d> Pool<'d> {
    /// A pool of at most `limit` bytes. Names may overlap in the debug file, so a small file can have more names
    /// than fit into memory. The distinct names of a real file are never larger than the file.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The place of `string`, which is added if it is new. Returns `None` if it is too long or the pool is full.
    pub(crate) fn place(&mut self, string: &Hashed<'d>) -> Option<NonMaxU32> {
        if let Some(place) = self.places.find(string, |place| &self.strings[place as usize]) {
            return NonMaxU32::new(place.into());
        }
        let len = string.string.len();
        let fits = len <= MAX_STRING && self.bytes + len as u64 <= self.limit;
        let Some(place) = NonMaxU32::new(self.strings.len() as u64).filter(|_| fits) else {
            self.refused += 1;
            return None;
        };
        self.bytes += len as u64;
        self.owned += if let Cow::Owned(text) = &string.string { text.len() } else { 0 };
        self.places.insert(string, place.get());
        self.strings.push(string.string.clone());
        self.numbers.push(None);
        Some(place)
    }

    /// The number of the string at `place`. A string without a number gets the next one.
    pub(crate) fn number(&mut self, place: NonMaxU32) -> Option<NonMaxU32> {
        let number = &mut self.numbers[place.index()];
        if number.is_none() {
            *number = NonMaxU32::new(self.numbered.len() as u64);
            self.numbered.push(place.get());
        }
        *number
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        let each = size_of::<Cow<'_, [u8]>>() + 2 * size_of::<u32>();
        // While a table grows, its elements are also in the old one, which has half its size.
        self.places.0.allocation_size() / 2 * 3 + each * self.strings.len() + self.owned
    }

    /// The strings that have numbers, in the order of their numbers.
    pub(crate) fn into_strings(mut self) -> Vec<Cow<'d, [u8]>> {
        self.places = StringTable::default();
        if self.numbered.len() == self.strings.len() && self.numbered.is_sorted() {
            return self.strings;
        }
        let mut take = |place: &u32| std::mem::take(&mut self.strings[*place as usize]);
        self.numbered.iter().map(&mut take).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// Names of 16 bytes of which XXH3 without a seed has the same upper half of the hash. The first 8 bytes make one
    /// factor of its product 0; the others are computed backwards from the hash.
    fn colliding(count: u64) -> Vec<Vec<u8>> {
        const FIRST: u64 = 0x6782_737b_ea42_39b9;
        const SECOND: u64 = 0xaf56_bc3b_0996_523a;
        /// The inverse of the factor of the last step.
        const INVERSE: u64 = 0x08da_8ee4_1d6d_f849;
        let name = |number: u64| {
            let hash = 0xdead_beef << 32 | number;
            let product = (hash ^ hash >> 32).wrapping_mul(INVERSE);
            let second = (product ^ product >> 37).wrapping_sub(16) ^ SECOND;
            [FIRST.to_le_bytes(), second.to_le_bytes()].concat()
        };
        (1..=count).map(name).collect()
    }

    #[test]
    fn names_made_to_collide_have_different_hashes() {
        for count in [1000, 2000] {
            let names = colliding(count);
            assert!(
                names.iter().all(|name| xxh3_64(name) >> 32 == 0xdead_beef),
                "they collide without a key"
            );
            let hashes: HashSet<u32> = names.iter().map(|name| Hashed::new(name.into()).hash).collect();
            assert!(hashes.len() > names.len() - 5, "{} hashes", hashes.len());
        }
    }

    #[test]
    fn names_made_to_collide_are_numbered_in_their_order() {
        let (names, mut pool) = (colliding(1000), Pool::new(1 << 20));
        for _ in 0..2 {
            let places = names.iter().map(|name| pool.place(&Hashed::new(name.into())).map(NonMaxU32::get));
            assert!(places.eq((0..1000).map(Some)));
        }
    }
}
