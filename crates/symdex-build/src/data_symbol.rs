//! The symbol table of a file, for what indexes do not have: symbols of data, and symbols by name.

use std::collections::BTreeSet;

use object::{
    Architecture, File, Object as _, ObjectSection as _, ObjectSymbol as _, Symbol, SymbolFlags, SymbolKind,
    elf,
};

use crate::sections::{is_loaded, object_file};
use crate::symbols::elf::{names_nothing, untagged};

/// A symbol of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Its linkage name, without Mach-O's leading `_`.
    pub name: Vec<u8>,
    /// Its address, as the file states it.
    pub start: u64,
    /// Its size in bytes; 0 if ELF states none. Mach-O states no sizes: there, a symbol ends at the next one or with its
    /// section.
    pub size: u64,
    /// The name of the source file in the symbol table. ELF has it for local symbols.
    pub file: Option<Vec<u8>>,
}

/// The symbol of data that contains the address `svma` of the debug file `file`, by its symbol table. A symbol without a
/// size contains all addresses up to the next symbol. Variables of threads have no addresses, so no symbol of one is the
/// answer. Returns `None` if no symbol contains `svma`, or if `file` cannot be read. `arch` chooses the slice of a
/// universal file.
///
/// Use it for a few addresses: each call reads the whole symbol table.
#[must_use]
pub fn data_symbol(file: &[u8], arch: Option<&str>, svma: u64) -> Option<DataSymbol> {
    let file = object_file(file, arch)?;
    let found = symbols(&file).filter(|symbol| address_of(&file, symbol) <= svma);
    let found = found.max_by_key(|symbol| (address_of(&file, symbol), symbol.size()))?;
    let (start, name) = (address_of(&file, &found), name_of(&file, &found)?.to_vec());
    let size = size_of(&file, &found, &starts(&file))?;
    let is_inside = svma - start < size || size == 0 && !is_macho(&file);
    is_inside.then(|| DataSymbol { name, start, size, file: source_file(&file, &found) })
}

/// The addresses `offset` bytes after the start of each symbol `name` of the debug file `file`, in ascending order. For
/// symbols that are not larger than `offset` bytes, it is the address of the start. `name` is without Mach-O's leading
/// `_`. Empty if no symbol has the name, or if `file` cannot be read. `arch` chooses the slice of a universal file.
///
/// As for [`data_symbol`], each call reads the whole symbol table.
#[must_use]
pub fn symbol_addresses(file: &[u8], arch: Option<&str>, name: &[u8], offset: u64) -> Vec<u64> {
    let Some(file) = object_file(file, arch) else { return Vec::new() };
    let (starts, named) = (starts(&file), symbols(&file));
    let named = named.filter(|symbol| name_of(&file, symbol) == Some(name));
    let address = |symbol: Symbol<'_, '_>| {
        let is_inside = size_of(&file, &symbol, &starts).is_some_and(|size| offset < size);
        address_of(&file, &symbol).saturating_add(if is_inside { offset } else { 0 })
    };
    named.map(address).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The symbols of code and data that have addresses in memory.
fn symbols<'f, 'd>(file: &'f File<'d>) -> impl Iterator<Item = Symbol<'d, 'f>> {
    table(file).filter(|symbol| {
        let is_kept = match symbol.flags() {
            SymbolFlags::Elf { st_info, .. } => {
                const TYPES: [elf::SymbolType; 4] =
                    [elf::STT_NOTYPE, elf::STT_OBJECT, elf::STT_FUNC, elf::STT_GNU_IFUNC];
                TYPES.contains(&st_info.st_type()) && !symbol.name_bytes().is_ok_and(names_nothing)
            }
            _ => symbol.kind() != SymbolKind::Section,
        };
        let section = symbol.section_index().filter(|_| is_kept);
        section.and_then(|index| file.section_by_index(index).ok()).is_some_and(|section| is_loaded(&section))
    })
}

/// All symbols. Those of the dynamic symbol table are in the other one too, if the file has it.
fn table<'f, 'd>(file: &'f File<'d>) -> impl Iterator<Item = Symbol<'d, 'f>> {
    let is_stripped = file.symbols().next().is_none();
    file.symbols().chain(is_stripped.then(|| file.dynamic_symbols()).into_iter().flatten())
}

/// The name of the source file of a local symbol of ELF: that of the last symbol of a file before it.
fn source_file(file: &File<'_>, symbol: &Symbol<'_, '_>) -> Option<Vec<u8>> {
    let before = table(file).take_while(|other| other.index().0 < symbol.index().0 && symbol.is_local());
    let file = before.filter(|other| other.kind() == SymbolKind::File).last()?;
    file.name_bytes().ok().filter(|name| !name.is_empty()).map(<[u8]>::to_vec)
}

/// The address of a symbol, without the tag that it may have.
fn address_of(file: &File<'_>, symbol: &Symbol<'_, '_>) -> u64 {
    untagged(file.architecture() == Architecture::Aarch64, symbol.address())
}

fn name_of<'d>(file: &File<'d>, symbol: &Symbol<'d, '_>) -> Option<&'d [u8]> {
    let name = symbol.name_bytes().ok()?;
    Some(name.strip_prefix(b"_").filter(|_| is_macho(file)).unwrap_or(name))
}

/// The size of a symbol. Mach-O states none: there, a symbol ends at the next of the ascending `starts`, or with its
/// section.
fn size_of(file: &File<'_>, symbol: &Symbol<'_, '_>, starts: &[u64]) -> Option<u64> {
    if !is_macho(file) {
        return Some(symbol.size());
    }
    let start = address_of(file, symbol);
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let end = section.address().saturating_add(section.size());
    let next = starts.get(starts.partition_point(|other| *other <= start));
    Some(next.map_or(end, |next| end.min(*next)).saturating_sub(start))
}

/// Where the symbols of a Mach-O file start, in ascending order. Empty for ELF, where symbols have sizes.
fn starts(file: &File<'_>) -> Vec<u64> {
    let of_macho = is_macho(file).then(|| symbols(file).map(|symbol| address_of(file, &symbol)));
    let mut starts: Vec<_> = of_macho.into_iter().flatten().collect();
    starts.sort_unstable();
    starts
}

fn is_macho(file: &File<'_>) -> bool {
    file.format() == object::BinaryFormat::MachO
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(path: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
        std::fs::read(path).expect("readable")
    }

    #[test]
    fn a_symbol_answers_its_bytes_and_no_others() {
        let elf = read("elf/gcc-parts.so");
        let symbol = |name: &[u8], start, size| DataSymbol { name: name.to_vec(), start, size, file: None };
        let log_size = DataSymbol { file: Some(b"parts.c".to_vec()), ..symbol(b"log_size", 0x4038, 4) };
        let personality = symbol(b"DW.ref.__gxx_personality_v0", 0x4030, 8);
        assert_eq!(data_symbol(&elf, None, 0x4037), Some(personality));
        assert_eq!(data_symbol(&elf, None, 0x4038), Some(log_size.clone()));
        assert_eq!(data_symbol(&elf, None, 0x403b), Some(log_size));
        assert_eq!(data_symbol(&elf, None, 0x403c), None);
        let fat = read("dsyms/fat.dSYM/Contents/Resources/DWARF/fat");
        assert_eq!(data_symbol(&fat, None, 0), None, "several architectures");
        assert_eq!(data_symbol(b"no debug file", None, 0), None);
    }

    #[test]
    fn a_name_leads_to_the_addresses_of_its_symbols() {
        let elf = read("elf/gcc-parts.so");
        let addresses = |name: &[u8], offset| symbol_addresses(&elf, None, name, offset);
        assert_eq!(addresses(b"rescale", 0), [0x1160]);
        assert_eq!(addresses(b"rescale", 4), [0x1164]);
        assert_eq!(addresses(b"rescale", 0x35), [0x1160], "it has 0x35 bytes");
        assert_eq!(addresses(b"fetch", 0), [0; 0], "it is not defined");
        let macho = read("dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4");
        let addresses = |name: &[u8], offset| symbol_addresses(&macho, None, name, offset);
        assert_eq!((addresses(b"pyramid", 0).len(), addresses(b"_pyramid", 0).len()), (1, 0));
        assert_eq!(addresses(b"pyramid", 1), [addresses(b"pyramid", 0)[0] + 1]);
        assert_eq!(symbol_addresses(b"no debug file", None, b"a", 0), [0; 0]);
    }
}
