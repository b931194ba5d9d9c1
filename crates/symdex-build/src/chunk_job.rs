//! A chunk that is being filled.

use symdex::write::ChunkRanges;

use crate::chunker::CHUNK_SPAN;

/// A chunk's ranges, until they are encoded.
pub(crate) struct ChunkJob {
    pub(crate) index: u64,
    /// The end of the chunk, exclusive, as an image offset.
    pub(crate) end: u64,
    pub(crate) ranges: ChunkRanges,
    /// One more than the number of inline frames in all chunks before this one. An inline frame's number in the chunk,
    /// plus this, is unique in the build; see [`ChunkJob::number_here`].
    pub(crate) first_frame: u64,
}

impl ChunkJob {
    /// About how many bytes of memory it takes, and its symbols once it is encoded.
    pub(crate) fn size(&self) -> usize {
        2 * (size_of_val(&self.ranges.ranges[..]) + size_of_val(&self.ranges.frames[..]))
    }

    /// Adds `shift`, a multiple of the span of a chunk, to its offsets.
    pub(crate) fn shift(&mut self, shift: u64) {
        let add = |offset: u64| offset.wrapping_add(shift);
        self.index = add(self.index.wrapping_mul(u64::from(CHUNK_SPAN))) / u64::from(CHUNK_SPAN);
        self.end = add(self.end);
        for range in &mut self.ranges.ranges {
            (range.start, range.end) = (add(range.start), add(range.end));
            range.function_start = range.function_start.map(add);
        }
    }

    /// The number in this chunk of the inline frame with number `number` in the build. Returns `None` if the frame is
    /// in a chunk before this one.
    #[inline]
    pub(crate) fn number_here(&self, number: u64) -> Option<u32> {
        number.checked_sub(self.first_frame).and_then(|number| u32::try_from(number).ok())
    }
}
