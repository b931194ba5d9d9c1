//! Skeleton units: what split DWARF leaves of a unit in the image's own file.

use gimli::{Dwarf, DwoId, Section as _, UnitHeader, UnitType};

use super::roots::{Root, headers, offset_of, tables};
use crate::reader::Reader;
use crate::report::Problems;

/// A unit whose better part is in another file.
pub(crate) struct Skeleton<'d> {
    /// Where its header lies in `.debug_info`.
    pub(crate) offset: usize,
    /// What its other part has, too.
    pub(crate) id: DwoId,
    /// Where the other part was written, relative to `folder`.
    pub(crate) name: &'d [u8],
    /// `DW_AT_comp_dir`; empty where there is none.
    pub(crate) folder: &'d [u8],
}

/// The skeleton units of `dwarf`. What cannot be read is passed over.
pub(crate) fn skeletons<'d>(dwarf: &Dwarf<Reader<'d>>) -> Vec<Skeleton<'d>> {
    // Split units have their addresses there. Few other files have it.
    if dwarf.debug_addr.reader().is_empty() {
        return Vec::new();
    }
    let (mut headers, _) = headers(dwarf);
    headers.retain(may_be_skeleton);
    // Whoever reads all units says what cannot be read.
    let tables = tables(dwarf, &headers, &mut Problems::default());
    let skeleton = |header: UnitHeader<Reader<'d>>| {
        let table = tables.get(&header.debug_abbrev_offset().0)?;
        let root = Root::read(dwarf, header, table.clone()).ok()??;
        let folder = root.unit.comp_dir.map_or(&[][..], |folder| folder.slice());
        Some(Skeleton { offset: offset_of(&header), id: root.unit.dwo_id?, name: root.dwo_name?, folder })
    };
    headers.into_iter().filter_map(skeleton).collect()
}

/// In DWARF 4, where split units are an extension of GNU's, only the root entry tells.
fn may_be_skeleton(header: &UnitHeader<Reader<'_>>) -> bool {
    match header.type_() {
        UnitType::Skeleton(_) => true,
        UnitType::Compilation => header.version() < 5,
        _ => false,
    }
}
