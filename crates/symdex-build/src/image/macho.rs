//! Images in Mach-O files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gimli::{EndianSlice, LittleEndian, Section as _, SectionId};
use object::read::macho::{LoadCommandData, MachHeader, Section, Segment};
use object::{Endianness, macho};
use symdex::write::ImageInfo;
use symdex::{Arch, ImageId};
use xxhash_rust::xxh3::xxh3_128;

use super::code::{Code, count_outside};
use super::{Identity, Image, ImageKind, ImageName, Reader, Splits, states_go};
use crate::companions::Companions;
use crate::error::Error;
use crate::go::{GoFunctions, Pointers, Program};
use crate::symbols::macho::LocalSymbols;
use crate::symbols::stubs::Naming;
use crate::symbols::{self, FunctionSymbols, Start};
use crate::unwind::{Section as UnwindSection, Sections, UnwindTables};

/// The parts of an image of a shared cache that are not at its header.
pub(crate) struct CachedParts<'a, 'd> {
    /// Returns the file that an address of `__LINKEDIT` is mapped from.
    pub(crate) linkedit: &'a dyn Fn(u64) -> Result<&'d [u8], Error>,
    /// The image's local symbols, if the cache has any.
    pub(crate) locals: Option<LocalSymbols<'d>>,
    /// The files of the cache that are missing for every image, in sentences.
    pub(crate) missing: Vec<String>,
}

/// What the load commands state.
struct Commands<'d, Mach: MachHeader> {
    uuid: Option<[u8; 16]>,
    segments: Vec<(&'d Mach::Segment, &'d [Mach::Section])>,
    symtab: Option<&'d macho::SymtabCommand<Mach::Endian>>,
    dysymtab: Option<&'d macho::DysymtabCommand<Mach::Endian>>,
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
    let mut commands =
        Commands { uuid: None, segments: Vec::new(), symtab: None, dysymtab: None, function_starts: None };
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
    } else if let Some(dysymtab) = command.dysymtab()? {
        commands.dysymtab = Some(dysymtab);
    } else if command.cmd() == macho::LC_FUNCTION_STARTS {
        commands.function_starts = Some(command.data()?);
    }
    Ok(())
}

/// Calls a function with the type of header that the Mach-O file in `$bytes` has.
macro_rules! by_class {
    ($bytes:expr, $function:ident($($argument:expr),*)) => {
        match $bytes.first() {
            Some(0xcf) => $function::<macho::MachHeader64<Endianness>>($($argument),*),
            _ => $function::<macho::MachHeader32<Endianness>>($($argument),*),
        }
    };
}

/// The image in `bytes`, a Mach-O file.
pub(super) fn load<'d>(
    arch: &Arch,
    bytes: &'d [u8],
    name: &str,
    companions: &'d Companions,
) -> Result<Image<'d>, Error> {
    let stubs = by_class!(bytes, stubs(bytes, companions))?;
    let image = by_class!(bytes, load_class(arch, bytes, name, stubs, None))?;
    Ok(Image { decompressed: companions.kept(), ..image })
}

/// The image of a shared cache with the header and load commands in `bytes`. `cached` is the rest of the image.
pub(crate) fn load_cached<'d>(
    arch: &Arch,
    bytes: &'d [u8],
    name: &str,
    cached: CachedParts<'_, 'd>,
) -> Result<Image<'d>, Error> {
    by_class!(bytes, load_class(arch, bytes, name, Vec::new(), Some(cached)))
}

/// How many bytes the load commands in `bytes` take, and the symbol table and the function starts as they state.
pub(crate) fn claimed_size(bytes: &[u8]) -> u64 {
    by_class!(bytes, claimed_size_of_class(bytes))
}

fn claimed_size_of_class<Mach: MachHeader<Endian = Endianness>>(bytes: &[u8]) -> u64 {
    let commands = commands::<Mach>(bytes);
    commands.map_or(0, |commands| tables_size::<Mach>(&commands)) + bytes.len() as u64
}

fn tables_size<Mach: MachHeader<Endian = Endianness>>(commands: &Commands<'_, Mach>) -> u64 {
    let symbols = commands.symtab.map_or(0, |symtab| u64::from(symtab.nsyms.get(ENDIAN)));
    let starts = commands.function_starts.map_or(0, |starts| u64::from(starts.datasize.get(ENDIAN)));
    symbols * size_of::<Mach::Nlist>() as u64 + starts
}

/// The starts of the stubs of the image in `bytes`.
fn stubs<'d, Mach: MachHeader<Endian = Endianness>>(
    bytes: &'d [u8],
    companions: &'d Companions,
) -> Result<Vec<Start<'d>>, Error> {
    let commands = commands::<Mach>(bytes)?;
    // The symbol table of a dSYM is another one than that of the binary.
    let is_binary = Mach::parse(bytes, 0).is_ok_and(|header| header.filetype(ENDIAN) != macho::MH_DSYM);
    let Some(indirect) = commands.dysymtab.filter(|_| is_binary) else { return Ok(Vec::new()) };
    let sections = commands.segments.iter().flat_map(|(_, sections)| *sections);
    let base = base::<Mach>(&commands);
    let stubs = symbols::macho::stubs::<Mach>(bytes, sections, commands.symtab, indirect, base)?;
    symbols::stubs::starts(&stubs, Naming::MachO, bytes.len(), companions)
}

fn load_class<'d, Mach: MachHeader<Endian = Endianness>>(
    arch: &Arch,
    bytes: &'d [u8],
    name: &str,
    stubs: Vec<Start<'d>>,
    cached: Option<CachedParts<'_, 'd>>,
) -> Result<Image<'d>, Error> {
    let commands = commands::<Mach>(bytes)?;
    is_all_there::<Mach>(bytes, &commands)?;
    let base = base::<Mach>(&commands);
    let sections = || commands.segments.iter().flat_map(|(_, sections)| *sections);
    let code = sections().filter(|section| is_code(*section));
    let code = code.map(|section| (section.addr(ENDIAN).into(), section.size(ENDIAN).into()));
    let Code { executable, outside } = Code::new(code, base);
    let debug_section = |id: SectionId| debug_section::<Mach>(bytes, &commands, id.name());
    let dwarf =
        gimli::Dwarf::load(|id| debug_section(id).map(|bytes| EndianSlice::new(bytes, LittleEndian)))?;
    let (dwarf, splits) = (Arc::new(dwarf), Splits::default());
    let unwind = match &cached {
        Some(_) => Vec::new(),
        None => vec![unwind_tables::<Mach>(bytes, arch, &commands)],
    };
    let locals = cached.as_ref().and_then(|cached| cached.locals);
    let mut starts = symbols::macho::starts::<Mach>(&symbols::macho::SymbolSource {
        linkedit: cached.as_ref().map_or(Ok(bytes), |cached| linkedit::<Mach>(&commands, cached))?,
        locals,
        symtab: commands.symtab,
        function_starts: commands.function_starts,
        executable_sections: sections().map(is_code).collect(),
        base,
        thumb: arch.is_arm32(),
    })?;
    starts.extend(stubs);
    let kind = if cached.is_some() { ImageKind::Cached } else { kind::<Mach>(bytes)? };
    let image_name = ImageName::of(Path::new(name), kind, !dwarf.debug_info.reader().is_empty());
    let mut info = ImageInfo::new(id(&commands, bytes), name, arch.clone());
    info.base = base;
    info.image_size = executable.last().map_or(0, |section| section.1);
    info.text_exec_base = segment::<Mach>(&commands, b"__TEXT_EXEC").map(|s| s.vmaddr(ENDIAN).into());
    info.executable = executable;
    let named = starts.iter().filter(|start| start.name.is_some());
    let symbols_outside = count_outside(named.map(|start| start.start), &info.executable);
    let symbols = FunctionSymbols::new(starts, &info.executable);
    let mut debug_size = bytes.len() as u64;
    if cached.is_some() {
        let locals = locals.map_or(0, |locals| u64::from(locals.count)) * size_of::<Mach::Nlist>() as u64;
        let tables = tables_size::<Mach>(&commands) + locals;
        debug_size += tables + names_size(&symbols).min(tables * 64);
    }
    let (files, mut missing) = match &cached {
        Some(cached) => (Vec::new(), cached.missing.clone()),
        None => (vec![bytes], Vec::new()),
    };
    let go = if cached.is_some() {
        None
    } else {
        go::<Mach>(bytes, &commands, &dwarf, base, &mut info.executable, &mut missing)
    };
    let (symbol_map, decompressed, load_time) = (None, 0, Duration::ZERO);
    Ok(Image {
        info,
        outside,
        name: image_name,
        debug_size,
        files,
        dwarf,
        splits,
        unwind,
        symbols,
        go,
        symbols_outside,
        symbol_map,
        missing,
        decompressed,
        load_time,
    })
}

/// The functions of the Go program in `bytes`. `None` if it is none.
fn go<'d, Mach: MachHeader<Endian = Endianness>>(
    bytes: &'d [u8],
    commands: &Commands<'d, Mach>,
    dwarf: &gimli::Dwarf<Reader<'_>>,
    base: u64,
    executable: &mut Vec<(u64, u64)>,
    missing: &mut Vec<String>,
) -> Option<GoFunctions<'d>> {
    let sections = || {
        commands
            .segments
            .iter()
            .flat_map(|(segment, sections)| sections.iter().map(move |one| (segment, one)))
    };
    let read = |(segment, section): (&&Mach::Segment, &Mach::Section)| UnwindSection {
        address: section.addr(ENDIAN).into(),
        bytes: section_bytes::<Mach>(bytes, segment, section).unwrap_or_default(),
    };
    let table = sections().find(|(_, section)| section.name() == GO_TABLE).map(read);
    let table = table.filter(|table| !table.bytes.is_empty() && !states_go(dwarf))?;
    // Fixups that the loader finds by chains have 36 bits of an address, or of an offset from the base.
    let mask = if size_of::<Mach::Nlist>() == size_of::<macho::Nlist64<Endianness>>() {
        (1 << 36) - 1
    } else {
        u64::MAX
    };
    let program = Program {
        table: Some(table),
        data: Sections::new(sections().filter(|(_, section)| !is_code(*section)).map(read)),
        lacks_code: false,
        text: sections()
            .find(|(_, section)| section.name() == b"__text")
            .map_or(0, |(_, text)| text.addr(ENDIAN).into()),
        pointers: Pointers { relocations: Vec::new(), mask, base },
    };
    program.functions(base, executable, bytes.len() as u64, missing)
}

/// The section of the tables of the Go runtime.
const GO_TABLE: &[u8] = b"__gopclntab";

/// The unwind tables of the Mach-O file in `bytes`.
fn unwind_tables<'d, Mach: MachHeader<Endian = Endianness>>(
    bytes: &'d [u8],
    arch: &Arch,
    commands: &Commands<'d, Mach>,
) -> UnwindTables<'d> {
    let debug_frame = debug_section::<Mach>(bytes, commands, ".debug_frame").unwrap_or_default();
    let debug_frame = UnwindSection { address: 0, bytes: debug_frame };
    // A dSYM states the other sections of its binary and does not have their bytes.
    if Mach::parse(bytes, 0).is_ok_and(|header| header.filetype(ENDIAN) == macho::MH_DSYM) {
        return UnwindTables { debug_frame, ..UnwindTables::default() };
    }
    let sections = commands.segments.iter().flat_map(|(segment, sections)| {
        let read = |section| (section, section_bytes::<Mach>(bytes, segment, section).unwrap_or_default());
        sections.iter().map(read)
    });
    let mut code = Vec::new();
    let mut tables = UnwindTables { debug_frame, is_swapped: arch.name == "i386", ..UnwindTables::default() };
    for (section, bytes) in sections {
        let read = UnwindSection { address: section.addr(ENDIAN).into(), bytes };
        match section.name() {
            b"__eh_frame" => tables.eh_frame = read,
            b"__unwind_info" => tables.compact = read,
            _ if is_code(section) => code.push(read),
            _ => {}
        }
    }
    tables.others = Sections::new(code);
    tables
}

/// The identity of the image in `bytes`, a Mach-O file.
pub(super) fn identity(bytes: &[u8]) -> Result<Identity, Error> {
    by_class!(bytes, identity_of_class(bytes))
}

fn identity_of_class<Mach: MachHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Identity, Error> {
    let commands = commands::<Mach>(bytes)?;
    let has_dwarf = !debug_section::<Mach>(bytes, &commands, SectionId::DebugInfo.name())?.is_empty();
    let mut sections = commands.segments.iter().flat_map(|(_, sections)| *sections);
    let has_lines = has_dwarf || sections.any(|section| section.name() == GO_TABLE);
    Ok(Identity { id: id::<Mach>(&commands, bytes), has_dwarf, has_lines, kind: kind::<Mach>(bytes)? })
}

fn kind<Mach: MachHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<ImageKind, Error> {
    let header = Mach::parse(bytes, 0).map_err(malformed("Mach-O header"))?;
    Ok(match header.filetype(ENDIAN) {
        macho::MH_DSYM => ImageKind::Dsym,
        macho::MH_EXECUTE => ImageKind::MachOExecutable,
        macho::MH_DYLIB | macho::MH_BUNDLE => ImageKind::MachOLibrary,
        macho::MH_OBJECT => ImageKind::MachOObject,
        _ => ImageKind::OtherMachO,
    })
}

/// The identity of an image of a shared cache, from its header and load commands in `bytes`.
pub(crate) fn cached_identity(bytes: &[u8]) -> Result<Identity, Error> {
    by_class!(bytes, cached_identity_of_class(bytes))
}

fn cached_identity_of_class<Mach: MachHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Identity, Error> {
    let commands = commands::<Mach>(bytes)?;
    Ok(Identity {
        id: id::<Mach>(&commands, bytes),
        has_dwarf: false,
        has_lines: false,
        kind: ImageKind::Cached,
    })
}

/// The id: `LC_UUID`, else a hash of the slice.
fn id<Mach: MachHeader>(commands: &Commands<'_, Mach>, bytes: &[u8]) -> ImageId {
    commands.uuid.and_then(|uuid| ImageId::new(&uuid)).unwrap_or_else(|| ImageId::of_hash(xxh3_128(bytes)))
}

/// Bytes of all names together.
fn names_size(symbols: &FunctionSymbols<'_>) -> u64 {
    let names = symbols.iter().flat_map(|symbol| symbol.name.into_iter().chain(symbol.aliases()));
    names.map(|name| name.len() as u64 + 1).sum()
}

/// The file of the cache that has the image's `__LINKEDIT`. Empty if the image has none.
fn linkedit<'d, Mach: MachHeader<Endian = Endianness>>(
    commands: &Commands<'d, Mach>,
    cached: &CachedParts<'_, 'd>,
) -> Result<&'d [u8], Error> {
    let linkedit = segment::<Mach>(commands, b"__LINKEDIT");
    linkedit.map_or(Ok(&[]), |linkedit| (cached.linkedit)(linkedit.vmaddr(ENDIAN).into()))
}

/// Checks that the file has all of its debug information, even the accelerator tables at its end, which are not read,
/// because a truncated file is not trusted. Other segments of a dSYM state the sizes that they have in the binary.
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

fn segment<'d, Mach: MachHeader<Endian = Endianness>>(
    commands: &Commands<'d, Mach>,
    name: &[u8],
) -> Option<&'d Mach::Segment> {
    commands.segments.iter().map(|(segment, _)| *segment).find(|segment| segment.name() == name)
}

/// The address of `__TEXT`, else of the lowest mapped segment.
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

/// The bytes of the section with gimli's name `name`. Empty if there is none.
///
/// Mach-O spells `.debug_info` as `__debug_info` and truncates names to 16 bytes (`__debug_str_offs`).
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
    let wraps = segment_start.saturating_add(segment_size) > u64::from(u32::MAX);
    let offset = if wraps { segment_start.saturating_add(in_segment) } else { section.offset(ENDIAN).into() };
    let end = offset.saturating_add(size);
    let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).ok_or_else(|| Error::Truncated {
        what: format!("the section {}", String::from_utf8_lossy(section.name())),
        end,
        size: bytes.len() as u64,
    })
}
