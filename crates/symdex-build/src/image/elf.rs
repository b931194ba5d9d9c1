//! Images in ELF files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian as Little, elf};
use symdex::Arch;
use symdex::write::ImageInfo;

use super::code::executable;
use super::elf_file::{ENDIAN, ElfFile};
use super::{Identity, Image, ImageKind, split, supplementary};
use crate::companions::{Companions, file_name};
use crate::error::Error;
use crate::symbols;
use crate::symbols::stubs::Naming;

/// The image in `file`, which is at `path`, with the parts of its debug information that are in other files.
pub(super) fn image<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    arch: &Arch,
    path: &Path,
    companions: &'d Companions,
) -> Result<Image<'d>, Error> {
    let base = file.base();
    let executable = executable(file.code(), base);
    let mut dwarf = file.dwarf(|id| Some(id.name()), companions)?;
    companions.deadline().check()?;
    let mut starts = symbols::elf::starts(file, base, arch.is_arm32())?;
    let stubs = symbols::plt::stubs(file, base, arch.is_arm32())?;
    starts.extend(symbols::stubs::starts(&stubs, Naming::Elf, file.bytes.len(), companions)?);
    let (mut files, mut missing) = (vec![file.bytes], Vec::new());
    match file.mini_debug_info(companions) {
        Ok(Some(mini)) => {
            starts.extend(symbols::elf::named_starts(&mini, base, arch.is_arm32())?);
            files.push(mini.bytes);
        }
        Ok(None) => {}
        Err(why) => missing.push(format!("the symbols in .gnu_debugdata cannot be read: {why}")),
    }
    let mut info = ImageInfo::new(identity_of(file).id, file_name(path), arch.clone());
    info.base = base;
    info.image_size = executable.last().map_or(0, |section| section.1);
    info.executable = executable;
    let symbols = symbols::functions(&mut starts, &info.executable);
    companions.deadline().check()?;
    let sup_size = supplementary::add(&mut dwarf, file, path, companions, &mut missing);
    let (splits, split_size) = split::find(&dwarf, file, path, companions, &mut missing);
    let dwarf = Arc::new(dwarf);
    let debug_size = file.bytes.len() as u64 + sup_size + split_size;
    companions.deadline().check()?;
    let (symbol_map, decompressed, load_time) = (None, companions.kept(), Duration::ZERO);
    Ok(Image {
        info,
        debug_size,
        files,
        dwarf,
        splits,
        starts,
        symbols,
        symbol_map,
        missing,
        decompressed,
        load_time,
    })
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
    Identity { id, has_dwarf, kind: kind(file) }
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
