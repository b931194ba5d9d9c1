//! What a reader keeps in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use symdex::{ImageId, Index};

use crate::buffer::IndexBytes;
use crate::store::StoredImage;

/// The memory of an open index besides its bytes: metadata, codes, the layouts of names and files.
const OPEN_SIZE: u64 = 32 << 10;
/// The memory of a list of ids, besides these.
const LIST_SIZE: u64 = 400;
/// The memory of an image that a store does not have, when the table of these is just larger than before.
const ABSENT_SIZE: u64 = 2 * size_of::<(Key, Instant)>() as u64 + 32;
/// The part of the memory that these have.
const ABSENT_PART: u64 = 8;

/// What is kept: an image of a store, a value of an image, or the ids that begin with an id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The number of the store.
    pub(super) store: usize,
    pub(super) id: ImageId,
    pub(super) part: Part,
}

/// What is kept of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Image,
    Value(ValueKey),
    /// The ids that begin with this one.
    Ids,
}

/// A value of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueKey {
    /// The index that the value belongs to. See [`StoredValues::generation`](crate::StoredValues::generation).
    pub(super) generation: u64,
    pub(super) number: u64,
}

/// What is kept for a key.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// The store has the image.
    Image(Arc<StoredImage>),
    /// The store has the value.
    Value(Arc<Index<IndexBytes>>),
    /// The store has these ids.
    Ids(Arc<[ImageId]>),
    /// The store does not have it.
    Absent,
}

/// Images and values, in a limited number of bytes. Images that a store does not have never drop the others.
#[derive(Debug)]
pub(super) struct Memory {
    absent: Absent,
    /// The limit of the others.
    size: u64,
    total: u64,
    /// Counts uses.
    clock: u64,
    entries: HashMap<Key, Entry>,
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    size: u64,
    since: Instant,
    last_use: u64,
}

impl Kept {
    /// Whether the store had nothing.
    pub(super) fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Ids(ids) => ids.is_empty(),
            Self::Image(_) | Self::Value(_) => false,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Image(image) => match &**image {
                StoredImage::Index(index) => OPEN_SIZE + bytes_of(index),
                StoredImage::Values(_) => OPEN_SIZE,
            },
            Self::Value(index) => OPEN_SIZE + bytes_of(index),
            Self::Ids(ids) => LIST_SIZE + size_of_val(&**ids) as u64,
            Self::Absent => ABSENT_SIZE,
        }
    }
}

/// The memory of the bytes of `index`. Those that are mapped take none.
fn bytes_of(index: &Index<IndexBytes>) -> u64 {
    if index.bytes().is_mapped() { 0 } else { index.as_bytes().len() as u64 }
}

impl Memory {
    pub(super) fn new(size: u64) -> Self {
        let absent = Absent::new(size / ABSENT_PART / ABSENT_SIZE);
        Self { absent, size: size - size / ABSENT_PART, total: 0, clock: 0, entries: HashMap::new() }
    }

    /// The bytes of what is kept.
    pub(super) fn in_use(&self) -> u64 {
        self.total + ABSENT_SIZE * self.absent.len()
    }

    /// What is kept for `key`, and since when. Counts as a use.
    pub(super) fn get(&mut self, key: &Key) -> Option<(Kept, Instant)> {
        self.clock += 1;
        let Some(entry) = self.entries.get_mut(key) else {
            return Some((Kept::Absent, self.absent.get(key)?));
        };
        entry.last_use = self.clock;
        Some((entry.kept.clone(), entry.since))
    }

    /// Keeps `kept`. If there are too many bytes, what was not used for the longest time is dropped.
    pub(super) fn put(&mut self, key: Key, kept: Kept, now: Instant) {
        self.forget(&key);
        if matches!(kept, Kept::Absent) {
            return self.absent.put(key, now);
        }
        self.clock += 1;
        let size = kept.size();
        let entry = Entry { kept, size, since: now, last_use: self.clock };
        self.total += size;
        self.entries.insert(key, entry);
        if self.total > self.size {
            self.drop_oldest();
        }
    }

    /// Drops what is kept for `key`.
    pub(super) fn forget(&mut self, key: &Key) {
        self.absent.forget(key);
        self.total -= self.entries.remove(key).map_or(0, |old| old.size);
    }

    /// Drops entries until a tenth of the bytes is free, so that not every new entry needs a search.
    fn drop_oldest(&mut self) {
        let mut uses: Vec<_> = self.entries.values().map(|entry| (entry.last_use, entry.size)).collect();
        uses.sort_unstable();
        let mut left = self.total;
        let enough = self.size / 10 * 9;
        let dropped = uses.iter().take_while(|(_, size)| {
            let is_dropped = left > enough;
            left -= if is_dropped { size } else { &0 };
            is_dropped
        });
        let Some((last, _)) = dropped.last().copied() else { return };
        self.entries.retain(|_, entry| entry.last_use > last);
        self.total = left;
    }
}

/// What stores do not have, and since when: two tables, of which the older is dropped when the newer is full.
#[derive(Debug)]
struct Absent {
    /// How many entries a table has.
    limit: u64,
    newer: HashMap<Key, Instant>,
    older: HashMap<Key, Instant>,
}

impl Absent {
    /// At most `limit` entries.
    fn new(limit: u64) -> Self {
        Self { limit: limit / 2, newer: HashMap::new(), older: HashMap::new() }
    }

    fn len(&self) -> u64 {
        (self.newer.len() + self.older.len()) as u64
    }

    /// Since when the store does not have `key`. Counts as a use.
    fn get(&mut self, key: &Key) -> Option<Instant> {
        if let Some(since) = self.newer.get(key) {
            return Some(*since);
        }
        let (key, since) = self.older.remove_entry(key)?;
        self.put(key, since);
        Some(since)
    }

    fn put(&mut self, key: Key, since: Instant) {
        if self.newer.len() as u64 >= self.limit {
            self.older = std::mem::take(&mut self.newer);
        }
        if self.limit != 0 {
            self.newer.insert(key, since);
        }
    }

    fn forget(&mut self, key: &Key) {
        self.newer.remove(key);
        self.older.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        let part = Part::Value(ValueKey { generation: 0, number });
        Key { store: 0, id: ImageId::new(&[7; 16]).expect("an id"), part }
    }

    #[test]
    fn the_entries_that_were_used_last_stay_and_the_limit_holds() {
        let mut memory = Memory::new(115 * LIST_SIZE);
        let now = Instant::now();
        for number in 0..1000 {
            memory.put(key(number), Kept::Ids(Arc::new([])), now);
            assert!(memory.get(&key(0)).is_some(), "the first entry is used again and again");
            let total: u64 = memory.entries.values().map(|entry| entry.size).sum();
            assert!(total == memory.total && total <= memory.size);
        }
        assert!(memory.get(&key(1)).is_none() && memory.get(&key(999)).is_some());
        assert!(memory.entries.len() >= 90);
    }

    #[test]
    fn an_entry_that_is_larger_than_all_is_not_kept() {
        let mut memory = Memory::new(LIST_SIZE / 2);
        memory.put(key(1), Kept::Ids(Arc::new([])), Instant::now());
        memory.put(key(2), Kept::Absent, Instant::now());
        assert_eq!((memory.entries.len(), memory.in_use()), (0, 0));
    }

    #[test]
    fn images_that_no_store_has_are_bounded_and_drop_nothing_else() {
        let size = 1000 * ABSENT_SIZE;
        let mut memory = Memory::new(size);
        memory.put(key(0), Kept::Ids(Arc::new([])), Instant::now());
        for number in 1..10_000 {
            memory.put(key(number), Kept::Absent, Instant::now());
            let used = memory.get(&key(1));
            assert!(matches!(used, Some((Kept::Absent, _))), "it is used again and again");
            assert!(memory.in_use() <= LIST_SIZE + size / ABSENT_PART);
        }
        assert!(memory.get(&key(0)).is_some() && memory.get(&key(2)).is_none());
        assert!((50..=125).contains(&memory.absent.len()), "{}", memory.absent.len());
        memory.put(key(1), Kept::Ids(Arc::new([])), Instant::now());
        assert!(matches!(memory.get(&key(1)), Some((Kept::Ids(_), _))));
        memory.forget(&key(1));
        assert!(memory.get(&key(1)).is_none());
    }
}
