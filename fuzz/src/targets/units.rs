//! Valid units in Mach-O and ELF that are made from the bytes: functions, inlined calls, ranges and lines.

use std::path::Path;

use arbitrary::{Result, Unstructured};
use symdex_testkit::images::Random;
use symdex_testkit::images::debug_file::{BASE, CODE, Die, Unit, debug_file, image};

use crate::{checks, input};

/// The image offsets of a part of the code between `start` and `end`.
fn range(from: &mut Unstructured<'_>, (start, end): (u64, u64)) -> Result<(u64, u64)> {
    let start = from.int_in_range(start..=end)?;
    Ok((start, from.int_in_range(start..=end)?))
}

fn die(from: &mut Unstructured<'_>, inside: (u64, u64), depth: u8) -> Result<Die> {
    let range_of_all =
        if from.ratio(7_u8, 8)? { range(from, inside)? } else { range(from, (CODE.start, CODE.end))? };
    let die = match (depth, from.int_in_range(0..=3_u8)?) {
        (0, 0) => Die::function("plain", range_of_all).label("f"),
        (0, _) => Die::function(from.choose(&["main", "_ZN1a1bEv", ""])?, range_of_all),
        (_, 0) => Die::new(gimli::DW_TAG_lexical_block).ranges(&[range_of_all, range(from, inside)?]),
        (_, 1) => Die::inlined("f", from.arbitrary()?).ranges(&[range_of_all, range(from, inside)?]),
        (_, 2) => Die::inlined("g", from.int_in_range(0..=9)?)
            .with_end(BASE + range_of_all.0, BASE + range_of_all.1),
        _ => Die::inlined("g", from.int_in_range(0..=9)?).range(range_of_all),
    };
    let count = if depth > 5 { 0 } else { from.int_in_range(0..=3_u8)? };
    (0..count).try_fold(die, |die, _| Ok(die.child(self::die(from, range_of_all, depth + 1)?)))
}

fn unit(from: &mut Unstructured<'_>, part: (u64, u64)) -> Result<Unit> {
    let unit = if from.ratio(1_u8, 4)? { Unit::bare() } else { Unit::new(part) };
    let unit = unit
        .version(*from.choose(&[2, 3, 4])?)
        .child(Die::new(gimli::DW_TAG_subprogram).name("g").label("g"));
    let unit = unit.child(Die::new(gimli::DW_TAG_subprogram).name("f").label("f"));
    let count = from.int_in_range(1..=5_u8)?;
    let unit = (0..count).try_fold(unit, |unit, _| Ok(unit.child(die(from, part, 0)?)))?;
    let rows = (0..from.int_in_range(0..=9_u8)?).map(|_| {
        Ok((range(from, part)?.0, from.int_in_range(0..=3)?, from.int_in_range(0..=20)?, from.arbitrary()?))
    });
    let rows: Vec<(u64, u64, i64, bool)> = rows.collect::<Result<_>>()?;
    Ok(unit.sequence(&rows, range(from, part)?.1))
}

pub fn run(data: &[u8]) {
    let (kind, data) = input::choice(data);
    let (from, middle) = (&mut Unstructured::new(data), CODE.start.midpoint(CODE.end));
    let mut units = Vec::new();
    for part in [(CODE.start, middle), (middle, CODE.end)].into_iter().take(1 + usize::from(kind % 2)) {
        units.extend(unit(from, part));
    }
    let file = if kind & 2 == 0 {
        debug_file(&units, &[("s", 0x1800), ("t", 0x2800)])
    } else {
        image(&units).bytes()
    };
    checks::debug_file(&file, Path::new("/nonexistent/fuzzed"));
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |seed| {
        let mut random = Random::new(seed);
        (0..400).map(|_| u8::try_from(random.below(256)).expect("a byte")).collect()
    };
    (0..16).map(seed).collect()
}
