//! The ranges of all units, merged in address order.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use symdex::write::Range;

use crate::cutter::{ChunkJob, Cutter, Pools};
use crate::dwarf::{Rank, UnitRange, UnitRanges};
use crate::flatten::{Interval, flatten};
use crate::live::{LiveUnit, Part};
use crate::spill::Spill;

/// A unit came up whose code starts below what was merged already.
pub(crate) struct OutOfOrder;

/// Chunks whose segments are kept, and put aside, together.
const CHUNKS_PER_STRIPE: u64 = 16;
/// Segments that are merged in one step, about.
const STEP: usize = if cfg!(test) { 4 } else { 1 << 10 };

/// Merges units that come in the order of their lowest addresses; those whose code is passed are let go.
pub(crate) struct Merge<'d> {
    units: Vec<Option<LiveUnit<'d>>>,
    /// Places among `units` that can be used again.
    free: Vec<usize>,
    /// For each unit which of its functions were counted.
    counted: Vec<Vec<bool>>,
    /// Segments that are merged in part, up to `merged`, in no order.
    open: Vec<Segment>,
    /// Segments that are not merged yet, by the stripe they start in.
    pending: BTreeMap<u64, Vec<Segment>>,
    /// Others, of units that are not kept in memory.
    spilled: Spill,
    /// Everything below is merged.
    merged: u64,
    cutter: Cutter,
    pub(crate) functions: u64,
    /// About how many bytes of memory the units take.
    size: usize,
    /// The same after the last time that units were put aside.
    least_size: usize,
    /// Segments that came since the last step, and those that were left then.
    added: usize,
    left: usize,
}

/// Neighbouring ranges of one unit that belong to one piece of a function, or to none.
#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// Line rows without a function give way to any function.
    rank: Option<Rank>,
    /// The unit's number.
    order: u32,
    /// Where in `units` it is, or the part of it that has the segment.
    place: usize,
    /// Its ranges there: the first one, and the one behind the last.
    ranges: (usize, usize),
}

impl<'d> Merge<'d> {
    pub(crate) fn new(chunk_span: u32) -> Self {
        Self {
            units: Vec::new(),
            free: Vec::new(),
            counted: Vec::new(),
            open: Vec::new(),
            pending: BTreeMap::new(),
            spilled: Spill::default(),
            merged: 0,
            cutter: Cutter::new(u64::from(chunk_span)),
            functions: 0,
            size: 0,
            least_size: 0,
            added: 0,
            left: 0,
        }
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
    pub(crate) fn add(&mut self, ranges: UnitRanges<'d>, pools: &mut Pools<'d>) -> Result<(), OutOfOrder> {
        let Some(first) = ranges.ranges.first() else { return Ok(()) };
        if first.start < self.merged {
            return Err(OutOfOrder);
        }
        let order = u32::try_from(self.counted.len()).unwrap_or(u32::MAX);
        self.counted.push(vec![false; ranges.functions as usize]);
        self.added += self.keep(LiveUnit::new(order, ranges, pools));
        Ok(())
    }

    /// Whether so much came that a step pays, which looks again at what was left; or there is too much in memory.
    pub(crate) fn is_time_to_step(&self, max_memory: usize) -> bool {
        self.added >= STEP + self.left || self.is_time_to_spill(max_memory)
    }

    /// Whether more than `max_memory` is in memory, much of which can be put aside.
    pub(crate) fn is_time_to_spill(&self, max_memory: usize) -> bool {
        self.size > max_memory.max(2 * self.least_size)
    }

    /// Keeps a unit, or a part of one, until it is merged; how many segments it has.
    fn keep(&mut self, mut unit: LiveUnit<'d>) -> usize {
        let place = self.free.pop().unwrap_or(self.units.len());
        let mut behind = 0;
        for segment in unit.ranges.ranges.chunk_by(|a, b| a.end == b.start && a.piece == b.piece) {
            if let [first, .., last] | [first @ last] = segment {
                let rank = first.piece.map(|piece| unit.ranges.pieces[piece.index()].rank);
                let start = first.start.max(self.merged);
                let ranges = (behind, behind + segment.len());
                behind = ranges.1;
                let segment = Segment { start, end: last.end, rank, order: unit.order, place, ranges };
                match first.start < self.merged {
                    true => self.open.push(segment),
                    false => self.pending.entry(start / self.stripe_span()).or_default().push(segment),
                }
                unit.segments += 1;
            }
        }
        self.size += unit.size();
        let segments = unit.segments;
        match self.units.get_mut(place) {
            Some(free) => *free = Some(unit),
            None => self.units.push(Some(unit)),
        }
        segments
    }

    /// Merges more of what lies below `watermark`, where no unit that comes later may have code; the chunks that are complete. `None`
    /// once everything is merged.
    pub(crate) fn step(
        &mut self,
        watermark: u64,
        pools: &mut Pools<'d>,
    ) -> io::Result<Option<Vec<ChunkJob>>> {
        let mut due = std::mem::take(&mut self.open);
        // As many new ones as there are old ones, at the least: so the time is linear, however long segments are.
        let enough = due.len() + due.len().max(STEP);
        while due.len() < enough
            && let Some(stripe) = self.next_stripe(watermark)
        {
            for part in self.spilled.read(stripe)? {
                self.keep(LiveUnit::of_part(part));
            }
            let segments = self.pending.remove(&stripe).unwrap_or_default();
            let (now, later): (Vec<_>, Vec<_>) =
                segments.into_iter().partition(|segment| segment.start < watermark);
            due.extend(now);
            if !later.is_empty() {
                self.pending.insert(stripe, later);
            }
        }
        let end = self.next_stripe(watermark).map_or(watermark, |stripe| stripe * self.stripe_span());
        if due.is_empty() || end <= self.merged {
            self.open = due;
            self.merged = self.merged.max(watermark);
            self.added = 0;
            self.left = self.open.len() + self.pending.first_key_value().map_or(0, |(_, first)| first.len());
            let last = self.cutter.complete(watermark);
            return Ok(Some(last).filter(|last| !last.is_empty()));
        }
        due.sort_by_key(|segment| (segment.start, segment.order));
        self.merge(&due, end, pools);
        self.merged = end;
        for segment in due {
            match segment.end > end {
                true => self.open.push(Segment { start: end, ..segment }),
                false => self.let_go(segment.place),
            }
        }
        Ok(Some(self.cutter.complete(end)))
    }

    /// The first stripe that has segments, maybe in the temporary file, that start below `watermark`.
    fn next_stripe(&self, watermark: u64) -> Option<u64> {
        let is_due = |stripe: &u64| stripe.saturating_mul(self.stripe_span()) < watermark;
        let spilled = self.spilled.first().filter(is_due);
        let starts_below = |segments: &[Segment]| segments.iter().any(|segment| segment.start < watermark);
        let pending = self.pending.first_key_value();
        let pending = pending.filter(|(stripe, segments)| is_due(stripe) && starts_below(segments));
        [spilled, pending.map(|(stripe, _)| *stripe)].into_iter().flatten().min()
    }

    fn stripe_span(&self) -> u64 {
        CHUNKS_PER_STRIPE * self.cutter.chunk_span
    }

    /// Merges what of the segments, which are sorted by start, lies below `end`.
    fn merge(&mut self, due: &[Segment], end: u64, pools: &mut Pools<'d>) {
        let interval = |segment: &Segment| Interval {
            start: segment.start,
            end: segment.end.min(end),
            priority: (segment.rank, Reverse(segment.order)),
        };
        let intervals: Vec<_> = due.iter().map(interval).collect();
        for stretch in flatten(&intervals) {
            let Segment { place, order, ranges: (first, behind), .. } = due[stretch.owner];
            let Some(unit) = &mut self.units[place] else { continue };
            let ranges = std::mem::take(&mut unit.ranges.ranges);
            let of_segment = &ranges[first..behind];
            // All of them are of one piece.
            let piece = of_segment.first().and_then(|range| range.piece);
            let piece = piece.map(|piece| unit.ranges.pieces[piece.index()]);
            if let Some(piece) = piece {
                let counted = &mut self.counted[order as usize][piece.function as usize];
                self.functions += u64::from(!std::mem::replace(counted, true));
            }
            let of_stretch = overlapping(of_segment, stretch.start, stretch.end);
            let is_rest = of_stretch.first().is_some_and(|first| first.start < stretch.start);
            self.cutter.count(order, stretch.start..stretch.end, of_stretch.len(), is_rest, piece.is_some());
            for UnitRange { start, end, exact, statement, .. } in of_stretch {
                let range = Range {
                    start: (*start).max(stretch.start),
                    end: (*end).min(stretch.end),
                    function_start: piece.map(|piece| piece.start),
                    exact: *exact,
                    statement: *statement,
                };
                let entry = piece.and_then(|piece| piece.entry.filter(|_| piece.start == range.start));
                self.cutter.add(range, entry, unit, pools);
            }
            unit.ranges.ranges = ranges;
        }
    }

    /// One of the segments of the unit at `place` is merged.
    fn let_go(&mut self, place: usize) {
        let Some(unit) = &mut self.units[place] else { return };
        unit.segments -= 1;
        if unit.segments != 0 {
            return;
        }
        self.size -= unit.size();
        if unit.part.is_none() {
            self.counted[unit.order as usize] = Vec::new();
        }
        self.units[place] = None;
        self.free.push(place);
    }

    /// Moves all units from memory to a temporary file, but for what of them is merged in part. The chunks will be the same.
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        if let Some(job) = &mut self.cutter.job {
            self.units.iter().flatten().for_each(|unit| unit.note_locs(job));
        }
        for (stripe, segments) in std::mem::take(&mut self.pending) {
            let parts = self.parts(segments);
            self.spilled.write(stripe, &parts)?;
        }
        let open = std::mem::take(&mut self.open);
        let open = self.parts(open);
        (self.units, self.free, self.size) = Default::default();
        for part in open {
            self.keep(LiveUnit::of_part(part));
        }
        self.least_size = self.size;
        Ok(())
    }

    /// The parts of units that `segments` are.
    fn parts(&mut self, mut segments: Vec<Segment>) -> Vec<Part> {
        segments.sort_by_key(|segment| (segment.place, segment.start));
        let mut parts = Vec::new();
        for segments in segments.chunk_by(|a, b| a.place == b.place) {
            if let Some(unit) = &mut self.units[segments[0].place] {
                let first_loc = self.spilled.reserve_locs(unit.ranges.locs.len());
                let segments = segments.iter().map(|segment| (segment.start, segment.end));
                parts.push(unit.part(segments, first_loc));
            }
        }
        parts
    }
}

/// Those of `ranges`, which are sorted, that overlap `start..end`; most often all of them do.
fn overlapping(ranges: &[UnitRange], start: u64, end: u64) -> &[UnitRange] {
    let first = match ranges.first() {
        Some(range) if range.start < start => ranges.partition_point(|range| range.end <= start),
        _ => 0,
    };
    let behind = match ranges.last() {
        Some(range) if range.start >= end => ranges.partition_point(|range| range.start < end),
        _ => ranges.len(),
    };
    &ranges[first.min(behind)..behind]
}
