//! The sizes of an index in each kind of store.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use symdex::Index;
use symdex::write::split;

/// The levels at which stores compress by default.
const OBJECT_LEVEL: i32 = 6;
const REDIS_LEVEL: i32 = 19;

/// The sizes of one index, in bytes.
pub(crate) struct MeasuredIndex {
    pub(crate) name: String,
    pub(crate) functions: u64,
    /// The index file.
    pub(crate) index_size: u64,
    /// The compressed index: an object of an object store.
    pub(crate) object_size: u64,
    pub(crate) values: Vec<MeasuredValue>,
}

/// A value of the index in Redis.
pub(crate) struct MeasuredValue {
    /// The size in Redis, compressed.
    pub(crate) stored_size: u64,
    /// The size in the memory of a reading server.
    pub(crate) opened_size: u64,
}

impl MeasuredIndex {
    /// Opens the index file at `path`, and compresses it and its values.
    ///
    /// # Errors
    /// The file is no index, or is empty.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let index = Index::open(&bytes[..]).with_context(|| format!("cannot open {}", path.display()))?;
        let mut values = Vec::new();
        for value in split(&index) {
            let opened = value?.bytes;
            let stored = zstd::bulk::compress(&opened, REDIS_LEVEL)?;
            values.push(MeasuredValue { stored_size: stored.len() as u64, opened_size: opened.len() as u64 });
        }
        let functions = index.metadata().counts.functions.max(index.metadata().counts.symbols);
        ensure!(!values.is_empty() && functions > 0, "{}: the index has no functions", path.display());
        Ok(Self {
            name: index.metadata().image_name.clone(),
            functions,
            index_size: bytes.len() as u64,
            object_size: zstd::bulk::compress(&bytes, OBJECT_LEVEL)?.len() as u64,
            values,
        })
    }

    /// The size of all values in Redis.
    pub(crate) fn stored_size(&self) -> u64 {
        self.values.iter().map(|value| value.stored_size).sum()
    }

    /// The memory that Redis takes for all values, without their keys.
    pub(crate) fn allocated_size(&self) -> u64 {
        self.values.iter().map(|value| allocated_size(value.stored_size)).sum()
    }
}

/// The memory that jemalloc, Redis's allocator, takes for a string of `size` bytes: its size classes divide each
/// doubling into four.
fn allocated_size(size: u64) -> u64 {
    /// What Redis puts before the bytes of a long string, and the zero after them.
    const HEADER: u64 = 10;
    let size = size + HEADER;
    size.next_multiple_of((size.next_power_of_two() / 8).max(16))
}
