//! The names of functions.

use std::cell::Cell;

use gimli::{AttributeValue, Section as _, UnitOffset, constants};
use rustc_hash::FxHashMap;
use symdex::write::NonMaxU32;

use super::attributes::{Attributes, text};
use super::entries::TablesOnce;
use super::slots::Slot;
use super::tables::TableRef;
use super::units::{EntryId, UnitEntry, Units};
use super::walk::{Walker, attributes_at};
use crate::image::{Image, Reader};
use crate::limits::{self, Reads, UnitError};
use crate::symbols::FunctionSymbol;

/// A name. Most borrow from the debug file; qualified names are built.
pub(crate) type Name<'d> = std::borrow::Cow<'d, [u8]>;

/// The name that the debug information states for a function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StatedName<'d> {
    /// The linkage name, and the entry that has it. It is mostly mangled.
    Linkage(&'d [u8], EntryId),
    /// `DW_AT_name`, and the entry that has it. The scopes around that entry qualify the name.
    Plain(&'d [u8], EntryId),
}

/// A chain of origins that is being followed: its current entry, and the first plain name so far.
struct Chain<'d> {
    entry: EntryId,
    attributes: Attributes<'d>,
    plain: Option<StatedName<'d>>,
}

impl<'d> Chain<'d> {
    fn new(entry: EntryId, attributes: &Attributes<'d>) -> Self {
        Self { entry, attributes: *attributes, plain: None }
    }
}

/// Finds the names of functions, and caches scopes.
pub(crate) struct Names<'a, 'd> {
    image: &'a Image<'d>,
    pub(super) units: &'a Units<'d>,
    /// The number of the unit with the functions.
    unit: usize,
    /// The tables of units that are not kept.
    tables: TablesOnce,
    /// Scopes by unit number. The scopes of a unit are read when a name first needs them.
    scopes: FxHashMap<usize, Scopes<'d>>,
    /// How many bytes of qualified names may still be built. Scopes can be nested to any depth, and each function
    /// repeats them.
    budget: usize,
    /// Counts the attributes of origins that gimli reads. Any number of functions may share an origin.
    pub(crate) reads: Reads,
    /// How many chains were longer than [`limits::ORIGINS`].
    pub(crate) too_long: u64,
    /// How many bytes were cut from names.
    pub(crate) cut: Cell<u64>,
    /// How many scopes were put before names.
    pub(crate) steps: u64,
    /// About how many bytes of memory the scopes take.
    scopes_size: usize,
    /// The index of the last symbol found. The next search begins there.
    last_symbol: usize,
}

impl<'a, 'd> Names<'a, 'd> {
    /// Names for the functions of unit number `unit`.
    pub(crate) fn new(image: &'a Image<'d>, units: &'a Units<'d>, unit: usize) -> Self {
        let size = units.all[unit].unit.header.length_including_self();
        let (scopes, budget, reads) = (FxHashMap::default(), 4 * size + (1 << 16), Reads::of_unit(size));
        Self {
            image,
            units,
            unit,
            tables: TablesOnce::default(),
            scopes,
            budget,
            reads,
            too_long: 0,
            cut: Cell::new(0),
            steps: 0,
            scopes_size: 0,
            last_symbol: 0,
        }
    }

    /// The stated name of the entry with these attributes: the first linkage name on the chain of origins, which begins
    /// with the entry, else the first plain name.
    pub(crate) fn stated_name(
        &mut self,
        entry: EntryId,
        attributes: &Attributes<'d>,
    ) -> Option<StatedName<'d>> {
        let mut chain = Chain::new(entry, attributes);
        for _ in 0..limits::ORIGINS {
            if let Some(stated) = self.follow(&mut chain) {
                return stated;
            }
        }
        self.too_long += 1;
        chain.plain
    }

    /// The stated names of several entries, each as by [`Self::stated_name`]. The origins and the texts lie anywhere in
    /// the file, and reading one of them waits for memory. Here the first bytes of several are read at the same time.
    pub(crate) fn stated_names(
        &mut self,
        entries: &[(EntryId, Attributes<'d>)],
    ) -> Vec<Option<StatedName<'d>>> {
        let mut names = vec![None; entries.len()];
        let chain = |(entry, attributes): &(EntryId, Attributes<'d>)| Chain::new(*entry, attributes);
        let mut chains: Vec<_> = entries.iter().map(chain).enumerate().collect();
        for _ in 0..limits::ORIGINS {
            // Nothing in this loop depends on the bytes, so the processor does not wait for one before the next.
            let first_bytes = chains.iter().map(|(_, chain)| self.first_bytes(chain));
            std::hint::black_box(first_bytes.fold(0, u8::wrapping_add));
            chains.retain_mut(|(number, chain)| match self.follow(chain) {
                Some(stated) => {
                    names[*number] = stated;
                    false
                }
                None => true,
            });
        }
        self.too_long += chains.len() as u64;
        chains.into_iter().for_each(|(number, chain)| names[number] = chain.plain);
        names
    }

    /// The stated name, if the chain ends at its current entry. Otherwise the next entry becomes the current one.
    fn follow(&mut self, chain: &mut Chain<'d>) -> Option<Option<StatedName<'d>>> {
        let Chain { entry, attributes, plain } = chain;
        if let Some(linkage) = self.string(entry.0, attributes.get(Slot::LinkageName)) {
            return Some(Some(StatedName::Linkage(linkage, *entry)));
        }
        if plain.is_none() {
            let name = self.string(entry.0, attributes.get(Slot::Name));
            *plain = name.map(|name| StatedName::Plain(name, *entry));
        }
        let next = attributes.origin().and_then(|origin| self.units.entry(entry.0, origin));
        let Some((next, read)) = next.and_then(|next| Some((next, self.attributes(next)?))) else {
            return Some(*plain);
        };
        (*entry, *attributes) = (next, read);
        None
    }

    /// A sum of the first bytes that [`Self::follow`] reads.
    fn first_bytes(&self, chain: &Chain<'d>) -> u8 {
        let of = chain.entry.0;
        let text = [Slot::LinkageName, Slot::Name].into_iter().find_map(|slot| chain.attributes.get(slot));
        let text = text.and_then(|value| {
            let AttributeValue::DebugStrRef(offset) = value else { return None };
            self.units.all[of].dwarf.debug_str.reader().slice().get(offset.0)
        });
        let origin = chain.attributes.origin().and_then(|origin| self.units.entry(of, origin));
        let origin = origin.and_then(|(unit, offset)| {
            self.units.all[unit].unit.header.range_from(offset..).ok()?.slice().first()
        });
        text.map_or(0, |byte| *byte).wrapping_add(origin.map_or(0, |byte| *byte))
    }

    /// The name of a concrete function that a call enters at image offset `entry`.
    ///
    /// It is the linkage name, else that of the symbol at that address ([`FunctionSymbol::name_for`]), else the
    /// qualified name. A linkage name that equals the plain name states nothing if symbols are there and none has it.
    pub(crate) fn concrete(
        &mut self,
        stated: Option<StatedName<'d>>,
        entry: Option<u64>,
    ) -> Option<Name<'d>> {
        let symbol = entry.and_then(|entry| self.image.symbols.at_from(entry, &mut self.last_symbol));
        let symbol = symbol.filter(|symbol| symbol.name.is_some());
        match (stated, symbol) {
            (Some(StatedName::Linkage(name, die)), Some(symbol))
                if !symbol.has_name(name) && self.is_plain(name, die) =>
            {
                self.plain(name, die, Some(symbol))
            }
            (Some(StatedName::Linkage(name, _)), symbol) => {
                Some(strip_underscore(name, symbol.and_then(|symbol| symbol.only_name())).into())
            }
            (Some(StatedName::Plain(name, die)), symbol) => self.plain(name, die, symbol),
            (None, symbol) => symbol?.only_name().map(Into::into),
        }
    }

    /// The name of a concrete function with this plain name and this symbol at its entry.
    fn plain(
        &mut self,
        name: &'d [u8],
        die: EntryId,
        symbol: Option<FunctionSymbol<'_, 'd>>,
    ) -> Option<Name<'d>> {
        let symbol = symbol.and_then(|symbol| symbol.name_for(name, &mut self.reads).ok().flatten());
        Some(symbol.map_or_else(|| self.qualify(name, die), Into::into))
    }

    /// Whether `name` is the plain name of this entry. Few front ends write the plain name as the linkage name, too.
    fn is_plain(&mut self, name: &[u8], entry: EntryId) -> bool {
        let attributes = self.attributes(entry);
        let plain = attributes.and_then(|attributes| self.string(entry.0, attributes.get(Slot::Name)));
        plain == Some(name)
    }

    /// The name of an inlined subroutine: the linkage name, else the qualified name.
    pub(crate) fn inlined(&mut self, stated: Option<StatedName<'d>>) -> Option<Name<'d>> {
        match stated? {
            StatedName::Linkage(name, _) => Some(strip_underscore(name, None).into()),
            StatedName::Plain(name, entry) => Some(self.qualify(name, entry)),
        }
    }

    fn attributes(&mut self, (unit, offset): EntryId) -> Option<Attributes<'d>> {
        let table = self.table(unit).ok()?;
        attributes_at(&self.units.all[unit], &table, offset, &mut self.reads).ok()
    }

    /// The table of unit number `unit`. The attributes of one that is not kept count, because functions of any number
    /// of units can refer to those of any number of others.
    #[inline]
    fn table(&mut self, unit: usize) -> Result<TableRef<'a>, UnitError> {
        let (of, reads) = (self.unit, &mut self.reads);
        self.tables.get(
            self.units,
            unit,
            |table| if unit == of { Ok(()) } else { reads.add(table.attributes) },
        )
    }

    /// About how many bytes of memory the scopes and the tables take.
    pub(crate) fn size(&self) -> usize {
        self.scopes_size + self.tables.size
    }

    fn string(&self, unit: usize, value: Option<AttributeValue<Reader<'d>>>) -> Option<&'d [u8]> {
        let UnitEntry { dwarf, unit, .. } = &self.units.all[unit];
        let string = text(dwarf, unit, value?)?;
        let string = self.image.resolve(string);
        self.cut.set(self.cut.get() + string.len().saturating_sub(limits::NAME) as u64);
        Some(&string[..string.len().min(limits::NAME)]).filter(|string| !string.is_empty())
    }

    /// Prefixes `name` with the namespaces and types around its entry: `ns::Type::name`.
    fn qualify(&mut self, name: &'d [u8], (unit, offset): EntryId) -> Name<'d> {
        if !has_scopes(self.units.all[unit].language) || name.starts_with(b"-[") || name.starts_with(b"+[") {
            return name.into();
        }
        if !self.scopes.contains_key(&unit) {
            // If the unit is damaged, the scopes before the damage are used.
            let mut scopes = Scopes::default();
            let _partly = self.read_scopes(unit, &mut scopes);
            self.scopes_size += size_of_val(&scopes.all[..]) + size_of_val(&scopes.of[..]);
            self.scopes.insert(unit, scopes);
        }
        let scopes = &self.scopes[&unit];
        let Ok(function) = scopes.of.binary_search_by_key(&offset.0, |(function, _)| function.0) else {
            return name.into();
        };
        let names = scopes.around(scopes.of[function].1);
        self.steps += names.len() as u64;
        let size = names.iter().map(|name| name.len() + 2).sum::<usize>() + name.len();
        match self.budget.checked_sub(size) {
            Some(left) if size <= limits::NAME => self.budget = left,
            _ => return name.into(),
        }
        let mut qualified = Vec::with_capacity(size);
        for scope in names.iter().rev() {
            qualified.extend_from_slice(scope);
            qualified.extend_from_slice(b"::");
        }
        qualified.extend_from_slice(name);
        qualified.into()
    }

    /// Reads the scopes of a unit and the scope of each function.
    fn read_scopes(&mut self, unit: usize, scopes: &mut Scopes<'d>) -> Result<(), UnitError> {
        // The scopes around the current entry: depth and number.
        let mut open: Vec<(isize, NonMaxU32)> = Vec::new();
        let table = self.table(unit)?;
        let mut entries = Walker::new(&self.units.all[unit], &table)?;
        while let Some(found) = entries.next_in_scopes()? {
            while open.pop_if(|(opened, _)| *opened >= found.ended).is_some() {}
            let around = open.last().map(|(_, scope)| *scope);
            if found.is_subprogram {
                scopes.of.extend(around.map(|around| (found.offset, around)));
                continue;
            }
            // Demanglers print the same text.
            let anonymous: &[u8] = if found.is_namespace { b"(anonymous namespace)" } else { b"(anonymous)" };
            let name = self.string(unit, entries.attributes().get(Slot::Name)).unwrap_or(anonymous);
            let Some(number) = NonMaxU32::new(scopes.all.len() as u64) else { continue };
            scopes.all.push((around, name));
            open.push((found.depth, number));
        }
        Ok(())
    }
}

/// The namespaces and types of a unit.
#[derive(Default)]
struct Scopes<'d> {
    /// The enclosing scope and the name of each scope.
    all: Vec<(Option<NonMaxU32>, &'d [u8])>,
    /// The offset and the scope of each function, sorted by offset.
    of: Vec<(UnitOffset, NonMaxU32)>,
}

impl<'d> Scopes<'d> {
    /// The names of a scope and of the scopes around it, innermost first, at most a thousand.
    fn around(&self, scope: NonMaxU32) -> Vec<&'d [u8]> {
        let around = |scope: &NonMaxU32| self.all[scope.index()].0;
        std::iter::successors(Some(scope), around).take(1000).map(|scope| self.all[scope.index()].1).collect()
    }
}

/// Whether plain names of this language need the scopes around them. C has no scopes, and the name of an ObjC method
/// includes its class.
fn has_scopes(language: Option<gimli::DwLang>) -> bool {
    !matches!(
        language,
        Some(
            constants::DW_LANG_C
                | constants::DW_LANG_C89
                | constants::DW_LANG_C99
                | constants::DW_LANG_C11
                | constants::DW_LANG_C17
                | constants::DW_LANG_ObjC
                | constants::DW_LANG_Mips_Assembler
        )
    )
}

/// A linkage name without Mach-O's leading `_`.
///
/// Most linkage names lack it: clang writes `_ZN…` for the symbol `__ZN…`. Names from an `asm` label and names of
/// outlined functions have it. It is removed if `symbol`, the symbol at the function's start, is the name without it,
/// and from names of outlined functions and of Swift.
fn strip_underscore<'d>(linkage: &'d [u8], symbol: Option<&[u8]>) -> &'d [u8] {
    match linkage.strip_prefix(b"_") {
        Some(rest) if symbol == Some(rest) => rest,
        Some(rest) if rest.starts_with(b"OUTLINED_FUNCTION_") || rest.starts_with(b"$") => rest,
        _ => linkage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machos_own_underscore_goes() {
        assert_eq!(strip_underscore(b"_ZN3fooEv", Some(b"_ZN3fooEv")), b"_ZN3fooEv");
        assert_eq!(strip_underscore(b"_OUTLINED_FUNCTION_3", None), b"OUTLINED_FUNCTION_3");
        assert_eq!(strip_underscore(b"_$s4main3fooyyF", None), b"$s4main3fooyyF");
        assert_eq!(strip_underscore(b"_label", Some(b"label")), b"label");
        assert_eq!(strip_underscore(b"_label", None), b"_label");
    }
}
