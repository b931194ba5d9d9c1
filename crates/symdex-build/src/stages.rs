//! The first stages of a build, each by itself, for `cargo bench -p symdex-build`.

use crate::dwarf::{Units, unit_ranges};
use crate::image::Image;
use crate::limits::UnitLimits;
use crate::report::Problems;

/// Reads the headers and root entries of an image's units. Returns the number of units.
#[must_use]
pub fn read_units(image: &Image<'_>) -> usize {
    Units::read(image, &mut Problems::default()).own
}

/// Reads the units and makes their ranges, one unit after the other. Returns the number of ranges.
#[must_use]
pub fn make_ranges(image: &Image<'_>) -> usize {
    let units = Units::read(image, &mut Problems::default());
    let limits = UnitLimits::of_ranges(image.range_budget());
    (0..units.own).map(|unit| unit_ranges(image, &units, unit, limits).ranges.len()).sum()
}
