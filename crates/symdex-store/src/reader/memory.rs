//! What a reader keeps in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use symdex::{ImageId, Index};

use crate::buffer::IndexBytes;
use crate::store::StoredImage;

/// The memory of an open index besides its bytes: metadata, codes, the layouts of names and files.
const OPEN_SIZE: u64 = 32 << 10;
/// The memory of an image that a store does not have.
const ABSENT_SIZE: u64 = 200;

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

/// Images and values, in a limited number of bytes.
#[derive(Debug)]
pub(super) struct Memory {
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
            Self::Ids(ids) => ABSENT_SIZE + size_of_val(&**ids) as u64,
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
        Self { size, total: 0, clock: 0, entries: HashMap::new() }
    }

    /// The bytes of what is kept.
    pub(super) fn in_use(&self) -> u64 {
        self.total
    }

    /// What is kept for `key`, and since when. Counts as a use.
    pub(super) fn get(&mut self, key: &Key) -> Option<(Kept, Instant)> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.last_use = self.clock;
        Some((entry.kept.clone(), entry.since))
    }

    /// Keeps `kept`. If there are too many bytes, what was not used for the longest time is dropped.
    pub(super) fn put(&mut self, key: Key, kept: Kept, now: Instant) {
        self.clock += 1;
        let size = kept.size();
        let entry = Entry { kept, size, since: now, last_use: self.clock };
        self.total += size;
        self.total -= self.entries.insert(key, entry).map_or(0, |old| old.size);
        if self.total > self.size {
            self.drop_oldest();
        }
    }

    /// Drops what is kept for `key`.
    pub(super) fn forget(&mut self, key: &Key) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        let part = Part::Value(ValueKey { generation: 0, number });
        Key { store: 0, id: ImageId::new(&[7; 16]).expect("an id"), part }
    }

    #[test]
    fn the_entries_that_were_used_last_stay_and_the_limit_holds() {
        let mut memory = Memory::new(100 * ABSENT_SIZE);
        let now = Instant::now();
        for number in 0..1000 {
            memory.put(key(number), Kept::Absent, now);
            assert!(memory.get(&key(0)).is_some(), "the first entry is used again and again");
            let total: u64 = memory.entries.values().map(|entry| entry.size).sum();
            assert!(total == memory.total && total <= memory.size);
        }
        assert!(memory.get(&key(1)).is_none() && memory.get(&key(999)).is_some());
        assert!(memory.entries.len() >= 90);
    }

    #[test]
    fn an_entry_that_is_larger_than_all_is_not_kept() {
        let mut memory = Memory::new(ABSENT_SIZE / 2);
        memory.put(key(1), Kept::Absent, Instant::now());
        assert_eq!((memory.entries.len(), memory.total), (0, 0));
    }
}
