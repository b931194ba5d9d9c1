//! The line policy `statement`: the file and line of ranges whose row does not begin a statement.
//!
//! A row is cut into pieces where the inline instance changes. A piece of an `is_stmt` row has the file and line of its
//! row. A piece of any other row takes the file and line of the nearest preceding `is_stmt` piece in the same sequence
//! and instance. If there is no such piece, it keeps the file and line of its row. Therefore `statement` never shows
//! the line of another instance: its answers in an instance are answers of `exact` in that instance.
//!
//! ```text
//! rows        |-- 2, is_stmt --|--------- 7 ---------|----- 9, is_stmt -----|---- 0 ----|
//! instances   |------------ f ------------|---- g, inlined ----|----------- f -----------|
//! exact       |      f:2       |   f:7    |   g:7    |   g:9   |    f:9     |    f:0    |
//! statement   |      f:2       |   f:2    |   g:7    |   g:9   |    f:9     |    f:9    |
//! ```

use symdex::write::NonMaxU32;

use super::rows::Row;
use crate::keyed::KeyedMap;

/// A file, as an index into the unit's file table, and a line.
pub(super) type FileLine = (u32, Option<NonMaxU32>);

/// Tracks the last `is_stmt` piece of each inline instance. The pieces of a unit come in address order.
pub(super) struct Statements {
    /// By node: the sequence of its last `is_stmt` piece, and that piece's file and line.
    last: Vec<Option<(u32, FileLine)>>,
    /// The pieces of `last` that a piece of another sequence has replaced, by node and sequence. A sequence may
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
        match *last {
            Some((sequence, statement)) if sequence == row.sequence && !row.is_stmt => statement,
            _ if !row.is_stmt => self.replaced.get(&(node, row.sequence)).copied().unwrap_or(own),
            before => {
                *last = Some((row.sequence, own));
                if let Some((sequence, statement)) = before.filter(|before| before.0 != row.sequence) {
                    self.replaced.insert((node, sequence), statement);
                }
                own
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece: the node it is in, the sequence, line and `is_stmt` of its row.
    type Piece = (u32, u32, u32, bool);

    fn row(&(_, sequence, line, is_stmt): &Piece) -> Row {
        Row { start: 0, end: 1, file: 1, line: NonMaxU32::new(line.into()), is_stmt, sequence }
    }

    fn lines(pieces: &[Piece]) -> Vec<u32> {
        let mut statements = Statements::new(8);
        let next = |piece: &Piece| statements.next(piece.0, &row(piece)).1.expect("has a line").get();
        pieces.iter().map(next).collect()
    }

    #[test]
    fn a_piece_takes_the_last_statement_of_its_own_instance() {
        let pieces = [(0, 0, 2, true), (0, 0, 7, false), (1, 0, 7, false), (1, 0, 9, true), (0, 0, 9, true)];
        assert_eq!(
            lines(&[&pieces[..], &[(0, 0, 0, false), (1, 0, 3, false)]].concat()),
            [2, 2, 7, 9, 9, 9, 9]
        );
    }

    #[test]
    fn a_statement_of_another_sequence_does_not_count() {
        assert_eq!(
            lines(&[(0, 0, 2, true), (0, 1, 5, false), (0, 1, 6, true), (0, 1, 7, false)]),
            [2, 5, 6, 6]
        );
    }

    #[test]
    fn a_sequence_that_goes_on_behind_another_keeps_its_statement() {
        let pieces = [(0, 0, 2, true), (0, 1, 5, true), (0, 0, 3, false), (0, 1, 6, false), (0, 2, 8, false)];
        assert_eq!(lines(&pieces), [2, 5, 2, 5, 8]);
    }

    #[test]
    fn pieces_answer_as_a_search_backwards_does() {
        let mut random = crate::random::Random(7);
        for _ in 0..500 {
            let pieces: Vec<Piece> = (0..40)
                .map(|line| {
                    let mut below = |n| u32::try_from(random.below(n)).expect("small");
                    (below(3), below(3), line, below(2) == 0)
                })
                .collect();
            let expected = pieces.iter().enumerate().map(|(number, &(node, sequence, line, is_stmt))| {
                let before = pieces[..number].iter().rev();
                let mut found = before.filter(|piece| (piece.0, piece.1, piece.3) == (node, sequence, true));
                if is_stmt { line } else { found.next().map_or(line, |piece| piece.2) }
            });
            assert_eq!(lines(&pieces), expected.collect::<Vec<_>>(), "{pieces:?}");
        }
    }
}
