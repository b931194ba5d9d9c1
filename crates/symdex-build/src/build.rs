//! From an image to the bytes of its index.
//!
//! Threads read units, one thread merges them in address order, and threads encode the chunks, all at the same time.
//!
//! Memory does not grow with the file, except for a small record of each distinct name and each symbol:
//!
//! * Units are read ahead of the unit that is merged next by a fixed number of bytes, [`WALK_AHEAD`]. A unit is dropped
//!   once its code is merged. [`crate::merge`] describes units that have to wait for others.
//! * Chunks are encoded as symbol streams, which go to a temporary file once they are large. They cannot be written to
//!   the index at once: the index begins with sizes, metadata and prefix codes, which are known after the last chunk.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Write;

use symdex::write::{
    ChunkEncoder, EncodedChunk, EncodedReadableNames, EncodedStrings, EncodedUnwindRows, ImageInfo, Writer,
};
use symdex::{Counts, Partial, Table};

use crate::chunk_job::ChunkJob;
use crate::chunker::CHUNK_SPAN;
use crate::dwarf::{Units, unit_ranges};
use crate::error::Error;
use crate::image::Image;
use crate::limits::{Deadline, UnitLimits};
use crate::memory::{Budget, LEAST, Memory};
use crate::merge::{Merge, OutOfOrder, StepError};
use crate::options::BuildOptions;
use crate::pools::{Pool, Pools};
use crate::queue::Queue;
use crate::readable::{Demangle, StringSizes, readable_names};
use crate::report::{BuildReport, Problems, TextCoverage};
use crate::spool::Spool;
use crate::symbol_map::{SymbolMap, is_hidden};
use crate::symbol_ranges::{kept_aliases, symbol_ranges};
use crate::symbols::FunctionSymbol;
use crate::unit_ranges::UnitRanges;
use crate::unwind::unwind_rows;
use crate::up_to_date::input_digest;

/// How many bytes of `.debug_info` are read ahead of the unit that is merged next.
pub(crate) const WALK_AHEAD: usize = 8 << 20;
/// A unit counts as at least this many bytes of `.debug_info`. Its task takes about as much memory.
const LEAST_AHEAD: usize = 1 << 10;
/// How many chunks one task encodes.
const CHUNKS_AT_A_TIME: usize = 8;
/// How many encoding tasks may be unfinished.
const ENCODE_AHEAD: usize = 8;
/// How many bytes all names of a file may have beyond its size, and all paths.
pub(crate) const MORE_STRINGS: u64 = 1 << 20;
/// About how many symbols are merged at a time.
const SYMBOLS_AT_A_TIME: usize = 1 << 14;

/// Builds the index of `image`, and writes it to `out`. Returns the report of the build, and warnings.
///
/// # Errors
///
/// As [`BuildOptions::build_into`].
pub(crate) fn build_image(
    image: &Image<'_>,
    options: &BuildOptions<'_>,
    out: &mut (impl Write + Send),
) -> Result<(BuildReport, Vec<String>), Error> {
    if options.max_memory < LEAST {
        return Err(Error::TooLittleMemory { limit: options.max_memory, least: LEAST });
    }
    let deadline = Deadline::after(options.max_seconds).less(image.load_time);
    let mut problems = image.problems();
    let memory = Memory::new(options.max_memory);
    if !memory.take(image.memory()) {
        let what = "its decompressed sections and symbols";
        return Err(Error::TooLarge { limit: options.max_memory, what });
    }
    let limits = UnitLimits { ranges: image.range_budget(), deadline, memory: &memory };
    let units = Units::read(image, limits, &mut problems)?;
    let budget = Budget::new(options.max_memory, memory.used())?;
    let mut warnings = Vec::new();
    if units.not_in_aranges != 0 && image.has_aranges() {
        let (missed, units) =
            (units.not_in_aranges, if units.not_in_aranges == 1 { "unit" } else { "units" });
        warnings.push(format!(".debug_aranges misses {missed} {units} with code"));
    }
    let mut run = |order| {
        let mut build = Build::new(&image.info, max_strings(image), budget, deadline);
        build.demangle = options.readable_names;
        build.wants_unwind = options.unwind_rows;
        build.run((image, &units), order, problems.clone(), options.progress, out)
    };
    let report = match run(UnitOrder::ByAddress) {
        Err(Stop::OutOfOrder) => {
            warnings.push(OUT_OF_ORDER.to_owned());
            run(UnitOrder::AsListed)
        }
        report => report,
    }?;
    Ok((report, warnings))
}

/// Builds the index of parts of an image: `units` has parts of units in the order of their lowest addresses, and
/// `symbols` a part of the symbol table.
pub(crate) fn build_parts<'d>(
    image: &Image<'d>,
    units: Vec<UnitRanges<'d>>,
    symbols: UnitRanges<'d>,
    mut problems: Problems,
) -> Result<Vec<u8>, Error> {
    let budget = Budget::new(usize::MAX / 4, 0)?;
    let mut build = Build::new(&image.info, max_strings(image), budget, Deadline::default());
    let (mut counts, mut out) = (Counts::default(), Vec::new());
    (counts.functions, counts.ranges) = build.merge_parts(Table::Dwarf, units, &mut problems)?;
    (_, counts.symbols) = build.merge_parts(Table::SymbolTable, vec![symbols], &mut problems)?;
    let (names, files) = build.strings(&mut counts, &mut problems);
    let (partial, _) = problems.finish(image.has_dwarf(), build.coverage);
    build.write(&names, &files, None, counts, partial, &mut out)?;
    Ok(out)
}

/// Builds an index that has the unwind rows of an image, and no functions.
pub(crate) fn build_unwind_rows(image: &Image<'_>, options: &BuildOptions<'_>) -> Result<Vec<u8>, Error> {
    let deadline = Deadline::after(options.max_seconds).less(image.load_time);
    let mut problems = image.problems();
    let budget = Budget::new(options.max_memory, image.memory())?;
    let mut build = Build::new(&image.info, max_strings(image), budget, deadline);
    build.unwind = Some(unwind_rows(image, budget, 0, deadline, &mut problems)?);
    let (partial, _) = problems.finish(image.has_dwarf(), TextCoverage::of(&image.info));
    let mut out = Vec::new();
    build.write(&[], &[], None, Counts::default(), partial, &mut out)?;
    Ok(out)
}

/// How many bytes all names of `image` may have, and all paths: the distinct ones of a real file are not larger than it.
fn max_strings(image: &Image<'_>) -> u64 {
    image.debug_size + image.symbol_map.map_or(0, SymbolMap::size) + MORE_STRINGS
}

/// The order in which units are merged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitOrder {
    /// By the lowest address that each unit states. Code is written as soon as all units that state it are merged.
    ByAddress,
    /// As the debug information lists them. No code is written until all units are merged.
    AsListed,
}

/// Why a build stopped before the index was written.
pub(crate) enum Stop {
    /// A unit has code below its stated lowest address, and the addresses there are merged already. Nothing was
    /// written.
    OutOfOrder,
    Failed(Error),
}

const OUT_OF_ORDER: &str = "units have code below the addresses they state";

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<OutOfOrder> for Stop {
    fn from(OutOfOrder: OutOfOrder) -> Self {
        Self::OutOfOrder
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(error) => error,
            Stop::OutOfOrder => Error::Malformed { what: OUT_OF_ORDER.to_owned() },
        }
    }
}

/// The state of a build.
pub(crate) struct Build<'a, 'd> {
    info: &'a ImageInfo,
    pub(crate) budget: Budget,
    /// Pending units are spilled beyond this many bytes, even if there is more memory.
    max_pending: usize,
    pub(crate) deadline: Deadline,
    /// The ranges and inline frames of the chunks that are being encoded, by task: how many bytes they take.
    encoding: VecDeque<usize>,
    writer: Writer<Spool>,
    pub(crate) pools: Pools<'d>,
    pub(crate) coverage: TextCoverage,
    pub(crate) demangle: Option<Demangle>,
    wants_unwind: bool,
    pub(crate) unwind: Option<EncodedUnwindRows>,
}

impl<'a, 'd> Build<'a, 'd> {
    /// The build of an index of the image `info`, whose names may have `max_strings` bytes, as may its paths.
    pub(crate) fn new(info: &'a ImageInfo, max_strings: u64, budget: Budget, deadline: Deadline) -> Self {
        let pools = Pools { names: Pool::new(max_strings), files: Pool::new(max_strings) };
        let writer = Writer::new(info.clone(), CHUNK_SPAN, Spool::new(deadline));
        let coverage = TextCoverage::of(info);
        Self {
            info,
            budget,
            max_pending: usize::MAX,
            deadline,
            encoding: VecDeque::new(),
            writer,
            pools,
            coverage,
            demangle: None,
            wants_unwind: false,
            unwind: None,
        }
    }

    /// Writes the index to `out`.
    ///
    /// # Errors
    ///
    /// [`Stop::OutOfOrder`] if units are merged by address and one has code below its stated lowest address.
    fn run(
        mut self,
        (image, units): (&'a Image<'d>, &Units<'d>),
        order: UnitOrder,
        mut problems: Problems,
        progress: &(dyn Fn(u64, u64) + Sync),
        out: &mut impl Write,
    ) -> Result<BuildReport, Stop> {
        let mut counts = Counts { units: units.own as u64 + units.types, ..Counts::default() };
        if let Some(digest) = input_digest(image, &problems) {
            self.writer.set_input_digest(digest);
        }
        self.dwarf((image, units), order, &mut problems, &mut counts, progress)?;
        self.symbols(&image.symbols, &mut counts, &mut problems)?;
        self.deadline.check()?;
        if self.wants_unwind {
            let others = self.pools.size();
            let rows = unwind_rows(image, self.budget, others, self.deadline, &mut problems);
            self.unwind = Some(rows?);
        }
        Ok(self.finish(problems, image.has_dwarf(), counts, out)?)
    }

    /// Writes the index to `out`, after all chunks are made.
    pub(crate) fn finish(
        mut self,
        mut problems: Problems,
        has_dwarf: bool,
        mut counts: Counts,
        out: &mut impl Write,
    ) -> Result<BuildReport, Error> {
        self.deadline.check()?;
        let [names, files] = [&self.pools.names, &self.pools.files].map(Pool::lens);
        let strings =
            StringSizes { size: self.pools.size(), len: names.0 + files.0, bytes: names.1 + files.1 };
        self.budget.check_strings(strings.size, strings.len, strings.bytes)?;
        let (names, files) = self.strings(&mut counts, &mut problems);
        let (partial, report) = problems.finish(has_dwarf, self.coverage);
        let readable = self
            .demangle
            .map(|demangle| readable_names(&names, demangle, strings, self.budget, self.deadline));
        self.write(&names, &files, readable.transpose()?.as_deref(), counts, partial, out)?;
        Ok(report)
    }

    /// Takes the names and the files that the chunks need from the pools.
    fn strings(&mut self, counts: &mut Counts, problems: &mut Problems) -> (Strings<'d>, Strings<'d>) {
        let Pools { names, files } = std::mem::take(&mut self.pools);
        problems.limit("names left out: they are too long, or overlap too much", names.refused);
        problems.limit("file paths left out: they are too long, or too many", files.refused);
        let (names, files) = (names.into_strings(), files.into_strings());
        (counts.names, counts.files) = (names.len() as u64, files.len() as u64);
        problems.hidden(hidden_len(&names, &files));
        (names, files)
    }

    /// Writes the index to `out`, after all chunks are encoded. `readable` has the readable form of each name, or `None`.
    fn write(
        self,
        names: &[Cow<'_, [u8]>],
        files: &[Cow<'_, [u8]>],
        readable: Option<&[Option<Box<[u8]>>]>,
        counts: Counts,
        partial: Vec<Partial>,
        out: &mut impl Write,
    ) -> Result<(), Error> {
        let deadline = self.deadline;
        let stop = || deadline.is_over();
        let strings = || (EncodedStrings::new_until(names, &stop), EncodedStrings::new_until(files, &stop));
        let readable = || readable.map(|readable| EncodedReadableNames::new_until(readable, &stop));
        let (sealed, ((names, files), readable)) =
            rayon::join(|| self.writer.seal(), || rayon::join(strings, readable));
        // What fails after the deadline fails because of it.
        deadline.check()?;
        let mut sealed = sealed.map_err(spool_failed)?;
        if let Some(readable) = readable.transpose()? {
            sealed.set_readable_names(readable);
        }
        if let Some(rows) = self.unwind {
            sealed.set_unwind_rows(rows);
        }
        let finished = sealed.finish(&names?, &files?, counts, partial, out);
        deadline.check()?;
        Ok(finished?)
    }

    /// Reads and merges the units, and writes the chunks of the `dwarf` table.
    fn dwarf(
        &mut self,
        (image, units): (&'a Image<'d>, &Units<'d>),
        order: UnitOrder,
        problems: &mut Problems,
        counts: &mut Counts,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), Stop> {
        let low = |unit: usize| match order {
            UnitOrder::ByAddress => units.low(unit),
            UnitOrder::AsListed => 0,
        };
        let size = |unit: usize| units.size(unit);
        let ahead_size = |unit: usize| size(unit).max(LEAST_AHEAD);
        let mut order: Vec<usize> = (0..units.own).collect();
        order.sort_by_key(|unit| low(*unit));
        let total = units.own_size() as u64;
        let mut merge = Merge::new(CHUNK_SPAN);
        let ahead_memory = Memory::new(self.budget.of_units_ahead());
        let memory_in_turn = Memory::new(self.budget.of_unit());
        let mut limits =
            UnitLimits { ranges: image.range_budget(), deadline: self.deadline, memory: &ahead_memory };
        let merged = rayon::scope_fifo(|scope| {
            let (mut walks, mut chunks) = (Queue::new(scope), Queue::new(scope));
            let (mut next, mut ahead, mut done) = (0, 0, 0);
            for (place, unit) in order.iter().enumerate() {
                // Which units are read ahead depends only on their sizes, and so does the budget of each unit.
                while next < order.len() && (next <= place || ahead < WALK_AHEAD) {
                    let unit = order[next];
                    walks.add(move || (limits, unit_ranges(image, units, unit, limits)));
                    ahead += if next == place { 0 } else { ahead_size(unit) };
                    next += 1;
                }
                let Some((limits_then, walked)) = walks.take() else { break };
                self.deadline.check()?;
                let walked = match walked {
                    Some(walked) => {
                        ahead_memory.give_back(walked.size());
                        Some(walked)
                    }
                    // Units that are read ahead take all of the memory.
                    None => {
                        let limits = UnitLimits { memory: &memory_in_turn, ..limits_then };
                        let walked = unit_ranges(image, units, *unit, limits);
                        memory_in_turn.give_back(walked.as_ref().map_or(0, UnitRanges::size));
                        walked
                    }
                };
                let too_large = Error::TooLarge { limit: self.budget.limit, what: "one of its units" };
                let walked = walked.ok_or(too_large)?;
                ahead -=
                    order.get(place + 1).filter(|_| place + 1 < next).map_or(0, |unit| ahead_size(*unit));
                limits.ranges = limits.ranges.saturating_sub(walked.range_entries);
                // A unit that was read after this is not complete.
                self.deadline.check()?;
                problems.add_steps(1 + walked.steps);
                let watermark = order.get(place + 1).map_or(u64::MAX, |unit| low(*unit));
                self.merge_units(vec![walked], watermark, &mut merge, problems, &mut chunks)?;
                done += size(*unit) as u64;
                progress(done, total);
            }
            Ok(self.finish_chunks(&mut chunks, 0)?)
        });
        (counts.functions, counts.ranges) = (merge.functions, merge.ranges());
        (self.coverage.dwarf, self.coverage.dwarf_function) = merge.covered();
        merged
    }

    /// Merges the symbol table, and writes its chunks.
    pub(crate) fn symbols(
        &mut self,
        symbols: &[FunctionSymbol<'d>],
        counts: &mut Counts,
        problems: &mut Problems,
    ) -> Result<(), Stop> {
        let mut merge = Merge::new(CHUNK_SPAN);
        let mut rest = symbols;
        rayon::scope_fifo(|scope| -> Result<(), Stop> {
            let mut chunks = Queue::new(scope);
            while !rest.is_empty() {
                self.deadline.check()?;
                let symbols = symbols_of_chunks(&mut rest);
                let mut unit = symbol_ranges(symbols, &kept_aliases(symbols));
                problems.merge(std::mem::take(&mut unit.problems));
                merge.add(unit, &mut self.pools)?;
                let max_pending = self.budget.of_pending(self.pools.size())?;
                let watermark = rest.first().map_or(u64::MAX, |symbol| symbol.start);
                while let Some(jobs) = self.step(&mut merge, watermark, max_pending)? {
                    self.encode(Table::SymbolTable, jobs, &mut chunks)?;
                }
            }
            Ok(self.finish_chunks(&mut chunks, 0)?)
        })?;
        self.coverage.symbol_table = merge.covered().1;
        counts.symbols = merge.ranges();
        Ok(())
    }

    /// Adds units, of which those that are added later have no code below `watermark`. Merges what is complete, and writes
    /// its chunks.
    pub(crate) fn merge_units<'scope>(
        &mut self,
        units: Vec<UnitRanges<'d>>,
        watermark: u64,
        merge: &mut Merge,
        problems: &mut Problems,
        chunks: &mut Queue<'_, 'scope, Encoded>,
    ) -> Result<(), Stop>
    where
        'a: 'scope,
        'd: 'scope,
    {
        for mut unit in units {
            problems.merge(std::mem::take(&mut unit.problems));
            merge.add(unit, &mut self.pools)?;
        }
        let max_pending = self.budget.of_pending(self.pools.size())?;
        let spilled_beyond = max_pending.min(self.max_pending);
        if watermark == u64::MAX || merge.is_time_to_step(spilled_beyond) {
            while let Some(jobs) = self.step(merge, watermark, max_pending)? {
                self.deadline.check()?;
                self.encode(Table::Dwarf, jobs, chunks)?;
            }
        }
        if merge.is_time_to_spill(spilled_beyond) {
            merge.spill().map_err(spill_failed)?;
        }
        Ok(())
    }

    /// Merges some code below `watermark`; see [`Merge::step`].
    fn step(
        &mut self,
        merge: &mut Merge,
        watermark: u64,
        max_memory: usize,
    ) -> Result<Option<Vec<ChunkJob>>, Error> {
        merge.step(watermark, max_memory, &mut self.pools).map_err(|error| match error {
            StepError::Io(error) => spill_failed(error),
            StepError::TooLarge => {
                Error::TooLarge { limit: self.budget.limit, what: "code that many of its units state" }
            }
        })
    }

    /// Merges `units`, and writes the chunks of `table` that they make. Returns how many functions and ranges they
    /// have.
    fn merge_parts(
        &mut self,
        table: Table,
        units: Vec<UnitRanges<'d>>,
        problems: &mut Problems,
    ) -> Result<(u64, u64), Error> {
        let mut merge = Merge::new(CHUNK_SPAN);
        for mut unit in units {
            problems.merge(std::mem::take(&mut unit.problems));
            merge.add(unit, &mut self.pools).map_err(Stop::from)?;
        }
        let mut encoder = ChunkEncoder::new(CHUNK_SPAN, self.info.image_size);
        while let Some(jobs) = self.step(&mut merge, u64::MAX, usize::MAX)? {
            for job in jobs {
                self.writer.push(encoder.encode(table, job.index, &job.ranges)?)?;
            }
        }
        Ok((merge.functions, merge.ranges()))
    }

    /// Adds tasks that encode `jobs`, and writes chunks that are encoded.
    fn encode<'scope>(
        &mut self,
        table: Table,
        jobs: Vec<ChunkJob>,
        chunks: &mut Queue<'_, 'scope, Encoded>,
    ) -> Result<(), Error>
    where
        'a: 'scope,
        'd: 'scope,
    {
        let image_size = self.info.image_size;
        let mut jobs = jobs.into_iter().peekable();
        let max_size = self.budget.of_chunks();
        while jobs.peek().is_some() {
            let (mut some, mut size) = (Vec::new(), 0);
            while some.len() < CHUNKS_AT_A_TIME
                && let Some(job) =
                    jobs.next_if(|job| some.is_empty() || size + job.size() <= max_size / ENCODE_AHEAD)
            {
                size += job.size();
                some.push(job);
            }
            self.encoding.push_back(size);
            chunks.add(move || {
                let mut encoder = ChunkEncoder::new(CHUNK_SPAN, image_size);
                let encode = |job: ChunkJob| encoder.encode(table, job.index, &job.ranges);
                some.into_iter().map(encode).collect()
            });
            self.finish_chunks(chunks, ENCODE_AHEAD)?;
        }
        Ok(())
    }

    /// Writes chunks until `left` tasks are left, and these do not take too much memory.
    pub(crate) fn finish_chunks(
        &mut self,
        chunks: &mut Queue<'_, '_, Encoded>,
        left: usize,
    ) -> Result<(), Error> {
        while chunks.len() > left || self.encoding.iter().sum::<usize>() > self.budget.of_chunks() {
            self.encoding.pop_front();
            let encoded = chunks.take().unwrap_or_else(|| Ok(Vec::new()))?;
            for chunk in encoded {
                // Chunks wait in a temporary file until all are there.
                let pushed = self.writer.push(chunk);
                // What fails after the deadline fails because of it.
                pushed.map_err(|error| self.deadline.check().err().unwrap_or_else(|| spool_failed(error)))?;
            }
        }
        Ok(())
    }
}

/// Names or files, in the order of their numbers.
type Strings<'d> = Vec<Cow<'d, [u8]>>;

/// The chunks of one task.
pub(crate) type Encoded = Result<Vec<EncodedChunk>, symdex::Error>;

fn spill_failed(source: std::io::Error) -> Error {
    Error::TemporaryFile { folder: std::env::temp_dir(), source }
}

/// Keeping the chunks in a temporary file failed.
fn spool_failed(error: symdex::Error) -> Error {
    match error {
        symdex::Error::Io(source) => spill_failed(source),
        error => error.into(),
    }
}

/// Removes from the front of `rest` all symbols that start in a few chunks, and returns them.
fn symbols_of_chunks<'s, 'd>(rest: &mut &'s [FunctionSymbol<'d>]) -> &'s [FunctionSymbol<'d>] {
    let chunk = |symbol: &FunctionSymbol<'_>| symbol.start / u64::from(CHUNK_SPAN);
    let last = rest.len().min(SYMBOLS_AT_A_TIME).checked_sub(1).map(|last| chunk(&rest[last]));
    let (symbols, others) = rest.split_at(rest.partition_point(|symbol| Some(chunk(symbol)) <= last));
    *rest = others;
    symbols
}

/// How many names and paths are hidden, or hidden in part.
fn hidden_len(names: &[Cow<'_, [u8]>], files: &[Cow<'_, [u8]>]) -> u64 {
    let names = names.iter().filter(|name| is_hidden(name));
    let files = files.iter().filter(|file| file.split(|byte| *byte == b'/').any(is_hidden));
    (names.count() + files.count()) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Companions, slices};

    /// The index of the first image in the file at `path`. No chunk is written until all units are merged, so all
    /// of them wait.
    fn merged_as_listed(path: &Path, max_pending: usize) -> (usize, Vec<u8>) {
        let bytes = std::fs::read(path).expect("readable");
        let companions = Companions::default();
        let slice = slices(&bytes).expect("a debug file").remove(0);
        let image = Image::load(&slice, path, &companions).expect("loads");
        let mut problems = image.problems();
        let memory = Memory::new(usize::MAX);
        let limits = UnitLimits::without_deadline(&image, &memory);
        let units = Units::read(&image, limits, &mut problems).expect("small");
        let budget = Budget::new(usize::MAX / 4, 0).expect("enough");
        let build = Build {
            max_pending,
            ..Build::new(&image.info, max_strings(&image), budget, Deadline::default())
        };
        let mut out = Vec::new();
        let report = build.run((&image, &units), UnitOrder::AsListed, problems, &|_, _| {}, &mut out);
        assert!(report.is_ok(), "{}", path.display());
        (units.own, out)
    }

    #[test]
    fn an_index_is_the_same_if_its_units_are_spilled() {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let mut most_units = 0;
        for path in crate::find(&testdata) {
            let path = path.expect("testdata is readable");
            let (units, expected) = merged_as_listed(&path, usize::MAX);
            most_units = units.max(most_units);
            assert!(merged_as_listed(&path, 0).1 == expected, "{}", path.display());
        }
        assert!(most_units > 2, "a debug file of testdata has several units");
    }
}
