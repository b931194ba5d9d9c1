//! The line policy `statement`, read anew: what each piece of a row answers, and what no answer may be.

use std::hash::{BuildHasher as _, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use symdex::RowRule;

use super::expected::{Expected, Frame, Place};
use super::facts::FunctionId;
use super::lines::Lines;

/// The file and line that `statement` answers from `start` on, up to the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The pieces of all rows of a unit, in address order. `borders` are image offsets at which the inline instance may change, and
/// `instance` tells in which one an image offset lies.
///
/// Each row is cut at every border, and at each cut the rows before it in its sequence decide: a piece of a row that begins no
/// statement answers as the last piece that begins one, in the same sequence and the same instance. It answers for itself
/// if there is none, or if the code is in no function.
pub(super) fn pieces<I: Eq + Hash + Copy>(
    lines: &Lines,
    borders: impl Iterator<Item = u64>,
    rule: RowRule,
    mut instance: impl FnMut(u64) -> Option<I>,
) -> Vec<Piece> {
    let ends = lines.by_address.all().iter().flat_map(|sequence| [sequence.start, sequence.end]);
    let mut cuts: Vec<u64> = lines.rows.iter().map(|row| row.address).chain(ends).chain(borders).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut last, mut covering, mut pieces) = (FxHashMap::default(), Vec::new(), Vec::new());
    for start in cuts {
        let Some(number) = lines.row_at(start, rule, &mut covering) else { continue };
        let sequence = covering.first().map(|sequence| sequence.item);
        let row = lines.rows[number];
        let mut piece = Piece { start, file: row.file, line: row.line };
        if let Some(instance) = instance(start) {
            if row.is_stmt {
                last.insert((sequence, instance), (row.file, row.line));
            } else if let Some(statement) = last.get(&(sequence, instance)) {
                (piece.file, piece.line) = *statement;
            }
        }
        pieces.push(piece);
    }
    pieces
}

/// An inline instance: a function, and the innermost of its inlined subroutines.
type Instance = (FunctionId, Option<u32>);

/// What an index answers in each inline instance that has line rows, under both policies.
///
/// It needs no rule to say what is wrong: whatever `statement` answers in an instance, `exact` has to answer somewhere in that
/// instance. Files and lines are kept as hashes.
#[derive(Default)]
pub(super) struct InstanceLines {
    exact: FxHashSet<(Instance, u64)>,
    /// The answers of `statement` that differ from that of `exact` at the same image offset, which comes last.
    statement: Vec<(Instance, u64, u64)>,
}

impl InstanceLines {
    /// Takes in the answers of an index at `offset`, which lies at `place`.
    pub(super) fn add(
        &mut self,
        place: &Place,
        offset: u64,
        exact: Option<&Expected<'_>>,
        statement: &[Frame<'_>],
    ) {
        let (Some(function), Some(_)) = (place.function, place.row) else { return };
        let instance = (function, place.inlined.last().copied());
        let hash = |frame: &Frame<'_>| FxBuildHasher.hash_one((&frame.file, frame.line));
        let exact = exact.and_then(|answer| answer.frames.first()).map(hash);
        self.exact.extend(exact.map(|exact| (instance, exact)));
        let statement = statement.first().map(hash).filter(|statement| Some(*statement) != exact);
        self.statement.extend(statement.map(|statement| (instance, statement, offset)));
    }

    /// Takes in the answers of an index at other image offsets.
    pub(super) fn merge(&mut self, other: Self) {
        self.exact.extend(other.exact);
        self.statement.extend(other.statement);
    }

    /// The image offsets at which `statement` answers a file and line that `exact` answers nowhere in the same instance.
    pub(super) fn foreign(&self) -> impl Iterator<Item = u64> {
        let foreign =
            self.statement.iter().filter(|(instance, hash, _)| !self.exact.contains(&(*instance, *hash)));
        foreign.map(|(_, _, offset)| *offset)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use symdex::Table;

    use super::*;

    #[test]
    fn a_line_of_another_instance_is_foreign_wherever_that_is_seen() {
        let frame = |line| Frame { name: None, file: Some(Cow::Borrowed(&b"a.c"[..])), line: Some(line) };
        let add = |lines: &mut InstanceLines, inlined: u32, offset, exact, statement| {
            let function = Some(FunctionId { unit: 0, function: 0 });
            let place = Place { function, inlined: vec![inlined], row: Some((0, 0)) };
            let frames = vec![frame(exact)];
            let exact = Expected { frames, function_start: None, table: Table::Dwarf };
            lines.add(&place, offset, Some(&exact), &[frame(statement)]);
        };
        let (mut low, mut high) = (InstanceLines::default(), InstanceLines::default());
        add(&mut low, 0, 0x10, 0, 5);
        add(&mut low, 1, 0x20, 0, 7);
        add(&mut low, 1, 0x30, 9, 9);
        add(&mut high, 0, 0x40, 5, 5);
        low.merge(high);
        assert_eq!(low.foreign().collect::<Vec<_>>(), [0x20]);
    }
}
