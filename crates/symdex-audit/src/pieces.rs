//! The line policy `statement`: its answer for each part of a line row.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::lines::{Lines, Piece};

/// The parts of all rows of a unit, in address order. `borders` are image offsets at which the inline instance can
/// change. `instance` returns the instance of an image offset, and the offset of the line sequence that its function
/// states.
///
/// Each row is cut at every border. A part with a line has the row's own answer. A part without one, or with line 0,
/// has the answer of the last part in the same sequence and the same instance that has is_stmt and a line. It has its
/// own answer if there is no such part, or if the code is in no function.
pub(crate) fn pieces<I: Eq + Hash + Copy>(
    lines: &Lines,
    borders: impl Iterator<Item = u64>,
    mut instance: impl FnMut(u64) -> (Option<I>, Option<u64>),
) -> Vec<Piece> {
    let ends = lines.by_address.all().iter().flat_map(|sequence| [sequence.start, sequence.end]);
    let mut cuts: Vec<u64> = lines.rows.iter().map(|row| row.address).chain(ends).chain(borders).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut last, mut covering, mut pieces) = (FxHashMap::default(), Vec::new(), Vec::new());
    for start in cuts {
        let (instance, stated) = instance(start);
        let Some((number, sequence)) = lines.row_at(start, stated, &mut covering) else { continue };
        let row = lines.rows[number];
        let mut piece = Piece { start, file: row.file, line: row.line };
        if let Some(instance) = instance {
            // No index has a line of u32::MAX.
            if !(1..u32::MAX).contains(&row.line) {
                let statement = last.get(&(sequence, instance)).copied();
                (piece.file, piece.line) = statement.unwrap_or((row.file, row.line));
            } else if row.is_stmt {
                last.insert((sequence, instance), (row.file, row.line));
            }
        }
        pieces.push(piece);
    }
    pieces
}
