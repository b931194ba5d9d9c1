//! Where variables with a fixed address are declared.

use std::cmp::Reverse;
use std::fmt;

use gimli::{AttributeValue, Operation, UnitOffset, constants};

use super::entries::Entries;
use super::lines::Lines;
use super::origins::Origins;
use super::type_size::type_size;
use super::units::{UnitEntry, Units};
use crate::error::Error;
use crate::image::{Image, Reader};
use crate::limits::{Reads, UnitError, UnitLimits};
use crate::memory::Memory;
use crate::options::MAX_MEMORY;
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

    /// The declaration of the variable that contains the address `svma`, as the file states addresses. Returns `None`
    /// if no variable does, or if its declaration is not stated. Of several, it is that of the first unit: literals
    /// that are parts of others share their bytes. A variable of unknown size has one byte.
    #[must_use]
    pub fn declaration(&self, svma: u64) -> Option<Declaration> {
        let end = self.entries.partition_point(|(address, ..)| *address <= svma);
        let before = self.entries[..end].iter().rev().take(NEAREST);
        let mut entries = Entries::new(&self.units, Reads::of_unit(0));
        let containing = before.filter_map(|(address, unit, Reverse(offset))| {
            entries.reads = Reads::of_unit(self.units.size(*unit));
            let stated = Origins::read(&mut entries, (*unit, UnitOffset(*offset)));
            let ty = stated.find(constants::DW_AT_type).and_then(|(unit, of)| self.units.entry(unit, of));
            let size = ty.and_then(|ty| type_size(&mut entries, ty)).unwrap_or(1);
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
    use std::time::{Duration, Instant};

    use symdex_testkit::images::debug_file::Elf;

    use super::*;
    use crate::Companions;
    use crate::dwarf::tables::UnitTable;
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

    /// Abbreviations 1 to `count`, of which each is empty unless `stated` has its tag, whether it has children, and its
    /// attributes.
    fn abbreviations(count: u32, stated: &[(u32, &[u8])]) -> Vec<u8> {
        let mut table = Vec::new();
        for code in 1..=count {
            gimli::leb128::write::unsigned(&mut table, code.into()).expect("in memory");
            let known = stated.iter().find(|(known, _)| *known == code).map(|(_, bytes)| *bytes);
            table.extend(known.unwrap_or(&[0x34, 0, 0, 0]));
        }
        table.push(0);
        table
    }

    /// 16 variables whose type is a chain of 120 typedefs, of which each is in the other one of two units. Their tables
    /// are not kept, because the one of another unit fills the memory for tables, and only one of them is recent.
    #[test]
    fn tables_that_are_not_kept_are_read_once_for_each_question() {
        let unit = |table: usize, entries: &[u8]| {
            let header = [&[4, 0][..], &u32::try_from(table).expect("small").to_le_bytes(), &[8]].concat();
            let size = u32::try_from(header.len() + entries.len()).expect("small").to_le_bytes();
            [&size[..], &header, entries].concat()
        };
        // A unit, a variable with a location and a type, a typedef, and a type with a size.
        let stated: [(u32, &[u8]); 4] = [
            (1, &[0x11, 1, 0, 0]),
            (3, &[0x34, 0, 0x02, 0x18, 0x49, 0x10, 0, 0]),
            (4, &[0x16, 0, 0x49, 0x10, 0, 0]),
            (5, &[0x24, 0, 0x0b, 0x0b, 0, 0]),
        ];
        let (large, small) =
            (abbreviations(80_000, &[(1, &[0x11, 0, 0, 0])]), abbreviations(30_000, &stated));
        let (chain, first) = (120u32, u32::try_from(unit(0, &[1]).len()).expect("small"));
        // The offsets of the first typedef in both units: after the header and the unit's own entry.
        let in_first = first + 12;
        let in_second = first + 12 + 5 * chain + 16 * 15 + 1 + 12;
        let typedef = |of: u32| [&[4][..], &of.to_le_bytes()].concat();
        let mut entries = vec![1];
        entries.extend((0..chain).flat_map(|n| typedef(in_second + 5 * n)));
        for n in 0..16u64 {
            entries
                .extend([&[3, 9, 3][..], &(0x20_0000 + n).to_le_bytes(), &in_first.to_le_bytes()].concat());
        }
        entries.push(0);
        let mut others = vec![1];
        others.extend((1..chain).flat_map(|n| typedef(in_first + 5 * n)));
        others.extend([5, 0x40, 0]);
        let units = [(0, vec![1]), (large.len(), entries), (large.len() + small.len(), others)];
        let info = units.iter().flat_map(|(table, entries)| unit(*table, entries)).collect();
        let abbrev = [&large[..], &small, &small].concat();
        let file = Elf::default().section(".debug_info", info).section(".debug_abbrev", abbrev).bytes();
        let companions = Companions::default();
        let slice = slices(&file).expect("an ELF file").remove(0);
        let image = Image::load(&slice, "made-up", &companions).expect("loads");
        let variables = Variables::of(&image).expect("small");
        assert_eq!(variables.entries.len(), 16);
        assert!(matches!(variables.units.all[1].table, UnitTable::Recent(_)), "it is not kept");
        let mut entries = Entries::new(&variables.units, Reads::of_unit(1 << 20));
        let size = type_size(&mut entries, (1, UnitOffset(12)));
        assert_eq!(size, Some(0x40), "the chain is followed to its end");
        let begun = Instant::now();
        assert_eq!(variables.declaration(0x20_000f), None);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
}
