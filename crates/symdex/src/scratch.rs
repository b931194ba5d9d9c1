//! Working memory of lookups.

use std::sync::Arc;

use crate::answer::{Frames, Located, Source};
use crate::answers::AnswerMemo;
use crate::cache::{ChunkCache, Key, Part};
use crate::chunk::{LocalFrame, RunLoc};
use crate::format::Decompressor;
use crate::names::Memo;

/// Bytes of parts of names that a scratch space keeps at the most.
const MEMO_SIZE: usize = 1 << 20;
/// Bytes of answers that a scratch space keeps at the most, unless told otherwise.
const ANSWERS_SIZE: usize = 15 << 20;

/// Working memory of lookups, one for each thread.
///
/// What lookups decode is kept in a [`ChunkCache`], the scratch space's own or one that it shares with others, names in 1 MiB here, and
/// whole answers, to be given again, in 15 MiB here. Each may serve any number of indexes, and grows as it is used.
pub struct Scratch {
    pub(crate) cache: Arc<ChunkCache>,
    /// The chunk of each table that was used last: frames that follow each other often lie close to each other.
    pub(crate) recent: [Option<(Key, Arc<Part>)>; 2],
    /// The serial number of the index that `names` belongs to.
    owner: Option<u64>,
    pub(crate) plain: Option<Decompressor<'static>>,
    pub(crate) names: Option<Decompressor<'static>>,
    pub(crate) memo: Memo,
    pub(crate) answers: AnswerMemo,
    pub(crate) locs: Vec<RunLoc>,
    pub(crate) local: Vec<LocalFrame>,
    pub(crate) frames: Vec<Located>,
    pub(crate) text: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::sharing(Arc::default())
    }
}

impl Scratch {
    /// Scratch space that keeps about `capacity` bytes of chunks and names between lookups, and nearly as many of answers.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let memo_size = MEMO_SIZE.min(capacity / 16);
        let cache = Arc::new(ChunkCache::with_capacity(capacity - memo_size));
        let answers = AnswerMemo::with_capacity(capacity - capacity / 16);
        Self { memo: Memo::with_capacity(memo_size), answers, ..Self::sharing(cache) }
    }

    /// Scratch space that keeps the chunks it decodes in `cache`.
    #[must_use]
    pub fn sharing(cache: Arc<ChunkCache>) -> Self {
        Self {
            cache,
            memo: Memo::with_capacity(MEMO_SIZE),
            answers: AnswerMemo::with_capacity(ANSWERS_SIZE),
            recent: [None, None],
            owner: None,
            plain: None,
            names: None,
            locs: Vec::new(),
            local: Vec::new(),
            frames: Vec::new(),
            text: Vec::new(),
        }
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
        (!frames.is_empty()).then_some(Frames(Source::Found(frames, text)))
    }

    /// The answer that is kept at a place in [`Self::answers`]; `None` for a gap.
    pub(crate) fn kept(&self, place: u32) -> Option<Frames<'_>> {
        self.answers.get(place).map(|kept| Frames(Source::Kept(kept)))
    }
}
