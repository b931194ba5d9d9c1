//! The answer for an address by the rules.

use std::borrow::Cow;

use symdex::{LinePolicy, Table};

use crate::dies::{Dies, FunctionId, Inlined};
use crate::facts::Facts;
use crate::intervals::{Interval, Intervals};
use crate::symbol_table::TableFunction;

/// A frame, as the debug information, symdex or a peer states it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame<'f> {
    /// The function's raw name.
    pub name: Option<Cow<'f, [u8]>>,
    /// The path.
    pub file: Option<Cow<'f, [u8]>>,
    /// The line, 0 included.
    pub line: Option<u32>,
}

/// The answer for an address by the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected<'f> {
    /// Innermost first, not empty.
    pub frames: Vec<Frame<'f>>,
    /// The image offset at which the function starts, or its part that contains the address.
    pub function_start: Option<u64>,
    /// The table that answers.
    pub table: Table,
}

/// The position of an address in the debug information; by default one that nothing covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub(crate) function: Option<FunctionId>,
    /// Numbers of the inlined subroutines in the function's unit, the outermost first.
    pub(crate) inlined: Vec<u32>,
    /// The unit of the line row, and the index of the row.
    pub(crate) row: Option<(u32, usize)>,
}

impl Position {
    /// Whether a function covers the address.
    #[must_use]
    pub fn has_function(&self) -> bool {
        self.function.is_some()
    }

    /// The same line row in no function.
    #[must_use]
    pub fn without_function(&self) -> Self {
        Self { row: self.row, ..Self::default() }
    }

    /// The unit that has the code, by number.
    pub(crate) fn unit(&self) -> Option<u32> {
        self.function.map(|function| function.unit).or(self.row.map(|(unit, _)| unit))
    }
}

/// The intervals that the last search found, kept to reuse the memory.
#[derive(Default)]
pub(crate) struct SearchBuffer {
    pub(crate) covering: Vec<Interval>,
}

impl<'d> Facts<'_, 'd> {
    /// The functions that cover `offset`, the best first. The order is: latest start, shortest, named by the only
    /// symbol at that start, first in the order of units and their DIEs.
    pub(crate) fn functions_at(&self, offset: u64, buffer: &mut SearchBuffer) -> Vec<FunctionId> {
        self.functions.covering(offset, &mut buffer.covering);
        let id = |interval: &Interval| self.function_ids[interval.item as usize];
        let mut ids: Vec<FunctionId> = buffer.covering.iter().map(id).collect();
        let aliases = buffer.covering.iter().take_while(|interval| {
            (interval.start, interval.end) == (buffer.covering[0].start, buffer.covering[0].end)
        });
        let aliases = aliases.count();
        if aliases > 1 {
            let unique = self.symbol_at(buffer.covering[0].start);
            let named_so =
                |id: &FunctionId| unique.is_some() && self.text(self.function(*id).name).as_deref() == unique;
            ids[..aliases].sort_by_key(|id| (!named_so(id), id.unit, self.function(*id).die));
        }
        ids
    }

    pub(crate) fn function(&self, id: FunctionId) -> &crate::dies::Function<'d> {
        &self.units[id.unit as usize].dies.functions[id.function as usize]
    }

    /// The inlined subroutines of `function` at `offset`, the outermost first. The innermost is the one with the latest
    /// start; of several the shortest, then the most deeply nested, then the first. Of those that cover it outside of
    /// what is around them, the innermost counts if it is nested in the innermost that covers it inside.
    pub(crate) fn inlined_at(
        &self,
        function: FunctionId,
        offset: u64,
        buffer: &mut SearchBuffer,
    ) -> Vec<u32> {
        self.innermost_at(function, offset, buffer);
        let inside = self.innermost_chain(function, buffer);
        self.outside_at(function, offset, buffer);
        let outside = self.innermost_chain(function, buffer);
        if outside.len() > inside.len() && outside.starts_with(&inside) { outside } else { inside }
    }

    /// The chain of the innermost of the inlined subroutines in `buffer`.
    pub(crate) fn innermost_chain(&self, function: FunctionId, buffer: &SearchBuffer) -> Vec<u32> {
        let Some(first) = buffer.covering.first() else { return Vec::new() };
        let same =
            buffer.covering.iter().take_while(|other| (other.start, other.end) == (first.start, first.end));
        let chains = same.map(|interval| self.chain_of(function, interval.item, |inlined| inlined.parent));
        // The first of several with the same depth.
        let deepest = |first: Vec<u32>, next: Vec<u32>| if next.len() > first.len() { next } else { first };
        chains.reduce(deepest).unwrap_or_default()
    }

    /// Every inlined subroutine of `function` at `offset` inside of what is around it, in `buffer`, the innermost
    /// first.
    pub(crate) fn innermost_at(&self, function: FunctionId, offset: u64, buffer: &mut SearchBuffer) {
        self.covering(function, |dies| &dies.by_address, offset, buffer);
    }

    /// The same for those outside of what is around them.
    pub(crate) fn outside_at(&self, function: FunctionId, offset: u64, buffer: &mut SearchBuffer) {
        self.covering(function, |dies| &dies.outside, offset, buffer);
    }

    fn covering(
        &self,
        function: FunctionId,
        of: for<'r> fn(&'r Dies<'d>) -> &'r Intervals,
        offset: u64,
        buffer: &mut SearchBuffer,
    ) {
        let dies = &self.units[function.unit as usize].dies;
        of(dies).covering(offset, &mut buffer.covering);
        buffer.covering.retain(|interval| dies.inlined[interval.item as usize].function == function.function);
    }

    /// The inlined subroutines around `innermost` by `parent`, the outermost first, and itself.
    pub(crate) fn chain_of(
        &self,
        function: FunctionId,
        innermost: u32,
        parent: fn(&Inlined<'d>) -> Option<u32>,
    ) -> Vec<u32> {
        let inlined = &self.units[function.unit as usize].dies.inlined;
        let parent = |number: &u32| parent(&inlined[*number as usize]);
        let mut chain: Vec<u32> = std::iter::successors(Some(innermost), parent).collect();
        chain.reverse();
        chain
    }

    /// The innermost DIE of `unit` at `offset`: the function, and the last of the inlined subroutines.
    pub(crate) fn instance(
        &self,
        unit: u32,
        offset: u64,
        buffer: &mut SearchBuffer,
    ) -> Option<(FunctionId, Option<u32>)> {
        let function =
            self.functions_at(offset, buffer).into_iter().find(|function| function.unit == unit)?;
        Some((function, self.inlined_at(function, offset, buffer).last().copied()))
    }

    /// The position of `offset` by the rules: in the best function or, without one, in the best sequence of any unit.
    pub(crate) fn position(&self, offset: u64, buffer: &mut SearchBuffer) -> Position {
        if let Some(&function) = self.functions_at(offset, buffer).first() {
            let inlined = self.inlined_at(function, offset, buffer);
            return self.position_in(function.unit, Some(function), inlined, offset, buffer);
        }
        self.sequences.covering(offset, &mut buffer.covering);
        match buffer.covering.first().map(|sequence| sequence.item) {
            Some(unit) => self.position_in(unit, None, Vec::new(), offset, buffer),
            None => Position::default(),
        }
    }

    /// The position of `offset` in this function of this unit, or in no function of it.
    pub(crate) fn position_in(
        &self,
        unit: u32,
        function: Option<FunctionId>,
        inlined: Vec<u32>,
        offset: u64,
        buffer: &mut SearchBuffer,
    ) -> Position {
        let stated = function.and_then(|function| self.function(function).line_sequence);
        let row = self.units[unit as usize].lines.row_at(offset, stated, &mut buffer.covering);
        Position { function, inlined, row: row.map(|(row, _)| (unit, row)) }
    }

    /// File and line of the innermost frame at `position`.
    pub(crate) fn innermost_line(
        &self,
        position: &Position,
        offset: u64,
        policy: LinePolicy,
    ) -> (Option<Cow<'_, [u8]>>, Option<u32>) {
        let stated = match (position.row, position.function, policy) {
            (Some((unit, row)), _, LinePolicy::Exact) => {
                let row = self.units[unit as usize].lines.rows[row];
                Some((unit, row.file, row.line))
            }
            (Some((unit, _)), _, LinePolicy::Statement) => {
                let piece = self.units[unit as usize].lines.piece_at(offset);
                piece.map(|piece| (unit, piece.file, piece.line))
            }
            (None, Some(function), LinePolicy::Statement) => {
                let lines = &self.units[function.unit as usize].lines;
                let end = lines.end_before(offset);
                end.map(|end| (function.unit, end.file, end.line))
            }
            (None, _, _) => None,
        };
        let Some((unit, file, line)) = stated else { return (None, None) };
        let file = self.units[unit as usize].lines.file(file.into());
        (file.map(Cow::Borrowed), Some(line))
    }

    /// The frames at `position`, under the `exact` policy; empty where no debug information covers it.
    pub(crate) fn frames(&self, position: &Position, offset: u64) -> Vec<Frame<'_>> {
        let (file, line) = self.innermost_line(position, offset, LinePolicy::Exact);
        let Some(id) = position.function else {
            return position.row.map(|_| Frame { name: None, file, line }).into_iter().collect();
        };
        let unit = &self.units[id.unit as usize];
        let mut frames = Vec::with_capacity(position.inlined.len() + 1);
        let mut location = (file, line);
        for number in position.inlined.iter().rev() {
            let inlined = &unit.dies.inlined[*number as usize];
            let (file, line) = location;
            frames.push(Frame { name: self.text(inlined.name), file, line });
            let call_file = inlined.call_file.and_then(|file| unit.lines.file(file));
            location = (call_file.map(Cow::Borrowed), inlined.call_line);
        }
        let (file, line) = location;
        frames.push(Frame { name: self.text(self.function(id).name), file, line });
        frames
    }

    /// The answer for `offset` by the rules under the `exact` policy; `None` for a gap.
    pub(crate) fn expected(&self, position: &Position, offset: u64) -> Option<Expected<'_>> {
        let mut frames = self.frames(position, offset);
        if let Some(function) = position.function {
            let piece = self.function(function).ranges.iter().rfind(|range| range.0 <= offset);
            let function_start = piece.map(|piece| piece.0);
            return Some(Expected { frames, function_start, table: Table::Dwarf });
        }
        let symbol = self.symbol(offset);
        let function_start = symbol.map(|symbol| symbol.start);
        let name = symbol.and_then(|symbol| symbol.name).map(Cow::Borrowed);
        match frames.last_mut() {
            Some(line) => {
                line.name = name;
                Some(Expected { frames, function_start, table: Table::Dwarf })
            }
            None => symbol.map(|_| Expected {
                frames: vec![Frame { name, file: None, line: None }],
                function_start,
                table: Table::SymbolTable,
            }),
        }
    }

    /// The function of the symbol table at `offset`: of those that overlap the one that begins last.
    pub(crate) fn symbol(&self, offset: u64) -> Option<&TableFunction<'d>> {
        let mut covering = Vec::new();
        self.table_ranges.covering(offset, &mut covering);
        covering.first().map(|range| &self.table[range.item as usize])
    }
}
