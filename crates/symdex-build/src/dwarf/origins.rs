//! What entries of variables state, together with the entries that they refer to for the rest.

use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, constants};

use super::entries::Entries;
use super::units::EntryId;
use crate::image::Reader;
use crate::limits;

/// An entry, its abstract origin or specification (DWARF 5, 2.13.2 and 3.3.8.1), that of this one, and so on, at most
/// [`limits::ORIGINS`]. Each with the number of its unit.
pub(super) struct Origins<'d>(Vec<(usize, DebuggingInformationEntry<Reader<'d>>)>);

impl<'d> Origins<'d> {
    /// Reads the entry at `place` and its origins. Those that cannot be read, or that a limit does not allow, are left
    /// out.
    pub(super) fn read(entries: &mut Entries<'_, 'd>, place: EntryId) -> Self {
        let (mut all, mut next) = (Vec::new(), Some(place));
        while let Some((unit, offset)) = next
            && all.len() < limits::ORIGINS
            && let Ok(entry) = entries.entry((unit, offset))
        {
            let stated = [constants::DW_AT_abstract_origin, constants::DW_AT_specification];
            let origin = stated.into_iter().find_map(|name| entry.attr_value(name));
            next = origin.and_then(|origin| entries.units.entry(unit, origin));
            all.push((unit, entry));
        }
        Self(all)
    }

    /// The first value of an attribute, and the number of the unit with it.
    pub(super) fn find(&self, name: DwAt) -> Option<(usize, AttributeValue<Reader<'d>>)> {
        self.0.iter().find_map(|(unit, entry)| Some((*unit, entry.attr_value(name)?)))
    }

    /// The file with the declaration: the number of a unit, and the index in its line table.
    pub(super) fn file(&self) -> Option<(usize, u64)> {
        match self.find(constants::DW_AT_decl_file)? {
            (unit, AttributeValue::FileIndex(index)) => Some((unit, index)),
            _ => None,
        }
    }

    /// The line of the declaration, 1-based.
    pub(super) fn line(&self) -> Option<u64> {
        self.find(constants::DW_AT_decl_line)?.1.udata_value().filter(|line| *line != 0)
    }
}
