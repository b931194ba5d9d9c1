//! The rows of one unwind table, and what is left of them where another table has rows, too.

use symdex::write::{UnwindRange, UnwindRules, UnwindTable};

use super::Limits;
use crate::error::Error;
use crate::image::Image;
use crate::report::Problems;

/// How many rows are added between two checks of the time and the memory.
const CHECKED: usize = 256;

/// Collects the rows of a table, entry by entry.
pub(super) struct Layer<'i, 'd> {
    pub(super) image: &'i Image<'d>,
    limits: Limits,
    pub(super) table: UnwindTable,
    entries: Vec<Entry>,
    rows: Vec<UnwindRange>,
    /// How many rows were added. An entry may have any number of them.
    added: usize,
    outside: u64,
    unwritable: u64,
}

/// An entry of a table: a function or a part of one.
#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    /// Its first row. Its last row is before the first one of the next entry.
    first: usize,
}

impl<'i, 'd> Layer<'i, 'd> {
    pub(super) fn new(image: &'i Image<'d>, limits: Limits) -> Self {
        let (table, entries, rows) = (UnwindTable::default(), Vec::new(), Vec::new());
        Self { image, limits, table, entries, rows, added: 0, outside: 0, unwritable: 0 }
    }

    /// Begins an entry for `start..end` (SVMAs). Returns false if that is no code of the image.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] and [`Error::TooSlow`] past the limits.
    pub(super) fn begin(&mut self, start: u64, end: u64) -> Result<bool, Error> {
        // An empty entry describes nothing.
        if start == end {
            return Ok(false);
        }
        let part = self.image.executable_part(start, end);
        self.outside += u64::from(part.is_none());
        if let Some((start, end)) = part {
            self.limits.check(self.rows.len(), &self.table)?;
            self.entries.push(Entry { start, end, first: self.rows.len() });
        }
        Ok(part.is_some())
    }

    /// Adds a row for `start..end` (SVMAs) to the entry that was begun last.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn add(&mut self, start: u64, end: u64, rules: &UnwindRules<'_>) -> Result<(), Error> {
        self.added += 1;
        if self.added.is_multiple_of(CHECKED) {
            self.limits.check(self.rows.len(), &self.table)?;
        }
        let Some((entry, (start, end))) = self.entries.last().zip(self.image.offsets(start, end)) else {
            return Ok(());
        };
        let (start, end) = (start.max(entry.start), end.min(entry.end));
        if start >= end {
            return Ok(());
        }
        let Ok(rules) = self.table.number(rules) else {
            self.unwritable += 1;
            return Ok(());
        };
        match self.rows.get_mut(entry.first..).and_then(<[_]>::last_mut) {
            Some(last) if last.end == start && last.rules == rules => last.end = end,
            // Rows of an entry ascend.
            Some(last) if last.end > start => self.unwritable += 1,
            _ => self.rows.push(UnwindRange { start, end, rules }),
        }
        Ok(())
    }

    /// The rows since the last call, in address order. Where entries overlap, the one that starts last counts, as for
    /// unwinders that search the sorted entries; of those that start together, the first.
    pub(super) fn take(&mut self) -> Vec<UnwindRange> {
        let (entries, rows) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.rows));
        let ends = entries.iter().skip(1).map(|entry| entry.first).chain([rows.len()]);
        let mut sorted: Vec<(Entry, usize)> = entries.iter().copied().zip(ends).collect();
        sorted.sort_by_key(|(entry, _)| entry.start);
        sorted.dedup_by_key(|(entry, _)| entry.start);
        let mut kept = Vec::with_capacity(rows.len());
        for (place, (entry, last)) in sorted.iter().enumerate() {
            let next = sorted.get(place + 1).map_or(u64::MAX, |(next, _)| next.start);
            let own = rows[entry.first..*last].iter().take_while(|row| row.start < next);
            kept.extend(own.map(|row| UnwindRange { end: row.end.min(next), ..*row }));
        }
        kept
    }

    /// States what was left out.
    pub(super) fn report(&self, problems: &mut Problems) {
        problems.dropped("unwind entries outside of code", self.outside);
        problems.limit("unwind rows left out: they have too many registers or expressions", self.unwritable);
    }
}

/// The rows of `first`, and the parts of the rows of `second` that lie in the gaps of `first`. Both are in address
/// order.
///
/// ```text
/// first     aaaa      bbb   cc
/// second  11111122222222222    33
/// result  11aaaa222222bbb22 cc 33
/// ```
pub(super) fn fill_gaps(first: Vec<UnwindRange>, second: Vec<UnwindRange>) -> Vec<UnwindRange> {
    if first.is_empty() || second.is_empty() {
        return if first.is_empty() { second } else { first };
    }
    let mut filled = Vec::with_capacity(first.len() + second.len());
    let mut rest = first.into_iter().peekable();
    for UnwindRange { start, end, rules } in second {
        // The row of `first` before may reach into this one.
        let mut start = filled.last().map_or(start, |last: &UnwindRange| start.max(last.end));
        while let Some(next) = rest.next_if(|next| next.start < end) {
            if start < next.start {
                filled.push(UnwindRange { start, end: next.start, rules });
            }
            start = start.max(next.end);
            filled.push(next);
        }
        if start < end {
            filled.push(UnwindRange { start, end, rules });
        }
    }
    filled.extend(rest);
    filled
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use symdex::UnwindValue;
    use symdex_testkit::images::debug_file::Elf;

    use super::*;
    use crate::companions::Companions;
    use crate::limits::Deadline;
    use crate::memory::Budget;
    use crate::random::Random;
    use crate::slice::slices;

    #[test]
    fn the_deadline_holds_within_an_entry() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let (file, companions) = (Elf::default().bytes(), Companions::default());
        let image = Image::load(&slices(&file).expect("an ELF file")[0], "x", &companions).expect("loads");
        let deadline = Deadline::default().stopped_by(Some(&STOP));
        let limits = Limits { budget: Budget::new(1 << 30, 0).expect("enough"), others: 0, deadline };
        let mut layer = Layer::new(&image, limits);
        assert!(layer.begin(0x1000, 0x2000).expect("in time"));
        STOP.store(true, Ordering::Relaxed);
        let rules = UnwindRules::new(UnwindValue::Unknown, 0);
        let late = (0x1000..0x2000).find(|at| layer.add(*at, at + 1, &rules).is_err());
        assert_eq!(late, Some(0x1000 + CHECKED as u64 - 1));
    }

    /// `text` as rows: letters are rules, blanks gaps.
    fn rows(text: &str) -> Vec<UnwindRange> {
        let mut rows: Vec<UnwindRange> = Vec::new();
        for (start, rule) in (0..).zip(text.bytes()).filter(|(_, rule)| *rule != b' ') {
            match rows.last_mut().filter(|last| last.end == start && last.rules == u32::from(rule)) {
                Some(last) => last.end = start + 1,
                None => rows.push(UnwindRange { start, end: start + 1, rules: rule.into() }),
            }
        }
        rows
    }

    /// The rules at each address below `len`.
    fn text(rows: &[UnwindRange], len: usize) -> String {
        let mut text = vec![b' '; len];
        let mut end = 0;
        for row in rows {
            assert!(row.start >= end && row.start < row.end, "{rows:?}");
            end = row.end;
            text[usize::try_from(row.start).expect("small")..usize::try_from(row.end).expect("small")]
                .fill(u8::try_from(row.rules).expect("a letter"));
        }
        String::from_utf8(text).expect("letters")
    }

    #[test]
    fn the_second_table_fills_the_gaps_of_the_first() {
        let filled = fill_gaps(rows("  aaaa      bbb   cc"), rows("11111122222222222    33"));
        assert_eq!(text(&filled, 23), "11aaaa222222bbb22 cc 33");
        let mut random = Random(7);
        for _ in 0..2000 {
            let mut random_text = |letters: &str| -> String {
                let mut text = String::new();
                while text.len() < 40 {
                    let letter =
                        letters.chars().cycle().nth(usize::try_from(random.below(5)).expect("small"));
                    text.extend(std::iter::repeat_n(
                        letter.expect("some"),
                        1 + usize::try_from(random.below(5)).expect("small"),
                    ));
                }
                text[..40].to_owned()
            };
            let (first, second) = (random_text("  abc"), random_text("  123"));
            let expected: String =
                first.chars().zip(second.chars()).map(|(a, b)| if a == ' ' { b } else { a }).collect();
            assert_eq!(text(&fill_gaps(rows(&first), rows(&second)), 40), expected, "{first:?} {second:?}");
        }
    }
}
