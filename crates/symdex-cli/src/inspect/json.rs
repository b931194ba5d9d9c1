//! The output of `symdex inspect --json`.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use symdex::{ChunkRanges, CodeRange, Index, Metadata, SectionInfo, Table, UnwindCounts};
use symdex_report::IndexView;

use super::ranges::{RangePrinter, StoredFrame, aliases, digest};
use crate::failure::{CommandError, Failure};

/// All of an index except its ranges. Members that a store of values does not have are absent.
#[derive(Serialize)]
struct Inspected {
    location: String,
    #[serde(flatten)]
    index: IndexView,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sections: Option<Vec<SectionInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aliases: Option<u64>,
    /// Absent without unwind rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    unwind: Option<UnwindCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Vec<ChunkView>>,
}

#[derive(Serialize)]
pub(super) struct ChunkView {
    table: &'static str,
    pub(super) chunk: u64,
    /// Its start in the image.
    pub(super) from: String,
    pub(super) size: usize,
    pub(super) ranges: usize,
}

/// A range of a chunk.
#[derive(Serialize)]
struct RangeView {
    start: String,
    end: String,
    function_start: Option<String>,
    /// The frames under `exact`, innermost first.
    functions: Vec<StoredFrame>,
    /// The innermost frame under `statement`; `None` if it is the one under `exact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<StoredFrame>,
    /// Other names of the function.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
}

/// Prints all of the index except its ranges, as one object.
pub(super) fn index<B: AsRef<[u8]>>(
    out: &mut impl Write,
    path: &Path,
    index: &Index<B>,
) -> Result<(), CommandError> {
    let failed = |error| Failure::index(path, &error);
    let mut all = Vec::new();
    for &table in Table::ALL {
        all.extend(chunks(index, table).map_err(failed)?);
    }
    let unwind = index.has_unwind_rows().then(|| index.unwind_counts()).transpose().map_err(failed)?;
    let (size, digest) = (index.as_bytes().len() as u64, index.digest());
    let view = Inspected {
        format: Some(index.format_version()),
        sections: Some(index.sections()),
        aliases: Some(aliases(index).map_err(failed)?),
        unwind,
        chunks: Some(all),
        ..view(path, index.metadata(), Some(size), Some(digest))
    };
    Ok(line(out, &view)?)
}

/// Prints what the metadata states of an index, and its size and digest if they are known, as one object.
pub(super) fn metadata(
    out: &mut impl Write,
    path: &Path,
    metadata: &Metadata,
    size: Option<u64>,
    digest: Option<[u8; 16]>,
) -> Result<(), CommandError> {
    Ok(line(out, &view(path, metadata, size, digest))?)
}

fn view(
    path: &Path,
    metadata: &Metadata,
    index_size: Option<u64>,
    index_digest: Option<[u8; 16]>,
) -> Inspected {
    Inspected {
        location: path.display().to_string(),
        index: metadata.into(),
        format: None,
        index_size,
        digest: index_digest.map(digest),
        sections: None,
        aliases: None,
        unwind: None,
        chunks: None,
    }
}

/// The chunks of one table.
pub(super) fn chunks<B: AsRef<[u8]>>(
    index: &Index<B>,
    table: Table,
) -> Result<Vec<ChunkView>, symdex::Error> {
    let span = u64::from(index.metadata().chunk_span);
    let view = |chunk: Result<(u64, ChunkRanges), symdex::Error>| {
        let (number, contents) = chunk?;
        Ok(ChunkView {
            table: table.name(),
            chunk: number,
            from: hexadecimal(number.saturating_mul(span)),
            size: index.chunk_size(table, number)?.unwrap_or_default(),
            ranges: contents.ranges.len(),
        })
    };
    index.chunks(table).map(view).collect()
}

/// Prints the ranges of a chunk, one object per line.
pub(super) fn ranges<B: AsRef<[u8]>>(
    out: &mut impl Write,
    path: &Path,
    index: &Index<B>,
    table: Table,
    contents: &ChunkRanges,
) -> Result<(), CommandError> {
    let mut printer = RangePrinter { table, contents, strings: index.strings() };
    for range in &contents.ranges {
        let view = range_view(&mut printer, range).map_err(|error| Failure::index(path, &error))?;
        line(out, &view)?;
    }
    Ok(())
}

fn range_view<B: AsRef<[u8]>>(
    printer: &mut RangePrinter<'_, B>,
    range: &CodeRange,
) -> Result<RangeView, symdex::Error> {
    let mut functions = printer.chain(range.exact)?;
    let aliases = match printer.table {
        Table::SymbolTable => functions.split_off(functions.len().min(1)),
        Table::Dwarf => Vec::new(),
    };
    let differs = range.statement != range.exact;
    let statement = if differs { printer.chain(range.statement)?.into_iter().next() } else { None };
    Ok(RangeView {
        start: hexadecimal(range.start),
        end: hexadecimal(range.end),
        function_start: range.function_start.map(hexadecimal),
        functions,
        statement,
        aliases: aliases.into_iter().filter_map(|alias| alias.name).collect(),
    })
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}

fn line(out: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(value)?)
}
