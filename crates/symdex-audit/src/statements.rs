//! A check of the line policy `statement` that needs no rule.

use std::hash::BuildHasher as _;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::dies::FunctionId;
use crate::expected::{Expected, Frame, Position};

/// An inline instance: a function, and the innermost of its inlined subroutines.
type Instance = (FunctionId, Option<u32>);

/// The answers of an index in each inline instance that has line rows, under both policies.
///
/// Every answer of `statement` in an instance must be an answer of `exact` somewhere in the same instance. Files and
/// lines are kept as hashes.
#[derive(Default)]
pub(crate) struct InstanceLines {
    exact: FxHashSet<(Instance, u64)>,
    /// The answers of `statement` that differ from `exact` at the same image offset: instance, hash, offset.
    statement: Vec<(Instance, u64, u64)>,
}

impl InstanceLines {
    /// Adds the answers of an index at `offset`.
    pub(crate) fn add(
        &mut self,
        position: &Position,
        offset: u64,
        exact: Option<&Expected<'_>>,
        statement: &[Frame<'_>],
    ) {
        let (Some(function), Some(_)) = (position.function, position.row) else { return };
        let instance = (function, position.inlined.last().copied());
        let hash = |frame: &Frame<'_>| FxBuildHasher.hash_one((&frame.file, frame.line));
        let exact = exact.and_then(|answer| answer.frames.first()).map(hash);
        self.exact.extend(exact.map(|exact| (instance, exact)));
        let statement = statement.first().map(hash).filter(|statement| Some(*statement) != exact);
        self.statement.extend(statement.map(|statement| (instance, statement, offset)));
    }

    /// Adds the answers at other image offsets.
    pub(crate) fn merge(&mut self, other: Self) {
        self.exact.extend(other.exact);
        self.statement.extend(other.statement);
    }

    /// The image offsets at which `statement` answers a file and line that `exact` answers nowhere in the same
    /// instance.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = u64> {
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
            let position = Position { function, inlined: vec![inlined], row: Some((0, 0)) };
            let frames = vec![frame(exact)];
            let exact = Expected { frames, function_start: None, table: Table::Dwarf };
            lines.add(&position, offset, Some(&exact), &[frame(statement)]);
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
