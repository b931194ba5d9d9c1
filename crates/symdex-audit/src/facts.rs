//! The contents of a debug file, read once: its units, and the functions, sequences and symbols of all of them.

use std::sync::Arc;

use gimli::{AbbreviationsCacheStrategy, Dwarf, RangeLists};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use symdex_build::audit_access::dwarf;
use symdex_build::{Error, Image};

use crate::budget::Budget;
use crate::dies::FunctionId;
use crate::go::Go;
use crate::image::{Reader, resolve};
use crate::intervals::{Interval, Intervals};
use crate::symbol_table::{self, TableFunction};
use crate::units::{self, DwarfFile, Unit};
use crate::{names, pieces};

/// The contents of a debug file, as far as the audit needs them.
pub(crate) struct Facts<'a, 'd> {
    pub(crate) image: &'a Image<'d>,
    /// The sections of the image's own file.
    pub(crate) dwarf: Arc<Dwarf<Reader<'d>>>,
    /// In file order. Split units take the places of their skeletons. The units of the supplementary file come last.
    pub(crate) units: Vec<Unit<'d>>,
    /// [`Unit::number`] of each unit and its index in `units`, sorted.
    by_die: Vec<(usize, u32)>,
    /// The supplementary file.
    pub(crate) supplementary: Option<DwarfFile<'d>>,
    /// The ranges of every function, by number in `function_ids`.
    pub(crate) functions: Intervals,
    pub(crate) function_ids: Vec<FunctionId>,
    /// The sequences of every unit, by number of the unit.
    pub(crate) sequences: Intervals,
    /// The sequences that partial units name.
    pub(crate) sequences_of_parts: Intervals,
    /// As [`units::split_files`].
    pub(crate) split_files: FxHashMap<u64, Arc<Dwarf<Reader<'d>>>>,
    /// The functions of the tables of the Go runtime.
    pub(crate) go: Option<Go<'d>>,
    /// The functions of the symbol table, sorted by address.
    pub(crate) table: Vec<TableFunction<'d>>,
    /// Their ranges, by number in `table`.
    pub(crate) table_ranges: Intervals,
}

impl<'a, 'd> Facts<'a, 'd> {
    /// Reads `image`, on the threads of the rayon pool it is called in.
    pub(crate) fn read(image: &'a Image<'d>, budget: &Budget) -> Result<Self, Error> {
        let dwarf = with_cache(dwarf(image));
        let (units, supplementary) = units::read(image, &dwarf, budget)?;
        let mut by_die: Vec<(usize, u32)> = units.iter().map(Unit::number).zip(0..).collect();
        by_die.sort_unstable();
        let table = symbol_table::read(image, budget.deadline)?;
        let range = |(item, function): (u32, &TableFunction<'_>)| Interval {
            start: function.start,
            end: function.end,
            item,
        };
        let mut facts = Self {
            image,
            dwarf,
            split_files: units::split_files(&units),
            units,
            by_die,
            supplementary,
            functions: Intervals::default(),
            function_ids: Vec::new(),
            sequences: Intervals::default(),
            sequences_of_parts: Intervals::default(),
            go: Go::read(image),
            table_ranges: Intervals::new((0..).zip(&table).map(range).collect()),
            table,
        };
        facts.join();
        budget.deadline.check()?;
        names::resolve(&mut facts);
        budget.deadline.check()?;
        facts.resolve_statements();
        budget.deadline.check()?;
        Ok(facts)
    }

    /// Puts the functions and sequences of all units into one order.
    fn join(&mut self) {
        let (mut functions, mut sequences, mut of_parts) = (Vec::new(), Vec::new(), Vec::new());
        for (number, unit) in (0u32..).zip(&self.units) {
            let numbered = |interval: &Interval| Interval { item: number, ..*interval };
            let of = if unit.dies.is_part { &mut of_parts } else { &mut sequences };
            of.extend(unit.lines.by_address.all().iter().map(numbered));
            for (function, stated) in (0u32..).zip(&unit.dies.functions) {
                let item = u32::try_from(self.function_ids.len()).unwrap_or(u32::MAX);
                self.function_ids.push(FunctionId { unit: number, function });
                functions.extend(stated.ranges.iter().map(|&(start, end)| Interval { start, end, item }));
            }
        }
        self.functions = Intervals::new(functions);
        self.sequences = Intervals::new(sequences);
        self.sequences_of_parts = Intervals::new(of_parts);
    }

    /// Computes the answer of each piece of a line row under the `statement` policy.
    fn resolve_statements(&mut self) {
        let facts = &*self;
        let base = facts.image.info().base;
        let of_unit = |(number, unit): (u32, &Unit<'d>)| {
            let mut buffer = Default::default();
            let instance = |offset| {
                let instance = facts.instance(number, offset, &mut buffer);
                (instance, instance.and_then(|(function, _)| facts.function(function).line_sequence))
            };
            let borders = unit.dies.addresses.iter().filter_map(|svma| svma.checked_sub(base));
            pieces::pieces(&unit.lines, borders, instance)
        };
        let numbered: Vec<_> = (0u32..).zip(&facts.units).collect();
        let pieces: Vec<_> = numbered.into_par_iter().map(of_unit).collect();
        self.units.iter_mut().zip(pieces).for_each(|(unit, pieces)| unit.lines.pieces = pieces);
    }

    /// How many units, ranges of functions and inlined calls, line rows and functions of the symbol table the debug
    /// file has, in its code or outside of it.
    fn counts(&self) -> [usize; 4] {
        let ranges = self.units.iter().map(|unit| unit.dies.addresses.len() / 2).sum();
        let rows = self.units.iter().map(|unit| unit.lines.addresses.len()).sum();
        [self.units.len(), ranges, rows, self.table.len()]
    }

    /// Whether the debug file states anything about code.
    pub(crate) fn states_code(&self) -> bool {
        let [_, ranges, rows, symbols] = self.counts();
        ranges + rows + symbols != 0
    }

    /// Whether the image has code, or the debug file has functions that may be its code. A framework of resources has
    /// neither.
    pub(crate) fn has_code(&self) -> bool {
        let [_, ranges, _, symbols] = self.counts();
        !self.image.info().executable.is_empty() || ranges + symbols != 0
    }

    /// What the debug file has, and why none of its addresses can be compared.
    pub(crate) fn why_nothing_is_compared(&self) -> String {
        let [units, ranges, rows, symbols] = self.counts();
        let code = match &self.image.info().executable[..] {
            [] => "it has no executable section with a size".to_owned(),
            code => {
                let sections = code.iter().map(|(start, end)| format!("{start:#x}..{end:#x}"));
                let sections: Vec<_> = sections.take(4).collect();
                let more = if code.len() > sections.len() { ", ..." } else { "" };
                format!(
                    "its executable sections ({}{more}, as image offsets) hold none of it",
                    sections.join(", ")
                )
            }
        };
        format!(
            "the debug file has code (units: {units}, ranges of functions and inlined calls: {ranges}, addresses of line \
             rows: {rows}, functions in its symbol table: {symbols}), but {code}"
        )
    }

    /// Whether the image is Mach-O.
    pub(crate) fn is_macho(&self) -> bool {
        // An image of a shared cache has no file of its own.
        self.image.files().first().is_none_or(|file| !file.starts_with(b"\x7fELF"))
    }

    /// Resolves `text` if it is a hidden name of a symbol map; otherwise returns it unchanged.
    pub(crate) fn resolve(&self, text: &'d [u8]) -> &'d [u8] {
        resolve(self.image, text)
    }

    /// The unit that holds the DIE of this number, and its own.
    pub(crate) fn unit_of(&self, die: usize) -> Option<(u32, &Unit<'d>)> {
        let before = self.by_die.partition_point(|unit| unit.0 <= die).checked_sub(1)?;
        let number = self.by_die[before].1;
        Some((number, &self.units[number as usize]))
    }
}

/// The sections of `dwarf`, with a cache of abbreviations. Without the cache, each unit has a copy of its table.
fn with_cache<'d>(dwarf: &Dwarf<Reader<'d>>) -> Arc<Dwarf<Reader<'d>>> {
    let mut copy = Dwarf {
        debug_abbrev: dwarf.debug_abbrev,
        debug_addr: dwarf.debug_addr,
        debug_aranges: dwarf.debug_aranges,
        debug_info: dwarf.debug_info,
        debug_line: dwarf.debug_line,
        debug_line_str: dwarf.debug_line_str,
        debug_str: dwarf.debug_str,
        debug_str_offsets: dwarf.debug_str_offsets,
        debug_types: dwarf.debug_types,
        ranges: RangeLists::new(*dwarf.ranges.debug_ranges(), *dwarf.ranges.debug_rnglists()),
        file_type: dwarf.file_type,
        sup: dwarf.sup.clone(),
        ..Dwarf::default()
    };
    copy.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Arc::new(copy)
}
