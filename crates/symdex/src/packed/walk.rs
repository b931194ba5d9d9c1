//! Reads whole chunks, and checks all chunks.

use super::PackedScratch;
use super::block::Progress;
use super::chunk::{Chunk, ChunkReader};
use super::sources::SourceLocation;
use crate::error::Error;
use crate::format::MAX_CHUNK_FRAMES;
use crate::ranges::NonMaxU32;
use crate::ranges::{ChunkRanges, InlineFrame};

impl ChunkReader<'_> {
    /// Checks the pages of codes and chunks, and that chunks follow each other and fill their section. Returns how
    /// many pages there are.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.places.verify()? + self.pages.verify()?;
        let mut end_of_last = 0;
        for number in 0..self.codes.chunks() {
            let [start, end] = self.codes.place(&self.places, number)?;
            if start != end_of_last {
                return Err(self.places.malformed(0, "chunks do not follow each other"));
            }
            end_of_last = end;
        }
        if end_of_last != self.pages.section.len() {
            return Err(self.places.malformed(0, "chunks do not fill their section"));
        }
        Ok(pages)
    }
}

impl Chunk<'_> {
    /// Every range of the chunk, and the inline frames of these ranges.
    pub(crate) fn ranges(&self, scratch: &mut PackedScratch) -> Result<ChunkRanges, Error> {
        let PackedScratch { block: state, sources } = scratch;
        let invalid = || self.malformed("a source location is invalid");
        let all = (0..self.sources.len).map(|number| self.sources.get(number, sources)?.ok_or_else(invalid));
        let all: Vec<SourceLocation> = all.collect::<Result<_, Error>>()?;
        let mut ranges = ChunkRanges::default();
        let (mut end_of_last, mut next_source, mut position) = (0, 0, self.bits.start * 8);
        for number in 0..self.blocks {
            let (mut block, end_of_bits) = self.block(number, state)?;
            let follows = (
                block.open.progress.at,
                block.open.progress.next_source,
                block.open.progress.reader.position(),
            ) == (end_of_last, next_source, position);
            if !follows {
                return Err(self.malformed("blocks do not follow each other"));
            }
            let end = block.end();
            while block.open.progress.at < end {
                block.next().ok_or_else(|| self.malformed("a block is invalid"))?;
                let Progress { start, at, function_start, answers, .. } = block.open.progress;
                let [start, end] = [start, at].map(|at| self.start + u64::from(at));
                if answers != [0; 2] {
                    let pushed = ranges.push_range(start..end, function_start, answers);
                    pushed.ok_or_else(|| self.malformed("it has too many inline frames"))?;
                }
            }
            end_of_last = end;
            (next_source, position) =
                (block.open.progress.next_source, block.open.progress.reader.position());
            // The last byte of the last block may have bits that are not used.
            let unused = if number + 1 == self.blocks { 7 } else { 0 };
            if !(end_of_bits - unused..=end_of_bits).contains(&position) {
                return Err(self.malformed("a block has other bits than its ranges"));
            }
            let frames = state.frames.iter().map(|frame| {
                let source = all.get(frame.source as usize)?;
                Some((frame.caller, inline_frame(*source)))
            });
            let pushed = ranges.push_frames(frames).filter(|()| ranges.frames.len() <= MAX_CHUNK_FRAMES);
            pushed.ok_or_else(|| self.malformed("its inline frames are invalid or too many"))?;
        }
        if end_of_last != self.span || next_source != self.sources.len {
            return Err(self.malformed("its blocks do not use all of it"));
        }
        Ok(ranges)
    }

    /// How many inline frames each block defines, and how many ranges it has, gaps included.
    #[cfg(test)]
    pub(super) fn block_sizes(&self) -> Result<Vec<(usize, usize)>, Error> {
        let mut state = super::block::BlockState::default();
        let mut sizes = Vec::new();
        for number in 0..self.blocks {
            let (mut block, _) = self.block(number, &mut state)?;
            let mut ranges = 0;
            while block.open.progress.at < block.end() {
                block.next().ok_or_else(|| self.malformed("a block is invalid"))?;
                ranges += 1;
            }
            sizes.push((state.frames.len(), ranges));
        }
        Ok(sizes)
    }
}

/// The inline frame at a source location, without a caller.
fn inline_frame(source: SourceLocation) -> InlineFrame {
    let SourceLocation { name, file, line } = source;
    let [name, file, line] = [name, file, line].map(NonMaxU32::from_stored);
    InlineFrame { parent: None, name, file, line }
}
