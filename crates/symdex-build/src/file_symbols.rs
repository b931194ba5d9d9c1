//! The symbol table of a file, for what indexes do not have: symbols of data, and symbols by name.

use std::cell::OnceCell;
use std::ops::Range;

use object::read::elf::{ElfFile, FileHeader, SectionHeader as _, Sym as _};
use object::read::macho::{MachHeader, MachOFile, Nlist as _};
use object::{
    Endianness, File, Object as _, ObjectSection as _, ObjectSymbol as _, ReadRef as _, SymbolKind, elf,
};

use crate::sections::{is_loaded, object_file};
use crate::symbols::elf::{names_nothing, untagged};
use crate::symbols::name_at;

/// How many bytes of a name order the table of names. Names may overlap, so each may be as long as the file.
const HEAD: usize = 64;

/// A symbol of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Its linkage name, without Mach-O's leading `_`.
    pub name: Vec<u8>,
    /// Its address, as the file states it.
    pub start: u64,
    /// Its size in bytes; 0 if ELF states none. Mach-O states no sizes: there, a symbol ends at the next one or with
    /// its section.
    pub size: u64,
    /// The name of the source file in the symbol table. ELF has it for local symbols.
    pub file: Option<Vec<u8>>,
}

/// The symbols of code and data of a debug file that have addresses in memory. Variables of threads have none. If the
/// file has no symbol table, they are those of the dynamic one.
pub struct FileSymbols<'d> {
    /// The strings that names are part of.
    strings: &'d [u8],
    is_macho: bool,
    /// By address, then by the size in the symbol table, then in the order of the symbol table.
    symbols: Vec<FileSymbol>,
    /// The first bytes of the name of each symbol, and its number in `symbols`, sorted. It is made when a name is first
    /// asked for.
    by_name: OnceCell<Vec<(&'d [u8], u32)>>,
}

struct FileSymbol {
    start: u64,
    size: u64,
    /// Where its name starts in the strings.
    name: u32,
    /// Where the name of the source file starts, for a local symbol of ELF after a symbol of a file.
    file: Option<u32>,
}

impl std::fmt::Debug for FileSymbols<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSymbols").field("symbols", &self.symbols.len()).finish_non_exhaustive()
    }
}

impl<'d> FileSymbols<'d> {
    /// Reads and sorts the symbol table of the debug file `file`. Returns `None` if it cannot be read. `arch` chooses
    /// the slice of a universal file.
    ///
    /// ```
    /// use symdex_build::FileSymbols;
    ///
    /// let file = std::fs::read("../../testdata/elf/gcc-parts.so")?;
    /// let symbols = FileSymbols::read(&file, None).expect("an ELF file");
    /// assert_eq!(symbols.named(b"rescale"), vec![std::ops::Range { start: 0x1160, end: 0x1195 }]);
    /// assert_eq!(symbols.data(0x4038).map(|symbol| symbol.name), Some(b"log_size".to_vec()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn read(file: &'d [u8], arch: Option<&str>) -> Option<Self> {
        match object_file(file, arch)? {
            File::Elf32(elf) => Self::of_elf(&elf),
            File::Elf64(elf) => Self::of_elf(&elf),
            File::MachO32(macho) => Self::of_macho(&macho),
            File::MachO64(macho) => Self::of_macho(&macho),
            _ => None,
        }
    }

    /// The symbol of data that contains the address `svma`: the last one that starts at or before it, if it reaches
    /// there. A symbol of ELF without a size contains all addresses up to the next symbol.
    #[must_use]
    pub fn data(&self, svma: u64) -> Option<DataSymbol> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= svma);
        let FileSymbol { start, size, name, file } = self.symbols[..after].last()?;
        let is_inside = svma - start < *size || *size == 0 && !self.is_macho;
        let text = |offset: u32| name_at(self.strings, offset as usize).map(<[u8]>::to_vec);
        let name = text(*name).filter(|_| is_inside)?;
        let is_prefixed = self.is_macho && name.starts_with(b"_");
        let file = file.and_then(text).filter(|file| !file.is_empty());
        Some(DataSymbol { name: name[usize::from(is_prefixed)..].to_vec(), start: *start, size: *size, file })
    }

    /// The addresses of each symbol `name`, which is without Mach-O's leading `_`, in ascending order. A symbol without
    /// a size has none but its start. Empty if no symbol has the name.
    #[must_use]
    pub fn named(&self, name: &[u8]) -> Vec<Range<u64>> {
        let by_name = self.by_name.get_or_init(|| {
            let mut heads: Vec<_> =
                self.symbols.iter().map(|symbol| head(self.name(symbol))).zip(0..).collect();
            heads.sort_unstable();
            heads
        });
        let wanted = &name[..name.len().min(HEAD)];
        let first = by_name.partition_point(|(head, _)| *head < wanted);
        let found = by_name[first..].iter().take_while(|(head, _)| *head == wanted);
        let symbols = found.map(|(_, number)| &self.symbols[*number as usize]);
        let is_it = |symbol: &&FileSymbol| {
            self.name(symbol).strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
        };
        let mut found: Vec<_> = symbols
            .filter(is_it)
            .map(|symbol| symbol.start..symbol.start.saturating_add(symbol.size))
            .collect();
        found.dedup_by_key(|range| range.start);
        found
    }

    /// The strings from the name of a symbol on, without Mach-O's underscore.
    fn name(&self, symbol: &FileSymbol) -> &'d [u8] {
        let rest = self.strings.get(symbol.name as usize..).unwrap_or_default();
        rest.strip_prefix(b"_").filter(|_| self.is_macho).unwrap_or(rest)
    }

    fn of_elf<Header: FileHeader<Endian = Endianness>>(elf: &ElfFile<'d, Header>) -> Option<Self> {
        const TYPES: [elf::SymbolType; 4] =
            [elf::STT_NOTYPE, elf::STT_OBJECT, elf::STT_FUNC, elf::STT_GNU_IFUNC];
        let endian = elf.endian();
        let table = match elf.elf_symbol_table() {
            // The first entry is no symbol.
            table if table.len() < 2 => elf.elf_dynamic_symbol_table(),
            table => table,
        };
        let sections = elf.elf_section_table();
        let strings = sections.section(table.string_section()).and_then(|of| of.data(endian, elf.data()));
        let strings = strings.unwrap_or_default();
        let is_aarch64 = elf.elf_header().e_machine(endian) == elf::EM_AARCH64;
        let (mut symbols, mut file) = (Vec::new(), None);
        for (index, symbol) in table.enumerate() {
            let name = symbol.st_name(endian);
            if symbol.st_type() == elf::STT_FILE {
                file = Some(name);
            }
            let section = table.symbol_section(endian, symbol, index).ok().flatten();
            let section = section.and_then(|section| sections.section(section).ok());
            let is_loaded = section.is_some_and(|of| of.sh_flags(endian).contains(elf::SHF_ALLOC));
            let name_head = head(strings.get(name as usize..).unwrap_or_default());
            if TYPES.contains(&symbol.st_type()) && is_loaded && !names_nothing(name_head) {
                let start = untagged(is_aarch64, symbol.st_value(endian).into());
                let size = symbol.st_size(endian).into();
                symbols.push(FileSymbol { start, size, name, file: file.filter(|_| symbol.is_local()) });
            }
        }
        symbols.sort_by_key(|symbol| (symbol.start, symbol.size));
        Some(Self { strings, is_macho: false, symbols, by_name: OnceCell::new() })
    }

    fn of_macho<Header: MachHeader<Endian = Endianness>>(macho: &MachOFile<'d, Header>) -> Option<Self> {
        let endian = macho.endian();
        let mut commands = macho.macho_load_commands().ok()?;
        let commands = std::iter::from_fn(|| commands.next().ok().flatten());
        let symtab = commands.filter_map(|command| command.symtab().ok().flatten()).next();
        let strings = symtab.and_then(|of| {
            let (start, size) = (of.stroff.get(endian).into(), of.strsize.get(endian).into());
            macho.data().read_bytes_at(start, size).ok()
        });
        let mut symbols: Vec<_> = macho
            .symbols()
            .filter_map(|symbol| {
                let section = macho.section_by_index(symbol.section_index()?).ok()?;
                let is_kept = symbol.kind() != SymbolKind::Section && is_loaded(&section);
                let end = section.address().saturating_add(section.size());
                let (start, name) = (symbol.address(), symbol.macho_symbol().n_strx(endian));
                let size = end.saturating_sub(start);
                is_kept.then_some(FileSymbol { start, size, name, file: None })
            })
            .collect();
        symbols.sort_by_key(|symbol| symbol.start);
        let mut next = None;
        for group in symbols.chunk_by_mut(|a, b| a.start == b.start).rev() {
            let start = group[0].start;
            let most = next.replace(start).map_or(u64::MAX, |next: u64| next - start);
            group.iter_mut().for_each(|symbol| symbol.size = symbol.size.min(most));
        }
        Some(Self { strings: strings.unwrap_or_default(), is_macho: true, symbols, by_name: OnceCell::new() })
    }
}

/// The first bytes of the name that `strings` begins with.
fn head(strings: &[u8]) -> &[u8] {
    let most = &strings[..strings.len().min(HEAD)];
    &most[..memchr::memchr(0, most).unwrap_or(most.len())]
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use symdex_testkit::images::debug_file::{CODE, Elf, ElfSymbol};

    use super::*;

    fn read(path: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
        std::fs::read(path).expect("readable")
    }

    #[test]
    fn a_symbol_answers_its_bytes_and_no_others() {
        let elf = read("elf/gcc-parts.so");
        let elf = FileSymbols::read(&elf, None).expect("an ELF file");
        let symbol = |name: &[u8], start, size| DataSymbol { name: name.to_vec(), start, size, file: None };
        let log_size = DataSymbol { file: Some(b"parts.c".to_vec()), ..symbol(b"log_size", 0x4038, 4) };
        let personality = symbol(b"DW.ref.__gxx_personality_v0", 0x4030, 8);
        assert_eq!(elf.data(0x4037), Some(personality));
        assert_eq!(elf.data(0x4038), Some(log_size.clone()));
        assert_eq!(elf.data(0x403b), Some(log_size));
        assert_eq!(elf.data(0x403c), None);
        let fat = read("dsyms/fat.dSYM/Contents/Resources/DWARF/fat");
        assert!(FileSymbols::read(&fat, None).is_none(), "several architectures");
        assert!(FileSymbols::read(b"no debug file", None).is_none());
    }

    #[test]
    fn a_name_leads_to_the_addresses_of_its_symbols() {
        let elf = read("elf/gcc-parts.so");
        let elf = FileSymbols::read(&elf, None).expect("an ELF file");
        assert_eq!(elf.named(b"rescale"), vec![Range { start: 0x1160, end: 0x1195 }]);
        assert_eq!(elf.named(b"rescal"), [], "a part of a name");
        assert_eq!(elf.named(b"fetch"), [], "it is not defined");
        let macho = read("dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4");
        let macho = FileSymbols::read(&macho, None).expect("a Mach-O file");
        assert_eq!((macho.named(b"pyramid").len(), macho.named(b"_pyramid").len()), (1, 0));
        // Mach-O states no sizes: a symbol ends at the next one or with its section.
        let starts: Vec<_> = macho.symbols.iter().map(|symbol| symbol.start).collect();
        let pyramid = macho.named(b"pyramid")[0].clone();
        let next = starts.iter().find(|start| **start > pyramid.start);
        assert!(next.is_none_or(|next| pyramid.end <= *next) && !pyramid.is_empty(), "{pyramid:?}");
    }

    /// 50,000 symbols of which each has the rest of 4 MiB of strings as its name.
    #[test]
    fn names_that_overlap_are_not_read_to_their_ends() {
        let long: &str = "a".repeat(4 << 20).leak();
        let others = (0..50_000).map(|n| ElfSymbol::function("", CODE.start + n % 16, 1));
        let symbols = std::iter::once(ElfSymbol::function(long, CODE.start, 1)).chain(others).collect();
        let mut file = Elf { symbols, ..Elf::default() }.bytes();
        let table = File::parse(&file[..]).expect("an ELF file");
        let (start, size) = table.section_by_name(".symtab").and_then(|of| of.file_range()).expect("there");
        let (start, size) = (usize::try_from(start).expect("small"), usize::try_from(size).expect("small"));
        for (number, symbol) in (0u32..).zip(file[start..start + size].chunks_mut(24)).skip(2) {
            symbol[..4].copy_from_slice(&(1 + number % 8).to_le_bytes());
        }
        let begun = Instant::now();
        let symbols = FileSymbols::read(&file, None).expect("an ELF file");
        assert!(symbols.data(CODE.start + 3).is_some());
        assert_eq!(symbols.named(&long.as_bytes()[..HEAD]), []);
        // To their ends, they have 200 GB.
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }
}
