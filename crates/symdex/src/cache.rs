//! What lookups keep between each other: decoded chunks and string blocks, bounded in bytes, shared between threads.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::chunk::{LocalStrings, Structure};
use crate::error::Error;
use crate::format::{Block, SectionKind};

/// How much a cache keeps unless told otherwise: 15 MiB, which with a scratch space's own is 16.
const DEFAULT_CAPACITY: usize = 15 << 20;
/// Parts of a cache, each with a lock of its own: threads that read different chunks hardly ever wait for each other.
const SHARDS: usize = 16;

/// Decoded chunks and string blocks of any number of indexes, for any number of threads.
///
/// A cache keeps about as many bytes as it was made for; what was used least recently goes first. A [`crate::Scratch`] has one of its
/// own unless it is given one to share.
pub struct ChunkCache {
    capacity: usize,
    memory: AtomicUsize,
    /// The shard that makes room next.
    next: AtomicUsize,
    shards: [Mutex<Shard>; SHARDS],
}

/// What is kept: which index it belongs to (by serial number), its section, its number there.
pub(crate) type Key = (u64, SectionKind, u64);

/// What a cache keeps.
pub(crate) enum Part {
    /// A chunk; `None` for an empty one.
    Chunk(Option<LoadedChunk>),
    Block(Block),
}

/// A chunk as a lookup uses it.
pub(crate) struct LoadedChunk {
    pub(crate) structure: Structure,
    pub(crate) strings: LocalStrings,
}

impl Part {
    fn memory(&self) -> usize {
        let own = match self {
            Self::Chunk(None) => 0,
            Self::Chunk(Some(chunk)) => chunk.structure.memory() + chunk.strings.memory(),
            Self::Block(block) => block.memory(),
        };
        size_of::<Self>() + size_of::<(Key, Entry)>() + own
    }
}

#[derive(Default)]
struct Shard {
    entries: FxHashMap<Key, Entry>,
    /// Counts uses: what an entry's age is measured by.
    clock: u64,
}

struct Entry {
    part: Arc<Part>,
    memory: usize,
    used: u64,
}

impl Default for ChunkCache {
    fn default() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }
}

impl ChunkCache {
    /// A cache that keeps about `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { capacity, memory: AtomicUsize::new(0), next: AtomicUsize::new(0), shards }
    }

    /// Bytes that the cache keeps now.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// What is kept at `key`; made by `load` where nothing is. No lock is held meanwhile: of two threads that load the same, one
    /// does so in vain.
    pub(crate) fn get_or_load(
        &self,
        key: Key,
        load: impl FnOnce() -> Result<Part, Error>,
    ) -> Result<Arc<Part>, Error> {
        let at = usize::try_from((FxBuildHasher.hash_one(key) >> 32) % SHARDS as u64).unwrap_or(0);
        let Some(shard) = self.shards.get(at) else { return load().map(Arc::new) };
        if let Some(part) = shard_of(shard).used(&key) {
            return Ok(part);
        }
        let part = Arc::new(load()?);
        let memory = part.memory();
        let entry = Entry { part: Arc::clone(&part), memory, used: 0 };
        let replaced = shard_of(shard).insert(key, entry);
        self.memory.fetch_add(memory, Ordering::Relaxed);
        self.memory.fetch_sub(replaced, Ordering::Relaxed);
        self.make_room();
        Ok(part)
    }

    /// Forgets the oldest part of shard after shard, until no more than the capacity is kept or there is nothing left.
    fn make_room(&self) {
        let mut idle = 0;
        while self.memory() > self.capacity && idle < SHARDS {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let freed = self.shards.get(next).map_or(0, |shard| shard_of(shard).forget_oldest());
            self.memory.fetch_sub(freed, Ordering::Relaxed);
            idle = if freed == 0 { idle + 1 } else { 0 };
        }
    }
}

/// The shard behind a lock. A thread that panicked in it left it whole: nothing in here panics between two changes.
fn shard_of(shard: &Mutex<Shard>) -> std::sync::MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn used(&mut self, key: &Key) -> Option<Arc<Part>> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.part))
    }

    /// Puts an entry in; how many bytes the one that was there took.
    fn insert(&mut self, key: Key, entry: Entry) -> usize {
        let entry = Entry { used: self.clock, ..entry };
        self.entries.insert(key, entry).map_or(0, |replaced| replaced.memory)
    }

    /// Forgets the entries that were used least recently, one in eight and at least one; how many bytes they took.
    fn forget_oldest(&mut self) -> usize {
        let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        if ages.is_empty() {
            return 0;
        }
        let eighth = (ages.len() - 1) / 8;
        let (_, &mut newest_forgotten, _) = ages.select_nth_unstable(eighth);
        let before: usize = self.entries.values().map(|entry| entry.memory).sum();
        self.entries.retain(|_, entry| entry.used > newest_forgotten);
        before - self.entries.values().map(|entry| entry.memory).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(size: usize) -> Result<Part, Error> {
        let payload = crate::format::encode_block(std::iter::once(vec![b'x'; size].as_slice()));
        Ok(Part::Block(Block::decode(payload, 1).expect("as written")))
    }

    fn key(number: u64) -> Key {
        (1, SectionKind::Names, number)
    }

    #[test]
    fn the_cache_keeps_what_was_used_last_and_stays_small() {
        let cache = ChunkCache::with_capacity(20_000);
        for number in 0..1000 {
            cache.get_or_load(key(number), || block(100)).expect("loads");
            cache.get_or_load(key(0), || block(100)).expect("loads or is kept");
            assert!(cache.memory() <= 20_000);
        }
        let kept = (0..1000).filter(|number| {
            cache.get_or_load(key(*number), || Err(Error::Unwritable { what: "not kept" })).is_ok()
        });
        let kept: Vec<u64> = kept.collect();
        assert!(kept.len() > 30 && kept.contains(&999) && !kept.contains(&500), "{kept:?}");
        let entries = |cache: &ChunkCache| -> usize {
            cache
                .shards
                .iter()
                .flat_map(|shard| {
                    shard_of(shard).entries.values().map(|entry| entry.memory).collect::<Vec<_>>()
                })
                .sum()
        };
        assert_eq!(entries(&cache), cache.memory());
        cache.get_or_load(key(1000), || block(30_000)).expect("loads, however large");
        assert!(cache.memory() <= 20_000, "and what is too large is not kept");
        assert_eq!(entries(&cache), cache.memory());
    }

    #[test]
    fn threads_share_what_one_of_them_loaded() {
        let cache = ChunkCache::default();
        let loads = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for number in (0..100).cycle().take(1000) {
                        let load = || {
                            loads.fetch_add(1, Ordering::Relaxed);
                            block(10)
                        };
                        cache.get_or_load(key(number), load).expect("loads");
                    }
                });
            }
        });
        assert!((100..=400).contains(&loads.into_inner()), "each thread loads a number once at the most");
    }
}
