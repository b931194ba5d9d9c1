//! Images in ELF files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object::read::elf::{FileHeader, ProgramHeader, Rela as _, SectionHeader};
use object::{LittleEndian as Little, elf};
use symdex::write::ImageInfo;
use symdex::{Arch, Metadata};

use super::code::{Code, count_outside};
use super::elf_file::{ENDIAN, ElfFile};
use super::{Identity, Image, ImageKind, ImageName, Reader, split, states_go, supplementary};
use crate::companions::Companions;
use crate::error::Error;
use crate::go::{GoFunctions, Pointers, Program};
use crate::symbols::stubs::Naming;
use crate::symbols::{self, FunctionSymbols};
use crate::unwind::{Section, Sections, UnwindTables};

/// The image in `file`, which is at `path`, with the parts of its debug information that are in other files. `binary`
/// is the path of the binary, if `file` is the debug file that was found for it.
pub(super) fn image<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    arch: &Arch,
    path: &Path,
    binary: Option<&Path>,
    companions: &'d Companions,
) -> Result<Image<'d>, Error> {
    let base = file.base(companions.wanted_address());
    let Code { mut executable, outside } = Code::new(file.code(), base);
    let mut dwarf = file.dwarf(|id| Some(id.name()), companions)?;
    companions.deadline().check()?;
    let (mut files, mut missing) = (vec![file.bytes], Vec::new());
    let go = go(file, &dwarf, base, &mut executable, &mut missing);
    let unwind = unwind_tables(file, arch, companions, &mut missing);
    companions.deadline().check()?;
    let mut starts = symbols::elf::starts(file, &unwind, base, arch.is_arm32())?;
    let stubs = symbols::plt::stubs(file, base, arch.is_arm32())?;
    starts.extend(symbols::stubs::starts(&stubs, Naming::Elf, file.bytes.len(), companions)?);
    match file.mini_debug_info(companions) {
        Ok(Some(mini)) => {
            starts.extend(symbols::elf::named_starts(&mini, base, arch.is_arm32())?);
            files.push(mini.bytes);
        }
        Ok(None) => {}
        Err(why) => missing.push(format!("the symbols in .gnu_debugdata cannot be read: {why}")),
    }
    let Identity { id, has_dwarf, kind, .. } = identity_of(file);
    let name = ImageName::of(path, kind, has_dwarf);
    let mut info = ImageInfo::new(id, &*name.text, arch.clone());
    info.base = base;
    info.image_size = executable.last().map_or(0, |section| section.1);
    info.executable = executable;
    let segments = file.executable_segments().map(|[at, address, size, _]| [at, address, size]);
    info.segments = Some(Metadata::sorted_segments(segments.collect()));
    let defined = symbols::elf::function_offsets(file, base)?;
    let symbols_outside = count_outside(defined, &info.executable);
    let symbols = FunctionSymbols::new(starts, &info.executable);
    companions.deadline().check()?;
    let sup_size = supplementary::add(&mut dwarf, file, path, companions, &mut missing);
    let (splits, split_size) = split::find(&dwarf, file, path, binary, companions, &mut missing);
    let dwarf = Arc::new(dwarf);
    let debug_size = file.bytes.len() as u64 + sup_size + split_size;
    companions.deadline().check()?;
    let (symbol_map, decompressed, load_time) = (None, companions.kept(), Duration::ZERO);
    Ok(Image {
        info,
        outside,
        name,
        debug_size,
        files,
        dwarf,
        splits,
        unwind: vec![unwind],
        symbols,
        go,
        symbols_outside,
        symbol_map,
        missing,
        decompressed,
        load_time,
    })
}

/// The section with the tables of the Go runtime. The inner `None` is a program whose linker joined it with others.
/// `None` if the file is no Go program, or does not have the tables.
fn go_table<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
) -> Option<Option<&'d Header::SectionHeader>> {
    let is_there = |section: &&Header::SectionHeader| section.sh_type(ENDIAN) != elf::SHT_NOBITS;
    let tables = [".gopclntab", ".data.rel.ro.gopclntab"];
    match tables.into_iter().find_map(|name| file.section(name)) {
        Some(table) => Some(table).filter(is_there).map(Some),
        None => {
            let signs = [".go.buildinfo", ".note.go.buildid"];
            signs.into_iter().find_map(|name| file.section(name).filter(is_there)).map(|_| None)
        }
    }
}

/// The functions of the Go program in `file`. `None` if it is none.
fn go<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    dwarf: &gimli::Dwarf<Reader<'_>>,
    base: u64,
    executable: &mut Vec<(u64, u64)>,
    missing: &mut Vec<String>,
) -> Option<GoFunctions<'d>> {
    let table = go_table(file).filter(|_| !states_go(dwarf))?;
    let read = |section: &Header::SectionHeader| Section {
        address: section.sh_addr(ENDIAN).into(),
        bytes: file.data(section).unwrap_or_default(),
    };
    let is_data = |section: &&Header::SectionHeader| {
        let flags = section.sh_flags(ENDIAN);
        flags.contains(elf::SHF_ALLOC) && !flags.contains(elf::SHF_EXECINSTR)
    };
    let mut relocations = Vec::new();
    for section in file.sections.iter().filter(is_data) {
        let table = section.rela(ENDIAN, file.bytes).ok().flatten().map_or(&[][..], |(table, _)| table);
        // A place that gets an address of the image itself has no symbol.
        let relative = table.iter().filter(|one| one.r_sym(ENDIAN, false) == 0);
        relocations.extend(
            relative.map(|one| (one.r_offset(ENDIAN).into(), one.r_addend(ENDIAN).into().cast_unsigned())),
        );
    }
    relocations.sort_unstable();
    let program = Program {
        table: table.map(read),
        data: Sections::new(file.sections.iter().filter(is_data).map(read)),
        lacks_code: !file
            .sections
            .iter()
            .any(|section| section.sh_flags(ENDIAN).contains(elf::SHF_EXECINSTR)),
        text: file.section(".text").map_or(0, |text| text.sh_addr(ENDIAN).into()),
        pointers: Pointers { relocations, mask: u64::MAX, base: 0 },
    };
    program.functions(base, executable, file.bytes.len() as u64, missing)
}

/// The unwind tables of `file`.
fn unwind_tables<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    arch: &Arch,
    companions: &'d Companions,
    missing: &mut Vec<String>,
) -> UnwindTables<'d> {
    let read = |section: &'d Header::SectionHeader| Section {
        address: section.sh_addr(ENDIAN).into(),
        bytes: file.data(section).unwrap_or_default(),
    };
    let named = |name: &str| file.section(name).map(read).unwrap_or_default();
    let debug_frame = file.debug_section(".debug_frame", companions).unwrap_or_else(|why| {
        missing.push(format!("the unwind table .debug_frame cannot be read: {why}"));
        &[]
    });
    let mut tables = UnwindTables {
        eh_frame: named(".eh_frame"),
        debug_frame: Section { address: 0, bytes: debug_frame },
        text: named(".text").address,
        ..UnwindTables::default()
    };
    // The number of this type of section means `.eh_frame` on x86.
    if arch.is_arm32() {
        let is_index = |section: &&Header::SectionHeader| section.sh_type(ENDIAN) == elf::SHT_ARM_EXIDX;
        let is_loaded = |section: &&Header::SectionHeader| section.sh_flags(ENDIAN).contains(elf::SHF_ALLOC);
        tables.arm_index = file.sections.iter().find(is_index).map(read).unwrap_or_default();
        tables.others = Sections::new(file.sections.iter().filter(is_loaded).map(read));
    }
    tables
}

/// The identity of the image in `bytes`, an ELF file.
pub(super) fn identity(bytes: &[u8]) -> Result<Identity, Error> {
    match bytes.get(4) {
        Some(1) => Ok(identity_of(&ElfFile::<elf::FileHeader32<Little>>::parse(bytes)?)),
        _ => Ok(identity_of(&ElfFile::<elf::FileHeader64<Little>>::parse(bytes)?)),
    }
}

/// The identity of the image in `file`.
fn identity_of<Header: FileHeader<Endian = Little>>(file: &ElfFile<'_, Header>) -> Identity {
    let size = |section: &Header::SectionHeader| section.file_range(ENDIAN).map_or(0, |(_, size)| size);
    let has_dwarf = [".debug_info", ".zdebug_info"]
        .iter()
        .any(|name| file.section(name).is_some_and(|section| size(section) != 0));
    let id = file.build_id().unwrap_or_else(|| file.hash_id());
    let has_lines = has_dwarf || go_table(file).is_some();
    Identity { id, has_dwarf, has_lines, kind: kind(file) }
}

/// The kind of `file`.
fn kind<Header: FileHeader<Endian = Little>>(file: &ElfFile<'_, Header>) -> ImageKind {
    let is_code = |section: &&Header::SectionHeader| {
        section.sh_flags(ENDIAN).contains(elf::SHF_ALLOC | elf::SHF_EXECINSTR)
    };
    let mut code = file.sections.iter().filter(is_code).peekable();
    let is_stripped_of_code =
        code.peek().is_some() && code.all(|section| section.sh_type(ENDIAN) == elf::SHT_NOBITS);
    let has_interpreter = file.segments.iter().any(|segment| segment.p_type(ENDIAN) == elf::PT_INTERP);
    let is_fixed = Header::parse(file.bytes).is_ok_and(|header| header.e_type(ENDIAN) == elf::ET_EXEC);
    match (is_stripped_of_code, has_interpreter || is_fixed) {
        (true, _) => ImageKind::ElfDebugFile,
        (false, true) => ImageKind::ElfExecutable,
        (false, false) => ImageKind::ElfLibrary,
    }
}
