//! The symbol tables of an ELF image, and the functions of its unwind information.

use object::read::elf::{FileHeader, Sym};
use object::{LittleEndian as Little, elf};

use super::{Start, name_at, take_name};
use crate::error::Error;
use crate::image::ElfFile;
use crate::unwind::{UnwindTables, arm, cfi};

pub(super) const ENDIAN: Little = Little;

/// The functions of the symbol tables, and those of the unwind information, which have no names.
///
/// Most symbols state their size. Others end where unwind information states, or where the next one begins.
pub(crate) fn starts<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    tables: &UnwindTables<'_>,
    base: u64,
    thumb: bool,
) -> Result<Vec<Start<'d>>, Error> {
    let mut starts = named_starts(file, base, thumb)?;
    unwound(tables, Header::is_type_64_sized(), base, &mut starts);
    let on_arm = arm::entries(tables.arm_index).filter_map(|entry| entry.start.checked_sub(base));
    starts.extend(on_arm.map(Start::nameless));
    Ok(starts)
}

/// The symbols of `.symtab` and `.dynsym` that name code.
pub(crate) fn named_starts<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    base: u64,
    thumb: bool,
) -> Result<Vec<Start<'d>>, Error> {
    of_types(file, &[elf::STT_FUNC, elf::STT_GNU_IFUNC, elf::STT_NOTYPE], base, thumb)
}

/// The image offsets of the function symbols in `.symtab` and `.dynsym`. Offsets below the base wrap around.
pub(crate) fn function_offsets<Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'_, Header>,
    base: u64,
) -> Result<Vec<u64>, Error> {
    let mut offsets = Vec::new();
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let (table, _) = file.symbols(kind)?;
        let defined = table.iter().filter(|symbol| {
            symbol.st_type() == elf::STT_FUNC && !symbol.is_undefined(ENDIAN) && !symbol.is_absolute(ENDIAN)
        });
        offsets.extend(defined.map(|symbol| symbol.st_value(ENDIAN).into().wrapping_sub(base)));
    }
    Ok(offsets)
}

/// The symbols whose value is the address of a resolver: a function that returns the address of the named one.
pub(super) fn resolvers<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    base: u64,
    thumb: bool,
) -> Result<Vec<Start<'d>>, Error> {
    of_types(file, &[elf::STT_GNU_IFUNC], base, thumb)
}

/// The symbols of these types in `.symtab` and `.dynsym`.
fn of_types<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    types: &[elf::SymbolType],
    base: u64,
    thumb: bool,
) -> Result<Vec<Start<'d>>, Error> {
    let mut starts = Vec::new();
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        in_table(file, kind, types, base, thumb, &mut starts)?;
    }
    Ok(starts)
}

/// Appends the symbols of one table that are of these types.
///
/// Of several symbols at one address, those with a size come first, then those marked as functions, then global, weak
/// and local ones in this order, then names without two leading underscores, which mark internal names (`write` before
/// `__write`).
fn in_table<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    kind: elf::SectionType,
    types: &[elf::SymbolType],
    base: u64,
    thumb: bool,
    starts: &mut Vec<Start<'d>>,
) -> Result<(), Error> {
    let (table, strings) = file.symbols(kind)?;
    let mut left = 16 * file.bytes.len();
    for symbol in table.iter() {
        let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
        if !types.contains(&symbol.st_type()) || symbol.is_undefined(ENDIAN) || symbol.is_absolute(ENDIAN) {
            continue;
        }
        let value: u64 = symbol.st_value(ENDIAN).into();
        let address = if thumb && is_function { value & !1 } else { value };
        let (Some(start), Some(name)) =
            (address.checked_sub(base), name_at(strings, symbol.st_name(ENDIAN) as usize))
        else {
            continue;
        };
        take_name(&mut left, name)?;
        if name.is_empty() || is_mapping(name) {
            continue;
        }
        let size: u64 = symbol.st_size(ENDIAN).into();
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL => 2,
            elf::STB_WEAK => 1,
            _ => 0,
        };
        let rank = [size == 0, !is_function].iter().fold(0, |rank, worse| 2 * rank + u8::from(*worse));
        let rank = 2 * (3 * rank + binding) + u8::from(name.starts_with(b"__"));
        let end = Some(start.saturating_add(size)).filter(|_| size != 0);
        starts.push(Start { start, rank, name: Some(name), end });
    }
    Ok(())
}

/// Whether the name is that of a mapping symbol of ARM or RISC-V, such as `$a`, `$d.7` or `$xrv64i`. These mark code
/// and data and do not name functions.
pub(crate) fn is_mapping(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b't' | b'd' | b'x'] | [b'$', b'a' | b't' | b'd' | b'x', b'.', ..])
        || name.starts_with(b"$xrv")
}

/// Appends the functions of `.eh_frame` up to the first damage.
fn unwound(tables: &UnwindTables<'_>, is_64_bit: bool, base: u64, starts: &mut Vec<Start<'_>>) {
    let (frames, bases) = cfi::open_eh_frame(tables.eh_frame, tables.text, is_64_bit);
    // Damage costs the functions after it. The rows of the index state it.
    let _ = cfi::each_entry(&frames, &bases, |entry| {
        let Ok(entry) = entry else { return Ok(()) };
        if let Some(start) = entry.initial_address().checked_sub(base) {
            starts.push(Start { end: start.checked_add(entry.len()), ..Start::nameless(start) });
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_symbols_are_told_from_names() {
        let mapping = ["$a", "$t", "$d", "$x", "$d.17", "$x.foo", "$xrv64i2p1"];
        assert!(mapping.iter().all(|name| is_mapping(name.as_bytes())));
        assert!(["$", "$ab", "a", "$s4main", "$z", "x.1"].iter().all(|name| !is_mapping(name.as_bytes())));
    }
}
