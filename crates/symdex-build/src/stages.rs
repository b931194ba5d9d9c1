//! The first stages of a build, each by itself, for `cargo bench -p symdex-build`.

use crate::dwarf::{Units, unit_ranges};
use crate::image::Image;
use crate::limits::UnitLimits;
use crate::memory::Memory;
use crate::report::Problems;

/// Reads the headers and root entries of an image's units. Returns the number of units.
#[must_use]
pub fn read_units(image: &Image<'_>) -> usize {
    with_units(image, |units, _| units.own)
}

/// Reads the units and makes their ranges, one unit after the other. Returns the number of ranges.
#[must_use]
pub fn make_ranges(image: &Image<'_>) -> usize {
    with_units(image, |units, limits| {
        let ranges = |unit| unit_ranges(image, units, unit, limits).map_or(0, |unit| unit.ranges.len());
        (0..units.own).map(ranges).sum()
    })
}

/// The result of `then` for the units of `image`, without limits of time and memory. Returns 0 if they cannot be read.
fn with_units<'d>(image: &Image<'d>, then: impl Fn(&Units<'d>, UnitLimits<'_>) -> usize) -> usize {
    let memory = Memory::new(usize::MAX);
    let limits = UnitLimits::without_deadline(image, &memory);
    Units::read(image, limits, &mut Problems::default()).map_or(0, |units| then(&units, limits))
}
