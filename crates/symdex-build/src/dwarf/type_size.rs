//! The sizes of types.

use gimli::{DebuggingInformationEntry, constants};

use super::entries::Entries;
use super::units::EntryId;
use crate::limits::{self, UnitError};

/// The size in bytes of a value of the type at `place`, or `None` if it is not stated or a limit is exceeded.
///
/// The answer is that of llvm-symbolizer: a dimension of an array whose count is computed at run time, or not stated,
/// counts as one.
pub(super) fn type_size(entries: &mut Entries<'_, '_>, place: EntryId) -> Option<u64> {
    let (mut place, mut count) = (place, 1u64);
    for _ in 0..limits::TYPES {
        let (entry, units) = (entries.entry(place).ok()?, entries.units);
        let size = entry.attr_value(constants::DW_AT_byte_size);
        if let Some(size) = size.and_then(|size| size.udata_value()) {
            return Some(size.wrapping_mul(count));
        }
        let target = entry.attr_value(constants::DW_AT_type).and_then(|of| units.entry(place.0, of));
        let pointer = u64::from(units.all[place.0].unit.encoding().address_size).wrapping_mul(count);
        match entry.tag() {
            constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_rvalue_reference_type => return Some(pointer),
            constants::DW_TAG_ptr_to_member_type => {
                let target = target.and_then(|target| entries.entry(target).ok());
                let is_method = target.is_some_and(|of| of.tag() == constants::DW_TAG_subroutine_type);
                // A pointer to a method also has what is added to `this` (Itanium C++ ABI, 2.3).
                return Some(if is_method { pointer.wrapping_mul(2) } else { pointer });
            }
            constants::DW_TAG_array_type => {
                count = count.wrapping_mul(element_count(entries, place).ok()?);
            }
            _ => {}
        }
        place = target?;
    }
    None
}

/// The product of the dimensions of the array type at `place` (DWARF 5, 5.5).
fn element_count(all: &mut Entries<'_, '_>, (unit, offset): EntryId) -> Result<u64, UnitError> {
    let table = all.table(unit)?;
    let mut entries = all.units.all[unit].entries(&table, Some(offset))?;
    let mut entry = DebuggingInformationEntry::default();
    let mut count = 1u64;
    loop {
        let is_entry = entries.read_entry(&mut entry)?;
        all.reads.add(1 + entry.attrs().len())?;
        if is_entry && entry.depth() == 1 && entry.tag() == constants::DW_TAG_subrange_type {
            let number = |name| {
                let value = entry.attr_value(name)?;
                // A bound can be -1. Producers write it in a form with a sign.
                value.udata_value().or_else(|| value.sdata_value().map(i64::cast_unsigned))
            };
            let lower = number(constants::DW_AT_lower_bound).unwrap_or(0);
            let of_bounds =
                || Some(number(constants::DW_AT_upper_bound)?.wrapping_sub(lower).wrapping_add(1));
            let stated = number(constants::DW_AT_count).or_else(of_bounds);
            count = count.wrapping_mul(stated.unwrap_or(1));
        }
        if entries.next_depth() <= 0 {
            return Ok(count);
        }
    }
}
