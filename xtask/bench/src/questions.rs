//! The addresses that all tools are asked for. They are the same in every run.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Result, ensure};
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use symdex::{Index, Table};

/// The number of addresses of each kind.
const LOOKUPS: usize = 100_000;
/// The number of frames of a crash report, and of distinct addresses among them.
const REPORT_FRAMES: usize = 100;
const REPORT_ADDRESSES: usize = 60;

/// The image offsets to look up.
#[derive(Serialize, Deserialize)]
pub struct Questions {
    /// Each function is equally likely, and so is each of its bytes.
    pub uniform: Vec<u64>,
    /// Functions by Zipf's law: the nth function of a random order is n times less likely than the first. Each byte of
    /// a function is equally likely.
    pub zipf: Vec<u64>,
    /// Drawn as the uniform ones, without repetition, and in none of the other lists. There are fewer if the image is
    /// small.
    pub fresh: Vec<u64>,
    /// The frames of one crash report.
    pub report: Vec<u64>,
    /// The image's base. Addresses in the debug file count from it.
    pub base: u64,
}

impl Questions {
    /// Draws questions from the functions of the `dwarf` table, or of the `symbol_table` if `dwarf` is empty.
    ///
    /// # Errors
    /// The index is damaged or has no functions.
    pub fn of<B: AsRef<[u8]>>(index: &Index<B>) -> Result<Self> {
        let mut functions = functions(index, Table::Dwarf)?;
        if functions.is_empty() {
            functions = self::functions(index, Table::SymbolTable)?;
        }
        ensure!(!functions.is_empty(), "no functions to ask for");
        let mut random = Rng::with_seed(2026);
        let uniform = repeat(LOOKUPS, || {
            let function = random.usize(..functions.len());
            byte_of(&functions[function], &mut random)
        });
        random.shuffle(&mut functions);
        let sums = harmonic_sums(functions.len());
        let total = sums.last().copied().unwrap_or_default();
        let zipf = repeat(LOOKUPS, || {
            let at = random.f64() * total;
            let function = sums.partition_point(|sum| *sum < at).min(functions.len() - 1);
            byte_of(&functions[function], &mut random)
        });
        let addresses = uniform.iter().take(REPORT_ADDRESSES).copied();
        let repeated = repeat(REPORT_FRAMES - REPORT_ADDRESSES, || uniform[random.usize(..REPORT_ADDRESSES)]);
        let mut report: Vec<u64> = addresses.chain(repeated).collect();
        random.shuffle(&mut report);
        let mut asked: HashSet<u64> = uniform.iter().chain(&zipf).copied().collect();
        let others =
            repeat(4 * LOOKUPS, || byte_of(&functions[random.usize(..functions.len())], &mut random));
        let fresh = others.into_iter().filter(|offset| asked.insert(*offset)).take(LOOKUPS).collect();
        Ok(Self { uniform, zipf, fresh, report, base: index.metadata().base })
    }
}

fn repeat(times: usize, make: impl FnMut() -> u64) -> Vec<u64> {
    std::iter::repeat_with(make).take(times).collect()
}

/// The ranges of each function. The functions are in address order.
fn functions<B: AsRef<[u8]>>(index: &Index<B>, table: Table) -> Result<Vec<Vec<(u64, u64)>>> {
    let mut functions: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for chunk in index.chunks(table) {
        for range in chunk?.1.ranges {
            if let Some(function) = range.function_start {
                functions.entry(function).or_default().push((range.start, range.end));
            }
        }
    }
    Ok(functions.into_values().collect())
}

/// Draws a byte of the ranges. All bytes are equally likely.
fn byte_of(ranges: &[(u64, u64)], random: &mut Rng) -> u64 {
    let mut at = random.u64(..ranges.iter().map(|(start, end)| end - start).sum::<u64>().max(1));
    for (start, end) in ranges {
        if at < end - start {
            return start + at;
        }
        at -= end - start;
    }
    ranges.first().map_or(0, |(start, _)| *start)
}

/// The sums 1, 1 + 1/2, 1 + 1/2 + 1/3, ...
fn harmonic_sums(len: usize) -> Vec<f64> {
    let terms = (1..=len).map(|n| 1.0 / n as f64);
    terms
        .scan(0.0, |sum, term| {
            *sum += term;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_bytes_lie_in_the_ranges_and_cover_all_of_them() {
        let mut random = Rng::with_seed(1);
        let drawn: std::collections::BTreeSet<u64> =
            (0..1000).map(|_| byte_of(&[(10, 12), (20, 23)], &mut random)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [10, 11, 20, 21, 22]);
    }
}
