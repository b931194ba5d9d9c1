//! The debug file of a stripped ELF file.

use std::path::Path;

use object::LittleEndian as Little;
use object::read::elf::FileHeader;
use symdex::Arch;

use super::elf_file::ElfFile;
use super::{Image, elf};
use crate::companions::{Companions, path_of, shown};

/// The contents of `.gnu_debuglink`: the name of a file, and the CRC-32 of its bytes.
struct DebugLink<'d> {
    name: &'d [u8],
    crc: u32,
}

impl<'d> DebugLink<'d> {
    /// The name ends with a zero byte and is padded to a multiple of four bytes. The checksum follows.
    fn parse(section: &'d [u8]) -> Option<Self> {
        let (text, crc) = section.split_last_chunk::<4>()?;
        let name = text.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
        Some(Self { name, crc: u32::from_le_bytes(*crc) })
    }
}

/// Joins `image`, which has no debug information, with its debug file. `file` is the file of the image, and `path` its
/// path. The debug file is found in the debug folders by the build id, or by `.gnu_debuglink`. If the link names a file
/// that is not found, the image lists it as missing.
pub(super) fn with_debug_file<'d, Header: FileHeader<Endian = Little>>(
    mut image: Image<'d>,
    file: &ElfFile<'d, Header>,
    arch: &Arch,
    path: &Path,
    companions: &'d Companions,
) -> Image<'d> {
    let id = file.build_id();
    let link = file.contents(".gnu_debuglink").and_then(DebugLink::parse);
    for candidate in id.iter().flat_map(|id| companions.by_build_id(id)) {
        match debug_file::<Header>(&candidate, arch, companions) {
            Some((other, bytes)) if bytes.build_id() == id && image.can_join(&other) => {
                return image.join(other);
            }
            _ => {}
        }
    }
    let Some(link) = link else { return image };
    let named = path_of(link.name).unwrap_or_default();
    // A path could lead anywhere, so only a name is accepted.
    let by_name = named.file_name().map(|name| companions.by_name(path, Path::new(name)));
    for candidate in by_name.into_iter().flatten().filter(|candidate| candidate != path) {
        let Some((other, bytes)) = debug_file::<Header>(&candidate, arch, companions) else { continue };
        let is_it = match (&id, bytes.build_id()) {
            (Some(id), Some(other)) => *id == other,
            _ => crc32fast::hash(bytes.bytes) == link.crc,
        };
        if is_it && image.can_join(&other) {
            return image.join(other);
        }
    }
    let wanted = match id {
        Some(id) => format!("build id {id}"),
        None => format!("CRC-32 {:08x}", link.crc),
    };
    let name = shown(link.name);
    image
        .missing
        .push(format!("the debug file {name} ({wanted}) is not found: give its folder with --debug-dir"));
    image
}

/// The image in the file at `path`, and the file. Returns `None` if there is no such file or it cannot be read.
fn debug_file<'d, Header: FileHeader<Endian = Little>>(
    path: &Path,
    arch: &Arch,
    companions: &'d Companions,
) -> Option<(Image<'d>, ElfFile<'d, Header>)> {
    let file = ElfFile::<Header>::parse(companions.open(path).ok()?).ok()?;
    let image = elf::image(&file, arch, path, companions).ok()?;
    Some((image, file))
}
