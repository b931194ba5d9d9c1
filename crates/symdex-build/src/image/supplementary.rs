//! The supplementary file, into which dwz moves what several debug files share.

use std::path::{Path, PathBuf};

use gimli::{Dwarf, LittleEndian, Reader as _, Section as _};
use object::LittleEndian as Little;
use object::read::elf::FileHeader;
use symdex::ImageId;

use super::elf_file::ElfFile;
use crate::companions::{Companions, Reference, Refusal, path_of, shown};
use crate::image::Reader;

/// The reference of a debug file to its supplementary file.
struct Link<'d> {
    name: &'d [u8],
    id: ImageId,
}

impl<'d> Link<'d> {
    /// `.gnu_debugaltlink`: a path, a zero byte, and a build id.
    fn gnu(section: &'d [u8]) -> Option<Self> {
        let name = section.split(|byte| *byte == 0).next()?;
        Some(Self { name, id: ImageId::new(section.get(name.len() + 1..)?)? })
    }

    /// `.debug_sup` (DWARF 5, 7.3.6): a version, whether the file is itself supplementary, a path, the size of a
    /// checksum, and the checksum.
    fn debug_sup(section: &'d [u8], is_supplementary: bool) -> Option<Self> {
        let mut reader = Reader::new(section, LittleEndian);
        let (version, kind) = (reader.read_u16().ok()?, reader.read_u8().ok()?);
        let name = reader.read_null_terminated_slice().ok()?.slice();
        let size = reader.read_uleb128().ok().and_then(|size| usize::try_from(size).ok())?;
        let id = ImageId::new(reader.split(size).ok()?.slice())?;
        (version == 5 && (kind != 0) == is_supplementary).then_some(Self { name, id })
    }

    fn of<Header: FileHeader<Endian = Little>>(file: &ElfFile<'d, Header>) -> Option<Self> {
        let standard = file.contents(".debug_sup").and_then(|section| Self::debug_sup(section, false));
        standard.or_else(|| file.contents(".gnu_debugaltlink").and_then(Self::gnu))
    }

    /// Where the supplementary file of the file at `from` may be.
    fn reference<'r>(&'r self, from: &'r Path) -> Reference<'r> {
        let name = path_of(self.name).unwrap_or_default();
        let mut paths = Vec::from_iter(name.file_name().map(PathBuf::from));
        if paths.first().is_some_and(|base| *base != name) {
            paths.insert(0, name);
        }
        Reference { from, paths, build_id: Some((&self.id, &["debug"])), is_any_given: true }
    }
}

/// Adds the supplementary file to `dwarf`, if `file` refers to one. `dwarf` has the debug information of `file`, whose
/// path is `path`. Returns the size of the supplementary file in bytes. A file that is not found is added to `missing`.
pub(super) fn add<'d, Header: FileHeader<Endian = Little>>(
    dwarf: &mut Dwarf<Reader<'d>>,
    file: &ElfFile<'d, Header>,
    path: &Path,
    companions: &'d Companions,
    missing: &mut Vec<String>,
) -> u64 {
    // Stripped files keep the link of their debug file.
    let link = Link::of(file).filter(|_| !dwarf.debug_info.reader().is_empty());
    let Some(link) = link else { return 0 };
    let found = companions.find(&link.reference(path), |candidate| {
        let read = |bytes: &'d [u8]| {
            let sup = supplementary::<Header>(bytes, &link.id, companions)?;
            Ok((sup, bytes.len() as u64))
        };
        Some(companions.open(candidate)?.and_then(read))
    });
    match found {
        Ok((sup, size)) => {
            dwarf.set_sup(sup);
            size
        }
        Err(why) => {
            let name = shown(link.name);
            missing.push(format!("the supplementary file {name} (build id {}) {why}", link.id));
            0
        }
    }
}

/// The DWARF in `bytes`, which must be the supplementary file with this id.
fn supplementary<'d, Header: FileHeader<Endian = Little>>(
    bytes: &'d [u8],
    wanted: &ImageId,
    companions: &'d Companions,
) -> Result<Dwarf<Reader<'d>>, Refusal> {
    let file = ElfFile::<Header>::parse_any(bytes).map_err(Refusal::unreadable)?;
    let own =
        file.contents(".debug_sup").and_then(|section| Link::debug_sup(section, true)).map(|link| link.id);
    let ids: Vec<ImageId> = own.into_iter().chain(file.build_id()).collect();
    match ids.first() {
        _ if ids.contains(wanted) => {}
        Some(id) => return Err(Refusal::Other(format!("the build id {id}"))),
        None => return Err(Refusal::Other("no build id".to_owned())),
    }
    file.dwarf(|id| Some(id.name()), companions).map_err(Refusal::unreadable)
}
