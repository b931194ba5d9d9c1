//! The locs of a unit, each once.

use rustc_hash::FxHashMap;
use symdex::write::{Id32, Loc};

/// The locs of a unit, in a tree: a frame is a name below the loc of the call it was inlined at, or below none; a loc is a file and
/// line below a frame. Most have few below them, so that a search looks at few, and at what was made lately: to look for each loc in
/// a hash table of all takes longer.
pub(super) struct Locs {
    frames: Vec<Frame>,
    /// Frames by the loc of the call, plus one.
    of_calls: Children,
    of_frames: Children,
    /// Parents come before their children.
    pub(super) locs: Vec<Loc>,
}

/// What the locs of one function, inlined at one loc, have in common.
#[derive(Clone, Copy)]
struct Frame {
    call: Option<Id32>,
    name: Option<Id32>,
}

impl Locs {
    /// No locs yet, of `nodes` inline instances and `rows` line rows.
    pub(super) fn new(nodes: usize, rows: usize) -> Self {
        Self {
            frames: Vec::with_capacity(nodes),
            of_calls: Children::with_capacity(nodes, nodes),
            // Most rows are a loc of their own.
            of_frames: Children::with_capacity(nodes, nodes + rows),
            locs: Vec::with_capacity(nodes + rows),
        }
    }

    /// The number of the frame of the function `name`, inlined at the loc `call` or not inlined.
    pub(super) fn frame(&mut self, call: Option<Id32>, name: Option<Id32>) -> u32 {
        let frames = &self.frames;
        let key_of = |number: u32| frames[number as usize].name.map_or(0, key);
        let number = self.of_calls.number(call.map_or(0, |call| call.get() + 1), name.map_or(0, key), key_of);
        if number as usize == self.frames.len() {
            self.frames.push(Frame { call, name });
        }
        number
    }

    /// The number of the loc of a frame at a file and line.
    #[inline]
    pub(super) fn loc(&mut self, frame: u32, file: Option<Id32>, line: Option<Id32>) -> u32 {
        let locs = &self.locs;
        let key = |file: Option<Id32>, line: Option<Id32>| file.map_or(0, key) << 32 | line.map_or(0, key);
        let key_of = |number: u32| key(locs[number as usize].file, locs[number as usize].line);
        let number = self.of_frames.number(frame, key(file, line), key_of);
        if number as usize == self.locs.len() {
            let Frame { call: parent, name } = self.frames[frame as usize];
            self.locs.push(Loc { parent, name, file, line });
        }
        number
    }
}

fn key(number: Id32) -> u64 {
    u64::from(number.get()) + 1
}

/// Values that are told from each other by a key and what they are below of, numbered as they come up.
struct Children {
    /// By parent.
    heads: Vec<Head>,
    /// For each the one that came up before it below the same parent.
    older: Vec<u32>,
    /// By parent and key the children of those that have more than [`FEW`].
    of_large: FxHashMap<(u32, u64), u32>,
}

/// The children of one parent.
#[derive(Clone, Copy, Default)]
struct Head {
    newest: u32,
    len: u32,
}

/// How many children of one parent are looked through one by one.
const FEW: u32 = 16;

impl Children {
    fn with_capacity(parents: usize, children: usize) -> Self {
        let (heads, older) = (Vec::with_capacity(parents + 1), Vec::with_capacity(children));
        Self { heads, older, of_large: FxHashMap::default() }
    }

    /// The number of the child `key` of `parent`; how many there are of all, if it is new. `key_of` is the key of any other.
    #[inline]
    fn number(&mut self, parent: u32, key: u64, key_of: impl Fn(u32) -> u64) -> u32 {
        let place = parent as usize;
        if self.heads.len() <= place {
            self.heads.resize(place + 1, Head::default());
        }
        let Head { newest, len } = self.heads[place];
        let mut number = newest;
        for _ in 0..if len > FEW { 1 } else { len } {
            if key_of(number) == key {
                return number;
            }
            number = self.older[number as usize];
        }
        if len >= FEW {
            return self.number_of_large(parent, key, key_of);
        }
        let new = u32::try_from(self.older.len()).unwrap_or(u32::MAX);
        self.older.push(newest);
        self.heads[place] = Head { newest: new, len: len + 1 };
        new
    }

    /// The same, for a parent that has many children or comes to have them now.
    fn number_of_large(&mut self, parent: u32, key: u64, key_of: impl Fn(u32) -> u64) -> u32 {
        let Head { newest, len } = &mut self.heads[parent as usize];
        if *len == FEW {
            let of_parent = std::iter::successors(Some(*newest), |number| Some(self.older[*number as usize]));
            self.of_large
                .extend(of_parent.take(FEW as usize).map(|number| ((parent, key_of(number)), number)));
        }
        let new = u32::try_from(self.older.len()).unwrap_or(u32::MAX);
        let number = *self.of_large.entry((parent, key)).or_insert(new);
        if number == new {
            self.older.push(*newest);
            (*newest, *len) = (new, *len + 1);
        }
        number
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
        assert!(!locs.of_calls.of_large.is_empty() && !locs.of_frames.of_large.is_empty());
    }
}
