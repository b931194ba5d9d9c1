//! The end of a build: strings are encoded, and the index is written.

use std::borrow::Cow;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use symdex::write::{EncodedReadableNames, EncodedStrings};
use symdex::{Counts, Partial};

use super::Build;
use super::chunks::spool_failed;
use super::seen::compare;
use crate::error::Error;
use crate::pools::Pools;
use crate::readable::readable_names;
use crate::report::{BuildReport, Problems};
use crate::symbol_map::is_hidden;

/// The strings of an index, in the order of their numbers.
#[derive(Default)]
pub(super) struct IndexStrings<'d> {
    names: Vec<Cow<'d, [u8]>>,
    files: Vec<Cow<'d, [u8]>>,
    /// The readable form of each name, or `None` if the index has no readable names.
    readable: Option<Vec<Option<Box<[u8]>>>>,
    /// About how many bytes of memory they take.
    size: usize,
}

impl<'d> Build<'_, 'd> {
    /// Writes the index to `out`, after all chunks are made.
    pub(crate) fn finish(
        mut self,
        mut problems: Problems,
        has_dwarf: bool,
        mut counts: Counts,
        out: &mut impl Write,
    ) -> Result<BuildReport, Error> {
        self.deadline.check()?;
        self.budget.check_names(self.pools.size())?;
        counts.seen = self.seen;
        let covered = (&self.coverage, &self.encoded);
        compare(&counts, self.merged_functions, covered, self.allow_empty, &mut problems)?;
        let mut strings = self.strings(&mut counts, &mut problems);
        let (partial, report) = problems.finish(has_dwarf, self.coverage);
        if let Some(demangle) = self.demangle {
            let readable =
                readable_names(&strings.names, demangle, strings.size, self.budget, self.deadline)?;
            strings.size += size_of_val(&readable[..]);
            strings.size += readable.iter().flatten().map(|name| name.len()).sum::<usize>();
            strings.readable = Some(readable);
        }
        self.write(&strings, counts, partial, out)?;
        Ok(report)
    }

    /// Takes the names and the files that the chunks need from the pools.
    pub(super) fn strings(&mut self, counts: &mut Counts, problems: &mut Problems) -> IndexStrings<'d> {
        let size = self.pools.size();
        let Pools { names, files } = std::mem::take(&mut self.pools);
        problems.limit("names left out: they are too long, or overlap too much", names.refused);
        problems.limit("file paths left out: they are too long, or too many", files.refused);
        let (names, files) = (names.into_strings(), files.into_strings());
        (counts.names, counts.files) = (names.len() as u64, files.len() as u64);
        problems.hidden(hidden_len(&names, &files));
        IndexStrings { names, files, readable: None, size }
    }

    /// Writes the index to `out`, after all chunks are encoded.
    pub(super) fn write(
        self,
        strings: &IndexStrings<'_>,
        counts: Counts,
        partial: Vec<Partial>,
        out: &mut impl Write,
    ) -> Result<(), Error> {
        let (deadline, budget) = (self.deadline, self.budget);
        let [of_names, of_files, of_readable] = budget.of_encoding(strings.size);
        let is_too_large = AtomicBool::new(false);
        let stop = |taken: usize, limit: usize| {
            is_too_large.fetch_or(taken > limit, Ordering::Relaxed);
            taken > limit || deadline.is_over()
        };
        let encode = |strings: &[_], limit| EncodedStrings::new_until(strings, &|taken| stop(taken, limit));
        let names_and_files = || (encode(&strings.names, of_names), encode(&strings.files, of_files));
        let readable = || {
            let readable = strings.readable.as_deref()?;
            Some(EncodedReadableNames::new_until(readable, &|taken| stop(taken, of_readable)))
        };
        let (sealed, ((names, files), readable)) =
            rayon::join(|| self.writer.seal(), || rayon::join(names_and_files, readable));
        // What fails after the deadline fails because of it.
        deadline.check()?;
        if is_too_large.into_inner() {
            return Err(budget.too_many_names());
        }
        let mut sealed = sealed.map_err(spool_failed)?;
        if let Some(readable) = readable.transpose()? {
            sealed.set_readable_names(readable);
        }
        if let Some(rows) = self.unwind {
            sealed.set_unwind_rows(rows);
        }
        let finished = sealed.finish(&names?, &files?, counts, partial, out);
        deadline.check()?;
        Ok(finished?)
    }
}

/// How many names and paths are hidden, or hidden in part.
fn hidden_len(names: &[Cow<'_, [u8]>], files: &[Cow<'_, [u8]>]) -> u64 {
    let names = names.iter().filter(|name| is_hidden(name));
    let files = files.iter().filter(|file| file.split(|byte| *byte == b'/').any(is_hidden));
    (names.count() + files.count()) as u64
}
