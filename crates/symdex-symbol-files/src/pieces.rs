//! The answers of an index in address order, as lookups give them.

use std::iter::Peekable;
use std::ops::Range;

use symdex::{ChunkRanges, CodeRange, Index, LinePolicy, NonMaxU32, Table};

use crate::Error;

/// A function, a file and a line in it, by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceFrame {
    pub(crate) name: Option<NonMaxU32>,
    pub(crate) file: Option<NonMaxU32>,
    pub(crate) line: Option<u32>,
}

/// Image offsets that have the same answer.
pub(crate) struct Piece<'a> {
    pub(crate) range: Range<u64>,
    pub(crate) function_start: Option<u64>,
    /// The concrete function, then what is inlined into it, the innermost last.
    pub(crate) frames: &'a [SourceFrame],
}

/// Calls `each` with all answers of the index, in address order. They do not overlap.
pub(crate) fn each_piece<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    each: &mut impl FnMut(Piece<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let [mut dwarf, mut symbols] =
        [Table::Dwarf, Table::SymbolTable].map(|table| index.chunks(table).peekable());
    while let Some(number) = next_number(&mut dwarf).into_iter().chain(next_number(&mut symbols)).min() {
        let [dwarf, symbols] = [take(&mut dwarf, number)?, take(&mut symbols, number)?];
        let mut chunk =
            Chunk { dwarf: &dwarf, symbols: &symbols, next_symbol: 0, policy, frames: Vec::new() };
        let mut at = 0;
        for range in &dwarf.ranges {
            chunk.symbols_in(at..range.start, None, each)?;
            chunk.dwarf_range(range, each)?;
            at = range.end;
        }
        chunk.symbols_in(at..u64::MAX, None, each)?;
    }
    Ok(())
}

/// The number of the next chunk; 0 for one that cannot be read, so that it is taken next.
fn next_number(
    chunks: &mut Peekable<impl Iterator<Item = Result<(u64, ChunkRanges), symdex::Error>>>,
) -> Option<u64> {
    chunks.peek().map(|chunk| chunk.as_ref().map_or(0, |(number, _)| *number))
}

/// The ranges of chunk `number`, if it is the next one.
fn take(
    chunks: &mut Peekable<impl Iterator<Item = Result<(u64, ChunkRanges), symdex::Error>>>,
    number: u64,
) -> Result<ChunkRanges, symdex::Error> {
    let is_next = |chunk: &Result<(u64, _), _>| !matches!(chunk, Ok((next, _)) if *next != number);
    Ok(chunks.next_if(is_next).transpose()?.map(|(_, ranges)| ranges).unwrap_or_default())
}

/// One chunk of both tables.
struct Chunk<'a> {
    dwarf: &'a ChunkRanges,
    symbols: &'a ChunkRanges,
    /// The first range of the symbol table that does not end before the addresses that were passed.
    next_symbol: usize,
    policy: LinePolicy,
    frames: Vec<SourceFrame>,
}

impl Chunk<'_> {
    /// A range of the `dwarf` table. What is outside of any function has the name that the symbol table gives it.
    fn dwarf_range(
        &mut self,
        range: &CodeRange,
        each: &mut impl FnMut(Piece<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let innermost = match self.policy {
            LinePolicy::Exact => range.exact,
            LinePolicy::Statement => range.statement,
        };
        self.frames.clear();
        let mut next = Some(innermost as usize);
        while let Some(frame) = next.and_then(|number| self.dwarf.frames.get(number)) {
            let line = frame.line.map(NonMaxU32::get);
            self.frames.push(SourceFrame { name: frame.name, file: frame.file, line });
            // A parent comes before its child, also in a damaged index: `Index::chunk` checks it.
            next = frame.parent.map(NonMaxU32::index);
        }
        self.frames.reverse();
        let span = range.start..range.end;
        if range.function_start.is_none() {
            let line = std::mem::take(&mut self.frames);
            self.symbols_in(span, Some(&line), each)?;
            self.frames = line;
            return Ok(());
        }
        each(Piece { range: span, function_start: range.function_start, frames: &self.frames })
    }

    /// The answers of the symbol table within `span`. With the frames of a line outside of any function, these are the
    /// answers, in all of `span`, and the symbol table names the concrete function.
    fn symbols_in(
        &mut self,
        span: Range<u64>,
        line: Option<&[SourceFrame]>,
        each: &mut impl FnMut(Piece<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut at = span.start;
        while let Some(symbol) = self.symbols.ranges.get(self.next_symbol) {
            let named = symbol.start.max(at)..symbol.end.min(span.end);
            if symbol.end <= at {
                self.next_symbol += 1;
                continue;
            }
            if named.is_empty() {
                break;
            }
            if let Some(frames) = line.filter(|_| at < named.start) {
                each(Piece { range: at..named.start, function_start: None, frames })?;
            }
            let name = self.symbols.frames.get(symbol.exact as usize).and_then(|frame| frame.name);
            self.frames.clear();
            self.frames.extend_from_slice(line.unwrap_or(&[SourceFrame { name, file: None, line: None }]));
            if let Some(concrete) = self.frames.first_mut() {
                concrete.name = name;
            }
            at = named.end;
            each(Piece { range: named, function_start: symbol.function_start, frames: &self.frames })?;
        }
        match line {
            Some(frames) if at < span.end => {
                each(Piece { range: at..span.end, function_start: None, frames })
            }
            _ => Ok(()),
        }
    }
}
