//! An image: one slice with its id, its addresses, its debug sections and its symbols.

use gimli::{EndianSlice, LittleEndian, Section as _, SectionId};
use object::read::macho::{LoadCommandData, MachHeader, Section, Segment};
use object::{Endianness, macho};
use symdex::write::ImageInfo;
use symdex::{Arch, ImageId, RowRule};

use crate::error::Error;
use crate::slice::Slice;
use crate::symbol_map::SymbolMap;
use crate::symbols::{self, FunctionSymbol};

/// What gimli reads from: the bytes of the slice. Every Mach-O architecture that is still in use is little-endian.
pub(crate) type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// Code beyond this offset is not indexed: no image has 4 GiB of code, and a hostile file must not claim so.
pub(crate) const MAX_OFFSET: u64 = 1 << 32;

/// One slice of a debug file, ready to be indexed. It borrows the file's bytes.
pub struct Image<'d> {
    /// What the index will say of the image.
    pub info: ImageInfo,
    /// Bytes of the slice.
    pub debug_size: u64,
    /// The slice itself.
    pub(crate) bytes: &'d [u8],
    /// The debug information, with every section the slice has.
    pub dwarf: gimli::Dwarf<Reader<'d>>,
    /// `.debug_aranges`; empty where there is none.
    pub(crate) aranges: gimli::DebugAranges<Reader<'d>>,
    /// Functions of the symbol table, sorted by address, one for each.
    pub symbols: Vec<FunctionSymbol<'d>>,
    /// What hidden names stand for.
    pub(crate) symbol_map: Option<&'d SymbolMap>,
}

impl<'d> Image<'d> {
    /// Reads the slice's headers, sections and symbols; the debug information itself is not looked at.
    /// `name` is the file's own name.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] where a section or the symbol table reaches behind the end of the slice,
    /// [`Error::Malformed`] where load commands do not parse.
    pub fn load(slice: &Slice<'d>, name: &str) -> Result<Self, Error> {
        let bytes = slice.bytes()?;
        match bytes.first() {
            Some(0xcf) => load::<macho::MachHeader64<Endianness>>(&slice.arch, bytes, name),
            _ => load::<macho::MachHeader32<Endianness>>(&slice.arch, bytes, name),
        }
    }

    /// The image with the names that `map` knows in the place of hidden ones.
    #[must_use]
    pub fn with_symbol_map(mut self, map: &'d SymbolMap) -> Self {
        for symbol in &mut self.symbols {
            symbol.name = symbol.name.map(|name| map.resolve_symbol(name));
        }
        Self { symbol_map: Some(map), ..self }
    }

    /// What a name, a path or a part of one stands for, if it is hidden; otherwise itself.
    pub(crate) fn resolve(&self, text: &'d [u8]) -> &'d [u8] {
        self.symbol_map.map_or(text, |map| map.resolve(text))
    }

    /// How many range-list entries may be read: a few times those its sections have room for, as lists are rarely shared.
    pub(crate) fn range_budget(&self) -> u64 {
        self.debug_size / 4 + (1 << 20)
    }

    /// Whether the slice has debug information, as opposed to a symbol table alone.
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        !self.dwarf.debug_info.reader().is_empty()
    }

    /// Whether the slice has `.debug_aranges`: newer tools leave it out.
    pub(crate) fn has_aranges(&self) -> bool {
        !self.aranges.reader().is_empty()
    }

    /// The part of `start..end` (SVMAs) that lies in the executable section that holds `start`, as image offsets.
    pub(crate) fn executable_part(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let start = start.checked_sub(self.info.base)?;
        let end = end.checked_sub(self.info.base)?;
        let after = self.info.executable.partition_point(|section| section.0 <= start);
        let section = self.info.executable.get(after.checked_sub(1)?)?;
        let end = end.min(section.1);
        (start < end).then_some((start, end))
    }
}

/// What the load commands say.
struct Commands<'d, Mach: MachHeader> {
    uuid: Option<[u8; 16]>,
    segments: Vec<(&'d Mach::Segment, &'d [Mach::Section])>,
    symtab: Option<&'d macho::SymtabCommand<Mach::Endian>>,
    function_starts: Option<&'d macho::LinkeditDataCommand<Mach::Endian>>,
}

const ENDIAN: Endianness = Endianness::Little;

fn malformed(what: &str) -> impl FnOnce(object::Error) -> Error {
    move |error| Error::Malformed { what: format!("{what}: {error}") }
}

fn commands<'d, Mach: MachHeader<Endian = Endianness>>(bytes: &'d [u8]) -> Result<Commands<'d, Mach>, Error> {
    let header = Mach::parse(bytes, 0).map_err(malformed("Mach-O header"))?;
    let mut iterator = header.load_commands(ENDIAN, bytes, 0).map_err(|_| Error::Truncated {
        what: "the list of load commands".to_owned(),
        end: size_of::<Mach>() as u64 + u64::from(header.sizeofcmds(ENDIAN)),
        size: bytes.len() as u64,
    })?;
    let mut commands = Commands { uuid: None, segments: Vec::new(), symtab: None, function_starts: None };
    while let Some(command) = iterator.next().map_err(malformed("load commands"))? {
        read_command(command, &mut commands).map_err(malformed("a load command"))?;
    }
    Ok(commands)
}

fn read_command<'d, Mach: MachHeader<Endian = Endianness>>(
    command: LoadCommandData<'d, Endianness>,
    commands: &mut Commands<'d, Mach>,
) -> object::Result<()> {
    if let Some((segment, sections)) = Mach::Segment::from_command(command)? {
        commands.segments.push((segment, segment.sections(ENDIAN, sections)?));
    } else if let Some(uuid) = command.uuid()? {
        commands.uuid = Some(uuid.uuid);
    } else if let Some(symtab) = command.symtab()? {
        commands.symtab = Some(symtab);
    } else if command.cmd() == macho::LC_FUNCTION_STARTS {
        commands.function_starts = Some(command.data()?);
    }
    Ok(())
}

fn load<'d, Mach: MachHeader<Endian = Endianness>>(
    arch: &Arch,
    bytes: &'d [u8],
    name: &str,
) -> Result<Image<'d>, Error> {
    let commands = commands::<Mach>(bytes)?;
    is_all_there::<Mach>(bytes, &commands)?;
    let base = base::<Mach>(&commands);
    let executable = executable::<Mach>(&commands, base);
    let debug_section = |id: SectionId| debug_section::<Mach>(bytes, &commands, id.name());
    let dwarf =
        gimli::Dwarf::load(|id| debug_section(id).map(|bytes| EndianSlice::new(bytes, LittleEndian)))?;
    let aranges = debug_section(SectionId::DebugAranges)?;
    let symbols = symbols::read::<Mach>(&symbols::Source {
        bytes,
        symtab: commands.symtab,
        function_starts: commands.function_starts,
        executable_sections: commands
            .segments
            .iter()
            .flat_map(|(_, sections)| *sections)
            .map(is_code)
            .collect(),
        base,
        executable: &executable,
        thumb: arch.is_arm32(),
    })?;
    let info = ImageInfo {
        id: image_id(commands.uuid, bytes),
        image_name: name.to_owned(),
        arch: arch.clone(),
        base,
        image_size: executable.last().map_or(0, |section| section.1),
        text_exec_base: segment::<Mach>(&commands, b"__TEXT_EXEC").map(|s| s.vmaddr(ENDIAN).into()),
        row_rule: RowRule::First,
        executable,
    };
    let aranges = gimli::DebugAranges::new(aranges, LittleEndian);
    Ok(Image { info, debug_size: bytes.len() as u64, bytes, dwarf, aranges, symbols, symbol_map: None })
}

/// Whether the file holds all of its debug information, be it read here or not (the last sections, the accelerator tables, are
/// not): a file that was cut is not to be trusted. Other segments of a dSYM state the sizes they have in the binary.
fn is_all_there<Mach: MachHeader<Endian = Endianness>>(
    bytes: &[u8],
    commands: &Commands<'_, Mach>,
) -> Result<(), Error> {
    let Some(dwarf) = segment::<Mach>(commands, b"__DWARF") else { return Ok(()) };
    let (start, size) = dwarf.file_range(ENDIAN);
    let (end, size) = (start.saturating_add(size), bytes.len() as u64);
    let what = || "the segment __DWARF".to_owned();
    if end > size { Err(Error::Truncated { what: what(), end, size }) } else { Ok(()) }
}

/// `LC_UUID`; a slice without one is known by a hash of its bytes.
fn image_id(uuid: Option<[u8; 16]>, bytes: &[u8]) -> ImageId {
    let hash = || ImageId::of_hash(xxhash_rust::xxh3::xxh3_128(bytes));
    uuid.and_then(|uuid| ImageId::new(&uuid)).unwrap_or_else(hash)
}

fn segment<'d, Mach: MachHeader<Endian = Endianness>>(
    commands: &Commands<'d, Mach>,
    name: &[u8],
) -> Option<&'d Mach::Segment> {
    commands.segments.iter().map(|(segment, _)| *segment).find(|segment| segment.name() == name)
}

/// The address of `__TEXT`; without one, of the lowest segment that is mapped at all.
fn base<Mach: MachHeader<Endian = Endianness>>(commands: &Commands<'_, Mach>) -> u64 {
    let mapped =
        |segment: &&Mach::Segment| !matches!(segment.name(), b"__PAGEZERO" | b"__DWARF" | b"__LINKEDIT");
    let lowest = || {
        let segments = commands.segments.iter().map(|(segment, _)| *segment);
        segments.filter(mapped).map(|segment| segment.vmaddr(ENDIAN).into()).min()
    };
    segment::<Mach>(commands, b"__TEXT").map(|text| text.vmaddr(ENDIAN).into()).or_else(lowest).unwrap_or(0)
}

fn is_code<S: Section<Endian = Endianness>>(section: &S) -> bool {
    let flags = section.flags(ENDIAN).0;
    flags & (macho::S_ATTR_PURE_INSTRUCTIONS.0 | macho::S_ATTR_SOME_INSTRUCTIONS.0) != 0
}

/// Sections that hold code, as image offsets: sorted, not empty, none overlapping.
fn executable<Mach: MachHeader<Endian = Endianness>>(
    commands: &Commands<'_, Mach>,
    base: u64,
) -> Vec<(u64, u64)> {
    let sections = commands.segments.iter().flat_map(|(_, sections)| *sections).filter(|s| is_code(*s));
    let range = |section: &Mach::Section| {
        let start = section.addr(ENDIAN).into().checked_sub(base)?;
        let end = start.checked_add(section.size(ENDIAN).into())?.min(MAX_OFFSET);
        (start < end).then_some((start, end))
    };
    let mut ranges: Vec<(u64, u64)> = sections.filter_map(range).collect();
    ranges.sort_unstable();
    let mut covered = 0;
    ranges.iter_mut().for_each(|range| {
        range.0 = range.0.max(covered);
        covered = covered.max(range.1);
    });
    ranges.retain(|range| range.0 < range.1);
    ranges
}

/// The bytes of the section that gimli calls `name`; empty where there is none.
///
/// Mach-O spells `.debug_info` as `__debug_info` and cuts names to 16 bytes (`__debug_str_offs`).
fn debug_section<'d, Mach: MachHeader<Endian = Endianness>>(
    bytes: &'d [u8],
    commands: &Commands<'d, Mach>,
    name: &str,
) -> Result<&'d [u8], Error> {
    let wanted = format!("__{}", name.trim_start_matches('.'));
    let wanted = &wanted.as_bytes()[..wanted.len().min(16)];
    for (segment, sections) in &commands.segments {
        if let Some(section) = sections.iter().find(|section| section.name() == wanted) {
            return section_bytes::<Mach>(bytes, segment, section);
        }
    }
    Ok(&[])
}

fn section_bytes<'d, Mach: MachHeader<Endian = Endianness>>(
    bytes: &'d [u8],
    segment: &Mach::Segment,
    section: &Mach::Section,
) -> Result<&'d [u8], Error> {
    let size: u64 = section.size(ENDIAN).into();
    let (segment_start, segment_size) = segment.file_range(ENDIAN);
    let in_segment = section.addr(ENDIAN).into().wrapping_sub(segment.vmaddr(ENDIAN).into());
    // A section's offset has 32 bits and wraps in dSYMs of over 4 GiB; the segment's has 64.
    let offset = match segment_start.saturating_add(segment_size) > u64::from(u32::MAX) {
        true => segment_start.saturating_add(in_segment),
        false => u64::from(section.offset(ENDIAN)),
    };
    let end = offset.saturating_add(size);
    let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).ok_or_else(|| Error::Truncated {
        what: format!("the section {}", String::from_utf8_lossy(section.name())),
        end,
        size: bytes.len() as u64,
    })
}

impl std::fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Arch { name, .. } = &self.info.arch;
        write!(f, "Image({} {name} {})", self.info.image_name, self.info.id)
    }
}
