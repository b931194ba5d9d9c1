//! Go programs with the tables that the Go runtime reads, written byte by byte.

use object::elf;

use super::debug_file::{BASE, Elf, ElfSection, MachO};

/// A function: its code, and the rows of its tables. A row is the size of its code and a value.
#[derive(Clone, Default)]
pub struct GoFunction {
    pub name: &'static str,
    pub size: u64,
    /// Numbers of files.
    pub files: Vec<(u64, i64)>,
    pub lines: Vec<(u64, i64)>,
    /// Numbers of entries of the tree; -1 for the function itself.
    pub calls: Vec<(u64, i64)>,
    /// The inlined calls: the name of the function that is called, and the place of the call in the code.
    pub tree: Vec<(&'static str, u64)>,
}

/// A Go program.
#[derive(Clone)]
pub struct GoProgram {
    /// The first byte of the tables: 0xfa for Go 1.16, 0xf0 for 1.18, 0xf1 for 1.20.
    pub magic: u8,
    pub is_64_bit: bool,
    /// The address of the first function. Each begins where the one before ends.
    pub text: u64,
    /// Whether the tables state the address of the code, as before Go 1.26.
    pub states_text: bool,
    /// The number of the pointer to the trees in the module data.
    pub tree_pointer: usize,
    /// Whether pointers are 0 in the file and a relocation each.
    pub is_relocated: bool,
    /// The section with the tables.
    pub section: &'static str,
    /// The addresses of the tables, of the trees and of the module data.
    pub at: [u64; 3],
    pub files: Vec<&'static str>,
    pub functions: Vec<GoFunction>,
}

impl Default for GoProgram {
    /// Go 1.27 on x86-64: `main.outer` has inlined `main.mid`, and that has inlined `main.leaf`. `main.plain` and its
    /// padding follow.
    fn default() -> Self {
        let outer = GoFunction {
            name: "main.outer",
            size: 0x40,
            files: vec![(0x10, 0), (0x20, 1), (0x10, 0)],
            lines: vec![(0x10, 10), (0x10, 21), (0x10, 30), (0x10, 12)],
            calls: vec![(0x10, -1), (0x10, 0), (0x10, 1), (0x10, -1)],
            tree: vec![("main.mid[go.shape.int]", 4), ("main.leaf", 0x14)],
        };
        let plain = GoFunction {
            name: "main.plain",
            size: 0x40,
            files: vec![(0x38, 0)],
            lines: vec![(0x30, 40), (8, 41)],
            ..GoFunction::default()
        };
        Self {
            magic: 0xf1,
            is_64_bit: true,
            text: 0x1000,
            states_text: false,
            tree_pointer: 43,
            is_relocated: false,
            section: ".gopclntab",
            at: [0x5000, 0x7000, 0x8000],
            files: vec!["/src/main.go", "/src/inlined.go"],
            functions: vec![outer, plain],
        }
    }
}

impl GoProgram {
    fn word_size(&self) -> usize {
        if self.is_64_bit { 8 } else { 4 }
    }

    fn word(&self, number: u64) -> Vec<u8> {
        number.to_le_bytes()[..self.word_size()].to_vec()
    }

    fn is_absolute(&self) -> bool {
        self.magic == 0xfa
    }

    /// All names, and the place of each.
    fn names(&self) -> Texts {
        let in_trees = self.functions.iter().flat_map(|one| one.tree.iter().map(|(name, _)| *name));
        Texts::new(
            std::iter::once("main.first").chain(self.functions.iter().map(|one| one.name)).chain(in_trees),
        )
    }

    /// `.gopclntab`.
    pub fn tables(&self) -> Vec<u8> {
        let (names, paths) = (self.names(), Texts::new(self.files.iter().copied()));
        let lists: Vec<u8> = self.files.iter().flat_map(|file| paths.place(file).to_le_bytes()).collect();
        let mut values = vec![0];
        let mut records = Vec::new();
        let entry = if self.is_absolute() { self.word_size() } else { 4 };
        let list_size = (2 * self.functions.len() + 1) * entry;
        let list_size = list_size.next_multiple_of(8);
        let (mut list, mut start) = (Vec::new(), if self.is_absolute() { self.text } else { 0 });
        let mut trees = 0;
        for function in &self.functions {
            list.extend(&start.to_le_bytes()[..entry]);
            list.extend(&((list_size + records.len()) as u64).to_le_bytes()[..entry]);
            let mut table = |rows: &[(u64, i64)]| if rows.is_empty() { 0 } else { encode(rows, &mut values) };
            let [files, lines, calls] =
                [&function.files, &function.lines, &function.calls].map(|rows| table(rows));
            let mut record = start.to_le_bytes()[..entry].to_vec();
            let fields = [names.place(function.name), 0, 0, 0, files, lines, 3, 0, 7];
            let fields = &fields[..if self.magic == 0xf1 { 9 } else { 8 }];
            record.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
            record.extend([0, 0, 0, 4]);
            record.extend([0, 0, calls].iter().flat_map(|table| table.to_le_bytes()));
            let tree = if function.tree.is_empty() { None } else { Some(trees) };
            trees += self.tree(function).len() as u64;
            if self.is_absolute() {
                record.resize(record.len().next_multiple_of(self.word_size()), 0);
                let pointers = [0, 0, 0, tree.map_or(0, |tree| self.at[1] + tree)];
                record.extend(pointers.iter().flat_map(|pointer| self.word(*pointer)));
            } else {
                let none = u32::MAX;
                let data = [none, none, none, tree.map_or(none, |tree| tree as u32)];
                record.extend(data.iter().flat_map(|data| data.to_le_bytes()));
            }
            record.resize(record.len().next_multiple_of(8), 0);
            records.extend(record);
            start += function.size;
        }
        list.extend(&start.to_le_bytes()[..entry]);
        list.resize(list_size, 0);
        list.extend(records);
        let words = if self.is_absolute() { 7 } else { 8 };
        let text = if self.states_text { self.text } else { 0 };
        let counts = [self.functions.len() as u64, self.files.len() as u64, text];
        let counts = &counts[..words - 5];
        let mut parts = [names.bytes, lists, paths.bytes, values, list];
        parts.iter_mut().for_each(|part| part.resize(part.len().next_multiple_of(8), 0));
        let mut header = vec![self.magic, 0xff, 0xff, 0xff, 0, 0, 1, self.word_size() as u8];
        header.extend(counts.iter().flat_map(|count| self.word(*count)));
        let mut place = (8 + words * self.word_size()) as u64;
        for part in &parts {
            header.extend(self.word(place));
            place += part.len() as u64;
        }
        [header, parts.concat()].concat()
    }

    fn tree(&self, function: &GoFunction) -> Vec<u8> {
        let names = self.names();
        let entry = |(name, call): &(&'static str, u64)| {
            let fields = [names.place(name), *call as u32];
            let (before, after) = if self.magic == 0xf1 { (4, 4) } else { (12, 0) };
            [vec![0; before], fields.map(u32::to_le_bytes).concat(), vec![0; after]].concat()
        };
        function.tree.iter().flat_map(entry).collect()
    }

    /// The pointers of the module data, by their numbers.
    fn pointers(&self) -> [(usize, u64); 4] {
        let names = self.word_at(&self.tables(), if self.is_absolute() { 2 } else { 3 });
        let [tables, trees, _] = self.at;
        [(0, tables), (1, tables + names), (22, self.text), (self.tree_pointer, trees)]
    }

    /// The module data, in which pointers are as `stored` returns them.
    fn module(&self, stored: impl Fn(u64) -> u64) -> Vec<u8> {
        let mut module = vec![0; 60 * self.word_size()];
        for (number, pointer) in self.pointers() {
            let at = number * self.word_size();
            module[at..at + self.word_size()].copy_from_slice(&self.word(stored(pointer)));
        }
        module
    }

    /// The trees of all functions.
    fn trees(&self) -> Vec<u8> {
        self.functions.iter().flat_map(|function| self.tree(function)).collect()
    }

    /// A Mach-O file. If pointers are relocated, they are offsets in chains of fixups.
    pub fn macho(&self) -> MachO {
        let start = BASE + 0x8000;
        let trees = start + self.tables().len() as u64;
        let program = Self {
            text: BASE + 0x1000,
            at: [start, trees, trees + self.trees().len() as u64],
            ..self.clone()
        };
        let stored = |pointer: u64| if self.is_relocated { (pointer - BASE) | 1 << 51 } else { pointer };
        let debug = vec![
            ("__gopclntab", program.tables()),
            ("__rodata", program.trees()),
            ("__noptrdata", program.module(stored)),
        ];
        MachO { debug, ..MachO::default() }
    }

    /// An ELF file.
    pub fn elf(&self) -> Elf {
        let pointers = self.pointers();
        let place = |number: usize| self.at[2] + (number * self.word_size()) as u64;
        let relocation =
            |(number, pointer): &(usize, u64)| [place(*number), 8, *pointer].map(u64::to_le_bytes).concat();
        let relocations =
            if self.is_relocated { pointers.iter().flat_map(relocation).collect() } else { Vec::new() };
        let section = |name: &str, kind: elf::SectionType, address, bytes| ElfSection {
            name: name.to_owned(),
            kind: kind.0,
            flags: elf::SHF_ALLOC.0 as u32,
            address,
            bytes,
            link: 0,
        };
        let data = elf::SHT_PROGBITS;
        let sections = vec![
            section(self.section, data, self.at[0], self.tables()),
            section(".rodata", data, self.at[1], self.trees()),
            section(
                ".noptrdata",
                data,
                self.at[2],
                self.module(|pointer| if self.is_relocated { 0 } else { pointer }),
            ),
            section(".rela.dyn", elf::SHT_RELA, 0x9000, relocations),
            section(".go.buildinfo", data, 0xa000, vec![1; 16]),
        ];
        Elf { machine: elf::EM_X86_64, is_64_bit: self.is_64_bit, sections, ..Elf::default() }
    }

    /// Word `number` after the first 8 bytes.
    fn word_at(&self, bytes: &[u8], number: usize) -> u64 {
        let at = 8 + number * self.word_size();
        bytes[at..at + self.word_size()].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

/// Texts that end with zero bytes.
struct Texts {
    bytes: Vec<u8>,
    places: Vec<(&'static str, u32)>,
}

impl Texts {
    fn new(all: impl Iterator<Item = &'static str>) -> Self {
        let mut texts = Self { bytes: Vec::new(), places: Vec::new() };
        for text in all {
            texts.places.push((text, texts.bytes.len() as u32));
            texts.bytes.extend(text.bytes().chain([0]));
        }
        texts
    }

    fn place(&self, text: &str) -> u32 {
        self.places.iter().find(|(known, _)| *known == text).expect("a text").1
    }
}

/// Appends a table with these rows, and returns its place.
fn encode(rows: &[(u64, i64)], values: &mut Vec<u8>) -> u32 {
    let place = values.len() as u32;
    let mut last = -1;
    for (size, value) in rows {
        let step = value - last;
        last = *value;
        for mut number in [(step << 1 ^ step >> 63) as u64, *size] {
            while number >= 0x80 {
                values.push(number as u8 | 0x80);
                number >>= 7;
            }
            values.push(number as u8);
        }
    }
    values.push(0);
    place
}
