//! Checks that direct lookups give the answers of the index of the whole image.

use std::collections::BTreeSet;

use symdex::{Frame, ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{DirectLookup, Image, build};

/// Everything that an index answers at an offset: the frames under both policies, and every name of the function.
pub(crate) type Answer = [Vec<String>; 3];

pub(crate) fn answer<B: AsRef<[u8]>>(index: &Index<B>, offset: u64, scratch: &mut Scratch) -> Answer {
    let mut start = None;
    let [exact, statement] = [LinePolicy::Exact, LinePolicy::Statement].map(|policy| {
        let frames = index.lookup(ImageOffset(offset), policy, scratch).expect("intact");
        let frames: Vec<Frame<'_>> = frames.iter().flat_map(|frames| frames.iter()).collect();
        start = frames.last().and_then(|frame| frame.function_start);
        frames.iter().map(|frame| format!("{frame:?}")).collect()
    });
    let names = start.map(|start| index.function_names(start, scratch).expect("intact"));
    let names = names.into_iter().flatten().map(|name| name.escape_ascii().to_string()).collect();
    [exact, statement, names]
}

/// Compares the answers at every offset at which an answer changes, and at some of them with a new lookup for each.
/// Large files are skipped, and so are files that exceed the limits of a build, which all units share.
pub(crate) fn assert_same_everywhere(image: &Image<'_>, whole: &Index<Vec<u8>>) {
    let exceeds = whole.metadata().partial.iter().any(|partial| partial.reason.contains("left out"));
    if exceeds || image.debug_size() > 64 << 10 {
        return;
    }
    let offsets = boundaries(whole);
    for offset in offsets.iter().step_by(offsets.len() / 4 + 1) {
        assert_same(&mut DirectLookup::new(image).expect("reads"), whole, &[*offset], 1);
    }
    assert_same(&mut DirectLookup::new(image).expect("reads"), whole, &offsets, usize::MAX);
}

/// The index of the whole image.
pub(crate) fn whole(image: &Image<'_>) -> Index<Vec<u8>> {
    Index::open(build(image).expect("builds").bytes).expect("opens")
}

/// The starts and ends of the index's ranges, and the offsets beside them.
pub(crate) fn boundaries(index: &Index<Vec<u8>>) -> Vec<u64> {
    let mut offsets = BTreeSet::new();
    for table in [Table::Dwarf, Table::SymbolTable] {
        for chunk in index.chunks(table) {
            for range in chunk.expect("intact").1.ranges {
                offsets.extend([range.start.saturating_sub(1), range.start, range.end - 1, range.end]);
            }
        }
    }
    offsets.into_iter().collect()
}

/// Random offsets in the executable sections, and a little outside of them.
pub(crate) fn random(image: &Image<'_>, count: u64, seed: u64) -> Vec<u64> {
    let sections = &image.info().executable;
    let size: u64 = sections.iter().map(|(start, end)| end - start + 1).sum();
    let mut state = seed;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut at = (mixed ^ mixed >> 31) % size.max(1);
        for (start, end) in sections {
            match at.checked_sub(end - start + 1) {
                Some(rest) => at = rest,
                None => return start + at,
            }
        }
        at
    };
    (0..count).map(|_| next()).collect()
}

/// Compares the answers of `lookup` and of `index` at `offsets`. Each question has `at_a_time` of them.
pub(crate) fn assert_same(
    lookup: &mut DirectLookup<'_, '_>,
    whole: &Index<Vec<u8>>,
    offsets: &[u64],
    at_a_time: usize,
) {
    let (mut scratch, mut of_whole) = (Scratch::default(), Scratch::default());
    for offsets in offsets.chunks(at_a_time) {
        let asked: Vec<_> = offsets.iter().copied().map(ImageOffset).collect();
        let index = lookup.answer(&asked).expect("answers");
        for offset in offsets {
            let expected = answer(whole, *offset, &mut of_whole);
            assert_eq!(answer(index, *offset, &mut scratch), expected, "{:?} {offset:#x}", index.metadata());
        }
    }
}
