//! Names of functions: those that the DIEs along the chain of declarations state, and the choice between them.

use std::borrow::Cow;
use std::sync::Arc;

use gimli::AttributeValue;
use rayon::prelude::*;

use crate::dies::Name;
use crate::facts::Facts;
use crate::image::Reader;
use crate::symbol_names;
use crate::symbol_table::TableFunction;

/// Longer chains of declarations are treated as cycles.
const MAX_CHAIN: usize = 16;

/// Longer names are truncated.
const MAX_NAME: usize = 64 << 10;

/// What one DIE in the chain of declarations of a function states about the name.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Link<'d> {
    /// The linkage name.
    pub linkage: Option<&'d [u8]>,
    /// The plain name.
    pub name: Option<&'d [u8]>,
    /// The namespace or type that it lies in, by the numbers of the unit and of its scope.
    pub(crate) scope: Option<(u32, u32)>,
    /// Whether the DIE, or its name, is in the supplementary file.
    pub is_supplementary: bool,
    /// The string of the image's own file at the offset at which the supplementary file has the name.
    pub misread: Option<&'d [u8]>,
    /// Whether it is in a split unit and refers to its declaration by an offset in the section, not in the unit.
    pub(crate) leaves_split: bool,
}

impl Link<'_> {
    /// Whether its linkage name is its plain name, and `symbol`, which has names, does not have it.
    pub(crate) fn states_nothing(&self, symbol: Option<&TableFunction<'_>>) -> bool {
        let Some((symbol, linkage)) = symbol.filter(|symbol| symbol.name.is_some()).zip(self.linkage) else {
            return false;
        };
        let is_it = |name: &&[u8]| *name == linkage || linkage.strip_prefix(b"_") == Some(name);
        self.linkage == self.name && symbol.others.len() < 256 && !symbol.names().any(|name| is_it(&name))
    }
}

impl<'d> TableFunction<'d> {
    /// All its names, the best first.
    fn names(&self) -> impl Iterator<Item = &'d [u8]> {
        self.name.into_iter().chain(self.others.iter().copied())
    }

    /// Its name for a function that states the plain name `plain` alone.
    pub(crate) fn name_for(&self, plain: &[u8]) -> Option<&'d [u8]> {
        self.name.and_then(|_| symbol_names::chosen(&self.names().collect::<Vec<_>>(), plain))
    }
}

/// Decides the name of every function and inlined subroutine.
pub(crate) fn resolve(facts: &mut Facts<'_, '_>) {
    let name_unit = |unit: &crate::units::Unit<'_>| {
        let function = |f: &crate::dies::Function<'_>| function_name(facts, f.die, f.entry);
        let functions: Vec<_> = unit.dies.functions.iter().map(function).collect();
        let inlined: Vec<_> = unit.dies.inlined.iter().map(|i| inlined_name(facts, i.die)).collect();
        (functions, inlined)
    };
    let names: Vec<_> = facts.units.par_iter().map(name_unit).collect();
    for (unit, (functions, inlined)) in facts.units.iter_mut().zip(names) {
        unit.dies.functions.iter_mut().zip(functions).for_each(|(function, name)| function.name = name);
        unit.dies.inlined.iter_mut().zip(inlined).for_each(|(inlined, name)| inlined.name = name);
    }
}

/// The name of the function whose DIE is `die` and that a call enters at `entry`.
fn function_name<'d>(facts: &Facts<'_, 'd>, die: usize, entry: Option<u64>) -> Name<'d> {
    let symbol = entry.and_then(|entry| facts.table_function_at(entry));
    without_underscore(stated_name(facts, die, symbol), entry.and_then(|entry| facts.symbol_at(entry)))
}

/// The name of the inlined subroutine whose DIE is `die`.
fn inlined_name<'d>(facts: &Facts<'_, 'd>, die: usize) -> Name<'d> {
    without_underscore(stated_name(facts, die, None), None)
}

/// Removes Mach-O's underscore. The debug information has it in the names of outlined functions, and in Swift names
/// that an assembler label gave.
fn without_underscore<'d>(name: Name<'d>, symbol: Option<&[u8]>) -> Name<'d> {
    match name {
        Name::Stated([b'_', name @ ..])
            if name.starts_with(b"OUTLINED_FUNCTION_") || name.starts_with(b"$") || symbol == Some(name) =>
        {
            Name::Stated(name)
        }
        name => name,
    }
}

/// A linkage name anywhere along the chain, else the name of `symbol`, else the first plain name in the scope of the
/// DIE that has it.
fn stated_name<'d>(facts: &Facts<'_, 'd>, die: usize, symbol: Option<&TableFunction<'d>>) -> Name<'d> {
    let (mut name, mut scope) = (None, None);
    for link in chain(facts, die) {
        if let Some(linkage) = link.linkage {
            if !link.states_nothing(symbol) {
                return Name::Stated(linkage);
            }
            (name, scope) = (link.name, link.scope);
            break;
        }
        if name.is_none() {
            // GCC's link-time optimisation puts concrete functions into namespaces that state their name elsewhere.
            (name, scope) = (link.name, link.scope);
        }
    }
    // Names of Objective-C methods contain the class.
    scope = scope.filter(|_| !name.is_some_and(|name| name.starts_with(b"-[") || name.starts_with(b"+[")));
    let symbol = symbol.and_then(|symbol| match name {
        Some(plain) => symbol.name_for(plain),
        None => symbol.name.filter(|_| symbol.others.is_empty()),
    });
    match (symbol.or(name), scope) {
        (Some(name), Some((unit, scope))) if symbol.is_none() => Name::Scoped(unit, scope, name),
        (Some(name), _) => Name::Stated(name),
        (None, _) => Name::None,
    }
}

/// `die` and its declarations: the DIEs that DW_AT_abstract_origin and DW_AT_specification lead to.
pub(crate) fn chain<'f, 'd>(facts: &'f Facts<'_, 'd>, die: usize) -> impl Iterator<Item = Link<'d>> + 'f {
    let mut next = Some(die);
    std::iter::from_fn(move || {
        let (link, origin) = link(facts, next?)?;
        next = origin;
        Some(link)
    })
    .take(MAX_CHAIN)
}

/// Whether the chain of declarations of `die` ends at a DIE that does not exist.
pub(crate) fn is_dangling(facts: &Facts<'_, '_>, die: usize) -> bool {
    let mut next = die;
    for _ in 0..MAX_CHAIN {
        match link(facts, next) {
            Some((_, Some(origin))) => next = origin,
            Some((_, None)) => return false,
            None => return true,
        }
    }
    false
}

/// What `die` states, and the DIE it refers to.
fn link<'d>(facts: &Facts<'_, 'd>, die: usize) -> Option<(Link<'d>, Option<usize>)> {
    let (number, unit) = facts.unit_of(die)?;
    let at = unit.offset_of(die)?;
    let reference = unit.with_dies();
    let mut entries = reference.entries_raw(Some(at)).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let scope = unit.dies.scope_of.get(&die).map(|scope| (number, *scope));
    let mut is_supplementary =
        facts.supplementary.as_ref().is_some_and(|file| Arc::ptr_eq(&file.dwarf, &unit.file.dwarf));
    let (mut linkage, mut name, mut origin, mut leaves_split) = (None, None, None, false);
    let mut misread = None;
    let mut string = |value: AttributeValue<Reader<'d>>| {
        if let AttributeValue::DebugStrRefSup(offset) = value {
            is_supplementary = true;
            misread = reference.dwarf.debug_str.get_str(offset).ok().map(|string| string.slice());
        }
        let name = reference.attr_string(value).ok().map(|string| facts.resolve(string.slice()));
        let name = name.map(|name| &name[..name.len().min(MAX_NAME)]);
        // Empty names are ignored.
        name.filter(|name| !name.is_empty())
    };
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                linkage = string(attribute.value());
            }
            gimli::DW_AT_name => name = string(attribute.value()),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                leaves_split |=
                    unit.split.is_some() && matches!(attribute.value(), AttributeValue::DebugInfoRef(_));
                origin = match attribute.value() {
                    AttributeValue::UnitRef(offset) => {
                        let offset = offset.to_debug_info_offset(&reference.header);
                        offset.and_then(|offset| unit.file.die(offset.0))
                    }
                    AttributeValue::DebugInfoRef(offset) => unit.file.die(offset.0),
                    AttributeValue::DebugInfoRefSup(offset) => {
                        facts.supplementary.as_ref().and_then(|file| file.die(offset.0))
                    }
                    _ => None,
                };
            }
            _ => {}
        }
    }
    Some((Link { linkage, name, scope, is_supplementary, misread, leaves_split }, origin))
}

impl<'d> Facts<'_, 'd> {
    /// The symbol table's name for the function that starts at `offset`; `None` if it has several.
    pub(crate) fn symbol_at(&self, offset: u64) -> Option<&'d [u8]> {
        let function = self.table_function_at(offset).filter(|function| function.others.is_empty());
        function.and_then(|function| function.name)
    }

    /// The function of the symbol table that starts at `offset`.
    pub(crate) fn table_function_at(&self, offset: u64) -> Option<&TableFunction<'d>> {
        let function = self.table.binary_search_by_key(&offset, |function| function.start).ok();
        function.map(|function| &self.table[function])
    }

    /// The name as text.
    pub(crate) fn text(&self, name: Name<'d>) -> Option<Cow<'d, [u8]>> {
        match name {
            Name::Stated(name) => Some(Cow::Borrowed(name)),
            Name::Scoped(unit, scope, name) => Some(Cow::Owned(self.qualified(unit, scope, name))),
            Name::None => None,
        }
    }

    /// `namespace::Class::name`.
    fn qualified(&self, unit: u32, scope: u32, name: &[u8]) -> Vec<u8> {
        let scopes = &self.units[unit as usize].dies.scopes;
        let mut parts = vec![name];
        let mut next = Some(scope);
        while let Some((outer, name)) = next.and_then(|scope| scopes.get(scope as usize)) {
            parts.push(name);
            next = *outer;
        }
        parts.reverse();
        parts.join(&b"::"[..])
    }
}
