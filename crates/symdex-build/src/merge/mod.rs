//! The ranges of all units, merged in address order.
//!
//! # Why units wait
//!
//! Units are added in the order of their lowest addresses. Up to the lowest address of the next unit, the *watermark*,
//! all code is known and can be merged. If the linker has placed the units one after the other, each unit is merged and
//! dropped when the next one is added. An order file scatters the functions of all units over the image. Nearly every
//! unit then has code up to the end of the image, and waits until the merge gets there.
//!
//! If the waiting units take more than the memory limit, they are cut into parts by buckets of 16 chunks, and the
//! parts go to a temporary file ([`Spill`]). A part is read again when the merge reaches its bucket. It keeps the order
//! of its unit and the numbers of its strings, so that the index does not depend on the limit.
//!
//! # Why time is linear
//!
//! A step merges the segments of some buckets. Segments that reach beyond these buckets are carried over to the next
//! step, which processes them again. Long segments can be carried over many times. Therefore a step takes at least as
//! many new segments as it carries over, and does not start before that many segments are added. The time of all steps
//! together is then in proportion to the number of segments.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use symdex::write::CodeRange;

use crate::chunk_job::ChunkJob;
use crate::chunker::Chunker;
use crate::flatten::{Interval, flatten};
use crate::pending::PendingUnit;
use crate::pools::Pools;
use crate::spill::Spill;
use crate::unit_ranges::{Rank, UnitRange, UnitRanges};

/// The error for an added unit that has code at addresses that are already merged.
pub(crate) struct OutOfOrder;

/// Why a step of the merge fails.
pub(crate) enum StepError {
    /// The units of one bucket take more memory than the limit.
    TooLarge,
    /// The temporary file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// How many chunks a bucket has. Segments are kept and spilled by the bucket they start in.
const CHUNKS_PER_BUCKET: u64 = 16;
/// About how many segments one step merges.
const STEP: usize = if cfg!(test) { 4 } else { 1 << 10 };

/// Merges units, which are added in the order of their lowest addresses, and drops those whose code is merged.
pub(crate) struct Merge {
    units: Vec<Option<PendingUnit>>,
    /// Indexes of `units` that can be used again.
    free: Vec<usize>,
    /// How many units were added.
    added_units: u32,
    /// For each function of the added units, whether one of its ranges was merged.
    counted: Vec<bool>,
    /// Segments that are merged up to `merged` and reach beyond it, in no order.
    open: Vec<Segment>,
    /// Segments that are not merged yet, by the bucket they start in.
    pending: BTreeMap<u64, Vec<Segment>>,
    /// Units, and parts of units, that are not in memory.
    spilled: Spill,
    /// All addresses below it are merged.
    merged: u64,
    chunker: Chunker,
    pub(crate) functions: u64,
    /// About how many bytes of memory the units take.
    size: usize,
    /// The value of `size` after units were last spilled.
    least_size: usize,
    /// How many segments were added since the last step.
    added: usize,
    /// How many segments the last step left.
    left: usize,
}

/// Neighbouring ranges of one unit that belong to one function range, or to none.
#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// Line rows without a function give way to any function.
    rank: Option<Rank>,
    /// The unit's position in the order.
    order: u32,
    /// Its index in [`Merge::units`].
    unit: usize,
    /// The indexes of its ranges in the unit: the first index and the exclusive end.
    ranges: (usize, usize),
}

impl Merge {
    pub(crate) fn new(chunk_span: u32) -> Self {
        Self {
            units: Vec::new(),
            free: Vec::new(),
            added_units: 0,
            counted: Vec::new(),
            open: Vec::new(),
            pending: BTreeMap::new(),
            spilled: Spill::default(),
            merged: 0,
            chunker: Chunker::new(u64::from(chunk_span)),
            functions: 0,
            size: 0,
            least_size: 0,
            added: 0,
            left: 0,
        }
    }

    /// How many functions the added units have.
    pub(crate) fn added_functions(&self) -> u64 {
        self.counted.len() as u64
    }

    /// How many ranges were merged so far.
    pub(crate) fn ranges(&self) -> u64 {
        self.chunker.ranges
    }

    /// The number of bytes that the merged ranges cover, and the number of these bytes that belong to a function.
    pub(crate) fn covered(&self) -> (u64, u64) {
        (self.chunker.covered, self.chunker.covered_function)
    }

    /// Adds a unit.
    ///
    /// # Errors
    ///
    /// [`OutOfOrder`] if it has code at addresses that are merged already.
    pub(crate) fn add<'d>(
        &mut self,
        ranges: UnitRanges<'d>,
        pools: &mut Pools<'d>,
    ) -> Result<(), OutOfOrder> {
        let Some(first) = ranges.ranges.first() else { return Ok(()) };
        if u64::from(first.start) < self.merged {
            return Err(OutOfOrder);
        }
        let first_function = u32::try_from(self.counted.len()).unwrap_or(u32::MAX);
        self.counted.resize(self.counted.len() + ranges.functions as usize, false);
        let unit = PendingUnit::new(self.added_units, first_function, ranges, pools);
        self.added_units = self.added_units.saturating_add(1);
        self.added += self.keep(unit);
        Ok(())
    }

    /// Whether it is time for a step: as many segments were added as were carried over, or too much is in memory.
    pub(crate) fn is_time_to_step(&self, max_memory: usize) -> bool {
        self.added >= STEP + self.left || self.is_time_to_spill(max_memory)
    }

    /// Whether pending units take more than `max_memory`, and much of that can be spilled.
    pub(crate) fn is_time_to_spill(&self, max_memory: usize) -> bool {
        self.size > max_memory.max(2 * self.least_size)
    }

    /// Stores a unit, or a part of one, until it is merged. Returns how many segments it has.
    fn keep(&mut self, mut unit: PendingUnit) -> usize {
        let index = self.free.pop().unwrap_or(self.units.len());
        let mut next = 0;
        for ranges in unit.ranges.chunk_by(|a, b| a.end == b.start && a.function_range == b.function_range) {
            if let [first, .., last] | [first @ last] = ranges {
                let rank = first.function_range.map(|number| unit.function_ranges[number.index()].rank);
                let start = u64::from(first.start).max(self.merged);
                let ranges = (next, next + ranges.len());
                next = ranges.1;
                let segment =
                    Segment { start, end: last.end.into(), rank, order: unit.order, unit: index, ranges };
                if u64::from(first.start) < self.merged {
                    self.open.push(segment);
                } else {
                    self.pending.entry(self.bucket(start)).or_default().push(segment);
                }
                unit.segments += 1;
            }
        }
        self.size += unit.size() + unit.segments * size_of::<Segment>();
        let segments = unit.segments;
        match self.units.get_mut(index) {
            Some(free) => *free = Some(unit),
            None => self.units.push(Some(unit)),
        }
        segments
    }

    /// Merges some segments below `watermark`. Units that are added later may have no code there. Returns the chunks
    /// that are complete, or `None` once everything below `watermark` is merged.
    ///
    /// # Errors
    ///
    /// [`StepError::TooLarge`] if the units of a bucket take more than `max_memory`.
    pub(crate) fn step(
        &mut self,
        watermark: u64,
        max_memory: usize,
        pools: &mut Pools<'_>,
    ) -> Result<Option<Vec<ChunkJob>>, StepError> {
        let mut due = std::mem::take(&mut self.open);
        // For linear time, a step takes at least as many new segments as it carries over.
        let enough = due.len() + due.len().max(STEP);
        while due.len() < enough
            && let Some(bucket) = self.next_bucket(watermark)
        {
            if self.spilled.size_of(bucket) > max_memory {
                return Err(StepError::TooLarge);
            }
            for unit in self.spilled.take(bucket)? {
                self.keep(unit);
            }
            let mut segments = self.pending.remove(&bucket).unwrap_or_default();
            // Nearly all buckets have no segment left.
            let later: Vec<_> = segments.extract_if(.., |segment| segment.start >= watermark).collect();
            if due.is_empty() {
                due = segments;
            } else {
                due.append(&mut segments);
            }
            if !later.is_empty() {
                self.pending.insert(bucket, later);
            }
        }
        let end = self.next_bucket(watermark).map_or(watermark, |bucket| bucket * self.bucket_span());
        if due.is_empty() || end <= self.merged {
            self.open = due;
            self.merged = self.merged.max(watermark);
            self.added = 0;
            self.left = self.open.len() + self.pending.first_key_value().map_or(0, |(_, first)| first.len());
            let last = self.chunker.complete(watermark);
            return Ok(Some(last).filter(|last| !last.is_empty()));
        }
        due.sort_by_key(|segment| (segment.start, segment.order));
        self.merge(&due, end, pools);
        self.merged = end;
        for segment in due {
            if segment.end > end {
                self.open.push(Segment { start: end, ..segment });
            } else {
                self.finish_segment(segment.unit);
            }
        }
        Ok(Some(self.chunker.complete(end)))
    }

    /// The first bucket with a segment that starts below `watermark`, in memory or in the temporary file.
    fn next_bucket(&self, watermark: u64) -> Option<u64> {
        let is_due = |bucket: &u64| bucket.saturating_mul(self.bucket_span()) < watermark;
        let spilled = self.spilled.first().filter(is_due);
        let starts_below = |segments: &[Segment]| segments.iter().any(|segment| segment.start < watermark);
        let pending = self.pending.first_key_value();
        let pending = pending.filter(|(bucket, segments)| is_due(bucket) && starts_below(segments));
        [spilled, pending.map(|(bucket, _)| *bucket)].into_iter().flatten().min()
    }

    fn bucket_span(&self) -> u64 {
        CHUNKS_PER_BUCKET * self.chunker.chunk_span
    }

    /// The bucket of an offset.
    fn bucket(&self, offset: u64) -> u64 {
        offset / self.bucket_span()
    }

    /// Merges the parts below `end` of segments, which are sorted by start.
    fn merge(&mut self, due: &[Segment], end: u64, pools: &mut Pools<'_>) {
        let interval = |segment: &Segment| Interval {
            start: segment.start,
            end: segment.end.min(end),
            priority: (segment.rank, Reverse(segment.order)),
        };
        for stretch in flatten(due.iter().map(interval)) {
            let Segment { unit, order, ranges: (first, past), .. } = due[stretch.owner];
            let Some(unit) = &mut self.units[unit] else { continue };
            let ranges = std::mem::take(&mut unit.ranges);
            let of_segment = &ranges[first..past];
            // All of them belong to one function range.
            let function = of_segment.first().and_then(|range| range.function_range);
            let function = function.map(|number| unit.function_ranges[number.index()]);
            let counted = function.and_then(|function| self.counted.get_mut(function.function as usize));
            self.functions += u64::from(counted.is_some_and(|counted| !std::mem::replace(counted, true)));
            let of_stretch = overlapping(of_segment, stretch.start, stretch.end);
            let is_rest = of_stretch.first().is_some_and(|first| u64::from(first.start) < stretch.start);
            let covered = stretch.start..stretch.end;
            self.chunker.count(order, covered, of_stretch.len(), is_rest, function.is_some());
            for UnitRange { start, end, exact, statement, .. } in of_stretch {
                let range = CodeRange {
                    start: u64::from(*start).max(stretch.start),
                    end: u64::from(*end).min(stretch.end),
                    function_start: function.map(|function| function.start),
                    exact: *exact,
                    statement: *statement,
                };
                let entry =
                    function.and_then(|function| function.entry.filter(|_| function.start == range.start));
                self.chunker.add(range, entry, unit, pools);
            }
            unit.ranges = ranges;
        }
    }

    /// Counts a segment of a unit as merged, and drops the unit after its last segment.
    fn finish_segment(&mut self, index: usize) {
        let Some(unit) = &mut self.units[index] else { return };
        unit.segments -= 1;
        self.size -= size_of::<Segment>();
        if unit.segments != 0 {
            return;
        }
        self.size -= unit.size();
        self.units[index] = None;
        self.free.push(index);
    }

    /// Cuts the pending units into parts, and moves parts that start after the current bucket to a temporary file. The
    /// chunks do not change.
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        let mut segments = std::mem::take(&mut self.open);
        segments.extend(std::mem::take(&mut self.pending).into_values().flatten());
        segments.sort_unstable_by_key(|segment| (segment.unit, segment.start));
        let at_hand = self.bucket(self.merged);
        let mut kept = Vec::new();
        let mut spilled: BTreeMap<u64, Vec<PendingUnit>> = BTreeMap::new();
        for segments in segments.chunk_by(|a, b| a.unit == b.unit) {
            let Some(unit) = self.units[segments[0].unit].take() else { continue };
            // A bucket belongs to one part, so that no chunk has inline frames of two parts of a unit.
            for segments in segments.chunk_by(|a, b| self.bucket(a.end - 1) >= self.bucket(b.start)) {
                let part = unit.part(segments.iter().map(|segment| (segment.start, segment.ranges)));
                match self.bucket(segments[0].start) {
                    bucket if bucket <= at_hand => kept.push(part),
                    bucket => spilled.entry(bucket).or_default().push(part),
                }
            }
        }
        for (bucket, parts) in spilled {
            self.spilled.write(bucket, &parts)?;
        }
        (self.units, self.free, self.size) = Default::default();
        for part in kept {
            self.keep(part);
        }
        self.least_size = self.size;
        Ok(())
    }
}

/// The elements of `ranges` that overlap `start..end`. `ranges` is sorted. In most cases all elements overlap it.
fn overlapping(ranges: &[UnitRange], start: u64, end: u64) -> &[UnitRange] {
    let first = match ranges.first() {
        Some(range) if u64::from(range.start) < start => {
            ranges.partition_point(|range| u64::from(range.end) <= start)
        }
        _ => 0,
    };
    let until = match ranges.last() {
        Some(range) if u64::from(range.start) >= end => {
            ranges.partition_point(|range| u64::from(range.start) < end)
        }
        _ => ranges.len(),
    };
    &ranges[first.min(until)..until]
}
