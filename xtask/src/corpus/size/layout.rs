//! The positions of everything in the new file, and its load commands.

use anyhow::{Result, ensure};
use object::macho::{
    LC_SYMTAB, LC_UUID, MachHeader64, Nlist64, Section64, SegmentCommand64, SymtabCommand, UuidCommand,
};
use object::pod::bytes_of;
use object::read::macho::{Section as _, Segment as _};
use object::{LittleEndian as LE, U32, U64};
use xxhash_rust::xxh3::xxh3_128;

use super::original::{Command, Original, Section, Segment};
use super::shift::Span;

/// The alignment of tables in the file.
const FILE_PAGE: u64 = 0x1000;

/// The alignment of segments in memory.
const MEMORY_PAGE: u64 = 0x4000;

/// The header, the load commands, and the data that the rest of the file needs.
pub(super) struct FileLayout {
    /// The bytes before the symbols, padded with zeros.
    pub(super) head: Vec<u8>,
    /// The number of zeros between the symbol names and the debug information.
    pub(super) gap: u64,
    /// The sections before the debug information, in the order of the section numbers of symbols.
    pub(super) spans: Vec<Span>,
}

/// File offsets.
struct FileOffsets {
    symbols: u64,
    names: u64,
    names_end: u64,
    dwarf: u64,
}

/// The segments that are placed so far.
struct Memory {
    copies: u32,
    end: u64,
    spans: Vec<Span>,
}

impl FileLayout {
    /// The layout of a file with `copies` copies.
    ///
    /// # Errors
    /// The symbols end after 4 GiB of the file, or the image is larger than 4 GiB.
    pub(super) fn new(original: &Original<'_>, copies: u32) -> Result<Self> {
        let offsets = FileOffsets::new(original, copies);
        ensure!(u32::try_from(offsets.names_end).is_ok(), "the symbols end past 4 GiB of the file");
        let mut memory = Memory { copies, end: 0, spans: Vec::new() };
        let mut commands = Vec::new();
        for command in &original.commands {
            match command {
                Command::Uuid(uuid) => commands.extend_from_slice(bytes_of(&uuid_command(uuid, copies))),
                Command::Other(bytes) => commands.extend_from_slice(bytes),
                Command::Symtab => commands.extend_from_slice(bytes_of(&offsets.symtab())),
                Command::Segment(segment) => {
                    let mut segment = segment.as_ref().clone();
                    match segment.0.name() {
                        b"__DWARF" => memory.place_dwarf(&mut segment, original, offsets.dwarf),
                        b"__LINKEDIT" => memory.place(&mut segment.0, offsets.symbols, offsets.names_end),
                        _ => memory.map(&mut segment)?,
                    }
                    commands.extend_from_slice(bytes_of(&segment.0));
                    segment.1.iter().for_each(|section| commands.extend_from_slice(bytes_of(section)));
                }
            }
        }
        let mut header = original.header;
        header.sizeofcmds = low_half(commands.len() as u64);
        let mut head = bytes_of(&header).to_vec();
        head.extend(commands);
        head.resize(usize::try_from(offsets.symbols)?, 0);
        Ok(Self { head, gap: offsets.dwarf - offsets.names_end, spans: memory.spans })
    }
}

impl FileOffsets {
    fn new(original: &Original<'_>, copies: u32) -> Self {
        let commands = u64::from(original.header.sizeofcmds.get(LE));
        let symbols = (size_of::<MachHeader64<LE>>() as u64 + commands).next_multiple_of(FILE_PAGE);
        let symbols_size = (original.symbols.len() * size_of::<Nlist64<LE>>()) as u64;
        let names = symbols + symbols_size * u64::from(copies);
        let names_end = names + original.symbol_names.len() as u64 * u64::from(copies);
        Self { symbols, names, names_end, dwarf: names_end.next_multiple_of(FILE_PAGE) }
    }

    fn symtab(&self) -> SymtabCommand<LE> {
        SymtabCommand {
            cmd: U32::new(LE, LC_SYMTAB),
            cmdsize: low_half(size_of::<SymtabCommand<LE>>() as u64),
            symoff: low_half(self.symbols),
            nsyms: low_half((self.names - self.symbols) / size_of::<Nlist64<LE>>() as u64),
            stroff: low_half(self.names),
            strsize: low_half(self.names_end - self.names),
        }
    }
}

impl Memory {
    /// Places a mapped segment. Each of its sections is as long as all copies of it. A dSYM has no contents of these
    /// sections in the file.
    fn map(&mut self, (segment, sections): &mut Segment) -> Result<()> {
        let old_start = segment.vmaddr.get(LE);
        let start = old_start.max(self.end);
        let mut cursor = start;
        if let Some(first) = sections.first() {
            cursor += first.addr.get(LE).saturating_sub(old_start);
        }
        for section in sections.iter_mut() {
            let size = section.size.get(LE);
            let align = 1 << section.align.get(LE).min(15);
            let span = Span {
                start: section.addr.get(LE),
                size,
                is_code: is_code(section),
                new_start: cursor.next_multiple_of(align),
                stride: size.next_multiple_of(align.max(16)),
            };
            let whole = span.stride * u64::from(self.copies - 1) + size;
            cursor = span.new_start + whole;
            (section.addr, section.size) = (U64::new(LE, span.new_start), U64::new(LE, whole));
            section.offset = low_half(0);
            self.spans.push(span);
        }
        let mapped = self.spans.first().map_or(0, |first| cursor.saturating_sub(first.new_start));
        ensure!(u32::try_from(mapped).is_ok(), "the image's memory is over 4 GiB");
        let size = if sections.is_empty() { segment.vmsize.get(LE) } else { cursor - start };
        segment.vmaddr = U64::new(LE, start);
        segment.vmsize = U64::new(LE, size.next_multiple_of(MEMORY_PAGE));
        (segment.fileoff, segment.filesize) = (U64::new(LE, 0), U64::new(LE, 0));
        self.end = start + segment.vmsize.get(LE);
        Ok(())
    }

    /// Places the debug information, which starts at `file_start`.
    fn place_dwarf(&mut self, (segment, sections): &mut Segment, original: &Original<'_>, file_start: u64) {
        let start = self.end;
        let mut cursor = 0;
        let originals = std::mem::take(sections);
        for (section, bytes) in original.sections() {
            let is_this = |original: &&Section64<LE>| Section::of(original) == Some(section);
            sections.extend(originals.iter().find(is_this).map(|original| {
                let mut copied = *original;
                copied.addr = U64::new(LE, start + cursor);
                copied.size = U64::new(LE, bytes.len() as u64 * u64::from(section.times(self.copies)));
                // The offset wraps after 4 GiB, as in files of dsymutil.
                copied.offset = low_half(file_start + cursor);
                cursor += copied.size.get(LE);
                copied
            }));
        }
        self.place(segment, file_start, file_start + cursor);
        segment.nsects = low_half(sections.len() as u64);
        let size = size_of::<SegmentCommand64<LE>>() + sections.len() * size_of::<Section64<LE>>();
        segment.cmdsize = low_half(size as u64);
    }

    /// Places a segment whose contents are all in the file.
    fn place(&mut self, segment: &mut SegmentCommand64<LE>, file_start: u64, file_end: u64) {
        segment.vmaddr = U64::new(LE, self.end);
        segment.vmsize = U64::new(LE, (file_end - file_start).next_multiple_of(MEMORY_PAGE));
        segment.fileoff = U64::new(LE, file_start);
        segment.filesize = U64::new(LE, file_end - file_start);
        self.end += segment.vmsize.get(LE);
    }
}

fn is_code(section: &Section64<LE>) -> bool {
    let flags = section.flags(LE).0;
    flags & (object::macho::S_ATTR_PURE_INSTRUCTIONS.0 | object::macho::S_ATTR_SOME_INSTRUCTIONS.0) != 0
}

/// A UUID that depends on the original one and on the number of copies.
fn uuid_command(original: &[u8; 16], copies: u32) -> UuidCommand<LE> {
    let seed = [original.as_slice(), &copies.to_le_bytes()].concat();
    UuidCommand {
        cmd: U32::new(LE, LC_UUID),
        cmdsize: low_half(size_of::<UuidCommand<LE>>() as u64),
        uuid: xxh3_128(&seed).to_be_bytes(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets of sections wrap, and nothing else is that large"
)]
fn low_half(value: u64) -> U32<LE> {
    U32::new(LE, value as u32)
}
