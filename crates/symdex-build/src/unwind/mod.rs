//! Unwind rows, from the unwind tables of an image.
//!
//! An image has tables of up to four kinds. Where several describe the same code, the first of these counts:
//! `.eh_frame`, `.debug_frame`, and then those with one rule for a whole function: `.ARM.exidx` and Apple's compact
//! unwind information.

pub(crate) mod arm;
pub(crate) mod cfi;
mod compact;
mod layer;

use symdex::write::{EncodedUnwindRows, UnwindTable};

use self::layer::{Layer, fill_gaps};
use crate::error::Error;
use crate::image::Image;
use crate::limits::{self, Deadline};
use crate::memory::Budget;
use crate::report::Problems;

/// A section of a file, at its address. Empty if the file does not have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section<'d> {
    /// Where it is (SVMA).
    pub address: u64,
    /// What it has.
    pub bytes: &'d [u8],
}

impl<'d> Section<'d> {
    /// The bytes from `address` on.
    pub(crate) fn from(&self, address: u64) -> Option<&'d [u8]> {
        let at = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(at..).filter(|rest| !rest.is_empty())
    }
}

/// The unwind tables of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnwindTables<'d> {
    pub(crate) eh_frame: Section<'d>,
    /// Whether `.eh_frame` numbers the stack and the frame pointer of i386 the other way round, as in Mach-O files.
    pub(crate) is_swapped: bool,
    pub(crate) debug_frame: Section<'d>,
    /// The address that some pointers of call frame information are relative to.
    pub(crate) text: u64,
    /// `.ARM.exidx`.
    pub(crate) arm_index: Section<'d>,
    /// `__unwind_info`.
    pub(crate) compact: Section<'d>,
    /// Sections that these refer to: those of `.ARM.extab`, and code.
    pub(crate) others: Sections<'d>,
}

/// Sections, to find bytes by their address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections<'d>(Vec<Section<'d>>);

impl<'d> Sections<'d> {
    pub(crate) fn new(sections: impl IntoIterator<Item = Section<'d>>) -> Self {
        let mut sorted: Vec<_> = sections.into_iter().filter(|section| !section.bytes.is_empty()).collect();
        sorted.sort_by_key(|section| section.address);
        Self(sorted)
    }

    /// The sections that have bytes, by their addresses.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Section<'d>> {
        self.0.iter()
    }

    /// The bytes from `address` on, in the section that starts last before it. A file may have as many sections as
    /// entries that refer to them.
    pub(crate) fn from(&self, address: u64) -> Option<&'d [u8]> {
        let after = self.0.partition_point(|section| section.address <= address);
        self.0[..after].last()?.from(address)
    }
}

/// How many bytes of unwind information may still be read for the entries of a section. Entries may share them, and
/// they count for each.
struct Allowance {
    left: u64,
    /// The largest size of the table of rules.
    max_table: usize,
    /// How many entries exceeded it.
    exceeded: u64,
}

impl Allowance {
    /// The bytes for a section of `size` bytes, whose rules are added to `table`.
    fn new(size: usize, table: &UnwindTable) -> Self {
        let left = limits::UNWIND_BYTES + limits::UNWIND_BYTES_RATIO * size as u64;
        Self { left, max_table: table.size() + 2 * size + (1 << 20), exceeded: 0 }
    }

    /// Takes the `cost` bytes of an entry. Returns false if too few are left. The entry is then counted, and left out.
    fn take(&mut self, cost: usize, table: &UnwindTable) -> bool {
        let rest = self.left.checked_sub(cost as u64).filter(|_| table.size() <= self.max_table);
        self.exceeded += u64::from(rest.is_none());
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    fn report(&self, problems: &mut Problems) {
        problems.limit("unwind entries left out: they share too much", self.exceeded);
    }
}

/// About how many bytes of memory an unwind row takes while it is encoded.
const ROW: usize = 100;

/// What bounds the reading of unwind tables.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) budget: Budget,
    /// How many bytes of memory the build takes besides.
    pub(crate) others: usize,
    pub(crate) deadline: Deadline,
}

impl Limits {
    /// Checks the time, and the memory of this many rows with these rules.
    pub(crate) fn check(&self, rows: usize, table: &UnwindTable) -> Result<(), Error> {
        self.deadline.check()?;
        let size = rows.saturating_mul(ROW).saturating_add(table.size()).saturating_add(self.others);
        self.budget.check("its unwind tables", size)
    }
}

/// The unwind rows of `image`. The build takes `others` bytes of memory besides.
///
/// # Errors
///
/// [`Error::TooLarge`] if the rows take more memory than `budget` has, [`Error::TooSlow`] after the deadline.
pub(crate) fn unwind_rows(
    image: &Image<'_>,
    budget: Budget,
    others: usize,
    deadline: Deadline,
    problems: &mut Problems,
) -> Result<EncodedUnwindRows, Error> {
    let limits = Limits { budget, others, deadline };
    let mut layer = Layer::new(image, limits);
    let mut rows = Vec::new();
    for kind in [cfi::eh_frame, cfi::debug_frame, arm::rows, compact::rows] {
        for tables in &image.unwind {
            kind(tables, &mut layer, problems)?;
            rows = fill_gaps(rows, layer.take());
            limits.check(2 * rows.len(), &layer.table)?;
        }
    }
    layer.report(problems);
    Ok(EncodedUnwindRows::new(&layer.table, &rows)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_the_section_that_starts_last() {
        let section = |address, bytes| Section { address, bytes };
        let sections =
            [section(0x20, &b"cdef"[..]), section(0x10, b"ab"), section(0x22, b"xy"), section(0x11, b"")];
        let sections = Sections::new(sections);
        let found =
            [0xf, 0x10, 0x11, 0x12, 0x20, 0x21, 0x22, 0x23, 0x24].map(|address| sections.from(address));
        let expected = ["", "ab", "b", "", "cdef", "def", "xy", "y", ""];
        assert_eq!(found, expected.map(|text| Some(text.as_bytes()).filter(|text| !text.is_empty())));
    }
}
