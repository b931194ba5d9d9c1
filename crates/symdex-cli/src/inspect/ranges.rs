//! The ranges of a chunk, with their frames.

use std::borrow::Cow;

use serde::Serialize;
use symdex::{ChunkRanges, CodeRange, Index, InlineFrame, NonMaxU32, StringReader, Table};

use crate::text;

/// A digest in hexadecimal, the most significant byte first.
pub(super) fn digest(digest: [u8; 16]) -> String {
    format!("{:032x}", u128::from_le_bytes(digest))
}

/// The number of aliases of all functions in the symbol table.
pub(super) fn aliases<B: AsRef<[u8]>>(index: &Index<B>) -> Result<u64, symdex::Error> {
    let mut aliases = 0;
    for chunk in index.chunks(Table::SymbolTable) {
        let (_, contents) = chunk?;
        let starts = contents.ranges.iter().filter(|range| range.function_start == Some(range.start));
        aliases += starts.map(|range| chain(&contents, range.exact).skip(1).count() as u64).sum::<u64>();
    }
    Ok(aliases)
}

/// An inline frame and its callers or, in the symbol table, its aliases.
fn chain(contents: &ChunkRanges, innermost: u32) -> impl Iterator<Item = &InlineFrame> {
    let mut next = usize::try_from(innermost).ok();
    std::iter::from_fn(move || {
        let number = next?;
        let frame = contents.frames.get(number)?;
        // The number of a parent is smaller. The filter ends the chain of a damaged index, too.
        next = frame.parent.map(NonMaxU32::index).filter(|parent| *parent < number);
        Some(frame)
    })
}

/// The function, file and line of a frame, as far as they are known.
#[derive(Serialize)]
pub(super) struct StoredFrame {
    pub(super) name: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

impl StoredFrame {
    fn name(&self) -> Cow<'_, str> {
        text::printable(self.name.as_deref().unwrap_or("??").into())
    }

    /// `file:line`, or what is known of it.
    fn file_and_line(&self) -> String {
        let file = self.file.as_ref().map(|file| text::printable(file.into()));
        match (file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.into_owned(),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => "no line".to_owned(),
        }
    }
}

/// Prints the ranges of one chunk.
pub(super) struct RangePrinter<'a, B> {
    pub(super) table: Table,
    pub(super) contents: &'a ChunkRanges,
    pub(super) strings: StringReader<'a, B>,
}

impl<B: AsRef<[u8]>> RangePrinter<'_, B> {
    /// The range, its frames under `exact`, and the innermost file and line under `statement` if they differ. The
    /// policies differ in nothing else.
    pub(super) fn lines(&mut self, range: &CodeRange) -> Result<Vec<String>, symdex::Error> {
        let function =
            range.function_start.map_or("no function".to_owned(), |start| format!("function {start:#x}"));
        let mut lines = vec![format!("{:#x}..{:#x}  {function}", range.start, range.end)];
        for (depth, frame) in self.chain(range.exact)?.into_iter().enumerate() {
            let name = frame.name();
            lines.push(match self.table {
                Table::SymbolTable if depth > 0 => format!("    alias {name}"),
                _ => format!("    {name}  {}", frame.file_and_line()),
            });
        }
        if range.statement != range.exact {
            let statement = self.chain(range.statement)?;
            let innermost =
                statement.first().map_or_else(|| "nothing".to_owned(), StoredFrame::file_and_line);
            lines.push(format!("    statement: {innermost}"));
        }
        Ok(lines)
    }

    /// The frames of a chain, innermost first.
    pub(super) fn chain(&mut self, innermost: u32) -> Result<Vec<StoredFrame>, symdex::Error> {
        let mut frames = Vec::new();
        for frame in chain(self.contents, innermost) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let name = frame.name.map(|id| self.strings.name(id).map(text)).transpose()?;
            let file = frame.file.map(|id| self.strings.file(id).map(text));
            let line = frame.line.map(|line| line.get());
            frames.push(StoredFrame { name, file: file.transpose()?, line });
        }
        Ok(frames)
    }
}
