//! Copies of some ranges of a unit, with the function ranges and inline frames that the ranges use.

use rustc_hash::FxHashMap;
use symdex::write::{InlineFrame, NonMaxU32};

use crate::unit_ranges::{FunctionRange, UnitRange};

/// Copies the function ranges and inline frames that copied ranges use, and gives the copies new numbers.
pub(crate) struct Excerpt<'u> {
    all_function_ranges: &'u [FunctionRange],
    all_frames: &'u [InlineFrame],
    pub(crate) function_ranges: Vec<FunctionRange>,
    /// Names and files have the numbers of the unit.
    pub(crate) frames: Vec<InlineFrame>,
    /// For each of `frames`, the number of the original in the unit.
    pub(crate) frame_numbers: Vec<u32>,
    copied_function_ranges: FxHashMap<NonMaxU32, Option<NonMaxU32>>,
    copied_frames: FxHashMap<u32, u32>,
}

impl<'u> Excerpt<'u> {
    /// An empty excerpt of a unit with these function ranges and inline frames.
    pub(crate) fn new(function_ranges: &'u [FunctionRange], frames: &'u [InlineFrame]) -> Self {
        Self {
            all_function_ranges: function_ranges,
            all_frames: frames,
            function_ranges: Vec::new(),
            frames: Vec::new(),
            frame_numbers: Vec::new(),
            copied_function_ranges: FxHashMap::default(),
            copied_frames: FxHashMap::default(),
        }
    }

    /// A copy of `range` with the new numbers.
    pub(crate) fn range(&mut self, range: UnitRange) -> UnitRange {
        let (exact, statement) = (self.frame(range.exact), self.frame(range.statement));
        let function_range = range.function_range.and_then(|number| self.function_range(number));
        UnitRange { function_range, exact, statement, ..range }
    }

    fn function_range(&mut self, number: NonMaxU32) -> Option<NonMaxU32> {
        if let Some(copy) = self.copied_function_ranges.get(&number) {
            return *copy;
        }
        let original = self.all_function_ranges[number.index()];
        let entry = original.entry.and_then(|entry| NonMaxU32::new(self.frame(entry.get()).into()));
        let copy = NonMaxU32::new(self.function_ranges.len() as u64);
        self.function_ranges.push(FunctionRange { entry, ..original });
        self.copied_function_ranges.insert(number, copy);
        copy
    }

    /// The number of the copy of an inline frame. Copies of its callers come before it.
    fn frame(&mut self, number: u32) -> u32 {
        let (mut missing, mut next, mut parent) = (Vec::new(), Some(number), None);
        while let Some(number) = next {
            if let Some(copy) = self.copied_frames.get(&number) {
                parent = Some(*copy);
                break;
            }
            missing.push(number);
            next = self.all_frames[number as usize].parent.map(NonMaxU32::get);
        }
        for number in missing.into_iter().rev() {
            let copy = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
            let caller = parent.and_then(|parent: u32| NonMaxU32::new(parent.into()));
            self.frames.push(InlineFrame { parent: caller, ..self.all_frames[number as usize] });
            self.frame_numbers.push(number);
            self.copied_frames.insert(number, copy);
            parent = Some(copy);
        }
        parent.unwrap_or(u32::MAX)
    }
}
