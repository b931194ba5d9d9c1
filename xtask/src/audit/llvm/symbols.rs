//! The symbol table as llvm-symbolizer reads it.

use object::read::macho::Nlist;
use object::{File, Object as _, ObjectSection as _, ObjectSymbol, SymbolFlags, SymbolSection, elf};
use symdex_build::Image;

/// An entry of the symbol table: code or data.
pub(crate) struct Symbol<'d> {
    pub(crate) svma: u64,
    /// Its size; 0 for no end. ELF symbols state it. In Mach-O, llvm-symbolizer extends a symbol to the next one in its
    /// section, to the end of the section, or to the first symbol of the next section.
    pub(crate) size: u64,
    /// Whether the size is too small. llvm-symbolizer limits sections to the size of the file, though the code of a
    /// dSYM is not in it. It also takes the values of stabs for addresses, though they can be sizes.
    pub(crate) is_cut_short: bool,
    /// Without Mach-O's underscore.
    pub(crate) name: &'d [u8],
    /// The source file that the symbol table has before it, for a local symbol of ELF.
    pub(crate) file: Option<&'d [u8]>,
}

/// An entry at an address of a section.
enum Entry<'d> {
    Symbol(&'d [u8]),
    /// The section's end.
    End {
        is_cut_short: bool,
    },
    /// A debugging symbol, whose value can be an address.
    Stab,
}

/// The symbols of `bytes`, sorted by address; none if the file cannot be read.
pub(crate) fn read(bytes: &[u8]) -> Vec<Symbol<'_>> {
    match File::parse(bytes) {
        Ok(file @ (File::Elf32(_) | File::Elf64(_))) => of_elf(&file),
        Ok(file) => of_macho(&file, bytes.len() as u64),
        Err(_) => Vec::new(),
    }
}

/// SVMA and name of every symbol of the image's files, without the Thumb bit and Mach-O's underscore; sorted.
pub(crate) fn all_names<'d>(image: &Image<'d>) -> Vec<(u64, &'d [u8])> {
    let files = image.files().iter().filter_map(|bytes| File::parse(*bytes).ok());
    let mut names = Vec::new();
    for file in files {
        let is_macho = file.format() == object::BinaryFormat::MachO;
        for symbol in file.symbols().chain(file.dynamic_symbols()).filter(ObjectSymbol::is_definition) {
            let Ok(name) = symbol.name_bytes() else { continue };
            let name = name.strip_prefix(b"_").filter(|_| is_macho).unwrap_or(name);
            let thumb = image.info().arch.is_arm32() && !is_macho;
            names.push((symbol.address() & !u64::from(thumb), name));
        }
    }
    names.sort_unstable();
    names
}

/// One symbol for each address: the longest, of several the last. `.dynsym` is read only without `.symtab`.
fn of_elf<'d>(file: &File<'d>) -> Vec<Symbol<'d>> {
    let mut table: Vec<_> = file.symbols().collect();
    if table.is_empty() {
        table = file.dynamic_symbols().collect();
    }
    let mut symbols = Vec::new();
    let mut source = None;
    for symbol in table {
        let (Ok(name), SymbolFlags::Elf { st_info, .. }) = (symbol.name_bytes(), symbol.flags()) else {
            continue;
        };
        if st_info.st_type() == elf::STT_FILE {
            source = Some(name);
        }
        let counts = [elf::STT_NOTYPE, elf::STT_FUNC, elf::STT_OBJECT, elf::STT_GNU_IFUNC]
            .contains(&st_info.st_type());
        if !counts
            || !matches!(symbol.section(), SymbolSection::Section(_))
            || says_what_bytes_are(file, name)
        {
            continue;
        }
        let is_arm = file.architecture() == object::Architecture::Arm;
        let thumb = is_arm && st_info.st_type() == elf::STT_FUNC && symbol.address() % 2 == 1;
        let svma = symbol.address() - u64::from(thumb);
        // By default, it takes the top byte for a tag, and bit 55 for what the byte is.
        let svma = ((svma << 8).cast_signed() >> 8).cast_unsigned();
        let source = source.filter(|_| st_info.st_bind() == elf::STB_LOCAL);
        symbols.push(Symbol { svma, size: symbol.size(), is_cut_short: false, name, file: source });
    }
    symbols.sort_by_key(|symbol| (symbol.svma, symbol.size));
    symbols.dedup_by(|next, last| {
        let same = next.svma == last.svma;
        if same {
            std::mem::swap(next, last);
        }
        same
    });
    symbols
}

/// Whether llvm-symbolizer ignores a symbol of this name.
fn says_what_bytes_are(file: &File<'_>, name: &[u8]) -> bool {
    let begins_so: &[&[u8]] = match file.architecture() {
        object::Architecture::Aarch64 => &[b"$d", b"$x"],
        object::Architecture::Arm => &[b"$d", b"$t", b"$a"],
        object::Architecture::Riscv32 | object::Architecture::Riscv64 => &[b"$d", b"$x"],
        _ => &[],
    };
    let is_machine_with_such = !begins_so.is_empty() && file.architecture() != object::Architecture::Aarch64;
    begins_so.iter().any(|begin| name.starts_with(begin))
        || is_machine_with_such && (name.is_empty() || name == b".L0 ")
}

fn of_macho<'d>(file: &File<'d>, file_size: u64) -> Vec<Symbol<'d>> {
    let mut entries: Vec<(usize, u64, Entry<'_>)> = Vec::new();
    for symbol in file.symbols() {
        if let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name_bytes()) {
            let name = name.strip_prefix(b"_").unwrap_or(name);
            entries.push((section.0, symbol.address(), Entry::Symbol(name)));
        }
    }
    entries.extend(stabs(file).into_iter().map(|(section, value)| (section, value, Entry::Stab)));
    for section in file.sections() {
        let in_file = section.file_range().map_or(u64::MAX, |(offset, _)| file_size.saturating_sub(offset));
        let end = section.address().wrapping_add(section.size().min(in_file));
        let is_cut_short = in_file < section.size();
        entries.push((section.index().0, end, Entry::End { is_cut_short }));
    }
    entries.sort_by_key(|entry| (entry.0, entry.1));
    let mut symbols = Vec::with_capacity(entries.len());
    let mut next = 0;
    for (number, (section, svma, entry)) in entries.iter().enumerate() {
        next = next.max(number);
        while next + 1 < entries.len() && entries[next].1 == *svma {
            next += 1;
        }
        if let Entry::Symbol(name) = entry {
            let (end_section, end, end_entry) = &entries[next];
            let is_cut_short = end_section == section
                && matches!(end_entry, Entry::End { is_cut_short: true } | Entry::Stab);
            symbols.push(Symbol {
                svma: *svma,
                size: end.wrapping_sub(*svma),
                is_cut_short,
                name,
                file: None,
            });
        }
    }
    symbols.sort_by_key(|symbol| symbol.svma);
    symbols
}

/// Section and value of each debugging symbol.
fn stabs(file: &File<'_>) -> Vec<(usize, u64)> {
    match file {
        File::MachO32(file) => stabs_of(file.macho_symbol_table().iter(), file.endian()),
        File::MachO64(file) => stabs_of(file.macho_symbol_table().iter(), file.endian()),
        _ => Vec::new(),
    }
}

fn stabs_of<'d, N: Nlist + 'd>(symbols: impl Iterator<Item = &'d N>, endian: N::Endian) -> Vec<(usize, u64)> {
    let stabs = symbols.filter(|symbol| symbol.is_stab());
    stabs.map(|symbol| (symbol.n_sect().into(), symbol.n_value(endian).into())).collect()
}

/// The symbols that llvm-symbolizer can find for `svma`: those at the last address up to it.
pub(crate) fn symbols_at<'s, 'd>(
    symbols: &'s [Symbol<'d>],
    svma: u64,
) -> impl Iterator<Item = &'s Symbol<'d>> {
    let ends_behind = move |symbol: &&Symbol<'_>| svma < symbol.svma.wrapping_add(symbol.size);
    last_symbols(symbols, svma).filter(move |symbol| symbol.size == 0 || ends_behind(symbol))
}

/// Whether llvm-symbolizer finds no symbol for `svma` because it ends the function that starts at `start` where the
/// file ends.
pub(crate) fn is_cut_short(symbols: &[Symbol<'_>], start: u64, svma: u64) -> bool {
    symbols_at(symbols, svma).next().is_none()
        && last_symbols(symbols, svma).next().is_some()
        && last_symbols(symbols, svma).all(|symbol| symbol.svma == start && symbol.is_cut_short)
}

/// The symbols at the last address up to `svma` that has symbols, in reverse order.
fn last_symbols<'s, 'd>(
    symbols: &'s [Symbol<'d>],
    svma: u64,
) -> impl Iterator<Item = &'s Symbol<'d>> + use<'s, 'd> {
    let before = &symbols[..symbols.partition_point(|symbol| symbol.svma <= svma)];
    let last = before.last().map(|symbol| symbol.svma);
    before.iter().rev().take_while(move |symbol| Some(symbol.svma) == last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_symbols_up_to_an_address_name_it() {
        let symbol = |(svma, size, name): (u64, u64, &'static str)| Symbol {
            svma,
            size,
            is_cut_short: false,
            name: name.as_bytes(),
            file: None,
        };
        let symbols: Vec<_> = [(16, 8, "f"), (24, 8, "g"), (24, 8, "h"), (40, 0, "i")].map(symbol).into();
        let names = |svma| {
            symbols_at(&symbols, svma)
                .map(|symbol| String::from_utf8_lossy(symbol.name))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            [15, 16, 23, 24, 31, 32, 39, 40, 99].map(names),
            ["", "f", "f", "h g", "h g", "", "", "i", "i"]
        );
    }
}
