//! Lists of ranges.

use gimli::{Dwarf, RangeListsOffset, RawRngListEntry, Section as _};

use crate::image::Reader;

/// Calls `each` with the ranges of a list, in SVMAs. Returns how many entries state no code: empty and inverted ranges,
/// and ranges of code that the linker dropped.
///
/// Fails if the list has more than `left` entries. Subtracts the number of list entries from `left`. The limit is
/// necessary because any number of functions may share a list.
pub(crate) fn each_of_list<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    unit: &gimli::Unit<Reader<'d>>,
    list: RangeListsOffset,
    left: &mut u64,
    mut each: impl FnMut(u64, u64),
) -> gimli::Result<u64> {
    // A list entry takes at least one byte, so a list needs no count if the sections are small enough.
    let most = dwarf.ranges.debug_ranges().reader().len().max(dwarf.ranges.debug_rnglists().reader().len());
    if most as u64 > *left {
        let mut counted = dwarf.raw_ranges(unit, list)?;
        // The loop below reports read errors, after it has passed on the ranges before the error.
        let mut is_next = || matches!(counted.next(), Ok(Some(_)));
        if (0..=*left).all(|_| is_next()) {
            *left = 0;
            return Err(gimli::Error::OffsetOutOfBounds(list.0 as u64));
        }
    }
    if unit.header.version() < 5 && unit.header.address_size() == 8 {
        let section = dwarf.ranges.debug_ranges().reader().slice();
        return each_pair(section, list, unit.low_pc, left, each);
    }
    let (mut entries, mut ranges) = (dwarf.raw_ranges(unit, list)?, dwarf.ranges(unit, list)?);
    let mut passed_over = 0;
    while let Some(entry) = entries.next()? {
        *left = left.saturating_sub(1);
        let is_base =
            matches!(entry, RawRngListEntry::BaseAddress { .. } | RawRngListEntry::BaseAddressx { .. });
        match ranges.convert_raw(entry)? {
            Some(range) => each(range.begin, range.end),
            None => passed_over += u64::from(!is_base),
        }
    }
    Ok(passed_over)
}

/// [`each_of_list`] for a list of address pairs, the format before DWARF 5. A third of the inlined subroutines of C++
/// have such a list.
fn each_pair(
    section: &[u8],
    list: RangeListsOffset,
    mut base: u64,
    left: &mut u64,
    mut each: impl FnMut(u64, u64),
) -> gimli::Result<u64> {
    /// The lowest address that gimli treats as a tombstone.
    const TOMBSTONE: u64 = u64::MAX - 1;
    let cut_short = gimli::Error::OffsetOutOfBounds(list.0 as u64);
    let mut rest = section.get(list.0..).ok_or(cut_short)?;
    let mut passed_over = 0;
    while let Some((start, after)) = rest.split_first_chunk()
        && let Some((end, after)) = after.split_first_chunk()
    {
        rest = after;
        let (start, end) = (u64::from_le_bytes(*start), u64::from_le_bytes(*end));
        if (start, end) == (0, 0) {
            return Ok(passed_over);
        }
        *left = left.saturating_sub(1);
        if start == u64::MAX {
            base = end;
            continue;
        }
        let (start, end) = (start.wrapping_add(base), end.wrapping_add(base));
        if base < TOMBSTONE && start < TOMBSTONE && start < end { each(start, end) } else { passed_over += 1 }
    }
    if rest.is_empty() { Ok(passed_over) } else { Err(cut_short) }
}

#[cfg(test)]
mod tests {
    use gimli::{DebugAddr, DebugAddrBase, DebugRanges, DebugRngLists, Encoding, Format, RangeLists};

    use super::*;

    #[test]
    fn pairs_are_read_as_by_gimli() {
        let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };
        let addresses = [0, 0, 1, 16, 32, 4096, 1 << 63, u64::MAX - 2, u64::MAX - 1, u64::MAX];
        let (mut generator, mut len) = (crate::random::Random(1), 0);
        let mut random = |below: usize| usize::try_from(generator.below(below as u64)).expect("small");
        for _ in 0..20_000 {
            let mut section: Vec<u8> =
                (0..20).flat_map(|_| addresses[random(addresses.len())].to_le_bytes()).collect();
            section.truncate(random(section.len() + 1));
            let (list, base) = (RangeListsOffset(random(40)), addresses[random(addresses.len())]);
            let (mut own, mut left) = (Vec::new(), 1000);
            let result = each_pair(&section, list, base, &mut left, |start, end| own.push((start, end)));

            let lists = RangeLists::new(
                DebugRanges::new(&section, gimli::LittleEndian),
                DebugRngLists::new(&[], gimli::LittleEndian),
            );
            let (no_addr, no_base) = (DebugAddr::default(), DebugAddrBase(0));
            let (mut theirs, mut entries) = (Vec::new(), 0);
            let is_whole = lists.raw_ranges(list, encoding).and_then(|mut raw| {
                let mut ranges = lists.ranges(list, encoding, base, &no_addr, no_base)?;
                while let Some(entry) = raw.next()? {
                    entries += 1;
                    theirs.extend(ranges.convert_raw(entry)?.map(|range| (range.begin, range.end)));
                }
                Ok(())
            });
            assert_eq!(
                (&own, result.is_ok(), 1000 - left),
                (&theirs, is_whole.is_ok(), entries),
                "{section:x?}"
            );
            len += own.len();
        }
        assert!(len > 5000, "{len}");
    }
}
