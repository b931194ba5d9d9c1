//! Copies `.debug_info`.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use gimli::{
    Attribute, AttributeValue, DebugAbbrev, DebugInfo, DwAt, EndianSlice, EntriesRaw, Format, LittleEndian,
    UnitType,
};

use super::original::Section;
use super::shift::Shift;

pub(super) type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// Copies the entries.
///
/// # Errors
/// DWARF 5, 64-bit DWARF, type units, split units or macros. Output of `dsymutil` for DWARF 2 to 4 has none of these.
pub(super) fn copy(shift: &Shift<'_>) -> Result<Vec<u8>> {
    let section = shift.original.bytes(Section::Info);
    let abbreviations = DebugAbbrev::new(shift.original.bytes(Section::Abbreviations), LittleEndian);
    let mut known = HashMap::new();
    let mut bytes = section.to_vec();
    let mut units = DebugInfo::new(section, LittleEndian).units();
    while let Some(unit) = units.next()? {
        let encoding = unit.encoding();
        let is_usual = encoding.format == Format::Dwarf32 && encoding.address_size == 8;
        ensure!(is_usual && encoding.version <= 4, "only 32-bit DWARF 2 to 4 of 64-bit images can be copied");
        ensure!(unit.type_() == UnitType::Compilation, "the file has units that are not compile units");
        let start = unit.debug_info_offset().context("a type unit")?.0;
        let length = unit.length_including_self();
        // Swift's compiler made units without entries.
        if unit.header_size() == length {
            continue;
        }
        let abbreviations = match known.entry(unit.debug_abbrev_offset()) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(unit.abbreviations(&abbreviations)?)
            }
        };
        let entries = unit.entries_raw(abbreviations, None)?;
        let unit = Unit { bytes: &mut bytes[start..start + length], shift };
        unit.patch(entries).with_context(|| format!("the unit at {start:#x}"))?;
    }
    Ok(bytes)
}

/// A unit of the copy.
struct Unit<'u> {
    bytes: &'u mut [u8],
    shift: &'u Shift<'u>,
}

impl Unit<'_> {
    fn patch(mut self, mut entries: EntriesRaw<'_, Slice<'_>>) -> Result<()> {
        let root = entries.next_offset();
        let (mut has_address, mut has_lists) = (false, false);
        while !entries.is_empty() {
            let is_root = entries.next_offset() == root;
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            for specification in abbreviation.attributes() {
                let at = entries.next_offset().0;
                let attribute = entries.read_attribute(*specification)?;
                has_address |= is_root && attribute.name() == gimli::DW_AT_low_pc;
                has_lists |= self.patch_attribute(&attribute, at..entries.next_offset().0)?;
            }
        }
        // Without DW_AT_low_pc, lists contain addresses instead of offsets, and would have to be patched.
        ensure!(has_address || !has_lists, "it has lists of ranges but no DW_AT_low_pc");
        Ok(())
    }

    /// Patches an attribute. Returns whether it refers to a list of ranges. The locations of variables stay: lookups do
    /// not read them.
    fn patch_attribute(
        &mut self,
        attribute: &Attribute<Slice<'_>>,
        at: std::ops::Range<usize>,
    ) -> Result<bool> {
        let (bytes, shift) = (&mut *self.bytes, self.shift);
        match attribute.value() {
            AttributeValue::Addr(_) => shift.patch_address(bytes, at.start)?,
            AttributeValue::DebugStrRef(_) => shift.patch_offset(bytes, at.start, Section::Strings)?,
            AttributeValue::DebugLineRef(_) => shift.patch_offset(bytes, at.start, Section::Lines)?,
            AttributeValue::RangeListsRef(_) => shift.patch_offset(bytes, at.start, Section::Ranges)?,
            // DWARF 2 has eight bytes there. The offset is in the lower four.
            AttributeValue::DebugInfoRef(_) => shift.patch_offset(bytes, at.start, Section::Info)?,
            AttributeValue::String(_) => shift.rename(&mut bytes[at]),
            AttributeValue::SecOffset(_)
            | AttributeValue::DebugMacinfoRef(_)
            | AttributeValue::DebugMacroRef(_)
            | AttributeValue::DebugInfoRefSup(_)
            | AttributeValue::DebugStrRefSup(_)
            | AttributeValue::DebugTypesRef(_)
            | AttributeValue::DebugAddrIndex(_)
            | AttributeValue::DebugStrOffsetsIndex(_) => unsupported(attribute.name())?,
            _ => {}
        }
        Ok(matches!(attribute.value(), AttributeValue::RangeListsRef(_)))
    }
}

fn unsupported(name: DwAt) -> Result<()> {
    bail!("{name} refers to a section that cannot be copied")
}
