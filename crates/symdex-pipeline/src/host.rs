//! What a build asks and tells its caller.

use std::sync::atomic::{AtomicU64, Ordering};

use symdex::ImageId;
use symdex_store::IndexBytes;

use crate::isolate::Protections;

/// What a build asks and tells its caller. Threads share it.
pub trait Host: Sync {
    /// `bytes` more of archives or debug files will be read.
    fn planned(&self, _bytes: u64) {}

    /// `bytes` more are read.
    fn read(&self, _bytes: u64) {}

    /// The index of this image that exists already. An image whose index is up to date is not built again.
    fn existing(&self, _id: &ImageId) -> Option<IndexBytes> {
        None
    }

    /// These limits are in force in a child that has ended.
    fn confined(&self, _protections: &Protections) {}
}

/// Says nothing, and has no index.
impl Host for () {}

/// The progress of a task. What is left of it counts as read when this is dropped.
pub(crate) struct TaskProgress<'h, H: Host> {
    host: &'h H,
    size: u64,
    /// The size of the images that are finished.
    finished: AtomicU64,
    /// What is counted as read.
    reported: AtomicU64,
}

impl<'h, H: Host> TaskProgress<'h, H> {
    pub(crate) fn new(host: &'h H, size: u64) -> Self {
        Self { host, size, finished: AtomicU64::new(0), reported: AtomicU64::new(0) }
    }

    /// `done` of `total` parts of an image of `size` bytes are read. Calls may come from any thread, in any order.
    pub(crate) fn set(&self, size: u64, done: u64, total: u64) {
        let of_image = u128::from(size) * u128::from(done.min(total)) / u128::from(total.max(1));
        let finished = self.finished.load(Ordering::Relaxed);
        self.report(finished.saturating_add(u64::try_from(of_image).unwrap_or(size)));
    }

    /// An image of `size` bytes is finished.
    pub(crate) fn finish(&self, size: u64) {
        let finished = self.finished.fetch_add(size, Ordering::Relaxed);
        self.report(finished.saturating_add(size));
    }

    /// Counts `done` bytes of the task. It never counts more than the task has, and never goes back.
    fn report(&self, done: u64) {
        let done = done.min(self.size);
        let before = self.reported.fetch_max(done, Ordering::Relaxed);
        if done > before {
            self.host.read(done - before);
        }
    }
}

impl<H: Host> Drop for TaskProgress<'_, H> {
    fn drop(&mut self) {
        self.report(self.size);
    }
}
