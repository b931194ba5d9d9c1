//! Reads an image that the builder has loaded.

use gimli::{EndianSlice, LittleEndian};
use symdex_build::Image;

/// The reader type for gimli.
pub(crate) type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// Resolves a name, a path or a part of one if it is hidden by a symbol map; otherwise returns it unchanged.
pub(crate) fn resolve<'d>(image: &Image<'d>, text: &'d [u8]) -> &'d [u8] {
    image.symbol_map().map_or(text, |map| map.resolve(text))
}

/// The part of `start..end` (SVMAs) in the executable section that holds `start`, as image offsets.
pub(crate) fn executable_part(image: &Image<'_>, start: u64, end: u64) -> Option<(u64, u64)> {
    let (start, end) = (start.checked_sub(image.info().base)?, end.checked_sub(image.info().base)?);
    let end = end.min(section_end(image, start)?);
    (start < end).then_some((start, end))
}

/// The end of the executable section that holds `offset`.
pub(crate) fn section_end(image: &Image<'_>, offset: u64) -> Option<u64> {
    let after = image.info().executable.partition_point(|section| section.0 <= offset);
    let section = image.info().executable[..after].last()?;
    (offset < section.1).then_some(section.1)
}
