//! The offsets that are asked for.

use std::collections::BTreeSet;

use anyhow::Result;
use fastrand::Rng;
use symdex::{Index, Table};

/// How many offsets are asked for in an image, at most.
const OFFSETS: usize = 10_000;

/// The starts of functions and ranges, the bytes before and after them, and random bytes of each executable section:
/// all of them, or equal parts of each kind. They ascend.
pub fn offsets<B: AsRef<[u8]>>(index: &Index<B>) -> Result<Vec<u64>> {
    let mut random = Rng::with_seed(2026);
    let (mut functions, mut ranges) = (BTreeSet::new(), BTreeSet::new());
    for table in [Table::Dwarf, Table::SymbolTable] {
        for chunk in index.chunks(table) {
            for range in chunk?.1.ranges {
                functions.extend(range.function_start);
                ranges.insert(range.start);
            }
        }
    }
    let size = index.metadata().image_size;
    let code: Vec<_> = index.metadata().executable.iter().filter(|(start, end)| start < end).collect();
    let byte = |_| code.get(random.usize(..code.len().max(1))).map(|(start, end)| random.u64(start..end));
    let random_bytes = (0..OFFSETS).filter_map(byte).collect();
    let beside = |at: &u64| [at.wrapping_sub(1), *at, at + 1];
    let kinds: [BTreeSet<u64>; 3] =
        [functions.iter().flat_map(beside).collect(), ranges.iter().flat_map(beside).collect(), random_bytes];
    let mut asked = BTreeSet::new();
    for kind in kinds {
        let mut kind: Vec<_> = kind.into_iter().filter(|at| *at < size).collect();
        random.shuffle(&mut kind);
        asked.extend(kind.into_iter().take(OFFSETS / 3));
    }
    Ok(asked.into_iter().collect())
}
