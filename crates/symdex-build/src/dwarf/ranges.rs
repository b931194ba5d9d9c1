//! The ranges of a unit: its inline instances and its line rows, joined.

use std::cmp::Reverse;

use symdex::write::{Id32, Loc};

use super::functions::{Functions, functions};
use super::instances::{Instance, instances};
use super::lines::{Lines, Row};
use super::locs::Locs;
use super::statements::Statements;
use super::units::{UnitEntry, Units};
use crate::image::Image;
use crate::pools::Hashed;
use crate::report::Problems;

/// A contiguous piece of a function's code. Most functions have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The function, by its number in the unit.
    pub(crate) function: u32,
    pub(crate) rank: Rank,
    /// What the range that begins where the piece does answers, where it is not what its range says: a name with aliases.
    pub(crate) entry: Option<Id32>,
}

/// What decides between pieces of functions that claim the same code: the one that starts last, then the shortest, then
/// the one that the symbol table names, then the first in the debug information. The greater rank wins.
pub(crate) type Rank = (u64, Reverse<u64>, bool, Reverse<usize>);

/// A range of a unit; strings and locs by the unit's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The piece it belongs to; `None` for line rows outside of any function.
    pub(crate) piece: Option<Id32>,
    pub(crate) exact: u32,
    pub(crate) statement: u32,
}

/// All that a unit contributes.
#[derive(Default)]
pub(crate) struct UnitRanges<'d> {
    /// Sorted, none empty, none overlapping; equal neighbours merged.
    pub(crate) ranges: Vec<UnitRange>,
    pub(crate) pieces: Vec<Piece>,
    /// Parents come before their children.
    pub(crate) locs: Vec<Loc>,
    pub(crate) names: Vec<Hashed<'d>>,
    pub(crate) files: Vec<Vec<u8>>,
    /// How many functions there are.
    pub(crate) functions: u32,
    /// How many range-list entries were read.
    pub(crate) range_entries: u64,
    pub(crate) problems: Problems,
}

/// The ranges of unit number `unit`, reading at most `range_budget` range-list entries.
pub(crate) fn unit_ranges<'d>(
    image: &Image<'d>,
    units: &Units<'d>,
    unit: usize,
    range_budget: u64,
) -> UnitRanges<'d> {
    let mut functions = functions(image, units, unit, range_budget);
    let (pieces, instances) = instances(image, &functions);
    let lines = Lines::read(image, &units.all[unit], &mut functions.problems);
    joined(image, &units.all[unit], functions, (pieces, instances), &lines)
}

/// The ranges of a unit that has these functions, whose pieces and instances are given too, and these lines.
pub(super) fn joined<'d>(
    image: &Image<'d>,
    unit: &UnitEntry<'d>,
    functions: Functions<'d>,
    (pieces, instances): (Vec<Piece>, Vec<Instance>),
    lines: &Lines<'d>,
) -> UnitRanges<'d> {
    let mut join = Join {
        image,
        unit,
        functions: &functions,
        lines,
        frames: vec![None; functions.nodes.len()],
        chain: Vec::new(),
        statements: Statements::new(functions.nodes.len()),
        locs: Locs::new(functions.nodes.len(), lines.rows.len()),
        file_numbers: vec![None; lines.files()],
        out: UnitRanges {
            ranges: Vec::with_capacity(lines.rows.len() + instances.len()),
            ..Default::default()
        },
    };
    join.run(&instances);
    let Join { locs, out, .. } = join;
    UnitRanges {
        pieces,
        functions: u32::try_from(functions.places.len()).unwrap_or(u32::MAX),
        range_entries: functions.range_entries,
        problems: functions.problems,
        locs: locs.locs,
        names: functions.names,
        ..out
    }
}

struct Join<'a, 'd> {
    image: &'a Image<'d>,
    unit: &'a UnitEntry<'d>,
    functions: &'a Functions<'d>,
    lines: &'a Lines<'d>,
    /// For each node the number of its frame, once needed: so frames and locs are numbered by address, as they are used later.
    frames: Vec<Option<Id32>>,
    /// Room for nodes that lack theirs.
    chain: Vec<u32>,
    statements: Statements,
    locs: Locs,
    /// For each file of the line table its number, once known.
    file_numbers: Vec<Option<Option<Id32>>>,
    out: UnitRanges<'d>,
}

impl Join<'_, '_> {
    fn run(&mut self, mut instances: &[Instance]) {
        let mut at = 0;
        for row in &self.lines.rows {
            if at < row.start {
                instances = self.uncovered(instances, at, row.start);
            }
            at = row.start;
            while at < row.end {
                while let [instance, rest @ ..] = instances
                    && instance.end <= at
                {
                    instances = rest;
                }
                let (node_piece, end) = match instances.first() {
                    Some(next) if next.start <= at => (Some((next.node, next.piece)), next.end),
                    next => (None, next.map_or(u64::MAX, |next| next.start)),
                };
                let end = end.min(row.end);
                self.covered(at, end, node_piece, row);
                at = end;
            }
        }
        self.uncovered(instances, at, u64::MAX);
    }

    /// Code with a row.
    fn covered(&mut self, start: u64, end: u64, instance: Option<(u32, Id32)>, row: &Row) {
        let (node, piece) = instance.unzip();
        let file = self.file(row.file);
        let frame = self.frame(node);
        let exact = self.locs.loc(frame, file, row.line);
        let own = (row.file, row.line);
        let statement = match node.map_or(own, |node| self.statements.next(node, row)) {
            statement if statement == own => exact,
            (file, line) => {
                let file = self.file(file);
                self.locs.loc(frame, file, line)
            }
        };
        self.push(start, end, piece, exact, statement);
    }

    /// Code from `at` to `until` that no row covers, as far as it is some function's; the instances after that.
    fn uncovered<'i>(&mut self, mut instances: &'i [Instance], mut at: u64, until: u64) -> &'i [Instance] {
        while let [instance, rest @ ..] = instances
            && instance.start < until
        {
            at = at.max(instance.start);
            while at < instance.end.min(until) {
                at = self.without_row(at, instance.end.min(until), *instance);
            }
            if instance.end > until {
                break;
            }
            instances = rest;
        }
        instances
    }

    /// Code of a function that no row covers; how far the answer holds.
    fn without_row(&mut self, start: u64, end: u64, instance: Instance) -> u64 {
        let after = self.lines.ends.partition_point(|sequence| sequence.at <= start);
        let end = self.lines.ends.get(after).map_or(end, |sequence| sequence.at.min(end));
        let last = after.checked_sub(1).map(|index| self.lines.ends[index]);
        let (file, line) = last.map_or((None, None), |last| (self.file(last.file), last.line));
        let frame = self.frame(Some(instance.node));
        let (exact, statement) = (self.locs.loc(frame, None, None), self.locs.loc(frame, file, line));
        self.push(start, end, Some(instance.piece), exact, statement);
        end
    }

    fn push(&mut self, start: u64, end: u64, piece: Option<Id32>, exact: u32, statement: u32) {
        match self.out.ranges.last_mut() {
            Some(last)
                if (last.exact, last.statement, last.end, last.piece) == (exact, statement, start, piece) =>
            {
                last.end = end;
            }
            _ => self.out.ranges.push(UnitRange { start, end, piece, exact, statement }),
        }
    }

    /// The frame of a node, or of no function.
    #[inline]
    fn frame(&mut self, node: Option<u32>) -> u32 {
        match node.map(|node| (node, self.frames[node as usize])) {
            Some((_, Some(frame))) => frame.get(),
            Some((node, None)) => self.add_frame(node),
            None => self.locs.frame(None, None),
        }
    }

    /// Adds the frames of a node and of those around it that have none, and the locs of their calls; the number of its own.
    #[inline(never)]
    fn add_frame(&mut self, node: u32) -> u32 {
        let (mut next, mut caller) = (Some(node), None);
        while let Some(node) = next {
            caller = self.frames[node as usize].map(Id32::get);
            if caller.is_some() {
                break;
            }
            self.chain.push(node);
            next = self.functions.nodes[node as usize].parent.map(Id32::get);
        }
        while let Some(number) = self.chain.pop() {
            let node = &self.functions.nodes[number as usize];
            let call = caller.and_then(|caller| {
                let file = node.call_file.and_then(|file| self.file(file.get()));
                Id32::new(u64::from(self.locs.loc(caller, file, node.call_line)))
            });
            let frame = self.locs.frame(call, node.name);
            self.frames[number as usize] = Id32::new(frame.into());
            caller = Some(frame);
        }
        // The last one is that of `node`.
        caller.unwrap_or(0)
    }

    /// The number of a file of the unit's line table; `None` where the table has no such file.
    #[inline]
    fn file(&mut self, index: u32) -> Option<Id32> {
        match *self.file_numbers.get(index as usize)? {
            Some(number) => number,
            None => self.add_file(index),
        }
    }

    fn add_file(&mut self, index: u32) -> Option<Id32> {
        let number = self.lines.path(self.image, self.unit, index.into()).and_then(|path| {
            self.out.files.push(path);
            Id32::new(self.out.files.len() as u64 - 1)
        });
        self.file_numbers[index as usize] = Some(number);
        number
    }
}
