//! A chunk: its head, its blocks and its source locations.

use std::ops::Range;

use super::PackedScratch;
use super::block::BlockState;
use super::block::{Block, BlockBounds, Progress, chain};
use super::codes::Codes;
use super::sources::SourceLocations;
use crate::answer::FoundFrame;
use crate::error::Error;
use crate::format::{BitReader, Cursor, MAX_CHUNK_FRAMES, Metadata, PageReader, Rows, Table};
use crate::image::ImageOffset;

/// The most bytes of a head: three numbers of up to ten bytes, and the widths of five columns.
const MAX_HEAD: usize = 3 * 10 + 5;

/// Reads chunks.
#[derive(Clone, Copy)]
pub(crate) struct ChunkReader<'a> {
    pub(crate) metadata: &'a Metadata,
    pub(crate) codes: &'a Codes,
    /// The section of codes, which says where chunks begin.
    pub(crate) places: PageReader<'a>,
    /// The section of chunks.
    pub(crate) pages: PageReader<'a>,
    /// The index's serial number.
    pub(crate) serial: u64,
}

/// What a table has at an image offset.
pub(crate) struct TableAnswer {
    /// The image offsets around it with the same answer: a range, or a part of a gap. It lies in one chunk.
    pub(crate) range: Range<u64>,
    /// Whether there is an answer. Otherwise this is a gap.
    pub(crate) is_answer: bool,
}

impl TableAnswer {
    /// The gap that an empty or missing chunk is: chunk `index`, if chunks cover `span` bytes.
    pub(crate) fn gap(index: u64, span: u64) -> Self {
        let start = index.saturating_mul(span);
        Self { range: start..start.saturating_add(span), is_answer: false }
    }
}

/// A chunk as it lies in the index.
pub(crate) struct Chunk<'a> {
    pub(super) table: Table,
    pub(super) index: u64,
    pub(super) pages: PageReader<'a>,
    pub(super) codes: &'a Codes,
    /// Where the chunk starts in the image, and how many bytes of the image it covers.
    pub(super) start: u64,
    pub(super) span: u32,
    pub(super) blocks: usize,
    /// One row for each block: its start, in bytes from the chunk's start; where its bits begin; the first source
    /// location that no earlier block of the chunk uses.
    pub(super) rows: Rows<3>,
    /// Where the blocks' bits lie in the section, in bytes.
    pub(super) bits: Range<usize>,
    pub(super) sources: SourceLocations<'a>,
}

impl<'a> ChunkReader<'a> {
    /// Chunk `index` of `table`. Returns `None` if the chunk is empty or the table has no such chunk.
    #[inline]
    pub(crate) fn chunk(&self, table: Table, index: u64) -> Result<Option<Chunk<'a>>, Error> {
        let Some(bytes) = self.bytes_of(table, index)? else { return Ok(None) };
        let Self { metadata, codes, pages, serial, .. } = *self;
        let malformed = || table.location_of(index).malformed("its head is invalid");
        let span = metadata.chunk_span;
        let head = pages.bytes(bytes.start..bytes.end.min(bytes.start + MAX_HEAD))?;
        let mut cursor = Cursor::new(head);
        let mut count = |at_most: usize| cursor.count(at_most).ok_or_else(malformed);
        let (blocks, len) = (count(span as usize)?, count(MAX_CHUNK_FRAMES)?);
        let size = count(bytes.len())?;
        let widths = cursor.array::<3>().zip(cursor.array::<2>());
        let (block_widths, source_widths) = widths.ok_or_else(malformed)?;
        let rows = Rows { at: bytes.start + cursor.position(head), widths: block_widths };
        let after = |at: usize, size: Option<usize>| {
            let end = at.checked_add(size?)?;
            (end <= bytes.end).then_some(end)
        };
        let source_rows = after(rows.at, Rows::size(block_widths, blocks)).ok_or_else(malformed)?;
        let block_bits = after(source_rows, Rows::size(source_widths, len.div_ceil(codes.group_len())));
        let block_bits = block_bits.ok_or_else(malformed)?;
        let source_bits = after(block_bits, Some(size)).ok_or_else(malformed)?;
        let sources = SourceLocations {
            codes,
            pages,
            key: (serial, table, index),
            len: u32::try_from(len).map_err(|_| malformed())?,
            rows: Rows { at: source_rows, widths: source_widths },
            start: source_bits,
            end: bytes.end,
        };
        // The metadata was checked, so no chunk lies beyond the address space.
        let start = index.saturating_mul(span.into());
        let bits = block_bits..source_bits;
        Ok(Some(Chunk { table, index, pages, codes, start, span, blocks, rows, bits, sources }))
    }

    /// Where a chunk lies in its section. Returns `None` if the chunk is empty or the table has no such chunk.
    #[inline]
    pub(crate) fn bytes_of(&self, table: Table, index: u64) -> Result<Option<Range<usize>>, Error> {
        let chunks = self.metadata.chunks(table);
        if !chunks.contains(&index) {
            return Ok(None);
        }
        let before = if table == Table::Dwarf { 0 } else { self.metadata.chunk_len(Table::Dwarf) };
        let [start, end] = self.codes.place(&self.places, before + (index - chunks.start))?;
        if start > end || end > self.pages.section.len() {
            return Err(self.places.malformed(0, "a chunk lies outside the section of chunks"));
        }
        Ok((start != end).then_some(start..end))
    }
}

impl<'a> Chunk<'a> {
    /// Appends the first `at_most` frames of the answer at `offset`, innermost first.
    pub(crate) fn find(
        &self,
        offset: u64,
        statement: bool,
        at_most: usize,
        scratch: &mut PackedScratch,
        frames: &mut Vec<FoundFrame>,
    ) -> Result<TableAnswer, Error> {
        let at = self.place_of(offset)?;
        let (mut block, end_of_bits) = self.block_at(at, &mut scratch.block)?;
        self.read_to(&mut block, end_of_bits, at)?;
        let progress = block.open.progress;
        self.answer(&progress, statement, at_most, scratch, frames)
    }

    /// The place of an image offset in the chunk, in bytes.
    #[inline]
    pub(super) fn place_of(&self, offset: u64) -> Result<u32, Error> {
        let at = offset.checked_sub(self.start).and_then(|at| u32::try_from(at).ok());
        at.filter(|at| *at < self.span).ok_or_else(|| self.malformed("it does not cover the offset"))
    }

    /// The last block that starts at `at` or before, and where its bits end in the section.
    pub(super) fn block_at<'s>(
        &self,
        at: u32,
        state: &'s mut BlockState,
    ) -> Result<(Block<'a, 's>, usize), Error> {
        let number = self.rows.search(&self.pages, self.blocks, at.into())?;
        self.block(number, state)
    }

    /// Reads ranges of `block` up to the one with `at`.
    pub(super) fn read_to(
        &self,
        block: &mut Block<'_, '_>,
        end_of_bits: usize,
        at: u32,
    ) -> Result<(), Error> {
        let is_read = block.read_to(at).is_some();
        let Progress { reader, start, at: end, .. } = block.open.progress;
        let is_valid = is_read && (start..end).contains(&at) && reader.position() <= end_of_bits;
        is_valid.then_some(()).ok_or_else(|| self.malformed("a block is invalid"))
    }

    /// Appends the first `at_most` frames of the answer of the range that was read last, innermost first.
    pub(super) fn answer(
        &self,
        progress: &Progress<'_>,
        statement: bool,
        at_most: usize,
        scratch: &mut PackedScratch,
        frames: &mut Vec<FoundFrame>,
    ) -> Result<TableAnswer, Error> {
        let PackedScratch { block: state, sources } = scratch;
        let Progress { start, at, answers: [exact, answer], .. } = *progress;
        let function_start = progress.function_start.map(ImageOffset);
        let link = if statement { answer } else { exact };
        for source in chain(&state.frames, link).take(at_most) {
            let source = source.ok_or_else(|| self.malformed("a block is invalid"))?;
            let source = self.sources.get(source, sources)?;
            let source = source.ok_or_else(|| self.malformed("a source location is invalid"))?;
            frames.push(FoundFrame { source, function_start, table: self.table });
        }
        let range = self.start + u64::from(start)..self.start + u64::from(at);
        Ok(TableAnswer { range, is_answer: link != 0 })
    }

    /// Block `number`, and where its bits end in the section.
    #[inline]
    pub(super) fn block<'s>(
        &self,
        number: usize,
        state: &'s mut BlockState,
    ) -> Result<(Block<'a, 's>, usize), Error> {
        let malformed = || self.malformed("a block lies outside the chunk");
        if number >= self.blocks {
            return Err(malformed());
        }
        let ([start, at, source], next) = self.rows.get(&self.pages, self.blocks, number)?;
        let size = (self.bits.end - self.bits.start) as u64 * 8;
        // The last block ends with the chunk.
        let [end, next, _] = next.unwrap_or([self.span.into(), size, 0]);
        if at > next || next > size || start >= end || end > self.span.into() {
            return Err(malformed());
        }
        let [start, end, source] = [start, end, source].map(u32::try_from);
        let (Ok(at), Ok(next)) = (usize::try_from(at), usize::try_from(next)) else {
            return Err(malformed());
        };
        let bits = self.bits.start + at / 8..self.bits.start + next.div_ceil(8);
        self.pages.check_range(bits)?;
        let bounds = match (start, end, source) {
            (Ok(start), Ok(end), Ok(source)) if source <= self.sources.len => {
                BlockBounds { chunk_start: self.start, start, end, source, sources: self.sources.len }
            }
            _ => return Err(malformed()),
        };
        let reader = BitReader::new(self.pages.section, self.bits.start * 8 + at);
        Ok((Block::new(self.codes, reader, bounds, state), self.bits.start * 8 + next))
    }

    #[cold]
    pub(super) fn malformed(&self, what: &'static str) -> Error {
        self.table.location_of(self.index).malformed(what)
    }
}
