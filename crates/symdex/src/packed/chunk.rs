//! A chunk: its head, its blocks and its source locations.

use std::ops::Range;

use super::PackedScratch;
use super::block::BlockState;
use super::block::{Block, BlockPlace, chain};
use super::codes::Codes;
use super::sources::{Source, Sources};
use crate::error::Error;
use crate::format::{BitReader, Cursor, MAX_CHUNK_LOCS, Metadata, PageReader, Rows, Table};
use crate::id32::Id32;
use crate::ranges::{ChunkRanges, Loc};

/// A head is no longer: three numbers of up to ten bytes, and the widths of five columns.
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

/// A chunk as it lies in the index.
pub(crate) struct Chunk<'a> {
    table: Table,
    index: u64,
    pages: PageReader<'a>,
    codes: &'a Codes,
    /// Where it starts in the image, and how many bytes of the image it covers.
    start: u64,
    span: u32,
    blocks: usize,
    /// For each block: where it starts, in bytes from the chunk's start; where its bits begin; the first source location that it is the
    /// first to use.
    rows: Rows<3>,
    /// Where the blocks' bits lie in the section, in bytes.
    bits: Range<usize>,
    sources: Sources<'a>,
}

impl<'a> ChunkReader<'a> {
    /// Chunk `index` of `table`; `None` where it is empty or the table has none.
    #[inline]
    pub(crate) fn chunk(&self, table: Table, index: u64) -> Result<Option<Chunk<'a>>, Error> {
        let Some(bytes) = self.bytes_of(table, index)? else { return Ok(None) };
        let Self { metadata, codes, pages, serial, .. } = *self;
        let malformed = || pages.location_of(table, index).malformed("its head is invalid");
        let span = metadata.chunk_span;
        let head = pages.bytes(bytes.start..bytes.end.min(bytes.start + MAX_HEAD))?;
        let mut cursor = Cursor::new(head);
        let mut count = |at_most: usize| cursor.count(at_most).ok_or_else(malformed);
        let (blocks, len) = (count(span as usize)?, count(MAX_CHUNK_LOCS)?);
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
        let sources = Sources {
            codes,
            pages,
            key: (serial, table, index),
            len: u32::try_from(len).unwrap_or(u32::MAX),
            rows: Rows { at: source_rows, widths: source_widths },
            start: source_bits,
            end: bytes.end,
        };
        // No chunk lies beyond the address space: the metadata was checked.
        let start = index.saturating_mul(span.into());
        let bits = block_bits..source_bits;
        Ok(Some(Chunk { table, index, pages, codes, start, span, blocks, rows, bits, sources }))
    }

    /// Where a chunk lies in its section; `None` where it is empty or the table has none.
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

    /// Checks the pages of codes and chunks, and that chunks follow each other and fill their section; how many pages there are.
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

impl<'a> Chunk<'a> {
    /// Appends the first `at_most` locs of the answer at `offset`, innermost first. Returns where the function starts, or `None` for a gap.
    pub(crate) fn find(
        &self,
        offset: u64,
        statement: bool,
        at_most: usize,
        scratch: &mut PackedScratch,
        locs: &mut Vec<Loc>,
    ) -> Result<Option<Option<u64>>, Error> {
        let PackedScratch { block: state, sources } = scratch;
        let at = offset.checked_sub(self.start).and_then(|at| u32::try_from(at).ok());
        let at =
            at.filter(|at| *at < self.span).ok_or_else(|| self.malformed("it does not cover the offset"))?;
        // The last block that starts at the address or before.
        let number = self.rows.search(&self.pages, self.blocks, at.into())?;
        let (mut block, end_of_bits) = self.block(number, state)?;
        let invalid = || self.malformed("a block is invalid");
        block.read_to(at).ok_or_else(invalid)?;
        if block.reader.position() > end_of_bits {
            return Err(invalid());
        }
        let (function_start, [exact, answer]) = (block.function_start, block.answers);
        let link = if statement { answer } else { exact };
        if link == 0 {
            return Ok(None);
        }
        for source in chain(&state.frames, link).take(at_most) {
            let source = self.sources.get(source.ok_or_else(invalid)?, sources)?;
            locs.push(loc(source.ok_or_else(|| self.malformed("a source location is invalid"))?));
        }
        Ok(Some(function_start))
    }

    /// Block `number`, and where its bits end in the section.
    #[inline]
    fn block<'s>(&self, number: usize, state: &'s mut BlockState) -> Result<(Block<'s>, usize), Error>
    where
        'a: 's,
    {
        let malformed = || self.malformed("a block lies outside the chunk");
        if number >= self.blocks {
            return Err(malformed());
        }
        let ([start, at, source], next) = self.rows.get(&self.pages, self.blocks, number)?;
        let size = (self.bits.end - self.bits.start) as u64 * 8;
        let [end, next, _] = next.unwrap_or([self.span.into(), size, 0]);
        if at > next || next > size || start >= end || end > self.span.into() {
            return Err(malformed());
        }
        let [start, end, source] = [start, end, source].map(u32::try_from);
        // Both positions lie in the section, so they fit.
        let [at, next] = [at, next].map(|at| usize::try_from(at).unwrap_or_default());
        let bits = self.bits.start + at / 8..self.bits.start + next.div_ceil(8);
        self.pages.check_range(bits)?;
        let place = match (start, end, source) {
            (Ok(start), Ok(end), Ok(source)) if source <= self.sources.len => {
                BlockPlace { chunk_start: self.start, start, end, source, sources: self.sources.len }
            }
            _ => return Err(malformed()),
        };
        let reader = BitReader::new(self.pages.section, self.bits.start * 8 + at);
        Ok((Block::new(self.codes, reader, place, state), self.bits.start * 8 + next))
    }

    /// Every range of the chunk, and the locs that they have.
    pub(crate) fn ranges(&self, scratch: &mut PackedScratch) -> Result<ChunkRanges, Error> {
        let PackedScratch { block: state, sources } = scratch;
        let invalid = || self.malformed("a source location is invalid");
        let all = (0..self.sources.len).map(|number| self.sources.get(number, sources)?.ok_or_else(invalid));
        let all: Vec<Source> = all.collect::<Result<_, Error>>()?;
        let mut ranges = ChunkRanges::default();
        let (mut end_of_last, mut next_source, mut position) = (0, 0, self.bits.start * 8);
        for number in 0..self.blocks {
            let (mut block, end_of_bits) = self.block(number, state)?;
            let follows = (block.at, block.next_source, block.reader.position())
                == (end_of_last, next_source, position);
            if !follows {
                return Err(self.malformed("blocks do not follow each other"));
            }
            let end = block.end();
            while block.at < end {
                let start = block.at;
                block.next().ok_or_else(|| self.malformed("a block is invalid"))?;
                let [start, end] = [start, block.at].map(|at| self.start + u64::from(at));
                if block.answers != [0; 2] {
                    let pushed = ranges.push_range(start..end, block.function_start, block.answers);
                    pushed.ok_or_else(|| self.malformed("it has too many inline frames"))?;
                }
            }
            (end_of_last, next_source, position) = (end, block.next_source, block.reader.position());
            // The last byte of the last block may have bits that are not used.
            let unused = if number + 1 == self.blocks { 7 } else { 0 };
            if !(end_of_bits - unused..=end_of_bits).contains(&position) {
                return Err(self.malformed("a block has other bits than its ranges"));
            }
            let frames = state.frames.iter().map(|frame| {
                let source = all.get(frame.source as usize)?;
                Some((frame.caller, loc(*source)))
            });
            let pushed = ranges.push_locs(frames).filter(|()| ranges.locs.len() <= MAX_CHUNK_LOCS);
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
        let mut state = BlockState::default();
        let mut sizes = Vec::new();
        for number in 0..self.blocks {
            let (mut block, _) = self.block(number, &mut state)?;
            let mut ranges = 0;
            while block.at < block.end() {
                block.next().ok_or_else(|| self.malformed("a block is invalid"))?;
                ranges += 1;
            }
            sizes.push((state.frames.len(), ranges));
        }
        Ok(sizes)
    }

    #[cold]
    fn malformed(&self, what: &'static str) -> Error {
        self.pages.location_of(self.table, self.index).malformed(what)
    }
}

/// The loc without parent at a source location.
fn loc(source: Source) -> Loc {
    let Source { name, file, line } = source;
    let [name, file, line] = [name, file, line].map(Id32::from_stored);
    Loc { parent: None, name, file, line }
}
