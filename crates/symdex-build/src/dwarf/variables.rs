//! Where variables with a fixed address are declared.

use std::cmp::Reverse;
use std::fmt;

use gimli::{AttributeValue, Operation, UnitOffset, constants};

use super::lines::Lines;
use super::origins::Origins;
use super::type_size::type_size;
use super::units::{UnitEntry, Units};
use crate::error::Error;
use crate::image::Image;
use crate::limits::{Reads, UnitError, UnitLimits};
use crate::memory::Memory;
use crate::options::MAX_MEMORY;
use crate::reader::Reader;
use crate::report::Problems;

/// How many variables that start before an address are asked whether they contain it.
const NEAREST: usize = 16;

/// The declaration of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The path of the source file, as [`symdex::Frame::file`] has paths.
    pub file: Vec<u8>,
    /// The line, 1-based.
    pub line: u64,
}

/// The variables of an image that have a fixed address: global ones, and static ones of functions and classes.
pub struct Variables<'a, 'd> {
    image: &'a Image<'d>,
    units: Units<'d>,
    /// The address of each, and its entry, in ascending order. Of several at an address, the one in the first unit.
    entries: Vec<(u64, usize, Reverse<usize>)>,
}

impl fmt::Debug for Variables<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl<'a, 'd> Variables<'a, 'd> {
    /// Finds all variables of `image`, which reads all of its debug information. Damaged units are left out.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if the list of units takes too much memory.
    pub fn of(image: &'a Image<'d>) -> Result<Self, Error> {
        let memory = Memory::new(MAX_MEMORY);
        let limits = UnitLimits::without_deadline(image, &memory);
        let units = Units::read(image, limits, &mut Problems::default())?;
        let mut entries = Vec::new();
        for (number, unit) in units.all.iter().take(units.own).enumerate() {
            // What was found before the damage is kept.
            let _damaged =
                each_variable(unit, |address, offset| entries.push((address, number, Reverse(offset.0))));
        }
        entries.sort_unstable();
        entries.dedup_by_key(|(address, ..)| *address);
        Ok(Self { image, units, entries })
    }

    /// The declaration of the variable that contains the address `svma`, as the file states addresses. Returns `None` if
    /// no variable does, or if its declaration is not stated. Of several, it is that of the first unit: literals that
    /// are parts of others share their bytes. A variable of unknown size has one byte.
    #[must_use]
    pub fn declaration(&self, svma: u64) -> Option<Declaration> {
        let end = self.entries.partition_point(|(address, ..)| *address <= svma);
        let before = self.entries[..end].iter().rev().take(NEAREST);
        let containing = before.filter_map(|(address, unit, Reverse(offset))| {
            let mut reads = Reads::of_unit(self.units.size(*unit));
            let stated = Origins::read(&self.units, (*unit, UnitOffset(*offset)), &mut reads);
            let ty = stated.find(constants::DW_AT_type).and_then(|(unit, of)| self.units.entry(unit, of));
            let size = ty.and_then(|ty| type_size(&self.units, ty, &mut reads)).unwrap_or(1);
            (svma - address < size).then_some((unit, stated))
        });
        let (_, stated) = containing.min_by_key(|(unit, _)| *unit)?;
        let ((unit, index), line) = (stated.file()?, stated.line()?);
        let unit = &self.units.all[unit];
        let file = Lines::without_rows(self.image, unit).path(self.image, unit, index)?;
        Some(Declaration { file, line })
    }
}

/// Calls `each` with the address and the entry of each variable of the unit that has a fixed address.
fn each_variable(unit: &UnitEntry<'_>, mut each: impl FnMut(u64, UnitOffset)) -> Result<(), UnitError> {
    let mut reads = Reads::of_unit(unit.unit.header.length_including_self());
    let table = unit.table()?;
    let mut entries = unit.entries(&table, None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        reads.add(abbreviation.attributes().len())?;
        if abbreviation.tag() != constants::DW_TAG_variable {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            if attribute.name() == constants::DW_AT_location
                && let AttributeValue::Exprloc(expression) = attribute.value()
                && let Some(address) = fixed_address(unit, expression)
            {
                each(address, offset);
            }
        }
    }
    Ok(())
}

/// The address that an expression states, if it is `DW_OP_addr` or `DW_OP_addrx`, to which a constant may be added.
fn fixed_address(unit: &UnitEntry<'_>, expression: gimli::Expression<Reader<'_>>) -> Option<u64> {
    let mut operations = expression.operations(unit.unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => unit.dwarf.address(&unit.unit, index).ok()?,
        _ => return None,
    };
    match operations.next().ok()? {
        None => Some(address),
        Some(Operation::PlusConstant { value }) => {
            operations.next().ok()?.is_none().then(|| address.wrapping_add(value))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Companions;
    use crate::slice::slices;

    #[test]
    fn a_variable_has_the_file_and_line_of_its_declaration() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/elf/gcc-parts.so");
        let (bytes, companions) = (std::fs::read(&path).expect("readable"), Companions::default());
        let slice = slices(&bytes).expect("an ELF file").remove(0);
        let image = Image::load(&slice, &path, &companions).expect("loads");
        let variables = Variables::of(&image).expect("small");
        let declaration = Declaration { file: b"/src/symdex/elf/parts.c".to_vec(), line: 4 };
        assert_eq!(variables.declaration(0x4037), None, "the variable starts after it");
        assert_eq!(variables.declaration(0x4038), Some(declaration.clone()));
        assert_eq!(variables.declaration(0x403b), Some(declaration));
        assert_eq!(variables.declaration(0x403c), None, "the variable ends before it");
        assert_eq!(variables.declaration(0x4030), None, "the debug information does not have it");
    }
}
