//! Entries of any units, read one by one, and the abbreviation tables that they need.

use std::sync::Arc;

use gimli::DebuggingInformationEntry;
use rustc_hash::FxHashMap;

use super::tables::{Table, TableRef, UnitTable};
use super::units::{EntryId, UnitEntry, Units};
use crate::image::Reader;
use crate::limits::{Reads, UnitError};

/// The tables of units that are not kept in memory, each read once. Entries of a unit may refer to those of another one
/// in turn.
#[derive(Default)]
pub(super) struct TablesOnce {
    /// By unit number.
    tables: FxHashMap<usize, Arc<Table>>,
    /// About how many bytes of memory they take.
    pub(super) size: usize,
}

impl TablesOnce {
    /// The table of unit number `unit`. `count` is called with a table that was not read before, and may refuse it.
    #[inline]
    pub(super) fn get<'a>(
        &mut self,
        units: &'a Units<'_>,
        unit: usize,
        count: impl FnOnce(&Table) -> Result<(), UnitError>,
    ) -> Result<TableRef<'a>, UnitError> {
        let UnitEntry { table, dwarf, unit: of, .. } = &units.all[unit];
        let recent = match table {
            UnitTable::Kept(table) => return Ok(TableRef::Kept(table)),
            UnitTable::Recent(recent) => recent,
        };
        if let Some(table) = self.tables.get(&unit) {
            return Ok(TableRef::Read(Arc::clone(table)));
        }
        let table = recent.get(dwarf, &of.header)?;
        count(&table)?;
        self.size += table.size;
        self.tables.insert(unit, Arc::clone(&table));
        Ok(TableRef::Read(table))
    }
}

/// Reads the entries that one question is about.
pub(super) struct Entries<'a, 'd> {
    pub(super) units: &'a Units<'d>,
    tables: TablesOnce,
    /// Counts the attributes that are read.
    pub(super) reads: Reads,
}

/// How many bytes the tables of a question may take. A chain of references goes through a few hundred units at most.
const TABLES: usize = 64 << 20;

impl<'a, 'd> Entries<'a, 'd> {
    pub(super) fn new(units: &'a Units<'d>, reads: Reads) -> Self {
        Self { units, tables: TablesOnce::default(), reads }
    }

    /// The table of unit number `unit`.
    pub(super) fn table(&mut self, unit: usize) -> Result<TableRef<'a>, UnitError> {
        let left = TABLES.saturating_sub(self.tables.size);
        let fits = |table: &Table| if table.size <= left { Ok(()) } else { Err(UnitError::TooManyReads) };
        self.tables.get(self.units, unit, fits)
    }

    /// The entry at `place`, with all its attributes.
    pub(super) fn entry(
        &mut self,
        (unit, offset): EntryId,
    ) -> Result<DebuggingInformationEntry<Reader<'d>>, UnitError> {
        let table = self.table(unit)?;
        let entry = self.units.all[unit].unit.header.entry(&table.abbreviations, offset)?;
        self.reads.add(1 + entry.attrs().len())?;
        Ok(entry)
    }
}
