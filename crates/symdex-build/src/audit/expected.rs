//! What the rules say an address answers, from the facts alone.

use std::borrow::Cow;

use symdex::{LinePolicy, Table};

use super::dies::Inlined;
use super::facts::{Facts, FunctionId};
use super::intervals::Interval;
use super::peers::Peer;
use super::symbol_table::TableFunction;

/// One frame, whoever states it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame<'f> {
    /// The function's name as the debug file has it.
    pub name: Option<Cow<'f, [u8]>>,
    /// The path.
    pub file: Option<Cow<'f, [u8]>>,
    /// The line, 0 included.
    pub line: Option<u32>,
}

/// What an address answers by the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected<'f> {
    /// Innermost first, not empty.
    pub(super) frames: Vec<Frame<'f>>,
    pub(super) function_start: Option<u64>,
    pub(super) table: Table,
}

/// Where an address lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: Option<FunctionId>,
    /// Numbers of the inlined subroutines in the function's unit, the outermost first.
    pub(super) inlined: Vec<u32>,
    /// The unit whose lines count, and the row.
    pub(super) row: Option<(u32, usize)>,
}

impl Place {
    /// The unit that knows the code, by number.
    pub(super) fn unit(&self) -> Option<u32> {
        self.function.map(|function| function.unit).or(self.row.map(|(unit, _)| unit))
    }
}

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) covering: Vec<Interval>,
}

impl<'d> Facts<'_, 'd> {
    /// The functions that cover `offset`, the one that counts first: latest start, then shortest, then the one that the symbol
    /// table names at that entry, if it has one name for it, then the first in the order of units and their DIEs.
    pub(super) fn functions_at(&self, offset: u64, scratch: &mut Scratch) -> Vec<FunctionId> {
        self.functions.covering(offset, &mut scratch.covering);
        let id = |interval: &Interval| self.function_ids[interval.item as usize];
        let mut ids: Vec<FunctionId> = scratch.covering.iter().map(id).collect();
        let aliases = scratch.covering.iter().take_while(|interval| {
            (interval.start, interval.end) == (scratch.covering[0].start, scratch.covering[0].end)
        });
        let aliases = aliases.count();
        if aliases > 1 {
            let unique = self.symbol_at_entry(scratch.covering[0].start);
            let named_so =
                |id: &FunctionId| unique.is_some() && self.text(self.function(*id).name).as_deref() == unique;
            ids[..aliases].sort_by_key(|id| (!named_so(id), id.unit, self.function(*id).die));
        }
        ids
    }

    pub(super) fn function(&self, id: FunctionId) -> &super::dies::Function<'d> {
        &self.units[id.unit as usize].dies.functions[id.function as usize]
    }

    /// The inlined subroutines of `function` at `offset`, the outermost first. The innermost decides: the one whose code there
    /// starts last, then the shortest, then the one in the others, then the first.
    pub(super) fn inlined_at(&self, function: FunctionId, offset: u64, scratch: &mut Scratch) -> Vec<u32> {
        self.innermost_at(function, offset, scratch);
        let Some(first) = scratch.covering.first() else { return Vec::new() };
        let same =
            scratch.covering.iter().take_while(|other| (other.start, other.end) == (first.start, first.end));
        let chains = same.map(|interval| self.chain_of(function, interval.item, |inlined| inlined.parent));
        // Of several that are as deep, the first.
        let deepest = |first: Vec<u32>, next: Vec<u32>| if next.len() > first.len() { next } else { first };
        chains.reduce(deepest).unwrap_or_default()
    }

    /// Every inlined subroutine of `function` at `offset`, in `scratch`, the innermost first.
    pub(super) fn innermost_at(&self, function: FunctionId, offset: u64, scratch: &mut Scratch) {
        let dies = &self.units[function.unit as usize].dies;
        dies.by_address.covering(offset, &mut scratch.covering);
        scratch
            .covering
            .retain(|interval| dies.inlined[interval.item as usize].function == function.function);
    }

    /// What inlined subroutine `innermost` lies in by `parent`, the outermost first, and itself.
    pub(super) fn chain_of(
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
    pub(super) fn instance(
        &self,
        unit: u32,
        offset: u64,
        scratch: &mut Scratch,
    ) -> Option<(FunctionId, Option<u32>)> {
        let function =
            self.functions_at(offset, scratch).into_iter().find(|function| function.unit == unit)?;
        Some((function, self.inlined_at(function, offset, scratch).last().copied()))
    }

    /// Where `offset` lies by the rules: in the function that counts or, without one, in the sequence that counts of any unit.
    pub(super) fn place(&self, offset: u64, scratch: &mut Scratch) -> Place {
        if let Some(&function) = self.functions_at(offset, scratch).first() {
            let inlined = self.inlined_at(function, offset, scratch);
            return self.place_in(function.unit, Some(function), inlined, offset, scratch);
        }
        self.sequences.covering(offset, &mut scratch.covering);
        match scratch.covering.first().map(|sequence| sequence.item) {
            Some(unit) => self.place_in(unit, None, Vec::new(), offset, scratch),
            None => Place::default(),
        }
    }

    /// The place of `offset` in this function of this unit, or in no function of it.
    pub(super) fn place_in(
        &self,
        unit: u32,
        function: Option<FunctionId>,
        inlined: Vec<u32>,
        offset: u64,
        scratch: &mut Scratch,
    ) -> Place {
        let rule = self.image.info.row_rule;
        let row = self.units[unit as usize].lines.row_at(offset, rule, &mut scratch.covering);
        Place { function, inlined, row: row.map(|row| (unit, row)) }
    }

    /// File and line of the innermost frame at `place`.
    pub(super) fn innermost_line(
        &self,
        place: &Place,
        offset: u64,
        policy: LinePolicy,
    ) -> (Option<Cow<'_, [u8]>>, Option<u32>) {
        let stated = match (place.row, place.function, policy) {
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
                let end = lines.end_before(offset, self.image.info.row_rule);
                end.map(|end| (function.unit, end.file, end.line))
            }
            (None, _, _) => None,
        };
        let Some((unit, file, line)) = stated else { return (None, None) };
        let file = self.units[unit as usize].lines.file(file.into());
        (file.map(Cow::Borrowed), Some(line))
    }

    /// The frames at `place`, under the `exact` policy; empty where no debug information covers it.
    pub(super) fn frames(&self, place: &Place, offset: u64) -> Vec<Frame<'_>> {
        let (file, line) = self.innermost_line(place, offset, LinePolicy::Exact);
        let Some(id) = place.function else {
            return place.row.map(|_| Frame { name: None, file, line }).into_iter().collect();
        };
        let unit = &self.units[id.unit as usize];
        let mut frames = Vec::with_capacity(place.inlined.len() + 1);
        let mut location = (file, line);
        for number in place.inlined.iter().rev() {
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

    /// What `offset` answers by the rules under the `exact` policy; `None` for a gap.
    pub(super) fn expected(&self, place: &Place, offset: u64) -> Option<Expected<'_>> {
        let mut frames = self.frames(place, offset);
        if let Some(function) = place.function {
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

    /// The frames that `peer` would answer at `place` if it answered by the rules: addr2line does not read the symbol table,
    /// llvm-symbolizer has an empty frame where it knows nothing.
    pub(super) fn answer_for(&self, peer: Peer, place: &Place, offset: u64) -> Vec<Frame<'_>> {
        let expected = self.expected(place, offset);
        match (peer, expected) {
            (Peer::Addr2line, Some(Expected { frames, table: Table::Dwarf, .. }))
            | (Peer::LlvmSymbolizer, Some(Expected { frames, .. })) => frames,
            (Peer::Addr2line, _) => Vec::new(),
            (Peer::LlvmSymbolizer, None) => vec![Frame::default()],
        }
    }

    /// The function of the symbol table at `offset`: of those that overlap the one that begins last.
    pub(super) fn symbol(&self, offset: u64) -> Option<&TableFunction<'d>> {
        let mut covering = Vec::new();
        self.table_ranges.covering(offset, &mut covering);
        covering.first().map(|range| &self.table[range.item as usize])
    }
}
