//! The address ranges of an image's code.

/// Code from this offset on is not indexed, so that the ends of ranges have 32 bits. No real image has 4 GiB of code.
pub(crate) const MAX_OFFSET: u64 = u32::MAX as u64;

/// An image offset of code in 32 bits. An offset that is greater than all code becomes `u32::MAX`.
#[inline]
pub(crate) fn short(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// `sections` as image offsets, sorted, not empty, disjoint, and below [`MAX_OFFSET`].
pub(super) fn executable(sections: impl IntoIterator<Item = (u64, u64)>, base: u64) -> Vec<(u64, u64)> {
    let range = |(address, size): (u64, u64)| {
        let start = address.checked_sub(base)?;
        let end = start.checked_add(size)?.min(MAX_OFFSET);
        (start < end).then_some((start, end))
    };
    let mut ranges: Vec<(u64, u64)> = sections.into_iter().filter_map(range).collect();
    ranges.sort_unstable();
    let mut covered = 0;
    ranges.iter_mut().for_each(|range| {
        range.0 = range.0.max(covered);
        covered = covered.max(range.1);
    });
    ranges.retain(|range| range.0 < range.1);
    ranges
}
