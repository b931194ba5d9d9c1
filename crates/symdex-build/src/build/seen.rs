//! What was found in a debug file, compared with what its index has. An index that lacks all of it is no success.

use symdex::write::ChunkRanges;
use symdex::{Counts, Seen, Table};

use crate::error::Error;
use crate::report::{Problems, TextCoverage};

/// What the chunks of an index have, counted where they are encoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EncodedCounts {
    /// Bytes of code that the ranges of both tables cover.
    covered: [u64; 2],
    has_inlined: bool,
    has_lines: bool,
}

impl EncodedCounts {
    pub(super) fn add(&mut self, table: Table, chunk: &ChunkRanges) {
        let covered: u64 = chunk.ranges.iter().map(|range| range.end - range.start).sum();
        self.covered[usize::from(table == Table::SymbolTable)] += covered;
        if table == Table::Dwarf {
            self.has_inlined = self.has_inlined || chunk.frames.iter().any(|frame| frame.parent.is_some());
            self.has_lines = self.has_lines || chunk.frames.iter().any(|frame| frame.line.is_some());
        }
    }
}

/// Compares what was found, `counts.seen`, with what the index has. `merged` is the number of functions that units
/// have given to the merge, and `coverage` has the bytes that were merged. What an index lacks without being empty is
/// counted in `problems`.
///
/// # Errors
///
/// [`Error::NothingIndexed`] if functions or symbols were found and the index has none of them, or not all that were
/// merged; [`Error::NothingFound`] if the image has code and nothing to answer, unless `allow_empty` is set.
pub(super) fn compare(
    counts: &Counts,
    merged: u64,
    (coverage, encoded): (&TextCoverage, &EncodedCounts),
    allow_empty: bool,
    problems: &mut Problems,
) -> Result<(), Error> {
    let Seen { functions, inlined, rows, symbols, functions_outside, symbols_outside } = counts.seen;
    let nothing = |found: String, why: &str| Err(Error::NothingIndexed { found, why: why.to_owned() });
    let covered = [coverage.dwarf, coverage.symbol_table];
    if functions != merged || covered != encoded.covered {
        let found = format!("{functions} functions and code of {} bytes", covered[0].max(covered[1]));
        return nothing(found, "some were lost on the way to the index, which is a fault of symdex");
    }
    if functions != 0 && counts.functions == 0 {
        return nothing(format!("{functions} functions"), "other code covers them");
    }
    if symbols != 0 && counts.symbols == 0 {
        return nothing(format!("{symbols} symbols"), "other code covers them");
    }
    let is_empty = counts.ranges == 0 && counts.symbols == 0;
    if is_empty && functions_outside + symbols_outside != 0 {
        let found = format!("{functions_outside} functions and {symbols_outside} function symbols");
        return nothing(found, "all of them lie outside of its executable sections");
    }
    // An image without code, such as a framework of resources, lacks nothing.
    let has_code = coverage.executable != 0 || !problems.lost().is_empty();
    if is_empty && has_code && !allow_empty {
        const LISTED: usize = 3;
        let lost: Vec<&str> = problems.lost().keys().take(LISTED).map(String::as_str).collect();
        return Err(Error::NothingFound { lost: lost.join("; ") });
    }
    if functions == 0 {
        problems
            .add("functions of the debug information, all outside of the image's code", functions_outside);
    }
    problems
        .add("inlined calls, of which none is in the index", if encoded.has_inlined { 0 } else { inlined });
    problems.add("line rows, of which none is in the index", if encoded.has_lines { 0 } else { rows });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(
        counts: Counts,
        merged: u64,
        encoded: EncodedCounts,
        allow_empty: bool,
    ) -> Result<Vec<String>, String> {
        let whole = TextCoverage { executable: 9, dwarf: 4, symbol_table: 2, ..TextCoverage::default() };
        let nothing = TextCoverage { executable: 9, ..TextCoverage::default() };
        let coverage = if counts == Counts::default() { nothing } else { whole };
        let mut problems = Problems::default();
        let compared = compare(&counts, merged, (&coverage, &encoded), allow_empty, &mut problems);
        compared.map(|()| problems.lost().keys().cloned().collect()).map_err(|error| error.to_string())
    }

    const SEEN: Seen =
        Seen { functions: 2, inlined: 1, rows: 3, symbols: 2, functions_outside: 0, symbols_outside: 0 };
    const WHOLE: EncodedCounts = EncodedCounts { covered: [4, 2], has_inlined: true, has_lines: true };

    fn whole() -> Counts {
        Counts { functions: 2, ranges: 3, symbols: 2, seen: SEEN, ..Counts::default() }
    }

    #[test]
    fn an_index_of_all_that_was_found_is_whole() {
        assert_eq!(result(whole(), 2, WHOLE, false), Ok(Vec::new()));
    }

    #[test]
    fn an_index_without_what_was_found_is_refused() {
        let refused = |counts, merged, encoded| result(counts, merged, encoded, true).expect_err("refused");
        assert!(refused(whole(), 1, WHOLE).contains("a fault of symdex"), "a unit was not merged");
        for covered in [[3, 2], [5, 2], [4, 1], [4, 3]] {
            assert!(refused(whole(), 2, EncodedCounts { covered, ..WHOLE }).contains("a fault of symdex"));
        }
        assert!(refused(Counts { functions: 0, ..whole() }, 2, WHOLE).contains("2 functions"));
        assert!(refused(Counts { symbols: 0, ..whole() }, 2, WHOLE).contains("2 symbols"));
        for (functions_outside, symbols_outside) in [(1, 0), (0, 1)] {
            let seen = Seen { functions_outside, symbols_outside, ..Seen::default() };
            let counts = Counts { seen, ..Counts::default() };
            assert!(refused(counts, 0, WHOLE).contains("outside of its executable sections"));
        }
    }

    #[test]
    fn an_index_of_nothing_is_refused_unless_it_is_wanted() {
        let empty = |allow_empty| result(Counts::default(), 0, EncodedCounts::default(), allow_empty);
        assert!(empty(false).expect_err("refused").contains("nothing to answer"));
        assert_eq!(empty(true), Ok(Vec::new()));
        let (coverage, encoded) = Default::default();
        let mut problems = Problems::default();
        let without_code = compare(&Counts::default(), 0, (&coverage, &encoded), false, &mut problems);
        assert!(without_code.is_ok(), "there is nothing to lack");
        problems.add("a debug file is missing", 1);
        assert!(compare(&Counts::default(), 0, (&coverage, &encoded), false, &mut problems).is_err());
    }

    #[test]
    fn an_index_that_lacks_a_kind_is_partial() {
        let encoded = EncodedCounts { has_inlined: false, has_lines: false, ..WHOLE };
        let lost = result(whole(), 2, encoded, false).expect("not empty");
        assert!(
            matches!(&lost[..], [calls, rows] if calls.starts_with("inlined") && rows.starts_with("line"))
        );
        let seen = Seen { symbols: 2, functions_outside: 3, ..Seen::default() };
        let counts = Counts { symbols: 2, seen, ..Counts::default() };
        assert!(result(counts, 0, WHOLE, false).expect("has symbols")[0].starts_with("functions of"));
    }
}
