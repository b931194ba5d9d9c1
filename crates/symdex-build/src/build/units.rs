//! Units are read ahead, and merged in the order of their addresses.

use symdex::{Counts, Table};

use super::chunks::{Encoded, spill_failed};
use super::{Build, Stop, UnitOrder, WALK_AHEAD};
use crate::chunk_job::ChunkJob;
use crate::chunker::CHUNK_SPAN;
use crate::dwarf::{Units, unit_ranges};
use crate::error::Error;
use crate::go::GoFunctions;
use crate::image::Image;
use crate::limits::UnitLimits;
use crate::memory::{Budget, Memory, Share};
use crate::merge::{Merge, StepError};
use crate::queue::Queue;
use crate::report::Problems;
use crate::symbol_file::{Batch, Functions};
use crate::symbol_ranges::{kept_aliases, symbol_ranges};
use crate::symbols::{FunctionSymbol, FunctionSymbols};
use crate::unit_ranges::UnitRanges;

/// A unit counts as at least this many bytes of `.debug_info`. Its task takes about as much memory.
const LEAST_AHEAD: usize = 1 << 10;
/// About how many symbols are merged at a time.
const SYMBOLS_AT_A_TIME: usize = 1 << 14;

/// Reads the units of an image: those of its DWARF, and then batches of functions of a Go program.
struct Reader<'i, 'd> {
    image: &'i Image<'d>,
    units: &'i Units<'d>,
    go: Option<(Functions<'i, 'd>, Vec<Batch>)>,
}

impl<'i, 'd> Reader<'i, 'd> {
    fn new(image: &'i Image<'d>, units: &'i Units<'d>, budget: Budget) -> Result<Self, Error> {
        let go = image.go.as_ref().map(GoFunctions::functions);
        let go = go.map(|functions| Ok::<_, Error>((functions, functions.batches(budget)?))).transpose()?;
        Ok(Self { image, units, go })
    }

    fn len(&self) -> usize {
        self.units.own + self.go.as_ref().map_or(0, |(_, batches)| batches.len())
    }

    fn batch(&self, unit: usize) -> Option<(Functions<'i, 'd>, &Batch)> {
        let (functions, batches) = self.go.as_ref()?;
        Some((*functions, batches.get(unit.checked_sub(self.units.own)?)?))
    }

    /// The lowest address of a unit.
    fn low(&self, unit: usize) -> u64 {
        self.batch(unit).map_or_else(|| self.units.low(unit), |(functions, batch)| functions.low(Some(batch)))
    }

    /// The bytes of debug information of a unit, or the memory that takes their place.
    fn size(&self, unit: usize) -> usize {
        self.batch(unit)
            .map_or_else(|| self.units.size(unit), |(functions, batch)| functions.memory_of(batch))
    }

    /// The ranges of a unit. `None` if it needs more memory than `limits` have.
    fn units(&self, unit: usize, limits: UnitLimits<'_>) -> Option<Vec<UnitRanges<'d>>> {
        let Some((functions, batch)) = self.batch(unit) else {
            return Some(vec![unit_ranges(self.image, self.units, unit, limits)?]);
        };
        let share = Share::new(limits.memory);
        if !share.take(functions.memory_of(batch)) {
            return None;
        }
        let units = functions.units(batch);
        share.keep(units.iter().map(UnitRanges::size).sum());
        Some(units)
    }
}

impl<'a, 'd> Build<'a, 'd> {
    /// Reads and merges the units, and writes the chunks of the `dwarf` table.
    pub(super) fn dwarf(
        &mut self,
        (image, units): (&'a Image<'d>, &Units<'d>),
        order: UnitOrder,
        problems: &mut Problems,
        counts: &mut Counts,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), Stop> {
        let read = &Reader::new(image, units, self.budget)?;
        let low = |unit: usize| match order {
            UnitOrder::ByAddress => read.low(unit),
            UnitOrder::AsListed => 0,
        };
        let size = |unit: usize| read.size(unit);
        let ahead_size = |unit: usize| size(unit).max(LEAST_AHEAD);
        let mut order: Vec<usize> = (0..read.len()).collect();
        order.sort_by_key(|unit| low(*unit));
        let total = order.iter().map(|unit| size(*unit) as u64).sum();
        let mut merge = Merge::new(CHUNK_SPAN);
        let ahead_memory = Memory::new(self.budget.of_units_ahead());
        let mut limits =
            UnitLimits { ranges: image.range_budget(), deadline: self.deadline, memory: &ahead_memory };
        let merged = rayon::scope_fifo(|scope| {
            let (mut walks, mut chunks) = (Queue::new(scope), Queue::new(scope));
            let (mut next, mut ahead, mut done) = (0, 0, 0);
            for (place, unit) in order.iter().enumerate() {
                // Which units are read ahead depends only on their sizes, and so does the budget of each unit.
                while next < order.len() && (next <= place || ahead < WALK_AHEAD) {
                    let unit = order[next];
                    walks.add(move || (limits, read.units(unit, limits)));
                    ahead += if next == place { 0 } else { ahead_size(unit) };
                    next += 1;
                }
                let Some((limits_then, walked)) = walks.take() else { break };
                self.deadline.check()?;
                let walked = match walked {
                    Some(walked) => {
                        ahead_memory.give_back(walked.iter().map(UnitRanges::size).sum());
                        Some(walked)
                    }
                    // Units that are read ahead take all of the memory.
                    None => {
                        let memory = Memory::new(self.budget.of_unit(self.pools.size()));
                        read.units(*unit, UnitLimits { memory: &memory, ..limits_then })
                    }
                };
                let too_large = Error::TooLarge { limit: self.budget.limit, what: "one of its units" };
                let walked = walked.ok_or(too_large)?;
                ahead -=
                    order.get(place + 1).filter(|_| place + 1 < next).map_or(0, |unit| ahead_size(*unit));
                let entries = walked.iter().map(|unit| unit.range_entries).sum();
                limits.ranges = limits.ranges.saturating_sub(entries);
                // A unit that was read after this is not complete.
                self.deadline.check()?;
                problems.add_steps(walked.iter().map(|unit| 1 + unit.steps).sum());
                let watermark = order.get(place + 1).map_or(u64::MAX, |unit| low(*unit));
                self.merge_units(walked, watermark, &mut merge, problems, &mut chunks)?;
                done += size(*unit) as u64;
                progress(done, total);
            }
            Ok(self.finish_chunks(&mut chunks, 0)?)
        });
        self.merged(&merge, counts);
        merged
    }

    /// Takes the counts of the merged `dwarf` table.
    pub(crate) fn merged(&mut self, merge: &Merge, counts: &mut Counts) {
        (counts.functions, counts.ranges) = (merge.functions, merge.ranges());
        (self.coverage.dwarf, self.coverage.dwarf_function) = merge.covered();
        self.merged_functions = merge.added_functions();
    }

    /// Merges the symbol table, and writes its chunks.
    pub(crate) fn symbols(
        &mut self,
        symbols: &FunctionSymbols<'d>,
        counts: &mut Counts,
        problems: &mut Problems,
    ) -> Result<(), Stop> {
        let mut merge = Merge::new(CHUNK_SPAN);
        let mut next = 0;
        rayon::scope_fifo(|scope| -> Result<(), Stop> {
            let mut chunks = Queue::new(scope);
            while next < symbols.len() {
                self.deadline.check()?;
                let batch = symbols_of_chunks(symbols, next);
                next += batch.len();
                let mut unit = symbol_ranges(&batch, &kept_aliases(batch.iter().copied()));
                problems.merge(std::mem::take(&mut unit.problems));
                merge.add(unit, &mut self.pools)?;
                let max_pending = self.budget.of_pending(self.pools.size())?;
                let watermark = symbols.get(next).map_or(u64::MAX, |symbol| symbol.start);
                while let Some(jobs) = self.step(&mut merge, watermark, max_pending)? {
                    self.encode(Table::SymbolTable, jobs, &mut chunks)?;
                }
            }
            Ok(self.finish_chunks(&mut chunks, 0)?)
        })?;
        self.coverage.symbol_table = merge.covered().1;
        counts.symbols = merge.ranges();
        self.seen.symbols = symbols.len() as u64;
        Ok(())
    }

    /// Adds units. Units added later must not have code below `watermark`. Merges what is complete, and writes its
    /// chunks.
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
            self.seen += unit.seen;
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
    pub(super) fn step(
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
}

/// Symbol number `first` and those after it that start in a few chunks. It has all symbols of its last chunk.
fn symbols_of_chunks<'s, 'd>(symbols: &'s FunctionSymbols<'d>, first: usize) -> Vec<FunctionSymbol<'s, 'd>> {
    let chunk = |symbol: &FunctionSymbol<'_, '_>| symbol.start / u64::from(CHUNK_SPAN);
    let last = symbols.get((first + SYMBOLS_AT_A_TIME).min(symbols.len()) - 1).map(|last| chunk(&last));
    symbols.iter_from(first).take_while(|symbol| Some(chunk(symbol)) <= last).collect()
}
