//! From an image to the bytes of its index.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

use memmap2::Mmap;
use rayon::prelude::*;
use symdex::write::{ChunkEncoder, EncodedPool, Id32, Loc, PoolEncoder, Writer};
use symdex::{BuildOptions, Counts, Index, Table};
use tempfile::{SpooledTempFile, spooled_tempfile};

use crate::again::{Expected, has_contents};
use crate::dwarf::{Piece, UnitRange, UnitRanges, Units, unit_ranges};
use crate::error::Error;
use crate::flatten::{Interval, Stretch, flatten};
use crate::image::Image;
use crate::merge::{ChunkJob, Merge, OutOfOrder, Pools};
use crate::pools::{Pool, dictionary};
use crate::report::{BuildReport, Problems, TextCoverage};
use crate::symbol_map::{SymbolMap, is_hidden};
use crate::symbols::FunctionSymbol;

/// Bytes of address space a chunk covers. Larger chunks make a smaller index and a slower first answer.
pub(crate) const CHUNK_SPAN: u32 = 32 << 10;
/// Bytes of chunks that are kept in memory until the index is put together; with more of them, they are in a temporary file.
const CHUNKS_IN_MEMORY: usize = 4 << 20;
/// Bytes of `.debug_info` that are walked before their ranges are merged: what is in memory at a time.
const BATCH_SIZE: usize = 8 << 20;
/// The most aliases of one function: with its name they make as long a chain as an index may have.
const MAX_ALIASES: usize = 1023;
/// The most aliases of all the functions that start in one chunk, which readers decode as a whole; far above any real image.
const MAX_ALIASES_OF_CHUNK: usize = 1 << 14;

/// How an index is built.
pub struct Options<'o> {
    /// zstd's compression level.
    pub compression_level: i32,
    /// The index of the image that is there already. Where an image without debug information would become this very index, it
    /// is not made again: most of the time goes into compression. The result is the same with it and without.
    pub existing: Option<&'o Index<Mmap>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { compression_level: 6, existing: None }
    }
}

/// An index, and what is worth saying about how it came to be.
pub struct Built<B = Vec<u8>> {
    /// The index file's bytes, or what they were written to.
    pub bytes: B,
    /// Oddities of the debug file that cost no answers; what did cost answers is in the index's metadata.
    pub warnings: Vec<String>,
    /// What was left out, and how much code has answers.
    pub report: BuildReport,
}

/// The index of `image` in memory: as [`build_into`] does.
///
/// # Errors
///
/// As [`build_into`].
pub fn build(
    image: &Image<'_>,
    options: &Options<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Built, Error> {
    build_into(image, options, progress, Vec::new())
}

/// Builds the index of `image`, on the threads of the rayon pool it is called in, and writes it to `out`; the bytes do not depend on
/// how many there are.
///
/// `progress` is told now and then how many bytes of debug information are done, and how many there are.
///
/// # Errors
///
/// [`Error::Index`] where the index would be too large for the format, or where it, or a temporary file, cannot be written. A unit or
/// a function that cannot be read is left out and counted in the metadata.
pub fn build_into<W: Write + Send>(
    image: &Image<'_>,
    options: &Options<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
    mut out: W,
) -> Result<Built<W>, Error> {
    let mut problems = Problems::default();
    image.missing.iter().for_each(|missing| problems.add(missing, 1));
    let units = Units::read(image, &mut problems);
    let mut warnings = Vec::new();
    if units.not_in_aranges != 0 && image.has_aranges() {
        warnings.push(format!(".debug_aranges misses {} units with code", units.not_in_aranges));
    }
    let mut run =
        |by_address| Build::new(image, options).run(&units, by_address, problems.clone(), progress, &mut out);
    let report = match run(true)? {
        Ok(report) => report,
        Err(OutOfOrder) => {
            warnings.push("units have code below the addresses they state".to_owned());
            run(false)?.unwrap_or_default()
        }
    };
    Ok(Built { bytes: out, warnings, report })
}

/// A build under way.
struct Build<'a, 'd> {
    image: &'a Image<'d>,
    existing: Option<&'a Index<Mmap>>,
    options: BuildOptions,
    writer: Writer<SpooledTempFile>,
    pools: Pools<'d>,
    coverage: TextCoverage,
}

impl<'a, 'd> Build<'a, 'd> {
    fn new(image: &'a Image<'d>, options: &Options<'a>) -> Self {
        let existing = options.existing.filter(|_| !image.has_dwarf());
        let options = BuildOptions { compression_level: options.compression_level };
        let limit = image.debug_size + image.symbol_map.map_or(0, SymbolMap::size) + (1 << 20);
        let pools = Pools { names: Pool::new(limit), files: Pool::new(limit) };
        let writer = Writer::new(image.info.clone(), CHUNK_SPAN, options, spooled_tempfile(CHUNKS_IN_MEMORY));
        let executable = image.info.executable.iter().map(|(start, end)| end - start).sum();
        let coverage = TextCoverage { executable, ..Default::default() };
        Self { image, existing, options, writer, pools, coverage }
    }

    /// Writes the index to `out`; `OutOfOrder`, and nothing written, where `by_address` was asked for and units do not keep to the
    /// addresses they state.
    fn run(
        mut self,
        units: &Units<'d>,
        by_address: bool,
        mut problems: Problems,
        progress: &(dyn Fn(u64, u64) + Sync),
        out: &mut impl Write,
    ) -> Result<Result<BuildReport, OutOfOrder>, Error> {
        let mut counts = Counts { units: units.own as u64, ..Counts::default() };
        match self.dwarf(units, by_address, &mut problems, &mut counts, progress)? {
            Ok(()) => {}
            Err(out_of_order) => return Ok(Err(out_of_order)),
        }
        let jobs = self.symbols(&mut counts, &mut problems);
        let Pools { names, files } = std::mem::take(&mut self.pools);
        problems.add("names left out: they are too long, or overlap too much", names.refused);
        problems.add("file paths left out: they are too long, or too many", files.refused);
        let (names, files) = (names.into_strings(), files.into_strings());
        (counts.names, counts.files) = (names.len() as u64, files.len() as u64);
        problems.hidden(hidden_len(&names, &files));
        let (partial, report) = problems.finish(self.image.has_dwarf(), self.coverage);
        if let Some(index) = self.existing {
            let is_same = Expected { image: self.image, options: self.options, counts, partial: &partial };
            if is_same.is_metadata_of(index) && has_contents(index, &jobs, &names).unwrap_or(false) {
                out.write_all(index.as_bytes()).map_err(symdex::Error::from)?;
                return Ok(Ok(report));
            }
        }
        self.write(Table::SymbolTable, jobs)?;
        let dictionary = dictionary(&names);
        let id = &self.image.info.id;
        let names = encode_pool(&PoolEncoder::names(id, &names, &dictionary, self.options)?)?;
        let files = encode_pool(&PoolEncoder::files(id, &files, self.options)?)?;
        self.writer.finish(&names, &files, counts, partial, out)?;
        Ok(Ok(report))
    }

    /// Walks the units, batch after batch, and writes the chunks of the `dwarf` table.
    fn dwarf(
        &mut self,
        units: &Units<'d>,
        by_address: bool,
        problems: &mut Problems,
        counts: &mut Counts,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Result<(), OutOfOrder>, Error> {
        let low = |unit: usize| if by_address { units.all[unit].low.unwrap_or(0) } else { 0 };
        let size = |unit: usize| units.all[unit].unit.header.length_including_self();
        let mut order: Vec<usize> = (0..units.own).collect();
        order.sort_by_key(|unit| low(*unit));
        let total = (0..units.own).map(|unit| size(unit) as u64).sum();
        let mut merge = Merge::new(CHUNK_SPAN);
        let mut range_budget = self.image.range_budget();
        let (mut next, mut done) = (0, 0);
        while next < order.len() {
            let batch = batch(&order[next..], size);
            next += batch.len();
            let walk = |unit: &usize| unit_ranges(self.image, units, *unit, range_budget);
            let walked: Vec<UnitRanges<'d>> = batch.par_iter().map(walk).collect();
            for mut unit in walked {
                range_budget = range_budget.saturating_sub(unit.range_entries);
                problems.merge(std::mem::take(&mut unit.problems));
                if let Err(out_of_order) = merge.add(unit) {
                    return Ok(Err(out_of_order));
                }
            }
            let watermark = order.get(next).map_or(u64::MAX, |unit| low(*unit));
            let jobs = merge.advance(watermark, &mut self.pools);
            self.write(Table::Dwarf, jobs)?;
            done += batch.iter().map(|unit| size(*unit) as u64).sum::<u64>();
            progress(done, total);
        }
        (counts.functions, counts.ranges) = (merge.functions, merge.ranges());
        (self.coverage.dwarf, self.coverage.dwarf_function) = merge.covered();
        Ok(Ok(()))
    }

    /// The chunks of the `symbol_table` table.
    fn symbols(&mut self, counts: &mut Counts, problems: &mut Problems) -> Vec<ChunkJob> {
        let mut merge = Merge::new(CHUNK_SPAN);
        let mut unit = symbol_ranges(&self.image.symbols);
        problems.merge(std::mem::take(&mut unit.problems));
        if merge.add(unit).is_err() {
            return Vec::new();
        }
        let jobs = merge.advance(u64::MAX, &mut self.pools);
        self.coverage.symbol_table = merge.covered().1;
        counts.symbols = merge.ranges();
        jobs
    }

    fn write(&mut self, table: Table, jobs: Vec<ChunkJob>) -> Result<(), Error> {
        let encoder = || ChunkEncoder::new(&self.image.info.id, CHUNK_SPAN, self.options);
        let encode = |encoder: &mut Result<ChunkEncoder, symdex::Error>, job: ChunkJob| match encoder {
            Ok(encoder) => encoder.encode(table, job.index, &job.ranges, job.new_names, job.new_files),
            Err(_) => Err(symdex::Error::Unwritable { what: "zstd refuses the compression level" }),
        };
        let encoded: Vec<_> = jobs.into_par_iter().map_init(encoder, encode).collect();
        encoded.into_iter().try_for_each(|chunk| self.writer.push(chunk?)).map_err(Error::from)
    }
}

/// The units at the front of `order` that make up one batch: it depends on their sizes alone.
fn batch(order: &[usize], size: impl Fn(usize) -> usize) -> &[usize] {
    let mut total = 0;
    let fits = |unit: &&usize| {
        let fits = total < BATCH_SIZE;
        total += size(**unit);
        fits
    };
    &order[..order.iter().take_while(fits).count()]
}

/// The functions of the symbol table, as a unit of their own.
fn symbol_ranges<'d>(symbols: &[FunctionSymbol<'d>]) -> UnitRanges<'d> {
    let mut unit = UnitRanges::default();
    for (number, symbol) in (0u32..).zip(symbols) {
        let (start, end) = (symbol.start, symbol.end);
        push_name(&mut unit, symbol.name, None);
        let rank = (start, std::cmp::Reverse(end - start), false, std::cmp::Reverse(0));
        unit.pieces.push(Piece { start, end, function: number, rank, entry: None });
    }
    push_aliases(&mut unit, symbols);
    unit.functions = u32::try_from(symbols.len()).unwrap_or(u32::MAX);
    // In ELF, symbols may lie in each other.
    let interval = |piece: &Piece| Interval { start: piece.start, end: piece.end, priority: piece.rank };
    let intervals: Vec<_> = unit.pieces.iter().map(interval).collect();
    for Stretch { start, end, owner } in flatten(&intervals) {
        let piece = Id32::new(owner as u64);
        let number = unit.pieces[owner].function;
        unit.ranges.push(UnitRange { start, end, piece, exact: number, statement: number });
    }
    unit
}

/// Makes the names of functions that have several into chains of locs, which only the range at a function's start answers: a
/// function may be as long as the image and interrupted by others any number of times, and its names need not be repeated.
fn push_aliases<'d>(unit: &mut UnitRanges<'d>, symbols: &[FunctionSymbol<'d>]) {
    let (mut chunk, mut room, mut left_out) = (None, 0, 0);
    for (number, symbol) in symbols.iter().enumerate().filter(|(_, symbol)| !symbol.aliases.is_empty()) {
        let index = symbol.start / u64::from(CHUNK_SPAN);
        if chunk.replace(index) != Some(index) {
            room = MAX_ALIASES_OF_CHUNK;
        }
        let (kept, others) = symbol.aliases.split_at(symbol.aliases.len().min(MAX_ALIASES).min(room));
        (room, left_out) = (room - kept.len(), left_out + others.len() as u64);
        let push = |next, alias: &&'d [u8]| push_name(unit, Some(*alias), next);
        if let Some(next) = kept.iter().rev().fold(None, push) {
            unit.pieces[number].entry = push_name(unit, symbol.name, Some(next));
        }
    }
    unit.problems.add("other names of functions left out: too many start in one place", left_out);
}

/// The number of a new loc of `unit`: a name and, where there is one, the next alias.
fn push_name<'d>(unit: &mut UnitRanges<'d>, name: Option<&'d [u8]>, next: Option<Id32>) -> Option<Id32> {
    let name = name.and_then(|name| {
        unit.names.push(name.into());
        Id32::new(unit.names.len() as u64 - 1)
    });
    unit.locs.push(Loc { parent: next, name, file: None, line: None });
    Id32::new(unit.locs.len() as u64 - 1)
}

/// How many names and paths are hidden, or hidden in part.
fn hidden_len(names: &[Cow<'_, [u8]>], files: &[Cow<'_, [u8]>]) -> u64 {
    let names = names.iter().filter(|name| is_hidden(name));
    let files = files.iter().filter(|file| file.split(|byte| *byte == b'/').any(is_hidden));
    (names.count() + files.count()) as u64
}

fn encode_pool<S: AsRef<[u8]> + Sync>(encoder: &PoolEncoder<'_, S>) -> Result<EncodedPool, Error> {
    /// Blocks one thread encodes at a time.
    const STEP: u64 = 64;
    let steps: Vec<Range<u64>> = (0..encoder.blocks().div_ceil(STEP))
        .map(|step| step * STEP..((step + 1) * STEP).min(encoder.blocks()))
        .collect();
    let blocks: Vec<_> =
        steps.into_par_iter().map(|blocks| encoder.encode(blocks)).collect::<Result<_, _>>()?;
    Ok(encoder.finish(blocks.into_iter().flatten().collect()))
}
