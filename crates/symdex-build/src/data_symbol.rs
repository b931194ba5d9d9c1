//! Symbols of data, which indexes do not have.

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind, SymbolSection};

use crate::sections::object_file;

/// A symbol of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Its linkage name, without Mach-O's leading `_`.
    pub name: Vec<u8>,
    /// Its address, as the file states it.
    pub start: u64,
    /// Its size in bytes. Mach-O states no sizes: there, a symbol ends at the next one or with its section.
    pub size: u64,
}

/// The symbol of data that contains the address `svma` of the debug file `file`, by its symbol table. Returns `None` if
/// no symbol does, or if `file` cannot be read. `arch` chooses the slice of a universal file.
///
/// Use it for a few addresses: each call reads the whole symbol table.
#[must_use]
pub fn data_symbol(file: &[u8], arch: Option<&str>, svma: u64) -> Option<DataSymbol> {
    let file = object_file(file, arch)?;
    let is_macho = file.format() == object::BinaryFormat::MachO;
    let symbols = || {
        let all = file.symbols().chain(file.dynamic_symbols());
        all.filter(|symbol| {
            matches!(symbol.section(), SymbolSection::Section(_)) && symbol.kind() != SymbolKind::Section
        })
    };
    let found = symbols().filter(|symbol| symbol.address() <= svma);
    let found = found.max_by_key(|symbol| (symbol.address(), symbol.size()))?;
    let (start, name) = (found.address(), found.name_bytes().ok()?);
    let size = match is_macho {
        true => {
            let section = file.section_by_index(found.section_index()?).ok()?;
            let next = symbols().map(|symbol| symbol.address()).filter(|next| *next > start).min();
            let end = section.address().saturating_add(section.size());
            next.map_or(end, |next| next.min(end)).saturating_sub(start)
        }
        false => found.size(),
    };
    let name = name.strip_prefix(b"_").filter(|_| is_macho).unwrap_or(name);
    (svma - start < size).then(|| DataSymbol { name: name.to_vec(), start, size })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_symbol_answers_its_bytes_and_no_others() {
        let read = |path: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
            std::fs::read(path).expect("readable")
        };
        let elf = read("elf/gcc-parts.so");
        let log_size = DataSymbol { name: b"log_size".to_vec(), start: 0x4038, size: 4 };
        let personality =
            DataSymbol { name: b"DW.ref.__gxx_personality_v0".to_vec(), start: 0x4030, size: 8 };
        assert_eq!(data_symbol(&elf, None, 0x4037), Some(personality));
        assert_eq!(data_symbol(&elf, None, 0x4038), Some(log_size.clone()));
        assert_eq!(data_symbol(&elf, None, 0x403b), Some(log_size));
        assert_eq!(data_symbol(&elf, None, 0x403c), None);
        let fat = read("dsyms/fat.dSYM/Contents/Resources/DWARF/fat");
        assert_eq!(data_symbol(&fat, None, 0), None, "several architectures");
        assert_eq!(data_symbol(b"no debug file", None, 0), None);
    }
}
