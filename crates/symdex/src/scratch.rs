//! Working memory of lookups.

use crate::answer::{Frames, Located, Source};
use crate::answers::AnswerMemo;
use crate::chunk::{Loc, LocalFrame, RunLoc};
use crate::format::{Decompressor, SectionKind};
use crate::index::LoadedChunk;
use crate::names::Memo;
use crate::packed::PackedScratch;

/// Bytes that a scratch space keeps at the most, unless told otherwise.
const CAPACITY: usize = 16 << 20;
/// Of those the most for names.
const MEMO_SIZE: usize = 1 << 20;

/// Working memory of lookups, one for each thread.
///
/// Answers are kept in it, to be given again, and names that several answers have. It may serve any number of indexes, and grows as it is
/// used, by default to 16 MiB.
pub struct Scratch {
    pub(crate) answers: AnswerMemo,
    pub(crate) memo: Memo,
    pub(crate) packed: PackedScratch,
    /// The locs of the answer, by pool ids.
    pub(crate) found: Vec<Loc>,
    pub(crate) frames: Vec<Located>,
    pub(crate) text: Vec<u8>,
    /// The serial number of the index that `names` belongs to.
    owner: Option<u64>,
    // What follows is for indexes of version 1.
    /// The chunk of each table that was used last: frames that follow each other often lie close to each other.
    pub(crate) recent: [Option<(ChunkKey, Option<LoadedChunk>)>; 2],
    pub(crate) plain: Option<Decompressor<'static>>,
    pub(crate) names: Option<Decompressor<'static>>,
    pub(crate) locs: Vec<RunLoc>,
    pub(crate) local: Vec<LocalFrame>,
}

/// Which chunk: of the index with this serial number, of this kind, its index.
type ChunkKey = (u64, SectionKind, u64);

impl Default for Scratch {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl Scratch {
    /// Scratch space that keeps about `capacity` bytes between lookups.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let memo_size = MEMO_SIZE.min(capacity / 16);
        Self {
            answers: AnswerMemo::with_capacity(capacity - memo_size),
            memo: Memo::with_capacity(memo_size),
            packed: PackedScratch::default(),
            found: Vec::new(),
            frames: Vec::new(),
            text: Vec::new(),
            owner: None,
            recent: [None, None],
            plain: None,
            names: None,
            locs: Vec::new(),
            local: Vec::new(),
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
