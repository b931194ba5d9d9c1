//! Merged ranges, cut at the boundaries of chunks.

use symdex::write::{ChunkRanges, CodeRange, NonMaxU32};

use crate::chunk_job::ChunkJob;
use crate::pending::PendingUnit;
use crate::pools::Pools;

/// Bytes of address space a chunk covers. Larger chunks make a smaller index and a slower first answer.
pub(crate) const CHUNK_SPAN: u32 = 64 << 10;

/// Cuts ranges at the boundaries of chunks.
#[derive(Default)]
pub(crate) struct Chunker {
    pub(crate) chunk_span: u64,
    /// The chunk that is being filled.
    job: Option<ChunkJob>,
    done: Vec<ChunkJob>,
    /// How many inline frames the finished chunks have.
    frames: u64,
    /// How many ranges and inline frames the last finished chunk has: the capacity of the next one.
    last_len: (usize, usize),
    /// The unit of the last range, and the end of that range.
    last: Option<(u32, u64)>,
    pub(crate) ranges: u64,
    /// How many bytes ranges cover.
    pub(crate) covered: u64,
    /// How many bytes ranges with a function cover.
    pub(crate) covered_function: u64,
}

impl Chunker {
    pub(crate) fn new(chunk_span: u64) -> Self {
        Self { chunk_span, ..Self::default() }
    }

    /// Counts the next `count` ranges before they are added with [`Chunker::add`]. The ranges belong to one unit and
    /// cover `start..end`. `unit` is the unit's position in the order. If `is_rest` is set, the first range began
    /// before `start` and may be counted already.
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

    /// Adds a range of `unit`. If `entry` is given, it replaces the range's frames in the first chunk of the range.
    #[inline]
    pub(crate) fn add(
        &mut self,
        range: CodeRange,
        mut entry: Option<NonMaxU32>,
        unit: &mut PendingUnit,
        pools: &mut Pools<'_>,
    ) {
        let mut start = range.start;
        while start < range.end {
            let job = self.job(start);
            let end = range.end.min(job.end);
            let (exact, statement) = match entry.take() {
                Some(entry) => (entry.get(), entry.get()),
                None => (range.exact, range.statement),
            };
            let of_exact = unit.frame(exact, job, pools);
            let of_statement = if statement == exact { of_exact } else { unit.frame(statement, job, pools) };
            let part = CodeRange { start, end, exact: of_exact, statement: of_statement, ..range };
            match job.ranges.ranges.last_mut() {
                Some(last) if *last == (CodeRange { start: last.start, end: start, ..part }) => {
                    last.end = end
                }
                _ => job.ranges.ranges.push(part),
            }
            start = end;
        }
    }

    /// The chunk that has `offset`. Offsets ascend from call to call, so the chunk before this one is complete.
    #[inline]
    fn job(&mut self, offset: u64) -> &mut ChunkJob {
        if self.job.as_ref().is_some_and(|job| job.end <= offset) {
            self.finish_job();
        }
        self.job.get_or_insert_with(|| {
            let index = offset / self.chunk_span;
            let (ranges, frames) = self.last_len;
            let ranges =
                ChunkRanges { ranges: Vec::with_capacity(ranges), frames: Vec::with_capacity(frames) };
            let end = index.saturating_add(1).saturating_mul(self.chunk_span);
            ChunkJob { index, end, ranges, first_frame: self.frames + 1 }
        })
    }

    fn finish_job(&mut self) {
        if let Some(job) = self.job.take() {
            let ChunkRanges { ranges, frames } = &job.ranges;
            self.frames += frames.len() as u64;
            self.last_len = (ranges.len(), frames.len());
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
