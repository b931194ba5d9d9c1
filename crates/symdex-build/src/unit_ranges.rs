//! The ranges that one unit contributes to an index.

use std::cmp::Reverse;

use symdex::Seen;
use symdex::write::{InlineFrame, NonMaxU32};

use crate::pools::Hashed;
use crate::report::Problems;

/// A contiguous range of a function's code. Most functions have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The function's number in the unit, or in the whole build once the unit is pending.
    pub(crate) function: u32,
    pub(crate) rank: Rank,
    /// The inline frame for `start`, if the function has aliases: a chain of its names. It replaces the frame of the
    /// range at `start`.
    pub(crate) entry: Option<NonMaxU32>,
}

/// The rank of a function range among others that cover the same code. The greatest rank wins: the range that starts
/// last, then the shortest, then the one whose name the symbol table has, then the first in the debug information.
pub(crate) type Rank = (u64, Reverse<u64>, bool, Reverse<usize>);

/// A range of a unit. All of its addresses have the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The function range it belongs to; `None` for line rows outside of any function.
    pub(crate) function_range: Option<NonMaxU32>,
    /// The innermost inline frame under the `exact` line policy.
    pub(crate) exact: u32,
    /// The innermost inline frame under the `statement` line policy.
    pub(crate) statement: u32,
}

/// All that a unit contributes.
#[derive(Default)]
pub(crate) struct UnitRanges<'d> {
    /// Sorted, not empty, disjoint. Equal neighbours are merged.
    pub(crate) ranges: Vec<UnitRange>,
    pub(crate) function_ranges: Vec<FunctionRange>,
    /// Callers come before what is inlined into them. Names and files are numbers in `names` and `files`.
    pub(crate) frames: Vec<InlineFrame>,
    pub(crate) names: Vec<Hashed<'d>>,
    pub(crate) files: Vec<Vec<u8>>,
    /// How many functions there are.
    pub(crate) functions: u32,
    /// How many range-list entries were read.
    pub(crate) range_entries: u64,
    /// How much work was done, in counted steps.
    pub(crate) steps: u64,
    pub(crate) problems: Problems,
    /// What was found in the unit.
    pub(crate) seen: Seen,
}

impl UnitRanges<'_> {
    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        let Self { ranges, function_ranges, frames, names, files, .. } = self;
        size_of_val(&ranges[..])
            + size_of_val(&function_ranges[..])
            + size_of_val(&frames[..])
            + names.iter().map(Hashed::size).sum::<usize>()
            + files.iter().map(|file| size_of_val(file) + file.len()).sum::<usize>()
    }
}
