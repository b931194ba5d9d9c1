//! A unit whose ranges are not all merged yet, or a part of one.

use symdex::write::{InlineFrame, NonMaxU32};

use crate::chunk_job::ChunkJob;
use crate::excerpt::Excerpt;
use crate::pools::{Hashed, Pools};
use crate::unit_ranges::{FunctionRange, UnitRange, UnitRanges};

/// A unit whose ranges are not all merged yet, or a part of one. A part does not refer to its whole unit.
#[derive(Debug, Default)]
pub(crate) struct PendingUnit {
    /// The position of the unit in the order in which units were added. If two units have equal claims to an address,
    /// the unit that was added first wins.
    pub(crate) order: u32,
    pub(crate) ranges: Vec<UnitRange>,
    /// Functions are numbered over the whole build.
    pub(crate) function_ranges: Vec<FunctionRange>,
    /// Names and files are places in the pools.
    pub(crate) frames: Vec<InlineFrame>,
    /// How many segments are not merged yet.
    pub(crate) segments: usize,
    /// For each inline frame, the sum of its number in the last chunk that has it and that chunk's
    /// [`ChunkJob::first_frame`]. 0 if no chunk has the frame.
    numbers: Vec<u64>,
    /// A buffer for the inline frames that a chunk lacks.
    missing: Vec<u32>,
}

impl PendingUnit {
    /// A whole unit, whose functions get numbers from `first_function` on.
    pub(crate) fn new<'d>(
        order: u32,
        first_function: u32,
        unit: UnitRanges<'d>,
        pools: &mut Pools<'d>,
    ) -> Self {
        let UnitRanges { ranges, mut function_ranges, mut frames, names, files, .. } = unit;
        // All strings of the unit are added to the pools at once. Strings of functions that other functions cover
        // completely are not needed, but there are few of them.
        let names: Vec<_> = names.iter().map(|name| pools.names.place(name)).collect();
        let files = files.into_iter().map(|file| pools.files.place(&Hashed::new(file.into())));
        let files: Vec<_> = files.collect();
        for frame in &mut frames {
            frame.name = frame.name.and_then(|name| names[name.index()]);
            frame.file = frame.file.and_then(|file| files[file.index()]);
        }
        for range in &mut function_ranges {
            range.function = range.function.saturating_add(first_function);
        }
        Self::of_parts(order, ranges, function_ranges, frames)
    }

    /// A unit of these parts. No chunk has any of its inline frames yet.
    pub(crate) fn of_parts(
        order: u32,
        ranges: Vec<UnitRange>,
        function_ranges: Vec<FunctionRange>,
        frames: Vec<InlineFrame>,
    ) -> Self {
        let numbers = vec![0; frames.len()];
        Self { order, ranges, function_ranges, frames, numbers, ..Self::default() }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        let Self { ranges, function_ranges, frames, numbers, .. } = self;
        size_of_val(&ranges[..])
            + size_of_val(&function_ranges[..])
            + size_of_val(&frames[..])
            + size_of_val(&numbers[..])
    }

    /// The number of an inline frame in the chunk of `job`. Adds the frame and its callers to the chunk if the chunk
    /// lacks them.
    #[inline]
    pub(crate) fn frame(&mut self, frame: u32, job: &mut ChunkJob, pools: &mut Pools<'_>) -> u32 {
        match job.number_here(self.numbers[frame as usize]) {
            Some(number) => number,
            None => self.add_frame(frame, job, pools),
        }
    }

    fn add_frame(&mut self, frame: u32, job: &mut ChunkJob, pools: &mut Pools<'_>) -> u32 {
        let Some(caller) = self.frames[frame as usize].parent else {
            return self.add_below(frame, None, job, pools);
        };
        // In most cases the chunk has the caller.
        match job.number_here(self.numbers[caller.index()]) {
            Some(caller) => self.add_below(frame, Some(caller), job, pools),
            None => self.add_chain(frame, job, pools),
        }
    }

    fn add_chain(&mut self, frame: u32, job: &mut ChunkJob, pools: &mut Pools<'_>) -> u32 {
        let mut missing = std::mem::take(&mut self.missing);
        let (mut next, mut caller) = (Some(frame), None);
        while let Some(frame) = next {
            caller = job.number_here(self.numbers[frame as usize]);
            if caller.is_some() {
                break;
            }
            missing.push(frame);
            next = self.frames[frame as usize].parent.map(NonMaxU32::get);
        }
        for frame in missing.drain(..).rev() {
            caller = Some(self.add_below(frame, caller, job, pools));
        }
        self.missing = missing;
        // The last one added is `frame` itself.
        caller.unwrap_or(u32::MAX)
    }

    /// Adds an inline frame to the chunk of `job`, and returns the frame's number in that chunk. `caller` is the number
    /// of the frame's caller in the same chunk.
    #[inline]
    fn add_below(
        &mut self,
        frame: u32,
        caller: Option<u32>,
        job: &mut ChunkJob,
        pools: &mut Pools<'_>,
    ) -> u32 {
        let InlineFrame { name, file, line, .. } = self.frames[frame as usize];
        let name = name.and_then(|place| pools.names.number(place));
        let file = file.and_then(|place| pools.files.number(place));
        let in_chunk = u32::try_from(job.ranges.frames.len()).unwrap_or(u32::MAX);
        let parent = caller.and_then(|caller| NonMaxU32::new(u64::from(caller)));
        job.ranges.frames.push(InlineFrame { parent, name, file, line });
        self.numbers[frame as usize] = job.first_frame + u64::from(in_chunk);
        in_chunk
    }

    /// The part of the unit that consists of `segments`: for each segment its start address, and the indexes of its
    /// ranges (first and exclusive end).
    pub(crate) fn part(&self, segments: impl Iterator<Item = (u64, (usize, usize))>) -> Self {
        let mut excerpt = Excerpt::new(&self.function_ranges, &self.frames);
        let mut ranges = Vec::new();
        for (start, (first, end)) in segments {
            let of_segment = &self.ranges[first..end];
            let rest = &of_segment[of_segment.partition_point(|range| u64::from(range.end) <= start)..];
            ranges.extend(rest.iter().map(|range| excerpt.range(*range)));
        }
        let Excerpt { function_ranges, frames, frame_numbers, .. } = excerpt;
        // The chunk that is being filled may have some of its inline frames.
        let numbers = frame_numbers.iter().map(|frame| self.numbers[*frame as usize]).collect();
        Self { order: self.order, ranges, function_ranges, frames, numbers, ..Self::default() }
    }
}
