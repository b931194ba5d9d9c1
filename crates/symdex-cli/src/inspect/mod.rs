//! `symdex inspect`: the contents of an index.

mod json;
mod ranges;
mod values;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use symdex::{ChunkRanges, Counts, Index, Metadata, Table};

use self::ranges::{RangePrinter, aliases, digest};
use crate::failure::{self, Cause, CommandError, Failure};
use crate::stores::StoreArgs;
use crate::{open, text};
use symdex_store::{IdPrefix, IndexBytes, StoredImage};

/// Print the contents of an index: metadata, sections, counts and chunks, or the ranges of one chunk
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// An index file, or a folder of indexes (with --id)
    #[arg(value_name = "INDEX", required_unless_present = "urls", conflicts_with = "urls")]
    index: Option<PathBuf>,
    #[command(flatten)]
    stores: StoreArgs,
    /// The image to use, if INDEX is a folder, or in a store: its UUID, with or without dashes, its build id, or the
    /// first digits of one, at least four
    #[arg(long, value_name = "ID")]
    id: Option<IdPrefix>,
    #[command(flatten)]
    access: open::AccessOption,
    /// Print the ranges of chunk N, with the answers of both line policies
    #[arg(long, value_name = "N")]
    chunk: Option<u64>,
    /// The table of chunk N
    #[arg(long, value_enum, value_name = "TABLE", default_value = "dwarf", requires = "chunk")]
    table: WhichTable,
    /// Print JSON: one object for the index, or with --chunk one object per line for each range
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex inspect 0c37c502aba03641a08f84c794684f36.symdex
  symdex inspect 0c37c502aba03641a08f84c794684f36.symdex --chunk 0
  symdex inspect indexes --id 0c37c502aba03641a08f84c794684f36 --chunk 0 --table symbol_table
  symdex inspect 0c37c502aba03641a08f84c794684f36.symdex --json | jq .counts

JSON: addresses and offsets in the image are hexadecimal strings with 0x; sizes in bytes and
counts are numbers. docs/schema/inspect.schema.json describes the objects.

Redis keeps an index as values. Of such an index, the sections, the sizes of the chunks and the number \
of aliases are not known; the ranges of a chunk are.";

#[derive(Clone, Copy, clap::ValueEnum)]
enum WhichTable {
    Dwarf,
    #[value(name = "symbol_table")]
    SymbolTable,
}

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let image = open::image(args.index.as_deref(), &args.stores, args.id.as_ref(), args.access)?;
    match image.image() {
        StoredImage::Index(index) => print(args, index, image.location().as_ref()),
        StoredImage::Values(_) => values::print(args, &image),
    }
}

fn print(args: &Args, index: &Index<IndexBytes>, path: &Path) -> failure::CommandResult {
    let mut out = BufWriter::new(io::stdout().lock());
    match args.chunk {
        Some(number) => {
            check_chunk(path, index.metadata(), args.table(), number)?;
            print_chunk(args, &mut out, path, index, number)?;
        }
        None if args.json => json::index(&mut out, path, index)?,
        None => {
            metadata(&mut out, index.metadata())?;
            sizes(&mut out, path, index)?;
            for &table in Table::ALL {
                chunks(&mut out, path, index, table)?;
            }
        }
    }
    out.flush()?;
    Ok(None)
}

/// Prints the ranges of chunk `number`, which is in `index`.
fn print_chunk(
    args: &Args,
    out: &mut impl Write,
    path: &Path,
    index: &Index<IndexBytes>,
    number: u64,
) -> Result<(), CommandError> {
    let table = args.table();
    let contents = index.chunk(table, number).map_err(|error| Failure::index(path, &error))?;
    if args.json {
        json::ranges(out, path, index, table, &contents)
    } else {
        one_chunk(out, path, index, table, number, &contents)
    }
}

impl Args {
    fn table(&self) -> Table {
        match self.table {
            WhichTable::Dwarf => Table::Dwarf,
            WhichTable::SymbolTable => Table::SymbolTable,
        }
    }
}

fn metadata(out: &mut impl Write, metadata: &Metadata) -> io::Result<()> {
    let arch = &metadata.arch;
    writeln!(out, "image         {}", text::printable(metadata.image_name.as_str().into()))?;
    writeln!(out, "id            {}", metadata.id)?;
    writeln!(
        out,
        "arch          {} (cputype {:#x}, cpusubtype {:#x})",
        arch.name, arch.cputype, arch.cpusubtype
    )?;
    writeln!(out, "grade         {}", metadata.grade())?;
    writeln!(out, "base          {:#x}", metadata.base)?;
    writeln!(out, "image size    {:#x}", metadata.image_size)?;
    for (start, end) in &metadata.executable {
        writeln!(out, "executable    {start:#x}..{end:#x}")?;
    }
    if let Some(base) = metadata.text_exec_base {
        writeln!(out, "__TEXT_EXEC   {base:#x}")?;
    }
    for [file_offset, address, size] in metadata.segments.iter().flatten() {
        writeln!(out, "segment       {address:#x}..{:#x} at {file_offset:#x} of the file", address + size)?;
    }
    writeln!(out, "chunk span    {:#x}", metadata.chunk_span)?;
    writeln!(out, "builder       symdex {}", text::printable(metadata.builder.as_str().into()))?;
    if let Some(input) = metadata.input_digest {
        writeln!(out, "input digest  {}", digest(input))?;
    }
    for partial in &metadata.partial {
        let reason = text::printable(partial.reason.as_str().into());
        writeln!(out, "partial       {} x {reason}", partial.count)?;
    }
    Ok(())
}

/// The digest, the sections and the counts.
fn sizes<B: AsRef<[u8]>>(out: &mut impl Write, path: &Path, index: &Index<B>) -> Result<(), CommandError> {
    let size = index.as_bytes().len() as u64;
    writeln!(out, "format        {}", index.format_version())?;
    writeln!(out, "size          {size} bytes")?;
    writeln!(out, "digest        {}", digest(index.digest()))?;
    writeln!(out, "\n{:<12} {:>12} {:>12}", "section", "offset", "bytes")?;
    for symdex::SectionInfo { name, offset, size: bytes, .. } in index.sections() {
        writeln!(out, "{name:<12} {offset:>12} {bytes:>12}")?;
    }
    let aliases = aliases(index).map_err(|error| Failure::index(path, &error))?;
    counts(out, index.metadata().counts, Some(aliases), size)?;
    if index.has_unwind_rows() {
        let unwind = index.unwind_counts().map_err(|error| Failure::index(path, &error))?;
        let (rows, rules) = (text::count(unwind.rows, "row"), text::count(unwind.rules, "distinct rule"));
        writeln!(out, "\nunwind: {rows} of {rules}, for {} bytes of code", unwind.covered)?;
    }
    Ok(())
}

/// The counts of an index of `size` bytes. `aliases` is `None` if their number is not known.
fn counts(out: &mut impl Write, counts: Counts, aliases: Option<u64>, size: u64) -> io::Result<()> {
    writeln!(out, "\n{:<12} {:>12} {:>12}", "what", "how many", "bytes each")?;
    let all = [
        ("units", Some(counts.units)),
        ("functions", Some(counts.functions)),
        ("ranges", Some(counts.ranges)),
        ("symbols", Some(counts.symbols)),
        ("aliases", aliases),
        ("names", Some(counts.names)),
        ("files", Some(counts.files)),
    ];
    for (name, count) in all.into_iter().filter_map(|(name, count)| Some((name, count?))) {
        // Tenths of a byte, of the whole index.
        let each = size.saturating_mul(10).checked_div(count).unwrap_or(0);
        writeln!(out, "{name:<12} {count:>12} {:>10}.{}", each / 10, each % 10)?;
    }
    Ok(())
}

/// The chunks of one table: start in the image, size, and number of ranges.
fn chunks<B: AsRef<[u8]>>(
    out: &mut impl Write,
    path: &Path,
    index: &Index<B>,
    table: Table,
) -> Result<(), CommandError> {
    let chunks = json::chunks(index, table).map_err(|error| Failure::index(path, &error))?;
    writeln!(out, "\n{}: {}", table.name(), text::count(chunks.len() as u64, "chunk"))?;
    writeln!(out, "{:>8} {:>12} {:>10} {:>8}", "chunk", "from", "bytes", "ranges")?;
    for json::ChunkView { chunk, from, size, ranges, .. } in chunks {
        writeln!(out, "{chunk:>8} {from:>12} {size:>10} {ranges:>8}")?;
    }
    Ok(())
}

/// Checks that `table` has a chunk with this number.
fn check_chunk(path: &Path, metadata: &Metadata, table: Table, number: u64) -> Result<(), Failure> {
    let stored = metadata.chunks(table);
    if stored.contains(&number) {
        return Ok(());
    }
    let (path, table) = (path.display(), table.name());
    let message = if stored.is_empty() {
        format!("{path}: no chunk {number}: the table {table} is empty")
    } else {
        format!("{path}: no chunk {number}; the table {table} has {} to {}", stored.start, stored.end - 1)
    };
    Err(Failure::new(Cause::NotFound, message))
}

fn one_chunk<B: AsRef<[u8]>>(
    out: &mut impl Write,
    path: &Path,
    index: &Index<B>,
    table: Table,
    number: u64,
    contents: &ChunkRanges,
) -> Result<(), CommandError> {
    let span = u64::from(index.metadata().chunk_span);
    let (from, ranges) = (number.saturating_mul(span), contents.ranges.len());
    writeln!(
        out,
        "{} chunk {number}: {from:#x}..{:#x}, {}",
        table.name(),
        from.saturating_add(span),
        text::count(ranges as u64, "range")
    )?;
    let mut printer = RangePrinter { table, contents, strings: index.strings() };
    for range in &contents.ranges {
        for line in printer.lines(range).map_err(|error| Failure::index(path, &error))? {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
