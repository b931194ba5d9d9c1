//! Working memory of lookups.

use std::sync::Arc;

use crate::answer::{Frames, Located};
use crate::cache::{ChunkCache, Key, Part};
use crate::chunk::{LocalFrame, RunLoc};
use crate::format::Decompressor;

/// Working memory of lookups, one for each thread.
///
/// What lookups decode is kept in a [`ChunkCache`], the scratch space's own or one that it shares with others. Either may serve any
/// number of indexes.
#[derive(Default)]
pub struct Scratch {
    pub(crate) cache: Arc<ChunkCache>,
    /// The chunk of each table that was used last: frames that follow each other often lie close to each other.
    pub(crate) recent: [Option<(Key, Arc<Part>)>; 2],
    /// The serial number of the index that `names` belongs to.
    owner: Option<u64>,
    pub(crate) plain: Option<Decompressor<'static>>,
    pub(crate) names: Option<Decompressor<'static>>,
    pub(crate) locs: Vec<RunLoc>,
    pub(crate) local: Vec<LocalFrame>,
    pub(crate) frames: Vec<Located>,
    pub(crate) text: Vec<u8>,
}

impl Scratch {
    /// Scratch space that keeps about `capacity` bytes between lookups.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::sharing(Arc::new(ChunkCache::with_capacity(capacity)))
    }

    /// Scratch space that keeps what it decodes in `cache`.
    #[must_use]
    pub fn sharing(cache: Arc<ChunkCache>) -> Self {
        Self { cache, ..Self::default() }
    }

    /// Makes ready for a lookup in the index with this serial number.
    pub(crate) fn attach(&mut self, serial: u64) {
        if self.owner.replace(serial) != Some(serial) {
            self.names = None;
        }
        self.local.clear();
        self.frames.clear();
        self.text.clear();
    }

    /// What the last lookup found; `None` where that was nothing.
    pub(crate) fn answer(&self) -> Option<Frames<'_>> {
        let Self { frames, text, .. } = self;
        (!frames.is_empty()).then_some(Frames { frames, text })
    }
}
