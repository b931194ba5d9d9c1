//! The debug sections of an image, for `symdex-audit`.
//!
//! The audit reads the debug information a second time, with separate code, and needs the sections that the builder
//! found. The types are those of gimli. They are in a hidden module, and not in [`Image`], so that a new version of
//! gimli does not break users of this crate. Only the audit and tests should use this module.

use std::sync::Arc;

use gimli::{Dwarf, UnitHeader};

pub use crate::go::GoTables;
use crate::image::{Image, Reader};
pub use crate::limits::Deadline;
pub use crate::unwind::Section;

/// A unit whose debug information is in a separate file, or in a package of such files.
#[derive(Debug)]
pub struct SplitUnit<'d> {
    /// The offset in the image's `.debug_info` of the header of its skeleton.
    pub skeleton: usize,
    /// The sections of its file; if that is a package, those of the unit.
    pub dwarf: Arc<Dwarf<Reader<'d>>>,
    /// Its header.
    pub header: UnitHeader<Reader<'d>, usize>,
    /// The number of its file. Units with the same number share `dwarf`.
    pub file: u32,
}

/// The debug sections of the slice, and those of the supplementary file if there is one.
#[must_use]
pub fn dwarf<'i, 'd>(image: &'i Image<'d>) -> &'i Arc<Dwarf<Reader<'d>>> {
    &image.dwarf
}

/// The split units that were found, in no particular order.
pub fn split_units<'d>(image: &Image<'d>) -> impl Iterator<Item = SplitUnit<'d>> {
    image.splits.iter().map(|(skeleton, split)| SplitUnit {
        skeleton: *skeleton,
        dwarf: Arc::clone(&split.dwarf),
        header: split.header,
        file: split.file,
    })
}

/// The unwind tables of a file.
#[derive(Clone, Copy, Debug)]
pub struct UnwindSections<'d> {
    /// `.eh_frame`.
    pub eh_frame: Section<'d>,
    /// `.debug_frame`, decompressed.
    pub debug_frame: Section<'d>,
    /// `.ARM.exidx`.
    pub arm_index: Section<'d>,
    /// The address that some pointers of call frame information are relative to.
    pub text: u64,
}

/// The unwind tables of each file of the image.
pub fn unwind_sections<'d>(image: &Image<'d>) -> impl Iterator<Item = UnwindSections<'d>> {
    image.unwind.iter().map(|tables| UnwindSections {
        eh_frame: tables.eh_frame,
        debug_frame: tables.debug_frame,
        arm_index: tables.arm_index,
        text: tables.text,
    })
}

/// The tables of the Go runtime, if the answers of the image come from them.
#[must_use]
pub fn go_tables<'i, 'd>(image: &'i Image<'d>) -> Option<&'i GoTables<'d>> {
    image.go.as_ref().map(crate::go::GoFunctions::tables)
}

/// The named symbol stubs of the image, by address: start and end as image offsets, and the name.
pub fn stubs<'d>(image: &Image<'d>) -> impl Iterator<Item = (u64, u64, &'d [u8])> {
    image.symbols.stubs()
}
