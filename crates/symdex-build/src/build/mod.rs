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

mod chunks;
mod finish;
mod seen;
mod units;

use std::collections::VecDeque;
use std::io::Write;

use symdex::write::{ChunkEncoder, EncodedUnwindRows, ImageInfo, Writer};
use symdex::{Counts, Seen, Table};

pub(crate) use self::chunks::Encoded;
use self::finish::IndexStrings;
use crate::chunker::CHUNK_SPAN;
use crate::dwarf::Units;
use crate::error::Error;
use crate::image::Image;
use crate::limits::{Deadline, UnitLimits};
use crate::memory::{Budget, LEAST, Memory};
use crate::merge::{Merge, OutOfOrder};
use crate::options::BuildOptions;
use crate::pools::{Pool, Pools};
use crate::readable::Demangle;
use crate::report::{BuildReport, Problems, TextCoverage};
use crate::spool::Spool;
use crate::symbol_map::SymbolMap;
use crate::unit_ranges::UnitRanges;
use crate::unwind::unwind_rows;
use crate::up_to_date::input_digest;

/// How many bytes of `.debug_info` are read ahead of the unit that is merged next.
pub(crate) const WALK_AHEAD: usize = 8 << 20;
/// How many bytes all names of a file may have beyond its size, and all paths.
pub(crate) const MORE_STRINGS: u64 = 1 << 20;
/// How many times as many bytes paths may have if there is one for each column.
const COLUMNS: u64 = 16;

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
    let deadline = options.deadline().less(image.load_time);
    let mut problems = image.problems();
    let memory = Memory::new(options.max_memory);
    if !memory.take(image.memory()) {
        let what = "its decompressed sections and symbols";
        return Err(Error::TooLarge { limit: options.max_memory, what });
    }
    let limits = UnitLimits { ranges: image.range_budget(), deadline, memory: &memory };
    let mut units = Units::read(image, limits, &mut problems)?;
    units.with_columns = options.columns;
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
        if options.columns {
            build.pools.files = Pool::new(max_strings(image).saturating_mul(COLUMNS));
        }
        build.wants_unwind = options.unwind_rows;
        build.allow_empty = options.allow_empty;
        options.input_digest.into_iter().for_each(|digest| build.writer.set_input_digest(digest));
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
/// `shift` is added to all offsets; it is a multiple of [`CHUNK_SPAN`].
pub(crate) fn build_parts<'d>(
    image: &Image<'d>,
    units: Vec<UnitRanges<'d>>,
    symbols: UnitRanges<'d>,
    mut problems: Problems,
    shift: u64,
) -> Result<Vec<u8>, Error> {
    let budget = Budget::new(usize::MAX / 4, 0)?;
    let mut build = Build::new(&image.info, max_strings(image), budget, Deadline::default());
    let (mut counts, mut out) = (Counts::default(), Vec::new());
    (counts.functions, counts.ranges) = build.merge_parts(Table::Dwarf, units, &mut problems, shift)?;
    (_, counts.symbols) = build.merge_parts(Table::SymbolTable, vec![symbols], &mut problems, shift)?;
    let strings = build.strings(&mut counts, &mut problems);
    let (partial, _) = problems.finish(image.has_lines(), build.coverage);
    build.write(&strings, counts, partial, &mut out)?;
    Ok(out)
}

/// Builds an index that has the unwind rows of an image, and no functions.
pub(crate) fn build_unwind_rows(image: &Image<'_>, options: &BuildOptions<'_>) -> Result<Vec<u8>, Error> {
    let deadline = options.deadline().less(image.load_time);
    let mut problems = image.problems();
    let budget = Budget::new(options.max_memory, image.memory())?;
    let mut build = Build::new(&image.info, max_strings(image), budget, deadline);
    build.unwind = Some(unwind_rows(image, budget, 0, deadline, &mut problems)?);
    let (partial, _) = problems.finish(image.has_lines(), TextCoverage::of(&image.info));
    let mut out = Vec::new();
    build.write(&IndexStrings::default(), Counts::default(), partial, &mut out)?;
    Ok(out)
}

/// How many bytes all names of `image` may have, and all paths: the distinct ones of a real file are not larger than
/// it.
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
    pub(crate) allow_empty: bool,
    /// What was found in the image so far.
    seen: Seen,
    /// How many functions were given to the merge of the `dwarf` table.
    merged_functions: u64,
    encoded: seen::EncodedCounts,
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
            allow_empty: false,
            seen: Seen::default(),
            merged_functions: 0,
            encoded: seen::EncodedCounts::default(),
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
        // The functions of a Go program count as one unit.
        let go = u64::from(image.go.as_ref().is_some());
        let mut counts = Counts { units: units.own as u64 + units.types + go, ..Counts::default() };
        if let Some(digest) = input_digest(image, &problems) {
            self.writer.set_input_digest(digest);
        }
        self.seen.symbols_outside = image.symbols_outside;
        self.dwarf((image, units), order, &mut problems, &mut counts, progress)?;
        self.symbols(&image.symbols, &mut counts, &mut problems)?;
        self.deadline.check()?;
        if self.wants_unwind {
            let others = self.pools.size();
            let rows = unwind_rows(image, self.budget, others, self.deadline, &mut problems);
            self.unwind = Some(rows?);
        }
        Ok(self.finish(problems, image.has_lines(), counts, out)?)
    }

    /// Merges `units`, and writes the chunks of `table` that they make. Returns how many functions and ranges they
    /// have.
    fn merge_parts(
        &mut self,
        table: Table,
        units: Vec<UnitRanges<'d>>,
        problems: &mut Problems,
        shift: u64,
    ) -> Result<(u64, u64), Error> {
        let mut merge = Merge::new(CHUNK_SPAN);
        for mut unit in units {
            problems.merge(std::mem::take(&mut unit.problems));
            merge.add(unit, &mut self.pools).map_err(Stop::from)?;
        }
        let mut encoder = ChunkEncoder::new(CHUNK_SPAN, self.info.image_size);
        while let Some(jobs) = self.step(&mut merge, u64::MAX, usize::MAX)? {
            for mut job in jobs {
                job.shift(shift);
                self.writer.push(encoder.encode(table, job.index, &job.ranges)?)?;
            }
        }
        Ok((merge.functions, merge.ranges()))
    }
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
