//! The locs of a unit, each once.

use rustc_hash::FxHashMap;
use symdex::write::{Id32, Loc};

/// The locs of a unit, in a tree: a frame is a name below the loc of the call it was inlined at, or below none; a loc is a file and
/// line below a frame. Most have few below them, so that a search looks at few, and at what was made lately: to look for each loc in
/// a hash table of all takes longer.
pub(super) struct Locs {
    frames: Vec<Frame>,
    /// Parents come before their children.
    pub(super) locs: Vec<Loc>,
    /// For each loc its place in the tree.
    places: Vec<Place>,
    /// The frames below no call.
    outermost: Children,
    /// Frames by call, plus one, and name.
    large_calls: OfLarge,
    /// Locs by frame, and file and line.
    large_frames: OfLarge,
}

/// What the locs of one function, inlined at one loc, have in common.
struct Frame {
    call: Option<Id32>,
    name: Option<Id32>,
    locs: Children,
    /// The frame that came up before it below the same call.
    older: u32,
}

struct Place {
    /// The frames of what is inlined there.
    frames: Children,
    /// The loc that came up before it below the same frame.
    older: u32,
}

/// What is below one parent, told from each other by keys and numbered as they come up.
#[derive(Clone, Copy, Default)]
struct Children {
    newest: u32,
    len: u32,
}

/// By parent and key the children of those that have more than [`FEW`].
type OfLarge = FxHashMap<(u32, u64), u32>;

/// How many children of one parent are looked through one by one.
const FEW: u32 = 16;

impl Locs {
    /// No locs yet, of `nodes` inline instances and `rows` line rows.
    pub(super) fn new(nodes: usize, rows: usize) -> Self {
        // Most rows are a loc of their own.
        let locs = nodes + rows;
        Self {
            frames: Vec::with_capacity(nodes),
            locs: Vec::with_capacity(locs),
            places: Vec::with_capacity(locs),
            outermost: Children::default(),
            large_calls: OfLarge::default(),
            large_frames: OfLarge::default(),
        }
    }

    /// The number of the frame of the function `name`, inlined at the loc `call` or not inlined.
    pub(super) fn frame(&mut self, call: Option<Id32>, name: Option<Id32>) -> u32 {
        let (frames, new) = (&self.frames, next(&self.frames));
        let key_of = |number: u32| frames[number as usize].name.map_or(0, key);
        let older = |number: u32| frames[number as usize].older;
        let (parent, children) = match call {
            Some(call) => (call.get() + 1, &mut self.places[call.index()].frames),
            None => (0, &mut self.outermost),
        };
        let key = (parent, name.map_or(0, key));
        let number = children.number(key, new, &mut self.large_calls, key_of, older);
        if let Err(older) = number {
            self.frames.push(Frame { call, name, locs: Children::default(), older });
        }
        number.unwrap_or(new)
    }

    /// The number of the loc of a frame at a file and line.
    #[inline]
    pub(super) fn loc(&mut self, frame: u32, file: Option<Id32>, line: Option<Id32>) -> u32 {
        let (locs, places, new) = (&self.locs, &self.places, next(&self.locs));
        let position =
            |file: Option<Id32>, line: Option<Id32>| line.map_or(0, key) << 32 | file.map_or(0, key);
        let key_of = |number: u32| position(locs[number as usize].file, locs[number as usize].line);
        let older = |number: u32| places[number as usize].older;
        let key = (frame, position(file, line));
        let Frame { call: parent, name, locs: children, .. } = &mut self.frames[frame as usize];
        let number = children.number(key, new, &mut self.large_frames, key_of, older);
        if let Err(older) = number {
            self.locs.push(Loc { parent: *parent, name: *name, file, line });
            self.places.push(Place { frames: Children::default(), older });
        }
        number.unwrap_or(new)
    }
}

fn key(number: Id32) -> u64 {
    u64::from(number.get()) + 1
}

/// The number of the one that comes up next.
fn next<T>(numbered: &[T]) -> u32 {
    u32::try_from(numbered.len()).unwrap_or(u32::MAX)
}

impl Children {
    /// The number of the child with this parent and key. If there is none, it is added as number `new`, and the error is what came
    /// up before it. `key_of` is the key of any child, `older` what came up before that.
    #[inline]
    fn number(
        &mut self,
        key: (u32, u64),
        new: u32,
        of_large: &mut OfLarge,
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
            let known = self.number_of_large(key, new, of_large, key_of, older);
            if known != new {
                return Ok(known);
            }
        }
        *self = Children { newest: new, len: len + 1 };
        Err(newest)
    }

    /// The same for a parent that has many children or comes to have them now; `new` if there is none.
    #[cold]
    fn number_of_large(
        &self,
        key: (u32, u64),
        new: u32,
        of_large: &mut OfLarge,
        key_of: impl Fn(u32) -> u64,
        older: impl Fn(u32) -> u32,
    ) -> u32 {
        if self.len == FEW {
            let all = std::iter::successors(Some(self.newest), |number| Some(older(*number)));
            of_large.extend(all.take(FEW as usize).map(|number| ((key.0, key_of(number)), number)));
        }
        *of_large.entry(key).or_insert(new)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_loc_is_there_once_whether_its_frame_has_few_or_many() {
        let mut generator = crate::random::Random(1);
        let mut random = |below: u64| generator.below(below);
        let (mut locs, mut known) = (Locs::new(0, 0), HashMap::new());
        for _ in 0..5000 {
            // The first calls have frames by the dozen, and the first frames locs by the hundred.
            let calls = known.len() as u64 / 50 + 1;
            let call = Id32::new(random(calls)).filter(|call| call.index() < locs.locs.len());
            let name = Id32::new(random(30)).filter(|_| random(9) != 0);
            let (file, line) = (Id32::new(random(3)), Id32::new(random(20)).filter(|_| random(9) != 0));
            let frame = locs.frame(call, name);
            let number = locs.loc(frame, file, line);
            let loc = Loc { parent: call, name, file, line };
            assert_eq!(locs.locs[number as usize], loc);
            assert_eq!(*known.entry(loc).or_insert(number), number, "{loc:?}");
        }
        assert_eq!(known.len(), locs.locs.len());
        assert!(!locs.large_calls.is_empty() && !locs.large_frames.is_empty());
    }
}
