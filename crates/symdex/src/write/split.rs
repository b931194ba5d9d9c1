//! An index as the values of a key-value store.

use std::collections::VecDeque;
use std::io::Cursor;

use rustc_hash::FxHashMap;

use super::{
    ChunkEncoder, ChunkRanges, EncodedReadableNames, EncodedStrings, EncodedUnwindRows, ImageInfo,
    UnwindRange, UnwindRules, UnwindTable, Writer,
};
use crate::error::Error;
use crate::format::metadata::CHUNKS_PER_VALUE;
use crate::format::{Counts, Metadata, Table};
use crate::index::Index;
use crate::ranges::NonMaxU32;
use crate::walk::StringReader;

/// A part of an index.
pub struct Value {
    /// Which part; see [`Metadata::value_number`].
    pub number: u64,
    /// An index of the chunks of this part, with the names and files that they use. [`Index::open`] opens it.
    pub bytes: Vec<u8>,
}

/// Splits an index into values; see [`split`].
pub struct Split<'i, B> {
    index: &'i Index<B>,
    strings: StringReader<'i, B>,
    numbers: VecDeque<std::ops::Range<u64>>,
    encoder: ChunkEncoder,
}

/// Splits an index into values for a key-value store. Each value is a small index of a part of the image. The iterator
/// creates them one by one, in the order of their numbers. No chunk is decoded twice.
///
/// The value with the number [`Metadata::value_number`] answers an offset as the whole index does. There is a value
/// for each number in [`Metadata::value_numbers`]. If the store lacks one of them, the value is lost.
///
/// Values are not compressed; a store may compress them.
///
/// ```
/// use symdex::{ImageOffset, Index};
///
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
/// let index = Index::open(std::fs::read(path)?)?;
/// let values = symdex::write::split(&index).collect::<Result<Vec<_>, _>>()?;
/// let number = index.metadata().value_number(ImageOffset(0x3cf));
/// let value = values.iter().find(|value| value.number == number).ok_or("not in the image")?;
/// let part = Index::open(&value.bytes[..])?;
/// assert_eq!(part.id(), index.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn split<B: AsRef<[u8]>>(index: &Index<B>) -> Split<'_, B> {
    let metadata = index.metadata();
    let encoder = ChunkEncoder::new(metadata.chunk_span, metadata.image_size);
    Split { index, strings: index.strings(), numbers: metadata.value_numbers().into(), encoder }
}

impl<B: AsRef<[u8]>> Iterator for Split<'_, B> {
    type Item = Result<Value, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let numbers = self.numbers.front_mut()?;
        let number = numbers.next();
        if numbers.is_empty() {
            self.numbers.pop_front();
        }
        let number = number?;
        Some(self.value(number).map(|bytes| Value { number, bytes }))
    }
}

impl<B: AsRef<[u8]>> Split<'_, B> {
    fn value(&mut self, number: u64) -> Result<Vec<u8>, Error> {
        let metadata = self.index.metadata();
        let mut writer = Writer::new(image(metadata), metadata.chunk_span, Cursor::new(Vec::new()));
        let (mut names, mut files, mut counts) =
            (Renumbered::default(), Renumbered::default(), Counts::default());
        for &table in Table::ALL {
            for index in chunks_of_value(number) {
                let mut chunk = self.index.chunk(table, index)?;
                if chunk.ranges.is_empty() {
                    continue;
                }
                for frame in &mut chunk.frames {
                    (frame.name, frame.file) = (names.id(frame.name), files.id(frame.file));
                }
                count(&mut counts, table, &chunk);
                writer.push(self.encoder.encode(table, index, &chunk)?)?;
            }
        }
        let readable = self.index.has_readable_names().then(|| {
            let readable = |id: &NonMaxU32| Ok(self.strings.readable_name(*id)?.map(<[u8]>::to_vec));
            EncodedReadableNames::new(&names.ids.iter().map(readable).collect::<Result<Vec<_>, Error>>()?)
        });
        let unwind = self.unwind_rows(number)?;
        let names = names.strings(|id| self.strings.name(id).map(<[u8]>::to_vec))?;
        let files = files.strings(|id| self.strings.file(id).map(<[u8]>::to_vec))?;
        let (names, files) = (EncodedStrings::new(&names)?, EncodedStrings::new(&files)?);
        let mut bytes = Vec::new();
        let mut writer = writer.seal()?;
        if let Some(readable) = readable {
            writer.set_readable_names(readable?);
        }
        if let Some(unwind) = unwind {
            writer.set_unwind_rows(unwind);
        }
        writer.finish(&names, &files, counts, metadata.partial.clone(), &mut bytes)?;
        Ok(bytes)
    }

    /// The unwind rows of the code of a value. `None` if the index has none at all.
    fn unwind_rows(&self, number: u64) -> Result<Option<EncodedUnwindRows>, Error> {
        let Some(reader) = self.index.unwind_reader()? else { return Ok(None) };
        let span = u64::from(self.index.metadata().chunk_span);
        let chunks = chunks_of_value(number);
        let [first, end] = [chunks.start, chunks.end].map(|chunk| chunk.saturating_mul(span));
        let (mut table, mut ranges) = (UnwindTable::default(), Vec::new());
        for row in reader.rows_from(first) {
            let row = row?;
            let range = row.range();
            let (start, end) = (range.start.0.max(first), range.end.0.min(end));
            if start >= end {
                break;
            }
            ranges.push(UnwindRange { start, end, rules: table.number(&UnwindRules::from(&row))? });
        }
        EncodedUnwindRows::new(&table, &ranges).map(Some)
    }
}

fn image(metadata: &Metadata) -> ImageInfo {
    ImageInfo {
        id: metadata.id.clone(),
        image_name: metadata.image_name.clone(),
        arch: metadata.arch.clone(),
        base: metadata.base,
        image_size: metadata.image_size,
        executable: metadata.executable.clone(),
        text_exec_base: metadata.text_exec_base,
        segments: metadata.segments.clone(),
    }
}

fn count(counts: &mut Counts, table: Table, chunk: &ChunkRanges) {
    let ranges = chunk.ranges.len() as u64;
    match table {
        Table::Dwarf => {
            let starts = chunk.ranges.iter().filter(|range| range.function_start == Some(range.start));
            counts.functions += starts.count() as u64;
            counts.ranges += ranges;
        }
        Table::SymbolTable => counts.symbols += ranges,
    }
}

/// Strings of the index, numbered in the order in which a value first uses them.
#[derive(Default)]
struct Renumbered {
    numbers: FxHashMap<NonMaxU32, NonMaxU32>,
    ids: Vec<NonMaxU32>,
}

impl Renumbered {
    fn id(&mut self, id: Option<NonMaxU32>) -> Option<NonMaxU32> {
        let (id, next) = (id?, NonMaxU32::new(self.ids.len() as u64)?);
        Some(*self.numbers.entry(id).or_insert_with(|| {
            self.ids.push(id);
            next
        }))
    }

    fn strings(self, string: impl FnMut(NonMaxU32) -> Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        self.ids.into_iter().map(string).collect()
    }
}

/// The chunks that store value `number` has.
fn chunks_of_value(number: u64) -> std::ops::Range<u64> {
    // No chunk has a larger number than there are offsets.
    let first = number.saturating_mul(CHUNKS_PER_VALUE);
    first..first.saturating_add(CHUNKS_PER_VALUE)
}
