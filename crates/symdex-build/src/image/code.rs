//! The address ranges of an image's code.

/// Code from this offset on is not indexed, so that the ends of ranges have 32 bits. Kernels have boot code at 1 MiB,
/// and the rest of their code 16 EiB above it.
pub(crate) const MAX_OFFSET: u64 = u32::MAX as u64;

/// An image offset of code in 32 bits. An offset that is greater than all code becomes `u32::MAX`.
#[inline]
pub(crate) fn short(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// The code of an image, in the part of the address space that an index covers and outside of it.
pub(super) struct Code {
    /// Executable sections as image offsets, sorted, not empty, disjoint, and below [`MAX_OFFSET`].
    pub(super) executable: Vec<(u64, u64)>,
    /// Executable sections below the base or from [`MAX_OFFSET`] on, as SVMAs, sorted and disjoint. An index has no
    /// answers there.
    pub(super) outside: Vec<(u64, u64)>,
}

impl Code {
    /// The code in `sections`, which are addresses and sizes, of the image at `base`.
    pub(super) fn new(sections: impl IntoIterator<Item = (u64, u64)>, base: u64) -> Self {
        let end = base.saturating_add(MAX_OFFSET);
        let (mut executable, mut outside) = (Vec::new(), Vec::new());
        for (start, section_end) in disjoint(sections) {
            let part = (start.clamp(base, end), section_end.clamp(base, end));
            if part.0 < part.1 {
                executable.push((part.0 - base, part.1 - base));
            }
            let parts = [(start, section_end.min(base)), (start.max(end), section_end)];
            outside.extend(parts.into_iter().filter(|(start, end)| start < end));
        }
        Self { executable, outside }
    }
}

/// `sections`, which are addresses and sizes, as ranges: sorted, not empty and disjoint.
pub(super) fn disjoint(sections: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let range = |(start, size): (u64, u64)| (start, start.saturating_add(size));
    let mut ranges: Vec<(u64, u64)> = sections.into_iter().map(range).collect();
    ranges.sort_unstable();
    let mut covered = 0;
    ranges.iter_mut().for_each(|range| {
        range.0 = range.0.max(covered);
        covered = covered.max(range.1);
    });
    ranges.retain(|range| range.0 < range.1);
    ranges
}

/// How many of `offsets` lie in none of the `executable` sections.
pub(super) fn count_outside(offsets: impl IntoIterator<Item = u64>, executable: &[(u64, u64)]) -> u64 {
    let is_outside = |offset: &u64| {
        let after = executable.partition_point(|section| section.0 <= *offset);
        after.checked_sub(1).is_none_or(|last| executable[last].1 <= *offset)
    };
    offsets.into_iter().filter(is_outside).count() as u64
}

/// The end of the code that an image has: of the code in `sections`, which are addresses and sizes, in the 4 GiB with
/// most code. Of several such places, it is the highest; with `near`, it is the one whose code begins last before
/// that address. Returns 0 if there is no code.
pub(super) fn end_of_code(sections: impl IntoIterator<Item = (u64, u64)>, near: Option<u64>) -> u64 {
    let ranges = disjoint(sections);
    let (mut best, mut after, mut size) = (None, 0, 0);
    for (first, (start, end)) in ranges.iter().enumerate() {
        // All code that begins within 4 GiB of this section.
        while let Some(next) = ranges.get(after).filter(|next| next.0 - start < MAX_OFFSET) {
            (size, after) = (size + (next.1 - next.0), after + 1);
        }
        debug_assert!(first < after);
        let rank = match near {
            Some(near) => (u64::from(*start <= near), *start),
            None => (size, *start),
        };
        best = best.max(Some((rank, after)));
        size -= end - start;
    }
    let last = best.and_then(|(_, after)| ranges.get(after.checked_sub(1)?));
    last.map_or(0, |last| last.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGH: u64 = 0xffff_ffff_8000_0000;

    #[test]
    fn the_image_is_where_most_code_is() {
        let end = |sections: &[(u64, u64)]| end_of_code(sections.iter().copied(), None);
        assert_eq!(end(&[]), 0);
        assert_eq!(end(&[(0x1000, 0x20), (0x3000, 0x10)]), 0x3010);
        // A kernel with a little boot code below, and one with a little code above.
        assert_eq!(end(&[(0x10_0000, 0x30), (HIGH, 0x1000)]), HIGH + 0x1000);
        assert_eq!(end(&[(0x10_0000, 0x1000), (HIGH, 0x30)]), 0x10_1000);
        assert_eq!(end(&[(0x10_0000, 0x30), (HIGH, 0x30)]), HIGH + 0x30);
        // An empty section does not count, and code in two places of one image does.
        assert_eq!(end(&[(0x1000, 0x20), (0xffff_0000, 0x20), (HIGH, 0x30), (u64::MAX, 0)]), 0xffff_0020);
    }

    #[test]
    fn the_image_near_an_address_has_its_code() {
        let sections = [(0x10_0000, 0x1000), (HIGH, 0x30)];
        let end = |near| end_of_code(sections, Some(near));
        assert_eq!([0x10_0000, 0x10_0fff, HIGH - 1].map(end), [0x10_1000; 3]);
        assert_eq!([HIGH, HIGH + 0x2f, u64::MAX].map(end), [HIGH + 0x30; 3]);
    }

    #[test]
    fn code_outside_of_the_image_is_told_apart() {
        let sections = [(0x5000, 0x10), (0x1000, 0x20), (0x1010, 0x30), (0x1000 + MAX_OFFSET - 4, 8)];
        let code = Code::new(sections, 0x1000);
        assert_eq!(
            code.executable,
            [(0, 0x20), (0x20, 0x40), (0x4000, 0x4010), (MAX_OFFSET - 4, MAX_OFFSET)]
        );
        assert_eq!(code.outside, [(0x1000 + MAX_OFFSET, 0x1000 + MAX_OFFSET + 4)]);
        let code = Code::new([(0x10_0000, 0x30), (HIGH, 0x10)], HIGH - 0x1000);
        assert_eq!((code.executable, code.outside), (vec![(0x1000, 0x1010)], vec![(0x10_0000, 0x10_0030)]));
    }
}
