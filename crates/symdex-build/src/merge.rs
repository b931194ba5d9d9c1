//! The ranges of all units, merged in address order and cut into chunks.

use std::cmp::Reverse;

use symdex::write::{ChunkRanges, Id32, Loc, Range};

use crate::dwarf::{Piece, Rank, UnitRanges};
use crate::flatten::{Interval, flatten};
use crate::pools::Pool;

/// A chunk's ranges, and how many names and files the chunks before it used.
pub(crate) struct ChunkJob {
    pub(crate) index: u64,
    pub(crate) ranges: ChunkRanges,
    pub(crate) new_names: u32,
    pub(crate) new_files: u32,
}

/// Names and files of an index.
#[derive(Default)]
pub(crate) struct Pools<'d> {
    pub(crate) names: Pool<'d>,
    pub(crate) files: Pool<'d>,
}

/// A unit came up whose code starts below what was merged already.
pub(crate) struct OutOfOrder;

/// Merges units that come in the order of their lowest addresses; those whose code is passed are let go.
pub(crate) struct Merge<'d> {
    units: Vec<Option<LiveUnit<'d>>>,
    /// Stretches not merged yet, in no order.
    pending: Vec<Segment>,
    /// Everything below is merged.
    merged: u64,
    cutter: Cutter,
    pub(crate) functions: u64,
}

/// Neighbouring ranges of one unit that belong to one piece of a function, or to none.
#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// Line rows without a function give way to any function.
    rank: Option<Rank>,
    unit: usize,
}

struct LiveUnit<'d> {
    ranges: UnitRanges<'d>,
    segments: usize,
    /// The index's numbers of the unit's names and files, once needed.
    names: Vec<Option<Option<Id32>>>,
    files: Vec<Option<Option<Id32>>>,
    /// For each loc of the unit the chunk (by index plus one) that has it, and its number there.
    locs: Vec<(u64, u32)>,
    counted: Vec<bool>,
}

impl<'d> Merge<'d> {
    pub(crate) fn new(chunk_span: u32) -> Self {
        let cutter = Cutter { chunk_span: u64::from(chunk_span), ..Cutter::default() };
        Self { units: Vec::new(), pending: Vec::new(), merged: 0, cutter, functions: 0 }
    }

    /// How many ranges were merged so far.
    pub(crate) fn ranges(&self) -> u64 {
        self.cutter.ranges
    }

    /// How many bytes they cover, and how many of these with a function.
    pub(crate) fn covered(&self) -> (u64, u64) {
        (self.cutter.covered, self.cutter.covered_function)
    }

    /// Takes in a unit.
    pub(crate) fn add(&mut self, ranges: UnitRanges<'d>) -> Result<(), OutOfOrder> {
        let Some(first) = ranges.ranges.first() else { return Ok(()) };
        if first.start < self.merged {
            return Err(OutOfOrder);
        }
        let unit = self.units.len();
        let before = self.pending.len();
        for segment in ranges.ranges.chunk_by(|a, b| a.end == b.start && a.piece == b.piece) {
            if let [first, .., last] | [first @ last] = segment {
                let rank = first.piece.map(|piece| ranges.pieces[piece.index()].rank);
                self.pending.push(Segment { start: first.start, end: last.end, rank, unit });
            }
        }
        self.units.push(Some(LiveUnit {
            segments: self.pending.len() - before,
            names: vec![None; ranges.names.len()],
            files: vec![None; ranges.files.len()],
            locs: vec![(0, 0); ranges.locs.len()],
            counted: vec![false; ranges.functions as usize],
            ranges,
        }));
        Ok(())
    }

    /// Merges everything below `watermark`; no unit that comes later may have code there. The chunks that are complete.
    pub(crate) fn advance(&mut self, watermark: u64, pools: &mut Pools<'d>) -> Vec<ChunkJob> {
        let pending = std::mem::take(&mut self.pending).into_iter();
        let (mut due, later): (Vec<Segment>, Vec<Segment>) =
            pending.partition(|segment| segment.start < watermark);
        due.sort_by_key(|segment| (segment.start, segment.unit));
        self.pending = later;
        let interval = |segment: &Segment| Interval {
            start: segment.start,
            end: segment.end.min(watermark),
            priority: (segment.rank, Reverse(segment.unit)),
        };
        let intervals: Vec<_> = due.iter().map(interval).collect();
        for stretch in flatten(&intervals) {
            let Some(unit) = &mut self.units[due[stretch.owner].unit] else { continue };
            let first = unit.ranges.ranges.partition_point(|range| range.end <= stretch.start);
            for number in first..unit.ranges.ranges.len() {
                let range = unit.ranges.ranges[number];
                if range.start >= stretch.end {
                    break;
                }
                let piece = range.piece.map(|piece| unit.ranges.pieces[piece.index()]);
                self.functions += piece.map_or(0, |piece| unit.count(&piece));
                let range = Range {
                    start: range.start.max(stretch.start),
                    end: range.end.min(stretch.end),
                    function_start: piece.map(|piece| piece.start),
                    exact: range.exact,
                    statement: range.statement,
                };
                let entry = piece.and_then(|piece| piece.entry.filter(|_| piece.start == range.start));
                self.cutter.add(range, entry, due[stretch.owner].unit, unit, pools);
            }
        }
        for mut segment in due {
            if segment.end > watermark {
                segment.start = watermark;
                self.pending.push(segment);
                continue;
            }
            let unit = &mut self.units[segment.unit];
            if let Some(live) = unit {
                live.segments -= 1;
                if live.segments == 0 {
                    *unit = None;
                }
            }
        }
        self.merged = watermark;
        self.cutter.complete(watermark)
    }
}

impl<'d> LiveUnit<'d> {
    /// 1 for the first range of a function, else 0.
    fn count(&mut self, piece: &Piece) -> u64 {
        u64::from(!std::mem::replace(&mut self.counted[piece.function as usize], true))
    }

    /// The number of one of the unit's locs in the chunk of `job`, which gets it and its callers if it lacks them.
    fn loc(&mut self, loc: u32, job: &mut ChunkJob, pools: &mut Pools<'d>) -> u32 {
        let mut missing = Vec::new();
        let mut next = Some(loc);
        while let Some(loc) = next.filter(|loc| self.locs[*loc as usize].0 != job.index + 1) {
            missing.push(loc);
            next = self.ranges.locs[loc as usize].parent.map(Id32::get);
        }
        for number in missing.into_iter().rev() {
            let Loc { parent, name, file, line } = self.ranges.locs[number as usize];
            let parent = parent.and_then(|parent| Id32::new(u64::from(self.locs[parent.index()].1)));
            let (name, file) = (self.name(name, pools), self.file(file, pools));
            let in_chunk = u32::try_from(job.ranges.locs.len()).unwrap_or(u32::MAX);
            job.ranges.locs.push(Loc { parent, name, file, line });
            self.locs[number as usize] = (job.index + 1, in_chunk);
        }
        self.locs[loc as usize].1
    }

    fn name(&mut self, name: Option<Id32>, pools: &mut Pools<'d>) -> Option<Id32> {
        let name = name?.index();
        *self.names[name].get_or_insert_with(|| pools.names.number(self.ranges.names[name].clone()))
    }

    fn file(&mut self, file: Option<Id32>, pools: &mut Pools<'d>) -> Option<Id32> {
        let file = file?.index();
        *self.files[file].get_or_insert_with(|| pools.files.number(self.ranges.files[file].clone().into()))
    }
}

/// Cuts ranges at the boundaries of chunks.
#[derive(Default)]
struct Cutter {
    chunk_span: u64,
    /// The chunk at hand.
    job: Option<ChunkJob>,
    done: Vec<ChunkJob>,
    /// The last range, by its unit's own numbers, to notice one that goes on.
    last: Option<(usize, Range)>,
    ranges: u64,
    /// Bytes that ranges cover, and how many of these with a function.
    covered: u64,
    covered_function: u64,
}

impl Cutter {
    /// Adds a range; in its first chunk it answers `entry`, if that is given.
    fn add<'d>(
        &mut self,
        range: Range,
        mut entry: Option<Id32>,
        unit_number: usize,
        unit: &mut LiveUnit<'d>,
        pools: &mut Pools<'d>,
    ) {
        let answer = |range: &Range| (range.function_start, range.exact, range.statement);
        let goes_on = |(unit, last): (usize, Range)| {
            unit == unit_number && last.end == range.start && answer(&last) == answer(&range)
        };
        self.ranges += u64::from(!self.last.is_some_and(goes_on));
        self.last = Some((unit_number, range));
        let size = range.end - range.start;
        self.covered += size;
        self.covered_function += if range.function_start.is_some() { size } else { 0 };
        let mut start = range.start;
        while start < range.end {
            let index = start / self.chunk_span;
            let end = range.end.min((index + 1) * self.chunk_span);
            let job = self.job(index, pools);
            let [exact, statement] = match entry.take() {
                Some(entry) => [entry.get(); 2],
                None => [range.exact, range.statement],
            }
            .map(|loc| unit.loc(loc, job, pools));
            let part = Range { start, end, exact, statement, ..range };
            match job.ranges.ranges.last_mut() {
                Some(last) if *last == (Range { start: last.start, end: start, ..part }) => last.end = end,
                _ => job.ranges.ranges.push(part),
            }
            start = end;
        }
    }

    /// The chunk with this index, begun if it is not the one at hand.
    fn job(&mut self, index: u64, pools: &Pools<'_>) -> &mut ChunkJob {
        self.done.extend(self.job.take_if(|job| job.index != index));
        self.job.get_or_insert_with(|| ChunkJob {
            index,
            ranges: ChunkRanges::default(),
            new_names: pools.names.len(),
            new_files: pools.files.len(),
        })
    }

    /// The chunks that end at or below `watermark`.
    fn complete(&mut self, watermark: u64) -> Vec<ChunkJob> {
        let chunk_span = self.chunk_span;
        self.done.extend(self.job.take_if(|job| (job.index + 1) * chunk_span <= watermark));
        std::mem::take(&mut self.done)
    }
}
