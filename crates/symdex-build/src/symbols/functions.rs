//! The functions of an image's symbol table. Large images have millions, so each takes few bytes.

use std::collections::HashSet;
use std::fmt;

use super::alike::{are_alike, ends_with};
use super::{Inside, Start, stubs};
use crate::image::short;
use crate::limits::{Reads, UnitError};

/// More names of one function are not compared with those of the debug information.
const MAX_NAMES: usize = 256;

/// A function as the symbol table has it.
#[derive(Clone, Copy)]
pub struct FunctionSymbol<'i, 'd> {
    /// The image offset of its first byte.
    pub start: u64,
    /// The end of its range, exclusive, as an image offset.
    pub end: u64,
    /// Its name, in Mach-O without the leading `_`. `None` if only `LC_FUNCTION_STARTS` or unwind information has the
    /// function.
    pub name: Option<&'d [u8]>,
    /// The entries after the one with the name.
    others: &'i [Entry<'d>],
}

impl<'i, 'd> FunctionSymbol<'i, 'd> {
    /// Its other names, each once, by rank.
    pub fn aliases(&self) -> impl Iterator<Item = &'d [u8]> + use<'i, 'd> {
        // Most functions have one name, so the set stays empty.
        let (first, mut seen) = (self.name, HashSet::new());
        self.other_names().filter(move |name| Some(*name) != first && seen.insert(*name))
    }

    /// Its name, if it has only one.
    pub(crate) fn only_name(&self) -> Option<&'d [u8]> {
        self.name.filter(|first| self.other_names().all(|name| name == *first))
    }

    /// All its names, by rank. A name occurs at most once for each rank.
    fn names(&self) -> impl Iterator<Item = &'d [u8]> + use<'i, 'd> {
        self.name.into_iter().chain(self.other_names())
    }

    /// Its name for a function whose debug information states the plain name `plain` alone: the best, if all names are
    /// alike; otherwise the best that ends with `plain`, if all that do are alike. `None` if there are more than 256
    /// names.
    ///
    /// # Errors
    ///
    /// [`UnitError::TooManyReads`] if `reads` is exceeded. Any number of functions of the debug information may begin
    /// at one address, so the bytes of the names are counted.
    pub(crate) fn name_for(&self, plain: &[u8], reads: &mut Reads) -> Result<Option<&'d [u8]>, UnitError> {
        const BYTES_AT_A_TIME: usize = 16;
        let only = self.only_name();
        if only.is_some() || self.names().nth(MAX_NAMES).is_some() {
            return Ok(only);
        }
        reads.add(self.names().map(<[u8]>::len).sum::<usize>() / BYTES_AT_A_TIME)?;
        let ending = self.names().filter(|name| ends_with(name, plain));
        Ok(best_of_alike(self.names()).or_else(|| best_of_alike(ending)))
    }

    /// Whether `name`, or `name` without Mach-O's underscore, is one of its names, or there are more than 256.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        let is_it = |own: &[u8]| own == name || Some(own) == name.strip_prefix(b"_");
        self.names().enumerate().any(|(number, own)| number == MAX_NAMES || is_it(own))
    }

    /// The names after the first. A name occurs at most once for each rank.
    fn other_names(&self) -> impl Iterator<Item = &'d [u8]> + use<'i, 'd> {
        let start = short(self.start);
        self.others.iter().take_while(move |entry| entry.start == start).map_while(|entry| entry.name)
    }
}

/// The first of `names`, if all are alike.
fn best_of_alike<'d>(mut names: impl Iterator<Item = &'d [u8]>) -> Option<&'d [u8]> {
    let best = names.next()?;
    names.all(|name| are_alike(best, name)).then_some(best)
}

impl fmt::Debug for FunctionSymbol<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        list.entry(&(self.start..self.end));
        list.entries(self.name.into_iter().chain(self.aliases()).map(String::from_utf8_lossy)).finish()
    }
}

/// A [`Start`] in fewer bytes. Offsets are at most `u32::MAX`, where no code is. The order is that of [`Start`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<'d> {
    start: u32,
    rank: u8,
    name: Option<&'d [u8]>,
    inside: Inside,
    /// 0 if no end is stated.
    end: u32,
}

impl<'d> From<Start<'d>> for Entry<'d> {
    fn from(Start { start, rank, name, inside, end }: Start<'d>) -> Self {
        // Names come first.
        let rank = if name.is_some() { rank } else { u8::MAX };
        Self { start: short(start), rank, name, inside, end: end.map_or(0, short) }
    }
}

/// A function: its first entry, and where it ends.
#[derive(Clone, Copy)]
struct Function {
    entry: u32,
    end: u32,
}

/// The functions of a symbol table, sorted by address. No two start at the same address.
pub struct FunctionSymbols<'d> {
    /// Sorted. Those of one address are the names of a function, its first name first, and the end that unwind
    /// information states; or they are labels.
    entries: Vec<Entry<'d>>,
    functions: Vec<Function>,
}

impl fmt::Debug for FunctionSymbols<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'d> FunctionSymbols<'d> {
    /// The functions that begin at `starts` in `executable` sections.
    ///
    /// A function without a stated end reaches to the next start or to the end of its section. A start without an end,
    /// inside of a symbol whose end is stated, is mostly a label and begins no function; see [`Inside`]. If it begins
    /// one, that reaches to the end of the symbol, and later starts hide it.
    pub(crate) fn new(starts: Vec<Start<'d>>, executable: &[(u64, u64)]) -> Self {
        Self::of_entries(starts.into_iter().map(Entry::from).collect(), executable)
    }

    /// The functions of both symbol tables.
    pub(crate) fn join(mut self, other: Self, executable: &[(u64, u64)]) -> Self {
        self.entries.extend(other.entries);
        Self::of_entries(self.entries, executable)
    }

    fn of_entries(mut entries: Vec<Entry<'d>>, executable: &[(u64, u64)]) -> Self {
        entries.sort_unstable();
        drop_redundant(&mut entries);
        entries.shrink_to_fit();
        let mut functions = Vec::new();
        let (mut named_end, mut function_end, mut unwind_end, mut number) = (0, 0, 0, 0);
        let mut groups = entries.chunk_by(|a, b| a.start == b.start).peekable();
        while let Some(group) = groups.next() {
            let (start, entry) = (group[0].start, number);
            number += group.len();
            let after = executable.partition_point(|section| section.0 <= start.into());
            let section_end = after.checked_sub(1).map_or(0, |index| short(executable[index].1));
            let (true, Ok(entry)) = (start < section_end, u32::try_from(entry)) else { continue };
            // What symbols state, and what unwind information states.
            let stated = |named: bool| {
                let ends = group.iter().filter(|entry| entry.name.is_some() == named).map(|entry| entry.end);
                ends.max().filter(|end| *end > start).map(|end| end.min(section_end))
            };
            let next = groups.peek().map_or(section_end, |next| next[0].start);
            unwind_end = stated(false).unwrap_or(0).max(unwind_end);
            let end = match stated(true) {
                Some(end) => {
                    named_end = named_end.max(end);
                    if group.iter().any(|entry| entry.inside == Inside::Function) {
                        function_end = function_end.max(end);
                    }
                    end
                }
                None if start < function_end => continue,
                None if start < named_end && group.iter().all(|entry| entry.inside == Inside::Label) => {
                    continue;
                }
                None if start < named_end => named_end,
                // The bytes after the end that unwind information states are padding.
                None if start < unwind_end => unwind_end.min(next),
                None => next,
            };
            functions.push(Function { entry, end: end.min(section_end) });
        }
        functions.shrink_to_fit();
        Self { entries, functions }
    }

    /// How many functions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Function `number`, counted from 0 in address order.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<FunctionSymbol<'_, 'd>> {
        self.functions.get(number).and_then(|function| self.symbol(*function))
    }

    /// All functions, in address order.
    pub fn iter(&self) -> impl Iterator<Item = FunctionSymbol<'_, 'd>> {
        self.iter_from(0)
    }

    /// Function `number` and those after it, in address order.
    pub(crate) fn iter_from(&self, number: usize) -> impl Iterator<Item = FunctionSymbol<'_, 'd>> {
        let rest = self.functions.get(number..).unwrap_or_default();
        rest.iter().filter_map(|function| self.symbol(*function))
    }

    fn symbol(&self, Function { entry, end }: Function) -> Option<FunctionSymbol<'_, 'd>> {
        let (first, others) = self.entries.get(entry as usize..)?.split_first()?;
        Some(FunctionSymbol { start: first.start.into(), end: end.into(), name: first.name, others })
    }

    /// The stubs with names, in address order: start, end and name. Only the audit needs them.
    pub(crate) fn stubs(&self) -> impl Iterator<Item = (u64, u64, &'d [u8])> {
        let stubs = self.entries.iter().filter(|entry| entry.rank == stubs::RANK);
        stubs.filter_map(|entry| Some((entry.start.into(), entry.end.into(), entry.name?)))
    }

    /// The function that starts at image offset `start`.
    #[must_use]
    pub fn at(&self, start: u64) -> Option<FunctionSymbol<'_, 'd>> {
        self.at_from(start, &mut 0)
    }

    /// The function that starts at image offset `start`. The search begins at `last`, the result of the search before,
    /// because callers mostly go in address order.
    pub(crate) fn at_from(&self, start: u64, last: &mut usize) -> Option<FunctionSymbol<'_, 'd>> {
        let is_up_to = |number: usize| self.get(number).is_some_and(|symbol| symbol.start <= start);
        let (mut low, mut high) = (0, *last);
        if is_up_to(*last) {
            (low, high) = (*last, *last + 1);
            while is_up_to(high) {
                (low, high) = (high, high + 2 * (high - low));
            }
        }
        let among = self.functions.get(low..high.min(self.len())).unwrap_or_default();
        let starts_before = |function: &Function| self.entries[function.entry as usize].start < short(start);
        let place = low + among.partition_point(starts_before);
        *last = place.saturating_sub(1);
        self.get(place).filter(|symbol| place < high && symbol.start == start)
    }

    /// Replaces each name by the one that `resolve` returns for it.
    pub(crate) fn resolve(&mut self, resolve: impl Fn(&'d [u8]) -> &'d [u8]) {
        self.entries
            .iter_mut()
            .filter_map(|entry| entry.name.as_mut())
            .for_each(|name| *name = resolve(name));
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.entries[..]) + size_of_val(&self.functions[..])
    }
}

/// Drops entries without which [`FunctionSymbols::of_entries`] makes the same functions, also after a join. Most
/// functions of an ELF file have a symbol and unwind information of the same end.
fn drop_redundant(entries: &mut Vec<Entry<'_>>) {
    // Of the same name, the greatest end counts, which is the last one.
    entries.dedup_by(|later, entry| {
        let is_same = (later.start, later.rank, later.name) == (entry.start, entry.rank, entry.name);
        entry.end = if is_same { later.end } else { entry.end };
        is_same
    });
    // An end of unwind information counts only beyond the ends of symbols, whose entries come first.
    let (mut start, mut named_end) = (0, None);
    entries.retain(|entry| {
        if entry.start != start {
            (start, named_end) = (entry.start, None);
        }
        match entry.name {
            Some(_) => {
                named_end = named_end.max(Some(entry.end));
                true
            }
            None => named_end.is_none_or(|named_end| entry.end > named_end),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [Option<&[u8]>; 5] = [None, None, Some(b"a"), Some(b"b"), Some(b"c")];

    /// Starts in 60 bytes, many of them at the same address.
    fn starts(seed: u64) -> Vec<Start<'static>> {
        let mut state = seed;
        let mut below = |count: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % count
        };
        let mut start = || {
            let (start, size) = (4 * below(15), 4 * below(8));
            let (rank, name) =
                (u8::try_from(below(3)).expect("small"), NAMES[usize::try_from(below(5)).expect("small")]);
            // Symbols of one rank are alike inside of others.
            let inside = [Inside::Function, Inside::Global, Inside::Label][usize::from(rank)];
            let inside = if name.is_some() { inside } else { Inside::Label };
            Start { start, rank, name, inside, end: Some(start + size).filter(|_| size != 0) }
        };
        (0..24).map(|_| start()).collect()
    }

    #[test]
    fn a_start_is_found_from_any_place_before() {
        let functions = FunctionSymbols::new([8, 16, 24].map(Start::nameless).to_vec(), &[(0, 32)]);
        for last in 0..5 {
            for start in [0, 8, 16, 20, 24, 32, u64::from(u32::MAX), u64::MAX] {
                let found = functions.at_from(start, &mut last.clone()).map(|symbol| symbol.start);
                assert_eq!(found, Some(start).filter(|start| [8, 16, 24].contains(start)), "{last}");
            }
        }
    }

    #[test]
    fn joined_tables_have_the_functions_of_all_starts() {
        let executable = [(0, 32), (40, 60)];
        for seed in 0..2000 {
            let all = starts(seed);
            let whole = FunctionSymbols::new(all.clone(), &executable);
            let (some, others) = all.split_at(9);
            let [some, others] = [some, others].map(|part| FunctionSymbols::new(part.to_vec(), &executable));
            assert_eq!(format!("{:?}", some.join(others, &executable)), format!("{whole:?}"), "{all:?}");
            for symbol in whole.iter() {
                let of_start = all.iter().filter(|start| start.start == symbol.start);
                let mut names: Vec<_> =
                    of_start.filter_map(|start| Some((start.rank, start.name?))).collect();
                names.sort_unstable();
                assert_eq!(symbol.name, names.first().map(|(_, name)| *name), "{all:?}");
                let is_only = symbol.name.is_some() && symbol.aliases().next().is_none();
                assert_eq!(symbol.only_name().is_some(), is_only);
            }
        }
    }
}
