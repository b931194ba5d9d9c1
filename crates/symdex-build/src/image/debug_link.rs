//! The debug file of a stripped ELF file.

use std::path::Path;

use object::LittleEndian as Little;
use object::read::elf::FileHeader;
use symdex::{Arch, ImageId};

use super::elf_file::ElfFile;
use super::{Image, elf};
use crate::companions::{Companions, NOT_FOUND, Reference, Refusal, path_of, shown};

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
/// path. The debug file is found in the debug folders by the build id, or by `.gnu_debuglink`. If the file states a
/// debug file that is not found, or if only that of another build is, the image lists it as missing.
pub(super) fn with_debug_file<'d, Header: FileHeader<Endian = Little>>(
    mut image: Image<'d>,
    file: &ElfFile<'d, Header>,
    arch: &Arch,
    path: &Path,
    companions: &'d Companions,
) -> Image<'d> {
    let id = file.build_id();
    let link = file.contents(".gnu_debuglink").and_then(DebugLink::parse);
    // A path could lead anywhere, so only a name is accepted.
    let named = link.as_ref().and_then(|link| Some(path_of(link.name)?.file_name()?.into()));
    let reference = Reference {
        from: path,
        paths: Vec::from_iter(named),
        build_id: id.as_ref().map(|id| (id, &["debug"][..])),
        is_any_given: false,
    };
    let found = companions.find(&reference, |candidate| {
        if candidate == path {
            return None;
        }
        Some(companions.open(candidate)?.and_then(|bytes| {
            let debug_file = debug_file::<Header>(bytes, id.as_ref(), link.as_ref(), companions)?;
            let other = elf::image(&debug_file, arch, candidate, Some(path), companions);
            let other = other.map_err(Refusal::unreadable)?;
            if image.can_join(&other) {
                return Ok(other);
            }
            // As prelink leaves a library.
            let (own, base) = (image.info.base, other.info.base);
            Err(Refusal::Other(format!("other addresses, from {base:#x} on and not from {own:#x} on")))
        }))
    });
    let why = match found {
        Ok(other) => return image.join(other),
        Err(why) => why,
    };
    let wanted = match (&id, &link) {
        (Some(id), _) => format!("build id {id}"),
        (None, Some(link)) => format!("CRC-32 {:08x}", link.crc),
        (None, None) => return image,
    };
    let name = match link {
        Some(link) => format!(" {}", shown(link.name)),
        // Most files without debug information state no debug file.
        None if why == NOT_FOUND => return image,
        None => String::new(),
    };
    image.missing.push(format!("the debug file{name} ({wanted}) {why}"));
    image
}

/// The file in `bytes`, which must have this build id or, if one of both has none, the checksum of the link.
fn debug_file<'d, Header: FileHeader<Endian = Little>>(
    bytes: &'d [u8],
    id: Option<&ImageId>,
    link: Option<&DebugLink<'_>>,
    companions: &'d Companions,
) -> Result<ElfFile<'d, Header>, Refusal> {
    let file = ElfFile::<Header>::load(bytes, companions).map_err(Refusal::unreadable)?;
    match (id, file.build_id()) {
        (Some(id), Some(other)) if *id == other => Ok(file),
        (Some(_), Some(other)) => Err(Refusal::Other(format!("the build id {other}"))),
        _ => match crc32fast::hash(bytes) {
            crc if link.is_some_and(|link| link.crc == crc) => Ok(file),
            crc => Err(Refusal::Other(format!("the CRC-32 {crc:08x}"))),
        },
    }
}
