//! The ranges of a unit, cut to single addresses.

use rustc_hash::FxHashMap;
use symdex::write::NonMaxU32;

use crate::excerpt::Excerpt;
use crate::image::short;
use crate::unit_ranges::{UnitRange, UnitRanges};

/// The ranges of `unit` at `offsets`, which are sorted: one byte at each offset that the unit covers, and only the
/// names, files, inline frames and function ranges that these use.
pub(super) fn cut<'d>(unit: &UnitRanges<'d>, offsets: &[u64]) -> UnitRanges<'d> {
    let mut excerpt = Excerpt::new(&unit.function_ranges, &unit.frames);
    let mut ranges = Vec::new();
    let mut rest = &unit.ranges[..];
    for offset in offsets {
        let offset = short(*offset);
        rest = &rest[rest.partition_point(|range| range.end <= offset)..];
        if let Some(range) = rest.first().filter(|range| range.start <= offset) {
            ranges.push(UnitRange { start: offset, end: offset + 1, ..excerpt.range(*range) });
        }
    }
    let Excerpt { function_ranges, mut frames, .. } = excerpt;
    let (mut names, mut files) = (Strings::new(&unit.names), Strings::new(&unit.files));
    for frame in &mut frames {
        frame.name = frame.name.and_then(|name| names.copy(name));
        frame.file = frame.file.and_then(|file| files.copy(file));
    }
    UnitRanges {
        ranges,
        function_ranges,
        frames,
        names: names.copied,
        files: files.copied,
        functions: unit.functions,
        problems: unit.problems.clone(),
        ..UnitRanges::default()
    }
}

/// Strings that are copied on first use.
struct Strings<'u, S> {
    all: &'u [S],
    copied: Vec<S>,
    /// The number of the copy, by the number in `all`.
    numbers: FxHashMap<NonMaxU32, Option<NonMaxU32>>,
}

impl<'u, S: Clone> Strings<'u, S> {
    fn new(all: &'u [S]) -> Self {
        Self { all, copied: Vec::new(), numbers: FxHashMap::default() }
    }

    /// The number of the copy of string number `string`.
    fn copy(&mut self, string: NonMaxU32) -> Option<NonMaxU32> {
        *self.numbers.entry(string).or_insert_with(|| {
            self.copied.push(self.all[string.index()].clone());
            NonMaxU32::new(self.copied.len() as u64 - 1)
        })
    }
}
