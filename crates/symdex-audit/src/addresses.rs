//! Which addresses are compared.

use rayon::prelude::*;

use crate::facts::Facts;

/// How many addresses a block of a sample has.
const BLOCK_LEN: usize = 1 << 10;

/// The image offsets to compare, sorted: every line row, both ends of every range of a function, an inlined subroutine,
/// a unit or a function of the symbol table or of a Go program, the addresses beside them, and the starts of the
/// executable sections.
pub(crate) fn stated(facts: &Facts<'_, '_>) -> Vec<u64> {
    let info = facts.image.info();
    let in_code = |svma: u64| {
        let offset = svma.checked_sub(info.base)?;
        let section = info.executable.partition_point(|section| section.0 <= offset).checked_sub(1)?;
        (offset < info.executable[section].1).then_some(offset)
    };
    let beside = |svma: u64| [svma.saturating_sub(2), svma.saturating_sub(1), svma, svma.saturating_add(1)];
    let mut addresses: Vec<u64> = facts
        .units
        .par_iter()
        .flat_map_iter(|unit| {
            let declared = [&unit.dies.in_root, &unit.dies.in_aranges].into_iter().flatten();
            let declared = declared.flat_map(|(start, end)| [*start, *end]);
            let stated = unit.dies.addresses.iter().chain(&unit.lines.addresses).copied();
            let mut unit: Vec<u64> = stated.chain(declared).flat_map(beside).filter_map(in_code).collect();
            unit.sort_unstable();
            unit.dedup();
            unit
        })
        .collect();
    let in_table = facts.table.iter().flat_map(|function| [function.start, function.end]);
    addresses
        .extend(in_table.map(|offset| info.base.saturating_add(offset)).flat_map(beside).filter_map(in_code));
    let in_go = facts.go.iter().flat_map(|go| go.addresses());
    addresses.extend(in_go.flat_map(beside).filter_map(in_code));
    addresses.extend(info.executable.iter().map(|section| section.0));
    sorted(addresses)
}

/// `addresses`, and `count` random image offsets in the executable sections. They depend on `seed` only.
pub(crate) fn with_random(
    facts: &Facts<'_, '_>,
    mut addresses: Vec<u64>,
    count: u64,
    mut seed: u64,
) -> Vec<u64> {
    let executable = &facts.image.info().executable;
    let size: u64 = executable.iter().map(|(start, end)| end - start).sum();
    for _ in 0..if size == 0 { 0 } else { count } {
        let mut at = random(&mut seed) % size;
        for (start, end) in executable {
            if at < end - start {
                addresses.push(start + at);
                break;
            }
            at -= end - start;
        }
    }
    sorted(addresses)
}

/// The first of each `every` blocks of `addresses`.
pub(crate) fn sampled(addresses: &[u64], every: usize) -> Vec<u64> {
    addresses.chunks(BLOCK_LEN).step_by(every).flatten().copied().collect()
}

fn sorted(mut addresses: Vec<u64>) -> Vec<u64> {
    addresses.par_sort_unstable();
    addresses.dedup();
    addresses
}

/// The next number of the generator SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
