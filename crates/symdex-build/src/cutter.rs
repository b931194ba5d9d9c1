//! Merged ranges, cut at the boundaries of chunks.

use rustc_hash::FxHashMap;
use symdex::write::{ChunkRanges, Id32, Range};

use crate::live::LiveUnit;
use crate::pools::Pool;

/// A chunk's ranges, and how many names and files the chunks before it used.
pub(crate) struct ChunkJob {
    pub(crate) index: u64,
    /// The image offset behind the chunk.
    end: u64,
    pub(crate) ranges: ChunkRanges,
    /// How many locs the chunks before have, plus one.
    pub(crate) first_loc: u64,
    /// Of units that come in parts, each loc that the chunk has: the unit, its number there, and its number here.
    pub(crate) of_parts: FxHashMap<(u32, u32), u32>,
}

/// Names and files of an index.
#[derive(Default)]
pub(crate) struct Pools<'d> {
    pub(crate) names: Pool<'d>,
    pub(crate) files: Pool<'d>,
}

/// Cuts ranges at the boundaries of chunks.
#[derive(Default)]
pub(crate) struct Cutter {
    pub(crate) chunk_span: u64,
    /// The chunk at hand.
    pub(crate) job: Option<ChunkJob>,
    done: Vec<ChunkJob>,
    /// How many locs the chunks before it have; how many ranges and locs the last one has, for which the next gets room.
    locs: u64,
    last_len: (usize, usize),
    /// The unit of the last range, and where that ends.
    last: Option<(u32, u64)>,
    pub(crate) ranges: u64,
    /// Bytes that ranges cover, and how many of these with a function.
    pub(crate) covered: u64,
    pub(crate) covered_function: u64,
}

impl Cutter {
    pub(crate) fn new(chunk_span: u64) -> Self {
        Self { chunk_span, ..Self::default() }
    }

    /// Counts the `count` ranges of unit number `unit` that [`Cutter::add`] gets next, which cover `start..end`; the first one is a
    /// unit's own from its start on or, where `is_rest`, from further on.
    pub(crate) fn count(
        &mut self,
        unit: u32,
        std::ops::Range { start, end }: std::ops::Range<u64>,
        count: usize,
        is_rest: bool,
        has_function: bool,
    ) {
        let goes_on = is_rest && self.last == Some((unit, start));
        self.ranges += count as u64 - u64::from(goes_on);
        self.last = Some((unit, end));
        self.covered += end - start;
        self.covered_function += if has_function { end - start } else { 0 };
    }

    /// Adds a range; in its first chunk it answers `entry`, if that is given.
    #[inline]
    pub(crate) fn add<'d>(
        &mut self,
        range: Range,
        mut entry: Option<Id32>,
        unit: &mut LiveUnit<'d>,
        pools: &mut Pools<'d>,
    ) {
        let mut start = range.start;
        while start < range.end {
            let job = self.job(start);
            let end = range.end.min(job.end);
            let (exact, statement) = match entry.take() {
                Some(entry) => (entry.get(), entry.get()),
                None => (range.exact, range.statement),
            };
            let of_exact = unit.loc(exact, job, pools);
            let of_statement = if statement == exact { of_exact } else { unit.loc(statement, job, pools) };
            let part = Range { start, end, exact: of_exact, statement: of_statement, ..range };
            match job.ranges.ranges.last_mut() {
                Some(last) if *last == (Range { start: last.start, end: start, ..part }) => last.end = end,
                _ => job.ranges.ranges.push(part),
            }
            start = end;
        }
    }

    /// The chunk that an offset lies in, begun if it is not the one at hand; offsets only grow.
    #[inline]
    fn job(&mut self, offset: u64) -> &mut ChunkJob {
        if self.job.as_ref().is_some_and(|job| job.end <= offset) {
            self.finish_job();
        }
        self.job.get_or_insert_with(|| {
            let index = offset / self.chunk_span;
            let (ranges, locs) = self.last_len;
            let ranges = ChunkRanges { ranges: Vec::with_capacity(ranges), locs: Vec::with_capacity(locs) };
            let end = index.saturating_add(1).saturating_mul(self.chunk_span);
            ChunkJob { index, end, ranges, first_loc: self.locs + 1, of_parts: FxHashMap::default() }
        })
    }

    fn finish_job(&mut self) {
        if let Some(job) = self.job.take() {
            let ChunkRanges { ranges, locs } = &job.ranges;
            self.locs += locs.len() as u64;
            self.last_len = (ranges.len(), locs.len());
            self.done.push(job);
        }
    }

    /// The chunks that end at or below `watermark`.
    pub(crate) fn complete(&mut self, watermark: u64) -> Vec<ChunkJob> {
        if self.job.as_ref().is_some_and(|job| job.end <= watermark) {
            self.finish_job();
        }
        std::mem::take(&mut self.done)
    }
}
