//! The distinct inline frames of a unit.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use symdex::write::{InlineFrame, NonMaxU32};

use crate::keyed::Keyed;

/// A function name and the inline frame that the function is inlined into. `caller` is `None` if the function is not
/// inlined. The inline frames of a callee differ by file and line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callee {
    pub(crate) caller: Option<NonMaxU32>,
    pub(crate) name: Option<NonMaxU32>,
}

/// The inline frames of a unit, numbered in the order of their first use.
pub(crate) struct InlineFrames {
    /// A caller comes before the frames that are inlined into it.
    pub(crate) frames: Vec<InlineFrame>,
    numbers: HashTable<u32>,
    /// Numbers that were found or given lately, by a part of the frame's hash. Most frames that are there already are
    /// those of the same function, and few functions have more. The table of all frames is larger than the
    /// processor's first cache.
    recent: [u32; RECENT],
    hasher: Keyed,
}

/// How many recent numbers are kept.
const RECENT: usize = 1 << 10;

impl InlineFrames {
    /// An empty table with room for this many frames.
    pub(crate) fn with_capacity(frames: usize) -> Self {
        let (frames, numbers) = (Vec::with_capacity(frames), HashTable::with_capacity(frames));
        Self { frames, numbers, recent: [0; RECENT], hasher: Keyed::default() }
    }

    /// The number of the inline frame of a callee at a file and line.
    #[inline]
    pub(crate) fn number(&mut self, callee: Callee, file: Option<NonMaxU32>, line: Option<NonMaxU32>) -> u32 {
        let frame = InlineFrame { parent: callee.caller, name: callee.name, file, line };
        let hash = hash(&frame, self.hasher);
        let [low, high, ..] = hash.to_le_bytes();
        let place = usize::from(u16::from_le_bytes([low, high])) % RECENT;
        let recent = self.recent[place];
        if self.frames.get(recent as usize) == Some(&frame) {
            return recent;
        }
        let number = self.search(frame, hash);
        self.recent[place] = number;
        number
    }

    /// The number of a frame with this hash. A new frame is added.
    #[inline(never)]
    fn search(&mut self, frame: InlineFrame, hash: u64) -> u32 {
        let Self { frames, numbers, hasher, .. } = self;
        let is_it = |number: &u32| frames[*number as usize] == frame;
        let hash_of = |number: &u32| self::hash(&frames[*number as usize], *hasher);
        match numbers.entry(hash, is_it, hash_of) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let number = u32::try_from(frames.len()).unwrap_or(u32::MAX);
                free.insert(number);
                frames.push(frame);
                number
            }
        }
    }
}

#[inline]
fn hash(frame: &InlineFrame, hasher: Keyed) -> u64 {
    let key = |id: Option<NonMaxU32>| id.map_or(0, |id| u64::from(id.get()) + 1);
    let InlineFrame { parent, name, file, line } = *frame;
    hasher.hash_one((key(parent) << 32 | key(name), key(file) << 32 | key(line)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rustc_hash::FxBuildHasher;

    use super::*;
    use crate::keyed::collisions::{fullest_bucket, numbers};

    /// Frames of one function whose files and lines collide under [`FxBuildHasher`].
    fn colliding(count: u64) -> Vec<InlineFrame> {
        let frame = |number: u64| {
            // A stored number is the number plus one.
            let [file, line] = [number >> 32, number & 0xffff_ffff].map(|half| half.checked_sub(1));
            let id = |half: Option<u64>| half.and_then(NonMaxU32::new);
            InlineFrame { parent: None, name: NonMaxU32::new(7), file: id(file), line: id(line) }
        };
        numbers(count).into_iter().map(frame).collect()
    }

    #[test]
    fn frames_made_to_collide_are_spread() {
        for count in [2000, 4000] {
            let frames = colliding(count);
            let without_key = |frame: &InlineFrame| {
                let [file, line] =
                    [frame.file, frame.line].map(|id| id.map_or(0, |id| u64::from(id.get()) + 1));
                FxBuildHasher.hash_one((8u64, file << 32 | line))
            };
            let hashes: Vec<u64> = frames.iter().map(without_key).collect();
            assert!(fullest_bucket(&hashes) > frames.len() / 2, "they collide without a key");
            let hashes: Vec<u64> = frames.iter().map(|frame| hash(frame, Keyed::default())).collect();
            assert!(fullest_bucket(&hashes) < 50);
        }
    }

    #[test]
    fn numbers_of_frames_do_not_depend_on_the_keys() {
        let numbers = |keys| {
            let mut frames = InlineFrames::with_capacity(0);
            frames.hasher = Keyed::with_keys(keys);
            let number = |frame: InlineFrame| {
                let callee = Callee { caller: frame.parent, name: frame.name };
                frames.number(callee, frame.file, frame.line)
            };
            let both = colliding(500).into_iter().chain(colliding(1000));
            both.map(number).collect::<Vec<_>>()
        };
        assert_eq!(numbers([3, 5]), (0..500).chain(0..1000).collect::<Vec<_>>());
        assert_eq!(numbers([3, 5]), numbers([1 << 60 | 9, 0x9e37_79b9_7f4a_7c15]));
    }

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
