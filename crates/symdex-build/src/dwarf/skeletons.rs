//! Skeleton units: the units in the image's own file that refer to split units.

use gimli::{Dwarf, DwoId, Section as _, UnitHeader, UnitType};

use super::roots::{Root, headers, offset_of};
use super::tables::tables;
use crate::image::Reader;
use crate::report::Problems;

/// A unit whose functions are in another file.
pub(crate) struct Skeleton<'d> {
    /// The offset of its header in `.debug_info`.
    pub(crate) offset: usize,
    /// The id that it shares with the split unit.
    pub(crate) id: DwoId,
    /// The path of the file with the split unit, relative to `folder`.
    pub(crate) name: &'d [u8],
    /// `DW_AT_comp_dir`, or empty.
    pub(crate) folder: &'d [u8],
}

/// The skeleton units of `dwarf`. Units that cannot be read are left out.
pub(crate) fn skeletons<'d>(dwarf: &Dwarf<Reader<'d>>) -> Vec<Skeleton<'d>> {
    // Split units need `.debug_addr`, and few other files have it.
    if dwarf.debug_addr.reader().is_empty() {
        return Vec::new();
    }
    let mut headers = headers(dwarf).units;
    headers.retain(may_be_skeleton);
    // `Units::read` counts units that cannot be read.
    let tables = tables(dwarf, &headers, usize::MAX, &mut Problems::default());
    let skeleton = |header: UnitHeader<Reader<'d>>| {
        let table = tables.of(&header)?;
        let table = table.get(dwarf, &header).ok()?;
        let root = Root::read(dwarf, header, &table.abbreviations).ok()??;
        let folder = root.unit.comp_dir.map_or(&[][..], |folder| folder.slice());
        Some(Skeleton { offset: offset_of(&header), id: root.unit.dwo_id?, name: root.dwo_name?, folder })
    };
    headers.into_iter().filter_map(skeleton).collect()
}

/// In DWARF 4, where split units are a GNU extension, only the root entry shows that the unit is a skeleton.
fn may_be_skeleton(header: &UnitHeader<Reader<'_>>) -> bool {
    match header.type_() {
        UnitType::Skeleton(_) => true,
        UnitType::Compilation => header.version() < 5,
        _ => false,
    }
}
