//! The inline frames of a unit, each once.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use symdex::write::{InlineFrame, NonMaxU32};

/// A function by its name, inlined into the frame `caller` or not inlined. Its inline frames differ by file and line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Callee {
    pub(super) caller: Option<NonMaxU32>,
    pub(super) name: Option<NonMaxU32>,
}

/// The inline frames of a unit, numbered in the order in which they are first asked for.
pub(super) struct InlineFrames {
    /// Callers come before what is inlined into them.
    pub(super) frames: Vec<InlineFrame>,
    numbers: HashTable<u32>,
}

impl InlineFrames {
    /// No frames, with capacity for so many.
    pub(super) fn with_capacity(frames: usize) -> Self {
        Self { frames: Vec::with_capacity(frames), numbers: HashTable::with_capacity(frames) }
    }

    /// The number of the inline frame of a callee at a file and line.
    #[inline]
    pub(super) fn number(&mut self, callee: Callee, file: Option<NonMaxU32>, line: Option<NonMaxU32>) -> u32 {
        let Self { frames, numbers } = self;
        let frame = InlineFrame { parent: callee.caller, name: callee.name, file, line };
        let hash = hash(&frame);
        if let Some(number) = numbers.find(hash, |number| frames[*number as usize] == frame) {
            return *number;
        }
        let number = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        frames.push(frame);
        let hash_of = |number: &u32| self::hash(&frames[*number as usize]);
        numbers.insert_unique(hash, number, hash_of);
        number
    }
}

fn hash(frame: &InlineFrame) -> u64 {
    let key = |id: Option<NonMaxU32>| id.map_or(0, |id| u64::from(id.get()) + 1);
    let InlineFrame { parent, name, file, line } = *frame;
    FxBuildHasher.hash_one((key(parent) << 32 | key(name), key(file) << 32 | key(line)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_inline_frame_is_there_once() {
        let mut generator = crate::random::Random(1);
        let mut random = |below: u64| generator.below(below);
        let (mut frames, mut known) = (InlineFrames::with_capacity(0), HashMap::new());
        for _ in 0..5000 {
            let callers = known.len() as u64 / 50 + 1;
            let caller =
                NonMaxU32::new(random(callers)).filter(|caller| caller.index() < frames.frames.len());
            let name = NonMaxU32::new(random(30)).filter(|_| random(9) != 0);
            let (file, line) =
                (NonMaxU32::new(random(3)), NonMaxU32::new(random(20)).filter(|_| random(9) != 0));
            let number = frames.number(Callee { caller, name }, file, line);
            let frame = InlineFrame { parent: caller, name, file, line };
            assert_eq!(frames.frames[number as usize], frame);
            assert_eq!(*known.entry(frame).or_insert(number), number, "{frame:?}");
        }
        assert_eq!(known.len(), frames.frames.len());
    }
}
