//! Sections and symbols as a Mach-O file.

use super::{BASE, CODE};

/// The section flags for instructions.
pub const CODE_FLAGS: u32 = 0x8000_0400;

/// A symbol as the symbol table has it.
#[derive(Clone)]
pub struct Symbol {
    pub name: Vec<u8>,
    /// An SVMA.
    pub value: u64,
    pub kind: u8,
    /// The number of its section, counted from 1.
    pub section: u8,
    pub desc: u16,
}

impl Symbol {
    /// An external function of the first section; Mach-O's underscore is put before its name.
    pub fn function(name: &str, value: u64) -> Self {
        Self::raw(&[b"_", name.as_bytes()].concat(), value)
    }

    /// An external function with exactly this name.
    pub fn raw(name: &[u8], value: u64) -> Self {
        Self { name: name.to_vec(), value, kind: 0x0f, section: 1, desc: 0 }
    }
}

/// A section that is not in the file, as in dSYMs.
#[derive(Default)]
pub struct Section {
    pub name: &'static str,
    /// Image offsets.
    pub range: std::ops::Range<u64>,
    pub flags: u32,
    /// For stubs: the number of the first one's indirect symbol, and their size.
    pub reserved: [u32; 2],
}

/// A Mach-O file with `__TEXT`, `__DWARF` and a symbol table.
pub struct MachO {
    /// CPU type and subtype. The type decides about 64-bit addresses.
    pub cpu: (u32, u32),
    pub uuid: Option<[u8; 16]>,
    /// The type of file: `MH_DSYM` by default.
    pub kind: u32,
    pub base: u64,
    /// The sections of `__TEXT`.
    pub text: Vec<Section>,
    /// The sections of `__DWARF`.
    pub debug: Vec<(&'static str, Vec<u8>)>,
    pub symbols: Vec<Symbol>,
    /// The numbers of symbols in the table of `LC_DYSYMTAB`, which is left out if there are none.
    pub indirect: Vec<u32>,
    /// The offsets in `LC_FUNCTION_STARTS`, counted from the base.
    pub function_starts: Vec<u64>,
    /// The least offset of `__DWARF` in the file.
    pub debug_offset: u64,
}

impl Default for MachO {
    /// arm64 code in `__text`, and nothing else.
    fn default() -> Self {
        Self {
            cpu: (0x0100_000c, 0),
            uuid: None,
            kind: 10,
            base: BASE,
            text: vec![Section { name: "__text", range: CODE, flags: CODE_FLAGS, ..Section::default() }],
            debug: Vec::new(),
            symbols: Vec::new(),
            indirect: Vec::new(),
            function_starts: Vec::new(),
            debug_offset: 0,
        }
    }
}

impl MachO {
    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let (mut head, offset, debug) = self.parts();
        head.resize(usize::try_from(offset).expect("small"), 0);
        [head, debug].concat()
    }

    /// The start of the file, the offset of `__DWARF`, and its contents.
    pub fn parts(&self) -> (Vec<u8>, u64, Vec<u8>) {
        let debug: Vec<u8> = self.debug.iter().flat_map(|(_, bytes)| bytes).copied().collect();
        // The size of the commands does not depend on the offsets in them.
        let size = self.commands(0, 0).len();
        let linkedit = self.linkedit();
        let offset = self.debug_offset.max((size + linkedit.len()) as u64);
        let commands = self.commands(size as u64, offset);
        ([commands, linkedit].concat(), offset, debug)
    }

    fn is_64_bit(&self) -> bool {
        self.cpu.0 & 0x0100_0000 != 0
    }

    /// A number that is as wide as an address.
    fn word(&self, number: u64) -> Vec<u8> {
        number.to_le_bytes()[..if self.is_64_bit() { 8 } else { 4 }].to_vec()
    }

    /// Header and load commands; `linkedit` is where the symbol table begins.
    fn commands(&self, linkedit: u64, debug_offset: u64) -> Vec<u8> {
        let text: Vec<_> = self.text.iter().map(|section| self.text_section(section)).collect();
        let mut at = 0;
        let debug_start = self.base + 0x8000;
        let debug_section = |(name, bytes): &(&'static str, Vec<u8>)| {
            let (size, offset) = (bytes.len() as u64, debug_offset + at);
            let section =
                self.section(name, "__DWARF", debug_start + at, size, [offset, 0x0200_0000], [0; 2]);
            at += size;
            section
        };
        let debug: Vec<_> = self.debug.iter().map(debug_section).collect();
        let mut commands = vec![
            self.segment("__TEXT", (self.base, 0x4000), (0, 0), &text),
            self.segment("__DWARF", (debug_start, 0x10_0000), (debug_offset, at), &debug),
        ];
        let strings = linkedit + self.symbols.len() as u64 * self.symbol_size();
        let starts = strings + self.strings().len() as u64;
        let numbers = [linkedit, self.symbols.len() as u64, strings, starts - strings];
        commands.push(words(&[&[2, 24], &numbers[..]].concat()));
        if !self.function_starts.is_empty() {
            commands.push(words(&[0x26, 16, starts, self.starts().len() as u64]));
        }
        if !self.indirect.is_empty() {
            let table = starts + self.starts().len() as u64;
            let numbers = [&[0; 12][..], &[table, self.indirect.len() as u64, 0, 0, 0, 0]].concat();
            commands.push(words(&[&[0xb, 80], &numbers[..]].concat()));
        }
        if let Some(uuid) = self.uuid {
            commands.push([words(&[0x1b, 24]), uuid.to_vec()].concat());
        }
        let size: usize = commands.iter().map(Vec::len).sum();
        let magic = if self.is_64_bit() { 0xfeed_facf } else { 0xfeed_face };
        let (cpu, subtype) = (self.cpu.0.into(), self.cpu.1.into());
        let header = words(&[magic, cpu, subtype, self.kind.into(), commands.len() as u64, size as u64, 0]);
        let reserved = if self.is_64_bit() { words(&[0]) } else { Vec::new() };
        [header, reserved, commands.concat()].concat()
    }

    fn segment(&self, title: &str, memory: (u64, u64), file: (u64, u64), sections: &[Vec<u8>]) -> Vec<u8> {
        let numbers = [memory.0, memory.1, file.0, file.1].map(|number| self.word(number));
        let body =
            [name(title), numbers.concat(), words(&[7, 7, sections.len() as u64, 0]), sections.concat()];
        let body = body.concat();
        let kind = if self.is_64_bit() { 0x19 } else { 1 };
        [words(&[kind, 8 + body.len() as u64]), body].concat()
    }

    fn text_section(&self, section: &Section) -> Vec<u8> {
        let Section { name, range, flags, reserved } = section;
        let size = range.end - range.start;
        self.section(name, "__TEXT", self.base + range.start, size, [0, (*flags).into()], *reserved)
    }

    /// A section at `svma`, with its offset in the file and its flags.
    fn section(
        &self,
        title: &str,
        segment: &str,
        svma: u64,
        size: u64,
        [offset, flags]: [u64; 2],
        reserved: [u32; 2],
    ) -> Vec<u8> {
        let numbers = [self.word(svma), self.word(size)].concat();
        let rest = words(&[&[offset, 0, 0, 0, flags], &reserved.map(u64::from)[..]].concat());
        let last = if self.is_64_bit() { words(&[0]) } else { Vec::new() };
        [name(title), name(segment), numbers, rest, last].concat()
    }

    fn symbol_size(&self) -> u64 {
        if self.is_64_bit() { 16 } else { 12 }
    }

    fn strings(&self) -> Vec<u8> {
        let names = self.symbols.iter().map(|symbol| [&symbol.name[..], &[0]].concat());
        [vec![0], names.collect::<Vec<_>>().concat()].concat()
    }

    /// The symbol table, its strings, the function starts and the indirect symbols.
    fn linkedit(&self) -> Vec<u8> {
        let mut table = Vec::new();
        let mut name_at = 1;
        for Symbol { name, value, kind, section, desc } in &self.symbols {
            table.extend(words(&[name_at]));
            table.extend([*kind, *section]);
            table.extend(desc.to_le_bytes());
            table.extend(self.word(*value));
            name_at += name.len() as u64 + 1;
        }
        let indirect = self.indirect.iter().flat_map(|symbol| symbol.to_le_bytes()).collect();
        [table, self.strings(), self.starts(), indirect].concat()
    }

    fn starts(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut last = 0;
        for start in &self.function_starts {
            super::unit::uleb(&mut out, start - last);
            last = *start;
        }
        out.push(0);
        out
    }
}

/// Numbers of 32 bits. Larger ones are truncated, as tools do it.
fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
}

/// A name of a section or a segment, which has 16 bytes.
fn name(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes
}
