use symdex::write::{InlineFrame, NonMaxU32};

use super::*;
use crate::image::short;
use crate::pools::{Hashed, Pool};
use crate::random::Random;
use crate::unit_ranges::FunctionRange;

impl Random {
    fn number(&mut self, limit: u64) -> u32 {
        u32::try_from(self.below(limit)).expect("small")
    }

    fn id(&mut self, limit: u64) -> Option<NonMaxU32> {
        self.below(limit + 1).checked_sub(1).and_then(NonMaxU32::new)
    }
}

const CHUNK: u32 = 16;

/// A unit with code anywhere between `low` and address 8192. Its functions have a few function ranges each, which share
/// inline frames. If `entries` is set, some function ranges have an entry.
fn unit(random: &mut Random, low: u64, entries: bool) -> UnitRanges<'static> {
    const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];
    let mut unit = UnitRanges { functions: 5, ..UnitRanges::default() };
    for _ in 0..4 {
        unit.names.push(Hashed::new(NAMES[random.number(6) as usize].into()));
        unit.files.push(NAMES[random.number(6) as usize].to_vec());
    }
    for number in 0..12 {
        let parent = if number == 0 { None } else { random.id(number) };
        let (name, file, line) = (random.id(4), random.id(4), random.id(3));
        unit.frames.push(InlineFrame { parent, name, file, line });
    }
    let mut at = low;
    while at < 8192 && random.below(30) != 0 {
        let longest = [4, 40, 1200][random.number(3) as usize];
        let (start, size) = (at, 1 + random.below(longest));
        let rank = (start, Reverse(size), random.below(2) == 0, Reverse(random.number(9) as usize));
        let entry = random.id(12).filter(|_| entries && random.below(4) == 0);
        unit.function_ranges.push(FunctionRange {
            start,
            end: start + size,
            function: random.number(5),
            rank,
            entry,
        });
        let function_range =
            if random.below(5) == 0 { None } else { NonMaxU32::new(unit.function_ranges.len() as u64 - 1) };
        while at < start + size {
            let end = (start + size).min(at + 1 + random.below(30));
            if random.below(9) != 0 {
                let (exact, statement) = (random.number(12), random.number(12));
                let (start, end) = (short(at), short(end));
                unit.ranges.push(UnitRange { start, end, function_range, exact, statement });
            }
            at = end;
        }
        at += [0, random.below(20), random.below(2000)][random.number(3) as usize];
    }
    unit
}

/// The result of a merge of `units`, as text, and the most memory the units took. `is_time_to` is called after each
/// unit whether to merge up to the next unit, and whether to spill units.
fn merged(
    units: Vec<UnitRanges<'static>>,
    entries: bool,
    mut is_time_to: impl FnMut(usize) -> (bool, bool),
) -> (Vec<String>, usize) {
    let mut pools = Pools { names: Pool::new(100), files: Pool::new(100) };
    let mut merge = Merge::new(CHUNK);
    let (mut jobs, mut peak) = (Vec::new(), 0);
    let first = |unit: &UnitRanges<'_>| unit.ranges.first().map(|range| u64::from(range.start));
    let mut lows: Vec<_> = units.iter().map(first).collect();
    lows.reverse();
    for (number, unit) in units.into_iter().enumerate() {
        lows.pop();
        assert!(merge.add(unit, &mut pools).is_ok(), "in order");
        let (is_time_to_merge, is_time_to_spill) = is_time_to(number);
        let watermark = if lows.is_empty() {
            Some(u64::MAX)
        } else {
            lows.iter().flatten().min().filter(|_| is_time_to_merge).map(|low| match entries {
                // An entry is the answer of its range up to here, or to the end of the chunk.
                true => low / u64::from(CHUNK) * u64::from(CHUNK),
                false => *low,
            })
        };
        if is_time_to_spill {
            merge.spill().expect("a temporary file");
        }
        peak = peak.max(merge.size);
        while let Some(watermark) = watermark
            && let Some(more) =
                merge.step(watermark, usize::MAX, &mut pools).ok().expect("the temporary file")
        {
            jobs.extend(more);
        }
    }
    assert_eq!((merge.size, merge.units.iter().flatten().count()), (0, 0), "everything is let go");
    let job = |job: &ChunkJob| format!("{} {:?}", job.index, job.ranges);
    let mut text: Vec<_> = jobs.iter().map(job).collect();
    text.push(format!("{} {} {:?}", merge.functions, merge.ranges(), merge.covered()));
    let strings = [pools.names.into_strings(), pools.files.into_strings()];
    text.push(format!("{strings:?}"));
    (text, peak)
}

#[test]
fn the_chunks_are_the_same_whatever_is_spilled() {
    let mut random = Random(1);
    let mut spilled_less = 0;
    for case in 0..60 {
        let (seed, entries) = (random.below(1 << 30), case % 2 == 0);
        let units = || {
            let mut random = Random(seed);
            let mut low = 0;
            let mut next = || {
                low += if random.below(3) == 0 { random.below(1500) } else { 0 };
                unit(&mut random, low, entries)
            };
            let mut units: Vec<_> = (0..7).map(|_| next()).collect();
            units.sort_by_key(|unit| unit.ranges.first().map(|range| range.start));
            units
        };
        let (expected, peak) = merged(units(), entries, |_| (false, false));
        assert!(expected.len() > 3, "there are chunks: {expected:?}");
        assert_eq!(merged(units(), entries, |_| (true, false)).0, expected, "case {case}, merged early");
        let (all_spilled, spilled_peak) = merged(units(), entries, |_| (true, true));
        assert_eq!(all_spilled, expected, "case {case}, always spilled");
        spilled_less += u32::from(spilled_peak < peak / 2);
        let some = merged(units(), entries, |_| (random.below(2) == 0, random.below(2) == 0)).0;
        assert_eq!(some, expected, "case {case}, sometimes spilled");
    }
    assert!(spilled_less > 20, "in {spilled_less} cases less than half was in memory");
}
