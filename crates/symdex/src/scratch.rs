//! What lookups keep between each other: decompressed chunks and string blocks, bounded in bytes.

use rustc_hash::FxHashMap;

use crate::answer::Located;
use crate::chunk::{LocalFrame, LocalStrings, RunLoc, Structure};
use crate::error::Error;
use crate::format::{Block, Decompressor, SectionKind};

/// How much a [`Scratch`] keeps unless told otherwise: 16 MiB.
const DEFAULT_CAPACITY: usize = 16 << 20;

/// Working memory of lookups, one for each thread.
///
/// It caches what lookups decompressed, up to its capacity. It may serve one index after another; meeting another index than
/// before, it forgets what it holds.
pub struct Scratch {
    capacity: usize,
    /// The serial number of the index that everything here belongs to.
    owner: Option<u64>,
    pub(crate) plain: Option<Decompressor<'static>>,
    pub(crate) names: Option<Decompressor<'static>>,
    pub(crate) chunks: Cache<Option<LoadedChunk>>,
    pub(crate) blocks: Cache<Block>,
    pub(crate) locs: Vec<RunLoc>,
    pub(crate) local: Vec<LocalFrame>,
    pub(crate) frames: Vec<Located>,
    pub(crate) text: Vec<u8>,
}

/// A chunk as a lookup uses it.
pub(crate) struct LoadedChunk {
    pub(crate) structure: Structure,
    pub(crate) strings: LocalStrings,
}

impl LoadedChunk {
    pub(crate) fn memory(&self) -> usize {
        self.structure.memory() + self.strings.memory()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }
}

impl Scratch {
    /// Scratch space that keeps about `capacity` bytes between lookups.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            capacity,
            owner: None,
            plain: None,
            names: None,
            // Strings are what most of an answer is made of and what neighbours share least: both get one half.
            chunks: Cache::with_capacity(capacity / 2),
            blocks: Cache::with_capacity(capacity / 2),
            locs: Vec::new(),
            local: Vec::new(),
            frames: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Makes ready for a lookup in the index with this serial number.
    pub(crate) fn attach(&mut self, serial: u64) {
        if self.owner != Some(serial) {
            *self =
                Self { owner: Some(serial), plain: self.plain.take(), ..Self::with_capacity(self.capacity) };
        }
        self.local.clear();
        self.frames.clear();
        self.text.clear();
    }
}

/// Values by section and index, the least recently used of which go when they take too many bytes.
pub(crate) struct Cache<T> {
    entries: FxHashMap<(SectionKind, u64), Entry<T>>,
    memory: usize,
    capacity: usize,
    clock: u64,
}

struct Entry<T> {
    value: T,
    memory: usize,
    used: u64,
}

impl<T> Cache<T> {
    /// A cache that keeps at most `capacity` bytes, and the value it was asked for last.
    fn with_capacity(capacity: usize) -> Self {
        Self { entries: FxHashMap::default(), memory: 0, capacity, clock: 0 }
    }

    /// The value at `key`; made by `load`, which also says how many bytes it takes, where it is not there.
    pub(crate) fn get_or_load(
        &mut self,
        key: (SectionKind, u64),
        load: impl FnOnce() -> Result<(T, usize), Error>,
    ) -> Result<&T, Error> {
        // Here and not between lookups: a single answer may take any number of blocks.
        self.shrink();
        self.clock += 1;
        let entry = match self.entries.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let (value, memory) = load()?;
                self.memory += memory;
                vacant.insert(Entry { value, memory, used: 0 })
            }
        };
        entry.used = self.clock;
        Ok(&entry.value)
    }

    /// Forgets the least recently used quarter, again and again, until no more than the capacity is kept.
    fn shrink(&mut self) {
        while self.memory > self.capacity {
            let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
            let quarter = ages.len() / 4;
            let (_, &mut oldest_kept, _) = ages.select_nth_unstable(quarter);
            self.entries.retain(|_, entry| entry.used > oldest_kept);
            self.memory = self.entries.values().map(|entry| entry.memory).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_what_was_used_last_and_stays_small() {
        let mut cache = Cache::with_capacity(200);
        let key = |index| (SectionKind::Names, index);
        for index in 0..100 {
            cache.get_or_load(key(index), || Ok((index, 10))).expect("loads");
            assert_eq!(*cache.get_or_load(key(0), || unreachable!("still there")).expect("kept"), 0);
            assert!(cache.memory <= 200 && cache.entries.len() * 10 == cache.memory);
        }
        assert_eq!(*cache.get_or_load(key(99), || unreachable!("still there")).expect("kept"), 99);
        cache.get_or_load(key(100), || Ok((100, 1000))).expect("loads, however large");
        cache.get_or_load(key(101), || Ok((101, 10))).expect("loads");
        assert_eq!((cache.memory, cache.entries.len()), (10, 1), "what is too large goes first");
    }
}
