//! The build of an index from a symbol file.

use std::io::Write;
use std::ops::Range;

use symdex::Counts;

use super::unit::UnitMaker;
use super::{Function, Functions, Place, SymbolFile};
use crate::build::{Build, Encoded, MORE_STRINGS, Stop};
use crate::chunker::CHUNK_SPAN;
use crate::error::Error;
use crate::memory::{Budget, LEAST};
use crate::merge::Merge;
use crate::options::{BuildOptions, Built};
use crate::queue::Queue;
use crate::report::Problems;
use crate::unit_ranges::UnitRanges;
use crate::unwind::Limits;

/// About how many bytes of records are read at a time.
const BATCH: usize = 64 << 10;

/// Functions that are read at a time: their numbers in the file, and the size of their records.
pub(crate) struct Batch {
    functions: Range<usize>,
    size: usize,
}

impl BuildOptions<'_> {
    /// Builds the index of the image of a [symbol file](crate::symbol_file) and writes it to `out`. The same memory and
    /// time limits hold as for a debug file. Under both line policies, the index answers as the file states.
    ///
    /// # Errors
    ///
    /// As [`Self::build_into`], and [`Error::NoId`] if the file states no id and [`SymbolFile::with_id`] gave it none.
    /// What cannot be read of the file is omitted and counted in the index's metadata.
    pub fn build_symbol_file_into<W: Write + Send>(
        &self,
        file: &SymbolFile<'_>,
        mut out: W,
    ) -> Result<Built<W>, Error> {
        if self.max_memory < LEAST {
            return Err(Error::TooLittleMemory { limit: self.max_memory, least: LEAST });
        }
        if file.id.is_none() {
            return Err(Error::NoId);
        }
        let budget = Budget::new(self.max_memory, file.memory())?;
        let functions = Functions { places: &file.functions, records: &*file.records };
        let batches = functions.batches(budget)?;
        let max_strings = file.size + MORE_STRINGS;
        let mut build = Build::new(&file.info, max_strings, budget, self.deadline());
        (build.demangle, build.allow_empty) = (self.readable_names, self.allow_empty);
        let (mut problems, mut counts) = (file.problems.clone(), Counts::default());
        // A symbol file does not tell compile units apart.
        counts.units = u64::from(file.has_lines());
        build.functions(functions, &batches, &mut problems, &mut counts, self.progress)?;
        build.symbols(&file.symbols, &mut counts, &mut problems)?;
        if self.unwind_rows {
            let limits = Limits { budget, others: build.pools.size(), deadline: build.deadline };
            let check = |rows, table: &_| limits.check(rows, table);
            build.unwind = file.records.unwind_rows(&file.info.arch, &check, &mut problems)?;
        }
        let report = build.finish(problems, file.has_lines(), counts, &mut out)?;
        Ok(Built { bytes: out, warnings: file.warnings.clone(), report })
    }
}

impl<'d> Functions<'_, 'd> {
    /// Divides them into batches.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if the records of one function are too large.
    pub(crate) fn batches(self, budget: Budget) -> Result<Vec<Batch>, Error> {
        let mut batches: Vec<Batch> = Vec::new();
        for (number, place) in self.places.iter().enumerate() {
            if place.size.saturating_mul(self.records.memory_of_byte()) > budget.of_units_ahead() {
                return Err(Error::TooLarge { limit: budget.limit, what: "one of its functions" });
            }
            match batches.last_mut().filter(|last| last.size < BATCH) {
                Some(last) => {
                    last.functions.end = number + 1;
                    last.size += place.size;
                }
                None => batches.push(Batch { functions: number..number + 1, size: place.size }),
            }
        }
        Ok(batches)
    }

    /// About how many bytes of memory it takes to read a batch.
    pub(crate) fn memory_of(self, batch: &Batch) -> usize {
        batch.size.saturating_mul(self.records.memory_of_byte())
    }

    /// The lowest address of a batch, or the end of all addresses after the last one.
    pub(crate) fn low(self, batch: Option<&Batch>) -> u64 {
        batch.and_then(|batch| self.places.get(batch.functions.start)).map_or(u64::MAX, |place| place.start)
    }

    /// The units of the functions of a batch.
    pub(crate) fn units(self, batch: &Batch) -> Vec<UnitRanges<'d>> {
        self.units_of(self.places[batch.functions.clone()].iter(), batch.size)
    }

    /// The units of the functions at `offsets`, which ascend. No two functions have the same code.
    pub(crate) fn units_at(self, offsets: &[u64]) -> Vec<UnitRanges<'d>> {
        let at = |offset: &u64| {
            let after = self.places.partition_point(|place| place.start <= *offset);
            after.checked_sub(1).filter(|place| self.places[*place].end > *offset)
        };
        let mut numbers: Vec<_> = offsets.iter().filter_map(at).collect();
        numbers.dedup();
        let places = || numbers.iter().map(|number| &self.places[*number]);
        self.units_of(places(), places().map(|place| place.size).sum())
    }

    fn units_of<'p>(self, places: impl Iterator<Item = &'p Place>, size: usize) -> Vec<UnitRanges<'d>> {
        let mut units = UnitMaker::new(self.records, size as u64);
        let mut function = Function::default();
        for place in places {
            function.begin(place.start..place.end);
            self.records.function(place.at..place.at + place.size, &mut function, units.problems());
            units.add(&mut function);
        }
        units.finish()
    }
}

impl<'a, 'd> Build<'a, 'd> {
    /// Reads and merges `functions`, and writes the chunks of the `dwarf` table.
    fn functions(
        &mut self,
        functions: Functions<'a, 'd>,
        batches: &[Batch],
        problems: &mut Problems,
        counts: &mut Counts,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), Stop> {
        let mut merge = Merge::new(CHUNK_SPAN);
        let ahead_limit = self.budget.of_units_ahead() / functions.records.memory_of_byte().max(1);
        let total = batches.iter().map(|batch| batch.size as u64).sum();
        let merged = rayon::scope_fifo(|scope| -> Result<(), Stop> {
            let (mut reads, mut chunks) = (Queue::new(scope), Queue::<Encoded>::new(scope));
            let (mut next, mut ahead, mut done) = (0, 0, 0);
            for (place, batch) in batches.iter().enumerate() {
                while let Some(batch) = batches.get(next)
                    && (next <= place || ahead + batch.size <= ahead_limit)
                {
                    reads.add(move || functions.units(batch));
                    ahead += batch.size;
                    next += 1;
                }
                let Some(units) = reads.take() else { break };
                ahead -= batch.size;
                self.deadline.check()?;
                let watermark = functions.low(batches.get(place + 1));
                self.merge_units(units, watermark, &mut merge, problems, &mut chunks)?;
                done += batch.size as u64;
                progress(done, total);
            }
            Ok(self.finish_chunks(&mut chunks, 0)?)
        });
        self.merged(&merge, counts);
        merged
    }
}
