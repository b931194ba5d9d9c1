//! The ranges of a unit, cut to single addresses.

use rustc_hash::FxHashMap;
use symdex::write::{Id32, Loc};

use crate::dwarf::{Piece, UnitRange, UnitRanges};

/// What `unit` has at `offsets`, which are sorted: a range of one byte at each that it covers, and only the names,
/// files, inline frames and function ranges that these use.
pub(super) fn cut<'d>(unit: &UnitRanges<'d>, offsets: &[u64]) -> UnitRanges<'d> {
    let mut cut = Cut { unit, out: UnitRanges::default(), numbers: Numbers::default() };
    cut.out.functions = unit.functions;
    cut.out.problems = unit.problems.clone();
    let mut rest = &unit.ranges[..];
    for offset in offsets {
        rest = &rest[rest.partition_point(|range| range.end <= *offset)..];
        if let Some(range) = rest.first().filter(|range| range.start <= *offset) {
            let (exact, statement) = (cut.loc(range.exact), cut.loc(range.statement));
            let (start, end, piece) = (*offset, offset + 1, range.piece.and_then(|piece| cut.piece(piece)));
            cut.out.ranges.push(UnitRange { start, end, piece, exact, statement });
        }
    }
    cut.out
}

/// A cut under way.
struct Cut<'u, 'd> {
    unit: &'u UnitRanges<'d>,
    out: UnitRanges<'d>,
    numbers: Numbers,
}

/// Maps numbers in the unit to numbers in the cut, for what was copied.
#[derive(Default)]
struct Numbers {
    pieces: FxHashMap<Id32, Option<Id32>>,
    locs: FxHashMap<u32, u32>,
    names: FxHashMap<Id32, Option<Id32>>,
    files: FxHashMap<Id32, Option<Id32>>,
}

impl Cut<'_, '_> {
    fn piece(&mut self, piece: Id32) -> Option<Id32> {
        if let Some(number) = self.numbers.pieces.get(&piece) {
            return *number;
        }
        let Piece { entry, .. } = self.unit.pieces[piece.index()];
        let entry = entry.and_then(|entry| Id32::new(self.loc(entry.get()).into()));
        let number = Id32::new(self.out.pieces.len() as u64);
        self.out.pieces.push(Piece { entry, ..self.unit.pieces[piece.index()] });
        self.numbers.pieces.insert(piece, number);
        number
    }

    /// The number of a loc, which comes behind all those that it is inlined into.
    fn loc(&mut self, loc: u32) -> u32 {
        let (mut missing, mut next, mut parent) = (Vec::new(), Some(loc), None);
        while let Some(loc) = next {
            if let Some(number) = self.numbers.locs.get(&loc) {
                parent = Some(*number);
                break;
            }
            missing.push(loc);
            next = self.unit.locs[loc as usize].parent.map(Id32::get);
        }
        for loc in missing.into_iter().rev() {
            let Loc { name, file, line, .. } = self.unit.locs[loc as usize];
            let (names, files) = (&mut self.out.names, &mut self.out.files);
            let name = name.and_then(|name| number(name, &self.unit.names, names, &mut self.numbers.names));
            let file = file.and_then(|file| number(file, &self.unit.files, files, &mut self.numbers.files));
            let number = u32::try_from(self.out.locs.len()).unwrap_or(u32::MAX);
            let parent_id = parent.and_then(|parent: u32| Id32::new(parent.into()));
            self.out.locs.push(Loc { parent: parent_id, name, file, line });
            self.numbers.locs.insert(loc, number);
            parent = Some(number);
        }
        parent.unwrap_or(u32::MAX)
    }
}

/// The number in `cut` of the string that is number `string` in `all`.
fn number<S: Clone>(
    string: Id32,
    all: &[S],
    cut: &mut Vec<S>,
    numbers: &mut FxHashMap<Id32, Option<Id32>>,
) -> Option<Id32> {
    *numbers.entry(string).or_insert_with(|| {
        cut.push(all[string.index()].clone());
        Id32::new(cut.len() as u64 - 1)
    })
}
