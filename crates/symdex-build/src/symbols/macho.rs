//! The symbol table of a Mach-O image.

use object::read::macho::{MachHeader, Nlist, Section};
use object::{Endianness, ReadRef, U32, macho};

use super::stubs::Stub;
use super::{Inside, Start, name_at, take_name};
use crate::error::Error;
use crate::limits;
use crate::symbol_map::is_hidden;

/// The local symbols of an image in a shared cache, which has a separate table for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalSymbols<'d> {
    /// The symbols of all images.
    pub(crate) table: &'d [u8],
    pub(crate) strings: &'d [u8],
    /// The number of the image's first symbol in the table.
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// The source of a symbol table.
pub(crate) struct SymbolSource<'d, E: object::Endian> {
    /// The file that has the image's `__LINKEDIT`. Offsets in load commands count from its start.
    pub(crate) linkedit: &'d [u8],
    pub(crate) locals: Option<LocalSymbols<'d>>,
    pub(crate) symtab: Option<&'d macho::SymtabCommand<E>>,
    pub(crate) function_starts: Option<&'d macho::LinkeditDataCommand<E>>,
    /// For each section whether it has code. Symbols number sections from 1.
    pub(crate) executable_sections: Vec<bool>,
    pub(crate) base: u64,
    /// Whether bit 0 of a function start is the Thumb flag.
    pub(crate) thumb: bool,
}

/// The functions of the symbol table and of `LC_FUNCTION_STARTS`.
///
/// Symbols have no size. A function ends where the next symbol or the next entry of `LC_FUNCTION_STARTS` begins, or
/// with its section.
pub(crate) fn starts<'d, Mach: MachHeader<Endian = Endianness>>(
    source: &SymbolSource<'d, Endianness>,
) -> Result<Vec<Start<'d>>, Error> {
    let mut starts = named_starts::<Mach>(source)?;
    starts.extend(function_starts(source).into_iter().map(Start::nameless));
    Ok(starts)
}

/// The name in shared caches of a local symbol whose name is elsewhere or was dropped.
const REDACTED: &[u8] = b"<redacted>";
const ENDIAN: Endianness = Endianness::Little;

/// The symbols that name code. Of several at one address, external ones come first and assembler temporaries last.
fn named_starts<'d, Mach: MachHeader<Endian = Endianness>>(
    source: &SymbolSource<'d, Endianness>,
) -> Result<Vec<Start<'d>>, Error> {
    let mut starts = Vec::new();
    let (table, names) = symbol_table::<Mach>(source.symtab, source.linkedit)?;
    add::<Mach>(source, table, names, &mut starts)?;
    if let Some(LocalSymbols { table, strings, first, count }) = source.locals {
        let offset = u64::from(first) * size_of::<Mach::Nlist>() as u64;
        let table = table.read_slice_at::<Mach::Nlist>(offset, count as usize).map_err(|()| {
            Error::Malformed { what: "its local symbols lie outside of those of the cache".to_owned() }
        })?;
        add::<Mach>(source, table, strings, &mut starts)?;
    }
    Ok(starts)
}

/// The symbols, and the strings of their names. Both are empty without a command.
fn symbol_table<'d, Mach: MachHeader<Endian = Endianness>>(
    symtab: Option<&macho::SymtabCommand<Endianness>>,
    linkedit: &'d [u8],
) -> Result<(&'d [Mach::Nlist], &'d [u8]), Error> {
    let Some(symtab) = symtab else { return Ok((&[], &[])) };
    let [symbols, strings] = [&symtab.symoff, &symtab.stroff].map(|offset| u64::from(offset.get(ENDIAN)));
    let (count, size) = (symtab.nsyms.get(ENDIAN), u64::from(symtab.strsize.get(ENDIAN)));
    let table = linkedit.read_slice_at::<Mach::Nlist>(symbols, count as usize);
    let names = linkedit.read_bytes_at(strings, size);
    if let (Ok(table), Ok(names)) = (table, names) {
        return Ok((table, names));
    }
    let end = symbols + u64::from(count) * size_of::<Mach::Nlist>() as u64;
    let (end, size) = (end.max(strings + size), linkedit.len() as u64);
    Err(Error::Truncated { what: "the symbol table".to_owned(), end, size })
}

/// Appends the functions that the symbols of `table` name.
fn add<'d, Mach: MachHeader<Endian = Endianness>>(
    source: &SymbolSource<'d, Endianness>,
    table: &[Mach::Nlist],
    strings: &'d [u8],
    starts: &mut Vec<Start<'d>>,
) -> Result<(), Error> {
    // Names of a large Swift app have 70 bytes on average.
    let mut left = 512 * table.len() + (16 << 20);
    for start in table.iter().filter_map(|symbol| start::<Mach>(source, symbol, strings)) {
        take_name(&mut left, start.name.unwrap_or_default())?;
        starts.push(start);
    }
    Ok(())
}

/// The start of the function that `symbol` names. Returns `None` if it names no function.
fn start<'d, Mach: MachHeader<Endian = Endianness>>(
    source: &SymbolSource<'d, Endianness>,
    symbol: &Mach::Nlist,
    strings: &'d [u8],
) -> Option<Start<'d>> {
    // Only symbols defined in a section: no stabs, no absolute and no undefined ones.
    let defined = !symbol.is_stab() && symbol.n_type().0 & macho::N_TYPE == macho::N_SECT.0;
    let section = usize::from(symbol.n_sect()).checked_sub(1)?;
    let in_code = source.executable_sections.get(section).is_some_and(|code| *code);
    let inside_a_function = symbol.n_desc(ENDIAN).0 & macho::N_ALT_ENTRY.0 != 0;
    if !defined || !in_code || inside_a_function {
        return None;
    }
    let value: u64 = symbol.n_value(ENDIAN).into();
    let start = value.checked_sub(source.base)?;
    let name = name_at(strings, symbol.n_strx(ENDIAN) as usize)?;
    if name.starts_with(b"__mh_") && name.ends_with(b"_header") {
        return None;
    }
    let rank = match name {
        REDACTED => return Some(Start::nameless(start)),
        [b'L' | b'l', ..] => 2,
        _ if symbol.n_type().0 & macho::N_EXT.0 != 0 => 0,
        _ => 1,
    };
    let name = Some(bare(name)).filter(|name| !name.is_empty());
    Some(Start { start, rank, name, inside: Inside::Function, end: None })
}

/// `name` without the underscore that Mach-O puts before names. A hidden name begins with two underscores of its own.
fn bare(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"_").filter(|_| !is_hidden(name)).unwrap_or(name)
}

/// The stubs in `sections` of the file `bytes`, a whole image. Sections of stubs (`S_SYMBOL_STUBS`) state the size of
/// their stubs and where their part of the table of indirect symbols begins. It lists the target of each stub. A target
/// that is local or absolute has no number there, and the stub no name.
///
/// # Errors
///
/// [`Error::Truncated`] if the symbol table reaches behind the end of the file.
pub(crate) fn stubs<'d, Mach: MachHeader<Endian = Endianness>>(
    bytes: &'d [u8],
    sections: impl Iterator<Item = &'d Mach::Section>,
    symtab: Option<&macho::SymtabCommand<Endianness>>,
    dysymtab: &macho::DysymtabCommand<Endianness>,
    base: u64,
) -> Result<Vec<Stub<'d>>, Error> {
    let indirect = dysymtab.indirect_symbols(ENDIAN, bytes).unwrap_or_default();
    let (symbols, names) = symbol_table::<Mach>(symtab, bytes)?;
    let name = |index: u32| {
        let symbol = symbols.get(index as usize).filter(|symbol| !symbol.is_stab())?;
        let name = name_at(names, symbol.n_strx(ENDIAN) as usize)?;
        Some(bare(name)).filter(|bare| !bare.is_empty())
    };
    let mut stubs = Vec::new();
    // Each indirect symbol belongs to one section.
    let mut left = indirect.len().min(limits::STUBS);
    for section in sections.filter(|section| section.section_type(ENDIAN) == macho::S_SYMBOL_STUBS) {
        let targets = section.indirect_symbols(ENDIAN, indirect).unwrap_or_default();
        let targets = &targets[..targets.len().min(left)];
        left -= targets.len();
        let size = u64::from(section.symbol_stub_size(ENDIAN));
        let first = section.addr(ENDIAN).into().checked_sub(base);
        let starts = std::iter::successors(first, |start| start.checked_add(size));
        let stub = |(start, target): (u64, &U32<_, macho::IndirectSymbol>)| {
            Some(Stub { start, size, target: name(target.get(ENDIAN).index()?)? })
        };
        stubs.extend(starts.zip(targets).filter_map(stub));
    }
    Ok(stubs)
}

/// The image offsets in `LC_FUNCTION_STARTS`. Empty if the list is not in the file: dSYMs have the binary's command
/// without its data.
fn function_starts(source: &SymbolSource<'_, Endianness>) -> Vec<u64> {
    // Offsets count from __TEXT, whose address is the base.
    let starts = source.function_starts.map(|command| command.function_starts(ENDIAN, source.linkedit, 0));
    let Some(Ok(starts)) = starts else { return Vec::new() };
    let mask = if source.thumb { !1 } else { !0 };
    starts.map_while(Result::ok).map(|start| start & mask).collect()
}
