//! The ranges of a unit: its inline instances and its line rows, joined.

use std::cmp::Reverse;

use symdex::write::{Id32, Loc};

use super::functions::{Functions, functions};
use super::instances::{Instance, instances};
use super::lines::{Lines, Row};
use super::locs::Locs;
use super::units::Units;
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
    let mut problems = std::mem::take(&mut functions.problems);
    let (pieces, instances) = instances(image, &functions);
    let lines = Lines::read(image, &units.all[unit], &instances, &mut problems);
    let mut join = Join {
        image,
        unit: &units.all[unit],
        functions: &functions,
        lines: &lines,
        frames: vec![None; functions.nodes.len()],
        chain: Vec::new(),
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
        problems,
        locs: locs.locs,
        names: functions.names,
        ..out
    }
}

/// A file and a line of the unit's own numbers.
type Position = (Option<Id32>, Option<Id32>);

struct Join<'a, 'd> {
    image: &'a Image<'d>,
    unit: &'a super::units::UnitEntry<'d>,
    functions: &'a Functions<'d>,
    lines: &'a Lines<'d>,
    /// For each node the number of its frame, once needed: so frames and locs are numbered by address, as they are used later.
    frames: Vec<Option<Id32>>,
    /// Room for nodes that lack theirs.
    chain: Vec<u32>,
    locs: Locs,
    /// For each file of the line table its number, once known.
    file_numbers: Vec<Option<Option<Id32>>>,
    out: UnitRanges<'d>,
}

impl Join<'_, '_> {
    fn run(&mut self, instances: &[Instance]) {
        let rows = &self.lines.rows;
        let (mut instances, mut rows) = (instances.iter(), rows.iter());
        let (mut instance, mut row) = (instances.next(), rows.next());
        let mut at = 0;
        loop {
            while instance.is_some_and(|instance| instance.end <= at) {
                instance = instances.next();
            }
            while row.is_some_and(|row| row.end <= at) {
                row = rows.next();
            }
            let next = match (instance, row) {
                (Some(instance), Some(row)) => instance.start.min(row.start),
                (Some(instance), None) => instance.start,
                (None, Some(row)) => row.start,
                (None, None) => return,
            };
            at = at.max(next);
            let limit = |start: u64, end: u64| if start <= at { end } else { start };
            let instance_limit = instance.map_or(u64::MAX, |instance| limit(instance.start, instance.end));
            let end = row.map_or(u64::MAX, |row| limit(row.start, row.end)).min(instance_limit);
            let instance = instance.copied().filter(|instance| instance.start <= at);
            at = match row.filter(|row| row.start <= at) {
                Some(row) => {
                    self.covered(at, end, instance, row);
                    end
                }
                // Somebody reaches up to `at`, and it is not a row.
                None => instance.map_or(end, |instance| self.uncovered(at, end, instance)),
            };
        }
    }

    /// Code with a row.
    fn covered(&mut self, start: u64, end: u64, instance: Option<Instance>, row: &Row) {
        let node = instance.map(|instance| instance.node);
        let position = (self.file(row.file), row.line);
        let exact = self.frame(node, position);
        let statement = match row.statement == (row.file, row.line) {
            true => exact,
            false => {
                let position = (self.file(row.statement.0), row.statement.1);
                self.frame(node, position)
            }
        };
        self.push(start, end, instance.map(|instance| instance.piece), exact, statement);
    }

    /// Code of a function that no row covers; how far the answer holds.
    fn uncovered(&mut self, start: u64, end: u64, instance: Instance) -> u64 {
        let after = self.lines.ends.partition_point(|sequence| sequence.at <= start);
        let end = self.lines.ends.get(after).map_or(end, |sequence| sequence.at.min(end));
        let last = after.checked_sub(1).map(|index| self.lines.ends[index]);
        let statement = last.map_or((None, None), |last| (self.file(last.file), last.line));
        let node = Some(instance.node);
        let (exact, statement) = (self.frame(node, (None, None)), self.frame(node, statement));
        self.push(start, end, Some(instance.piece), exact, statement);
        end
    }

    fn push(&mut self, start: u64, end: u64, piece: Option<Id32>, exact: u32, statement: u32) {
        let range = UnitRange { start, end, piece, exact, statement };
        match self.out.ranges.last_mut() {
            Some(last) if *last == (UnitRange { start: last.start, end: start, ..range }) => last.end = end,
            _ => self.out.ranges.push(range),
        }
    }

    /// The loc of a node, or of no function, at a position.
    fn frame(&mut self, node: Option<u32>, (file, line): Position) -> u32 {
        let frame = match node {
            Some(node) => match self.frames[node as usize] {
                Some(frame) => frame.get(),
                None => self.add_frame(node),
            },
            None => self.locs.frame(None, None),
        };
        self.locs.loc(frame, file, line)
    }

    /// Adds the frames of a node and of those around it that have none, and the locs of their calls; the number of its own.
    fn add_frame(&mut self, node: u32) -> u32 {
        let mut chain = std::mem::take(&mut self.chain);
        let (mut next, mut caller) = (Some(node), None);
        while let Some(node) = next {
            caller = self.frames[node as usize].map(Id32::get);
            if caller.is_some() {
                break;
            }
            chain.push(node);
            next = self.functions.nodes[node as usize].parent.map(Id32::get);
        }
        for number in chain.drain(..).rev() {
            let node = &self.functions.nodes[number as usize];
            let call = caller.and_then(|caller| {
                let file = node.call_file.and_then(|file| self.file(file.get()));
                Id32::new(u64::from(self.locs.loc(caller, file, node.call_line)))
            });
            let frame = self.locs.frame(call, node.name);
            self.frames[number as usize] = Id32::new(frame.into());
            caller = Some(frame);
        }
        self.chain = chain;
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
