//! The output of `symdex inspect --json`.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use symdex::{ChunkRanges, CodeRange, Counts, Grade, Index, Metadata, Partial, Seen, Table};

use super::ranges::{RangePrinter, StoredFrame, aliases, digest};
use crate::failure::{CommandError, Failure};

/// All of an index except its ranges. Members that a store of values does not have are absent.
#[derive(Serialize)]
struct IndexView<'i> {
    path: String,
    image: &'i str,
    id: String,
    arch: ArchView<'i>,
    grade: Grade,
    base: String,
    image_size: u64,
    executable: Vec<[String; 2]>,
    text_exec_base: Option<String>,
    chunk_span: u32,
    builder: &'i str,
    input_digest: Option<String>,
    partial: &'i [Partial],
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sections: Option<Vec<SectionView>>,
    counts: CountsView,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Vec<ChunkView>>,
}

#[derive(Serialize)]
struct ArchView<'i> {
    name: &'i str,
    cputype: u32,
    cpusubtype: u32,
}

#[derive(Serialize)]
struct SectionView {
    name: &'static str,
    offset: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct CountsView {
    units: u64,
    functions: u64,
    ranges: u64,
    symbols: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    aliases: Option<u64>,
    names: u64,
    files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwind_rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwind_rules: Option<u64>,
    /// Bytes of code that have an unwind row.
    #[serde(skip_serializing_if = "Option::is_none")]
    unwind_covered: Option<u64>,
    /// What the builder found in the debug file.
    seen: Seen,
}

#[derive(Serialize)]
struct ChunkView {
    table: &'static str,
    chunk: u64,
    /// Its start in the image.
    from: String,
    bytes: usize,
    ranges: usize,
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
    let section = |section: symdex::SectionInfo| SectionView {
        name: section.name,
        offset: section.offset,
        bytes: section.size,
    };
    let size = index.as_bytes().len() as u64;
    let mut view = view(path, index.metadata(), Some(size), Some(index.digest()));
    view.format = Some(index.format_version());
    view.sections = Some(index.sections().into_iter().map(section).collect());
    view.counts.aliases = Some(aliases(index).map_err(failed)?);
    if index.has_unwind_rows() {
        let unwind = index.unwind_counts().map_err(failed)?;
        view.counts.unwind_rows = Some(unwind.rows);
        view.counts.unwind_rules = Some(unwind.rules);
        view.counts.unwind_covered = Some(unwind.covered);
    }
    view.chunks = Some(chunks(index).map_err(failed)?);
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

fn view<'i>(
    path: &Path,
    metadata: &'i Metadata,
    size: Option<u64>,
    index_digest: Option<[u8; 16]>,
) -> IndexView<'i> {
    let Metadata { image_name, arch, base, image_size, executable, .. } = metadata;
    let Counts { units, functions, ranges, symbols, names, files, seen, .. } = metadata.counts;
    IndexView {
        path: path.display().to_string(),
        image: image_name,
        id: metadata.id.to_string(),
        arch: ArchView { name: &arch.name, cputype: arch.cputype, cpusubtype: arch.cpusubtype },
        grade: metadata.grade(),
        base: hexadecimal(*base),
        image_size: *image_size,
        executable: executable.iter().map(|(start, end)| [*start, *end].map(hexadecimal)).collect(),
        text_exec_base: metadata.text_exec_base.map(hexadecimal),
        chunk_span: metadata.chunk_span,
        builder: &metadata.builder,
        input_digest: metadata.input_digest.map(digest),
        partial: &metadata.partial,
        format: None,
        size,
        digest: index_digest.map(digest),
        sections: None,
        counts: CountsView {
            units,
            functions,
            ranges,
            symbols,
            aliases: None,
            names,
            files,
            unwind_rows: None,
            unwind_rules: None,
            unwind_covered: None,
            seen,
        },
        chunks: None,
    }
}

/// The chunks of both tables.
fn chunks<B: AsRef<[u8]>>(index: &Index<B>) -> Result<Vec<ChunkView>, symdex::Error> {
    let span = u64::from(index.metadata().chunk_span);
    let mut chunks = Vec::new();
    for table in Table::ALL {
        for chunk in index.chunks(table) {
            let (number, contents) = chunk?;
            chunks.push(ChunkView {
                table: table.name(),
                chunk: number,
                from: hexadecimal(number.saturating_mul(span)),
                bytes: index.chunk_size(table, number)?.unwrap_or_default(),
                ranges: contents.ranges.len(),
            });
        }
    }
    Ok(chunks)
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
    let statement = match range.statement == range.exact {
        true => None,
        false => printer.chain(range.statement)?.into_iter().next(),
    };
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
