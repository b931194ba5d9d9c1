//! Reads a table at ascending offsets: each block is decoded once.

use super::PackedScratch;
use super::block::{Block, OpenBlock};
use super::chunk::{Chunk, ChunkReader, TableAnswer};
use crate::answer::FoundFrame;
use crate::error::Error;
use crate::format::Table;

/// Reads the answers of one table. It continues from the range of the answer before.
pub(crate) struct TableReader<'a> {
    reader: ChunkReader<'a>,
    table: Table,
    /// The chunk of the answer before, unless that chunk is empty or missing.
    chunk: Option<Chunk<'a>>,
    /// The block of the answer before, in that chunk, and where its bits end. Its inline frames are in `scratch`.
    block: Option<(OpenBlock<'a>, usize)>,
    scratch: PackedScratch,
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(reader: ChunkReader<'a>, table: Table) -> Self {
        Self { reader, table, chunk: None, block: None, scratch: PackedScratch::for_many() }
    }

    /// As [`Chunk::find`], in the chunk of `offset`.
    pub(crate) fn find(
        &mut self,
        offset: u64,
        statement: bool,
        at_most: usize,
        frames: &mut Vec<FoundFrame>,
    ) -> Result<TableAnswer, Error> {
        let span = u64::from(self.reader.metadata.chunk_span);
        let index = offset / span;
        if self.chunk.as_ref().is_none_or(|chunk| chunk.index != index) {
            // If reading fails, nothing stays open.
            (self.chunk, self.block) = (None, None);
            self.chunk = self.reader.chunk(self.table, index)?;
        }
        let Some(chunk) = &self.chunk else { return Ok(TableAnswer::gap(index, span)) };
        let at = chunk.place_of(offset)?;
        let open = self.block.take().filter(|(block, _)| block.can_continue_to(at));
        let (mut block, end_of_bits) = match open {
            Some((block, end_of_bits)) => {
                (Block { open: block, state: &mut self.scratch.block }, end_of_bits)
            }
            None => chunk.block_at(at, &mut self.scratch.block)?,
        };
        chunk.read_to(&mut block, end_of_bits, at)?;
        let open = block.open;
        let found = chunk.answer(&open.progress, statement, at_most, &mut self.scratch, frames)?;
        self.block = Some((open, end_of_bits));
        Ok(found)
    }
}
