//! Sections and symbols as an ELF file.

use object::elf;

use super::CODE;

/// A symbol as a symbol table has it.
#[derive(Clone)]
pub struct ElfSymbol {
    pub name: &'static str,
    /// An SVMA.
    pub value: u64,
    pub size: u64,
    pub kind: elf::SymbolType,
    pub binding: elf::SymbolBind,
    /// The number of its section. The code has number 1.
    pub section: u16,
}

impl ElfSymbol {
    /// A global function in a file whose base is 0.
    pub fn function(name: &'static str, start: u64, size: u64) -> Self {
        let (kind, binding) = (elf::STT_FUNC, elf::STB_GLOBAL);
        Self { name, value: start, size, kind, binding, section: 1 }
    }

    pub fn kind(self, kind: elf::SymbolType) -> Self {
        Self { kind, ..self }
    }

    pub fn binding(self, binding: elf::SymbolBind) -> Self {
        Self { binding, ..self }
    }
}

/// A section beside those of the code and of the symbols.
#[derive(Clone, Default)]
pub struct ElfSection {
    pub name: String,
    pub kind: u32,
    pub flags: u32,
    pub address: u64,
    pub bytes: Vec<u8>,
    /// The number of the section that it refers to. The code has number 1, and the tables of symbols follow.
    pub link: u64,
}

/// A shared object with one section of code and a loaded segment.
#[derive(Clone)]
pub struct Elf {
    pub kind: elf::FileType,
    pub machine: elf::Machine,
    pub is_64_bit: bool,
    /// The address of the loaded segment.
    pub base: u64,
    /// The addresses of other segments, which contain no sections.
    pub other_segments: Vec<u64>,
    pub build_id: Option<Vec<u8>>,
    /// The byte that fills the code at [`CODE`]; `None` if the code is not in the file. A file that is not linked has
    /// then no section of code.
    pub code: Option<u8>,
    /// Whether the section of the code states the size 0, as in debug files of Dart.
    pub is_unsized: bool,
    pub sections: Vec<ElfSection>,
    pub symbols: Vec<ElfSymbol>,
    pub dynamic_symbols: Vec<ElfSymbol>,
}

impl Default for Elf {
    fn default() -> Self {
        Self {
            kind: elf::ET_DYN,
            machine: elf::EM_AARCH64,
            is_64_bit: true,
            base: 0,
            other_segments: Vec::new(),
            build_id: Some(vec![7; 20]),
            code: Some(0x90),
            is_unsized: false,
            sections: Vec::new(),
            symbols: Vec::new(),
            dynamic_symbols: Vec::new(),
        }
    }
}

impl Elf {
    /// With one more section that is not loaded.
    pub fn section(mut self, name: &str, bytes: Vec<u8>) -> Self {
        let kind = elf::SHT_PROGBITS.0;
        self.sections.push(ElfSection { name: name.to_owned(), kind, bytes, ..ElfSection::default() });
        self
    }

    /// With debug sections under the names that Mach-O has for them.
    pub fn debug(self, sections: Vec<(&'static str, Vec<u8>)>) -> Self {
        let add =
            |elf: Self, (name, bytes): (&str, Vec<u8>)| elf.section(&name.replacen("__", ".", 1), bytes);
        sections.into_iter().fold(self, add)
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let sections = self.all_sections();
        let (header_size, segment_size) = if self.is_64_bit { (64, 56) } else { (52, 32) };
        let segments: Vec<u8> =
            [self.base].iter().chain(&self.other_segments).flat_map(|base| self.segment(*base)).collect();
        let before = header_size + segments.len() as u64;
        let mut body = Vec::new();
        let mut headers = self.section_header(&Header::default());
        let mut names = vec![0];
        for (section, link, entry) in &sections {
            let is_held = section.kind != elf::SHT_NOBITS.0;
            let header = Header {
                name: names.len() as u64,
                kind: section.kind.into(),
                flags: section.flags.into(),
                address: section.address,
                offset: before + body.len() as u64,
                size: section.bytes.len() as u64,
                link: *link,
                entry: *entry,
            };
            headers.extend(self.section_header(&header));
            names.extend(section.name.bytes().chain([0]));
            body.extend_from_slice(if is_held { &section.bytes } else { &[] });
        }
        let offset = before + body.len() as u64;
        let strings = Header { kind: 3, offset, size: names.len() as u64, ..Header::default() };
        headers.extend(self.section_header(&strings));
        let table = offset + names.len() as u64;
        let count = sections.len() as u16 + 2;
        let file = self.file_header([header_size, table], segment_size as u16, count);
        [file, segments, body, names, headers].concat()
    }

    /// Every section but the section names, with the section that it links to and the size of its entries.
    fn all_sections(&self) -> Vec<(ElfSection, u64, u64)> {
        let section = |name: &str, kind: elf::SectionType, bytes: Vec<u8>| ElfSection {
            name: name.to_owned(),
            kind: kind.0,
            bytes,
            ..ElfSection::default()
        };
        let size = if self.is_unsized { 0 } else { (CODE.end - CODE.start) as usize };
        let kind = if self.code.is_some() { elf::SHT_PROGBITS } else { elf::SHT_NOBITS };
        let mut code = section(".text", kind, vec![self.code.unwrap_or(0); size]);
        let has_code = self.kind != elf::ET_REL || self.code.is_some();
        (code.flags, code.address) = (if has_code { 6 } else { 0 }, self.base + CODE.start);
        let mut all = vec![(code, 0, 0)];
        for (table, strings, kind, symbols) in [
            (".symtab", ".strtab", elf::SHT_SYMTAB, &self.symbols),
            (".dynsym", ".dynstr", elf::SHT_DYNSYM, &self.dynamic_symbols),
        ] {
            if symbols.is_empty() {
                continue;
            }
            let mut names = vec![0];
            let mut entries = vec![0; if self.is_64_bit { 24 } else { 16 }];
            for symbol in symbols {
                entries.extend(self.symbol(symbol, names.len() as u64));
                names.extend(symbol.name.bytes().chain([0]));
            }
            let entry = if self.is_64_bit { 24 } else { 16 };
            all.push((section(table, kind, entries), all.len() as u64 + 2, entry));
            all.push((section(strings, elf::SHT_STRTAB, names), 0, 0));
        }
        if let Some(id) = &self.build_id {
            let note = [&words(&[4, id.len() as u64, 3])[..], b"GNU\0", id].concat();
            all.push((section(".note.gnu.build-id", elf::SHT_NOTE, note), 0, 0));
        }
        all.extend(self.sections.iter().map(|section| (section.clone(), section.link, 0)));
        all
    }

    /// A number that is as wide as an address.
    fn word(&self, number: u64) -> Vec<u8> {
        number.to_le_bytes()[..if self.is_64_bit { 8 } else { 4 }].to_vec()
    }

    fn file_header(&self, [segments, sections]: [u64; 2], segment_size: u16, count: u16) -> Vec<u8> {
        let (class, size, entry) = if self.is_64_bit { (2, 64, 64) } else { (1, 52, 40) };
        let ident = [&[0x7f, b'E', b'L', b'F', class, 1, 1][..], &[0; 9]].concat();
        let shorts = |shorts: &[u16]| shorts.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let places = [0, segments, sections].map(|place| self.word(place)).concat();
        let segment_len = 1 + self.other_segments.len() as u16;
        let sizes = shorts(&[size, segment_size, segment_len, entry, count, count - 1]);
        [ident, shorts(&[self.kind.0, self.machine.0]), words(&[1]), places, words(&[0]), sizes].concat()
    }

    /// A segment, readable and executable. A file without the code has nothing of it.
    fn segment(&self, base: u64) -> Vec<u8> {
        let in_file = if self.code.is_some() { 0x4000 } else { 0 };
        let [zero, base, in_file, size, page] =
            [0, base, in_file, 0x4000, 0x1000].map(|number| self.word(number));
        if self.is_64_bit {
            [words(&[1, 5]), zero, base.clone(), base, in_file, size, page].concat()
        } else {
            [words(&[1]), zero, base.clone(), base, in_file, size, words(&[5]), page].concat()
        }
    }

    fn section_header(&self, header: &Header) -> Vec<u8> {
        let Header { name, kind, flags, address, offset, size, link, entry } = *header;
        let middle = [flags, address, offset, size].map(|number| self.word(number)).concat();
        [words(&[name, kind]), middle, words(&[link, 0]), self.word(1), self.word(entry)].concat()
    }

    fn symbol(&self, symbol: &ElfSymbol, name: u64) -> Vec<u8> {
        let ElfSymbol { value, size, kind, binding, section, .. } = symbol;
        let info = vec![binding.0 << 4 | kind.0, 0];
        let (value, size) = (self.word(*value), self.word(*size));
        let section = section.to_le_bytes().to_vec();
        if self.is_64_bit {
            [words(&[name]), info, section, value, size].concat()
        } else {
            [words(&[name]), value, size, info, section].concat()
        }
    }
}

#[derive(Default)]
struct Header {
    name: u64,
    kind: u64,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u64,
    entry: u64,
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
}
