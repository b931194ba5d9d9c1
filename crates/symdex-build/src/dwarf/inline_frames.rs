//! The inline frames of a unit, each once.

use rustc_hash::FxHashMap;
use symdex::write::{Id32, Loc};

/// The inline frames of a unit, as a tree. A callee is a function name below the frame it is inlined into, or below none. An
/// inline frame is a file and line below a callee.
///
/// Most have few children, so that a search compares with few of them, the newest first. A hash table of all frames instead
/// takes more time.
pub(super) struct InlineFrames {
    callees: Vec<Callee>,
    /// Callers come before what is inlined into them.
    pub(super) frames: Vec<Loc>,
    /// For each inline frame what the tree needs of it.
    nodes: Vec<FrameNode>,
    /// The callees that are not inlined.
    outermost: Children,
    /// Callees by the number of their caller's frame, plus one, and by name.
    large_callers: LargeParents,
    /// Inline frames by callee, and by file and line.
    large_callees: LargeParents,
}

/// What the inline frames of one function have in common, if it is inlined into the same frame or not inlined.
struct Callee {
    caller: Option<Id32>,
    name: Option<Id32>,
    frames: Children,
    /// The callee that was added before it below the same caller.
    older: u32,
}

struct FrameNode {
    /// What is inlined into the frame.
    callees: Children,
    /// The frame that was added before it below the same callee.
    older: u32,
}

/// The children of one parent. Their keys differ, and their numbers are given in the order in which they are added.
#[derive(Clone, Copy, Default)]
struct Children {
    newest: u32,
    len: u32,
}

/// The children of the parents that have more than [`FEW`], by parent and key.
type LargeParents = FxHashMap<(u32, u64), u32>;

/// Up to how many children of a parent are compared one by one.
const FEW: u32 = 16;

impl InlineFrames {
    /// An empty tree, with capacity for a unit with `instances` inline instances and `rows` line rows.
    pub(super) fn new(instances: usize, rows: usize) -> Self {
        // Most rows have an inline frame of their own.
        let frames = instances + rows;
        Self {
            callees: Vec::with_capacity(instances),
            frames: Vec::with_capacity(frames),
            nodes: Vec::with_capacity(frames),
            outermost: Children::default(),
            large_callers: LargeParents::default(),
            large_callees: LargeParents::default(),
        }
    }

    /// The number of the callee `name`, which is inlined into the frame `caller` or not inlined.
    pub(super) fn callee(&mut self, caller: Option<Id32>, name: Option<Id32>) -> u32 {
        let (callees, new) = (&self.callees, next(&self.callees));
        let key_of = |number: u32| callees[number as usize].name.map_or(0, key);
        let older = |number: u32| callees[number as usize].older;
        let (parent, children) = match caller {
            Some(caller) => (caller.get() + 1, &mut self.nodes[caller.index()].callees),
            None => (0, &mut self.outermost),
        };
        let key = (parent, name.map_or(0, key));
        let number = children.number(key, new, &mut self.large_callers, key_of, older);
        if let Err(older) = number {
            self.callees.push(Callee { caller, name, frames: Children::default(), older });
        }
        number.unwrap_or(new)
    }

    /// The number of the inline frame of a callee at a file and line.
    #[inline]
    pub(super) fn frame(&mut self, callee: u32, file: Option<Id32>, line: Option<Id32>) -> u32 {
        let (frames, nodes, new) = (&self.frames, &self.nodes, next(&self.frames));
        let position =
            |file: Option<Id32>, line: Option<Id32>| line.map_or(0, key) << 32 | file.map_or(0, key);
        let key_of = |number: u32| position(frames[number as usize].file, frames[number as usize].line);
        let older = |number: u32| nodes[number as usize].older;
        let key = (callee, position(file, line));
        let Callee { caller: parent, name, frames: children, .. } = &mut self.callees[callee as usize];
        let number = children.number(key, new, &mut self.large_callees, key_of, older);
        if let Err(older) = number {
            self.frames.push(Loc { parent: *parent, name: *name, file, line });
            self.nodes.push(FrameNode { callees: Children::default(), older });
        }
        number.unwrap_or(new)
    }
}

fn key(number: Id32) -> u64 {
    u64::from(number.get()) + 1
}

/// The number of the element that is added next.
fn next<T>(numbered: &[T]) -> u32 {
    u32::try_from(numbered.len()).unwrap_or(u32::MAX)
}

impl Children {
    /// The number of the child with this parent and key. If there is none, a child is added as number `new`, and the error is the
    /// number of the child before it. `key_of` returns the key of a child, `older` the child that was added before it.
    #[inline]
    fn number(
        &mut self,
        key: (u32, u64),
        new: u32,
        large_parents: &mut LargeParents,
        key_of: impl Fn(u32) -> u64,
        older: impl Fn(u32) -> u32,
    ) -> Result<u32, u32> {
        let Children { newest, len } = *self;
        let mut number = newest;
        for _ in 0..if len > FEW { 1 } else { len } {
            if key_of(number) == key.1 {
                return Ok(number);
            }
            number = older(number);
        }
        if len >= FEW {
            let known = self.number_in_large(key, new, large_parents, key_of, older);
            if known != new {
                return Ok(known);
            }
        }
        *self = Children { newest: new, len: len + 1 };
        Err(newest)
    }

    /// The same for a parent that has at least [`FEW`] children. Returns `new` if there is no such child.
    #[cold]
    fn number_in_large(
        &self,
        key: (u32, u64),
        new: u32,
        large_parents: &mut LargeParents,
        key_of: impl Fn(u32) -> u64,
        older: impl Fn(u32) -> u32,
    ) -> u32 {
        if self.len == FEW {
            let all = std::iter::successors(Some(self.newest), |number| Some(older(*number)));
            large_parents.extend(all.take(FEW as usize).map(|number| ((key.0, key_of(number)), number)));
        }
        *large_parents.entry(key).or_insert(new)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_inline_frame_is_there_once_whether_its_callee_has_few_or_many() {
        let mut generator = crate::random::Random(1);
        let mut random = |below: u64| generator.below(below);
        let (mut frames, mut known) = (InlineFrames::new(0, 0), HashMap::new());
        for _ in 0..5000 {
            // The first frames have callees by the dozen, and the first callees frames by the hundred.
            let callers = known.len() as u64 / 50 + 1;
            let caller = Id32::new(random(callers)).filter(|caller| caller.index() < frames.frames.len());
            let name = Id32::new(random(30)).filter(|_| random(9) != 0);
            let (file, line) = (Id32::new(random(3)), Id32::new(random(20)).filter(|_| random(9) != 0));
            let callee = frames.callee(caller, name);
            let number = frames.frame(callee, file, line);
            let frame = Loc { parent: caller, name, file, line };
            assert_eq!(frames.frames[number as usize], frame);
            assert_eq!(*known.entry(frame).or_insert(number), number, "{frame:?}");
        }
        assert_eq!(known.len(), frames.frames.len());
        assert!(!frames.large_callers.is_empty() && !frames.large_callees.is_empty());
    }
}
