//! The line policy `statement`: a file and line for the ranges whose row has none.
//!
//! A row is cut into pieces where the inline instance changes. A piece keeps the file and line of its row, unless the
//! line is 0 or missing. It then takes the file and line of the nearest preceding piece of the same sequence and
//! instance that begins a statement (`is_stmt`) and has a line. If there is no such piece, it keeps those of its row.
//! Therefore `statement` never shows the line of another instance: its answers in an instance are answers of `exact`
//! in that instance.
//!
//! A row that begins no statement keeps its line too: with Key Instructions (clang), `is_stmt` marks the places where a
//! debugger stops, and most other rows have lines of their own.
//!
//! ```text
//! rows        |-- 2, is_stmt --|-- 7 --|-------- 0 --------|-- 9, is_stmt --|-------- 0 --------|
//! instances   |---------------- f -----------------|--------- g, inlined ---------|----- f -----|
//! exact       |      f:2       |  f:7  |    f:0    |  g:0  |      g:9       | g:0 |     f:0     |
//! statement   |      f:2       |  f:7  |    f:2    |  g:0  |      g:9       | g:9 |     f:2     |
//! ```

use symdex::write::NonMaxU32;

use super::rows::Row;
use crate::keyed::KeyedMap;

/// A file, as an index into the unit's file table, and a line.
pub(super) type FileLine = (u32, Option<NonMaxU32>);

/// Tracks the last statement with a line of each inline instance. The pieces of a unit come in address order.
pub(super) struct Statements {
    /// By node: the sequence of its last statement with a line, and that statement's file and line.
    last: Vec<Option<(u32, FileLine)>>,
    /// The entries of `last` that a statement of another sequence has replaced, by node and sequence. A sequence may
    /// continue after another sequence interrupts it.
    replaced: KeyedMap<(u32, u32), FileLine>,
}

impl Statements {
    /// An empty state for a unit with this many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Self { last: vec![None; nodes], replaced: KeyedMap::default() }
    }

    /// The file and line of the next piece under `statement`. The piece belongs to `row` and to the instance of `node`.
    #[inline]
    pub(super) fn next(&mut self, node: u32, row: &Row) -> FileLine {
        let own = (row.file, row.line);
        let last = &mut self.last[node as usize];
        let has_line = row.line.is_some_and(|line| line.get() != 0);
        if !has_line {
            return match *last {
                Some((sequence, statement)) if sequence == row.sequence => statement,
                _ => self.replaced.get(&(node, row.sequence)).copied().unwrap_or(own),
            };
        }
        if row.is_stmt {
            let before = last.replace((row.sequence, own));
            if let Some((sequence, statement)) = before.filter(|before| before.0 != row.sequence) {
                self.replaced.insert((node, sequence), statement);
            }
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece: the node it is in, the sequence, line and `is_stmt` of its row.
    type Piece = (u32, u32, u32, bool);

    fn row(&(_, sequence, line, is_stmt): &Piece) -> Row {
        // There is no line above u32::MAX - 1.
        Row { start: 0, end: 1, file: 1, line: NonMaxU32::new(line.into()), is_stmt, column: 0, sequence }
    }

    fn lines(pieces: &[Piece]) -> Vec<Option<u32>> {
        let mut statements = Statements::new(8);
        let next = |piece: &Piece| statements.next(piece.0, &row(piece)).1.map(NonMaxU32::get);
        pieces.iter().map(next).collect()
    }

    #[test]
    fn a_piece_without_a_line_takes_that_of_the_last_statement_of_its_own_instance() {
        let pieces = [(0, 0, 2, true), (0, 0, 7, false), (0, 0, 0, true), (1, 0, 0, false), (1, 0, 9, true)];
        let pieces = [&pieces[..], &[(1, 0, u32::MAX, false), (0, 0, 0, false)]].concat();
        assert_eq!(lines(&pieces), [2, 7, 2, 0, 9, 9, 2].map(Some));
    }

    #[test]
    fn a_statement_of_another_sequence_does_not_count() {
        let pieces = [(0, 0, 2, true), (0, 1, 0, false), (0, 1, 6, true), (0, 1, 0, true)];
        assert_eq!(lines(&pieces), [2, 0, 6, 6].map(Some));
        assert_eq!(lines(&[(0, 0, 2, true), (0, 1, u32::MAX, true)]), [Some(2), None]);
    }

    #[test]
    fn a_sequence_that_goes_on_behind_another_keeps_its_statement() {
        let pieces = [(0, 0, 2, true), (0, 1, 5, true), (0, 0, 0, false), (0, 1, 0, false), (0, 2, 0, false)];
        assert_eq!(lines(&pieces), [2, 5, 2, 5, 0].map(Some));
    }

    #[test]
    fn pieces_answer_as_a_search_backwards_does() {
        let mut random = crate::random::Random(7);
        for _ in 0..500 {
            let pieces: Vec<Piece> = (1..40)
                .map(|line| {
                    let mut below = |n| u32::try_from(random.below(n)).expect("small");
                    (below(3), below(3), [line, 0, u32::MAX][below(3) as usize], below(2) == 0)
                })
                .collect();
            let has_line = |line: u32| line != 0 && line != u32::MAX;
            let expected = pieces.iter().enumerate().map(|(number, &(node, sequence, line, _))| {
                let before = pieces[..number].iter().rev();
                let mut found = before.filter(|piece| {
                    (piece.0, piece.1, piece.3) == (node, sequence, true) && has_line(piece.2)
                });
                let found = if has_line(line) { None } else { found.next() };
                Some(found.map_or(line, |piece| piece.2)).filter(|line| *line != u32::MAX)
            });
            assert_eq!(lines(&pieces), expected.collect::<Vec<_>>(), "{pieces:?}");
        }
    }
}
