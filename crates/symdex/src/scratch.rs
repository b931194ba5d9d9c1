//! Working memory of lookups.

use crate::answer::{Frames, Located, Source, Strings};
use crate::answers::AnswerMemo;
use crate::packed::PackedScratch;

/// Bytes that a scratch space keeps at the most, unless told otherwise.
const CAPACITY: usize = 16 << 20;

/// Working memory of lookups, one for each thread.
///
/// It keeps answers and their strings, to give them again. It may serve any number of indexes, and grows as it is
/// used, by default to 16 MiB.
pub struct Scratch {
    pub(crate) answers: AnswerMemo,
    pub(crate) packed: PackedScratch,
    pub(crate) frames: Vec<Located>,
    /// The strings of the frames, if the answer is not kept, and the text that they lie in.
    pub(crate) strings: Vec<Strings>,
    pub(crate) text: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl Scratch {
    /// Scratch space that keeps about `capacity` bytes between lookups.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            answers: AnswerMemo::with_capacity(capacity),
            packed: PackedScratch::default(),
            frames: Vec::new(),
            strings: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Prepares for a lookup.
    pub(crate) fn begin(&mut self) {
        self.frames.clear();
        self.strings.clear();
        self.text.clear();
    }

    /// What the last lookup found; `None` for a gap.
    pub(crate) fn answer(&self) -> Option<Frames<'_>> {
        let Self { frames, strings, text, .. } = self;
        (!frames.is_empty()).then_some(Frames(Source::Found(frames, strings, text)))
    }

    /// The answer that is kept at a place in [`Self::answers`]; `None` for a gap.
    pub(crate) fn kept(&self, place: u32) -> Option<Frames<'_>> {
        self.answers.get(place).map(|kept| Frames(Source::Kept(kept)))
    }
}
