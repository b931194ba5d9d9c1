//! The symbol table of a Mach-O image.

use object::read::macho::{MachHeader, Nlist};
use object::{Endianness, macho};

use super::Start;
use crate::error::Error;
use crate::symbol_map::is_hidden;

/// What the symbol table is read from.
pub(crate) struct Source<'d, E: object::Endian> {
    pub(crate) bytes: &'d [u8],
    pub(crate) symtab: Option<&'d macho::SymtabCommand<E>>,
    pub(crate) function_starts: Option<&'d macho::LinkeditDataCommand<E>>,
    /// For each section, in the order symbols number them from 1, whether it holds code.
    pub(crate) executable_sections: Vec<bool>,
    pub(crate) base: u64,
    /// Whether bit 0 of a function start is the Thumb flag.
    pub(crate) thumb: bool,
}

/// The functions of the symbol table and of `LC_FUNCTION_STARTS`.
///
/// Symbols carry no size: a function ends where the next symbol or the next entry of `LC_FUNCTION_STARTS` begins, at
/// the latest with its section.
pub(crate) fn starts<'d, Mach: MachHeader<Endian = Endianness>>(
    source: &Source<'d, Endianness>,
) -> Result<Vec<Start<'d>>, Error> {
    let mut starts = named_starts::<Mach>(source)?;
    starts.extend(function_starts(source).into_iter().map(Start::nameless));
    Ok(starts)
}

/// Symbols that name code. Of several at one address the external ones come first, assembler temporaries last,
/// then the smaller name.
fn named_starts<'d, Mach: MachHeader<Endian = Endianness>>(
    source: &Source<'d, Endianness>,
) -> Result<Vec<Start<'d>>, Error> {
    const ENDIAN: Endianness = Endianness::Little;
    let Some(symtab) = source.symtab else { return Ok(Vec::new()) };
    let table = symtab.symbols::<Mach, _>(ENDIAN, source.bytes).map_err(|_| {
        let entries = u64::from(symtab.nsyms.get(ENDIAN)) * size_of::<Mach::Nlist>() as u64;
        let symbols = u64::from(symtab.symoff.get(ENDIAN)).saturating_add(entries);
        let strings = u64::from(symtab.stroff.get(ENDIAN)) + u64::from(symtab.strsize.get(ENDIAN));
        let size = source.bytes.len() as u64;
        Error::Truncated { what: "the symbol table".to_owned(), end: symbols.max(strings), size }
    })?;
    let mut starts = Vec::new();
    for symbol in table.iter() {
        // Only symbols defined in a section: no stabs, no absolute and no undefined ones.
        let defined = !symbol.is_stab() && symbol.n_type().0 & macho::N_TYPE == macho::N_SECT.0;
        let section = usize::from(symbol.n_sect()).checked_sub(1);
        let in_code =
            section.and_then(|section| source.executable_sections.get(section)).is_some_and(|code| *code);
        let inside_a_function = symbol.n_desc(ENDIAN).0 & macho::N_ALT_ENTRY.0 != 0;
        if !defined || !in_code || inside_a_function {
            continue;
        }
        let value: u64 = symbol.n_value(ENDIAN).into();
        let (Some(start), Ok(name)) = (value.checked_sub(source.base), symbol.name(ENDIAN, table.strings()))
        else {
            continue;
        };
        if name.starts_with(b"__mh_") && name.ends_with(b"_header") {
            continue;
        }
        let rank = match name {
            [b'L' | b'l', ..] => 2,
            _ if symbol.n_type().0 & macho::N_EXT.0 != 0 => 0,
            _ => 1,
        };
        // A hidden name begins with two underscores of its own.
        let bare = name.strip_prefix(b"_").filter(|_| !is_hidden(name)).unwrap_or(name);
        let name = Some(bare).filter(|name| !name.is_empty());
        starts.push(Start { start, rank, name, end: None });
    }
    Ok(starts)
}

/// The image offsets in `LC_FUNCTION_STARTS`; none where the list is not in the file, as in dSYMs that keep the command of the
/// binary and drop what it points at.
fn function_starts(source: &Source<'_, Endianness>) -> Vec<u64> {
    // Offsets count from __TEXT, whose address is the base.
    let starts =
        source.function_starts.map(|command| command.function_starts(Endianness::Little, source.bytes, 0));
    let Some(Ok(starts)) = starts else { return Vec::new() };
    let mask = if source.thumb { !1 } else { !0 };
    starts.map_while(Result::ok).map(|start| start & mask).collect()
}
