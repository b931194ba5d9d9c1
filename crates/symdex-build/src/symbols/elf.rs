//! The symbol tables of an ELF image, and the functions of its unwind information.

use object::read::elf::{FileHeader, Sym};
use object::{LittleEndian as Little, elf};

use super::{Inside, Start, name_at, take_name};
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
    let types = [elf::STT_FUNC, elf::STT_GNU_IFUNC, elf::STT_NOTYPE, elf::STT_OBJECT];
    of_types(file, &types, base, thumb)
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
/// Of several symbols at one address, those with a lower [`rank`] come first, then those without two leading
/// underscores, which mark internal names (`write` before `__write`).
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
        let size: u64 = symbol.st_size(ENDIAN).into();
        let (kind, binding) = (symbol.st_type(), symbol.st_bind());
        let is_here = !symbol.is_undefined(ENDIAN) && !symbol.is_absolute(ENDIAN);
        let rank = rank(kind, binding, size != 0).filter(|_| is_here && types.contains(&kind));
        let Some(rank) = rank else { continue };
        let is_function = matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC);
        let value = untagged(file.machine == elf::EM_AARCH64, symbol.st_value(ENDIAN).into());
        let address = if thumb && is_function { value & !1 } else { value };
        let (Some(start), Some(name)) =
            (address.checked_sub(base), name_at(strings, symbol.st_name(ENDIAN) as usize))
        else {
            continue;
        };
        take_name(&mut left, name)?;
        if name.is_empty() || names_nothing(name) {
            continue;
        }
        let inside = match (is_function, binding) {
            (true, _) => Inside::Function,
            (false, elf::STB_LOCAL) => Inside::Label,
            (false, _) => Inside::Global,
        };
        let rank = 2 * rank + u8::from(name.starts_with(b"__"));
        let end = Some(start.saturating_add(size)).filter(|_| size != 0);
        starts.push(Start { start, rank, name: Some(name), inside, end });
    }
    Ok(())
}

/// The rank of a symbol that may name code: by its type and whether it has a size, then global before weak before
/// local.
///
/// The address of an indirect function is that of its resolver, whose own name is better. Some compilers mark code as
/// data (GHC, Zig), but data without a size is none.
fn rank(kind: elf::SymbolType, binding: elf::SymbolBind, has_size: bool) -> Option<u8> {
    let kind = match (kind, has_size) {
        (elf::STT_FUNC, true) => 0,
        (elf::STT_NOTYPE, true) => 1,
        (elf::STT_FUNC, false) => 2,
        (elf::STT_GNU_IFUNC, _) => 3,
        (elf::STT_OBJECT, true) => 4,
        (elf::STT_NOTYPE, false) => 5,
        _ => return None,
    };
    let binding = match binding {
        elf::STB_LOCAL => 2,
        elf::STB_WEAK => 1,
        _ => 0,
    };
    Some(3 * kind + binding)
}

/// Whether the name is that of no code and no data: of a label that an assembler made for itself, which all begin with
/// `.L`, or of a mapping symbol of ARM or RISC-V, such as `$a`, `$d.7` or `$xrv64i`, which mark code and data.
pub(crate) fn names_nothing(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b't' | b'd' | b'x'] | [b'$', b'a' | b't' | b'd' | b'x', b'.', ..])
        || name.starts_with(b"$xrv")
        || name.starts_with(b".L")
}

/// The address in the value of a symbol. On AArch64, the top byte may be a tag of the memory there (HWASan). All bits
/// of that byte of the address are as bit 55.
pub(crate) fn untagged(is_aarch64: bool, value: u64) -> u64 {
    if is_aarch64 { ((value << 8).cast_signed() >> 8).cast_unsigned() } else { value }
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
    fn mapping_symbols_and_labels_are_told_from_names() {
        let nothing = ["$a", "$t", "$d", "$x", "$d.17", "$x.foo", "$xrv64i2p1", ".L0 ", ".Lpcrel_hi0", ".L"];
        assert!(nothing.iter().all(|name| names_nothing(name.as_bytes())));
        let names = ["$", "$ab", "a", "$s4main", "$z", "x.1", ".text", "L0", ".", "a.L1"];
        assert!(names.iter().all(|name| !names_nothing(name.as_bytes())));
    }

    #[test]
    fn the_tag_of_a_value_is_no_part_of_the_address() {
        let addresses = [0x8e00_0000_0003_0b40, 0x30b40, 0x8eff_8000_1000_0000, 0xffff_8000_1000_0000];
        let untagged = |is_aarch64| addresses.map(|value| untagged(is_aarch64, value));
        let kernel = 0xffff_8000_1000_0000;
        assert_eq!(untagged(true), [0x30b40, 0x30b40, kernel, kernel]);
        assert_eq!(untagged(false), addresses);
    }
}
