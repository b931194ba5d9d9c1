//! What stores have answered, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::StoreUrl;

/// Counts what a store answers. Threads share it.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) calls: AtomicU64,
    pub(super) found: AtomicU64,
    pub(super) from_memory: AtomicU64,
    pub(super) absent: AtomicU64,
    pub(super) lost_values: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) skipped: AtomicU64,
}

/// What a store has answered to a [`StoreReader`](super::StoreReader), in numbers of images and values.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCounts {
    /// The URL of the store.
    pub url: StoreUrl,
    /// Calls of the store. One call can ask for several images or values.
    pub calls: u64,
    /// Found in the store.
    pub found: u64,
    /// Found in the memory of the reader.
    pub from_memory: u64,
    /// Images that the store did not have when it was asked.
    pub absent: u64,
    /// Values that the store had lost.
    pub lost_values: u64,
    /// Calls of which an image or value failed.
    pub failed: u64,
    /// Calls that were not made because earlier ones could not reach the store.
    pub skipped: u64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    /// The counts of the store at `url`.
    pub(super) fn of(&self, url: StoreUrl) -> StoreCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreCounts {
            url,
            calls: read(&self.calls),
            found: read(&self.found),
            from_memory: read(&self.from_memory),
            absent: read(&self.absent),
            lost_values: read(&self.lost_values),
            failed: read(&self.failed),
            skipped: read(&self.skipped),
        }
    }
}
