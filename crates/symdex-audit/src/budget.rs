//! Limits for reading a debug file in an audit.
//!
//! The builder omits what exceeds its limits. The audit does not compare such a file at all: it would have to read
//! what the builder omitted, and addr2line has no limits.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use symdex_build::audit_access::Deadline;
use symdex_build::{BuildOptions, Error, Image};

/// DIEs may be nested to this depth. addr2line recurses over inlined subroutines.
pub(crate) const MAX_DEPTH: usize = 1 << 10;
/// About how many bytes of memory a row or a range takes, with the addresses that are compared because of it.
const ROW: u64 = 160;
/// About how many bytes of memory a unit takes.
const UNIT: u64 = 2 << 10;

/// The remaining rows and ranges, their remaining memory, and the deadline.
pub(crate) struct Budget {
    /// In a valid file a row or a range takes at least a byte. Hostile files state many in few bytes.
    rows: AtomicU64,
    memory: AtomicU64,
    max_memory: usize,
    pub(crate) deadline: Deadline,
}

/// The error for a file that exceeds the budget.
pub(crate) struct TooMuch(Error);

impl Budget {
    /// For a file of `size` bytes.
    pub(crate) fn new(size: u64, max_memory: usize, deadline: Deadline) -> Self {
        let [rows, memory] = [size, max_memory as u64].map(AtomicU64::new);
        Self { rows, memory, max_memory, deadline }
    }

    /// Takes `count` rows or ranges.
    pub(crate) fn take(&self, count: usize) -> Result<(), TooMuch> {
        let count = count as u64;
        if !subtract(&self.rows, count) {
            return Err(malformed("it states more line rows and address ranges than it has bytes"));
        }
        self.take_memory(count.saturating_mul(ROW))
    }

    /// Takes a unit.
    pub(crate) fn take_unit(&self) -> Result<(), TooMuch> {
        self.take_memory(UNIT)
    }

    /// Takes memory, and checks the time.
    pub(crate) fn take_memory(&self, bytes: u64) -> Result<(), TooMuch> {
        self.deadline.check().map_err(TooMuch)?;
        if !subtract(&self.memory, bytes) {
            let what = "the comparison with its index";
            return Err(TooMuch(Error::TooLarge { limit: self.max_memory, what }));
        }
        Ok(())
    }

    /// Checks the depth of a DIE.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<(), TooMuch> {
        if depth > MAX_DEPTH {
            return Err(malformed(&format!("its entries are nested more than {MAX_DEPTH} deep")));
        }
        Ok(())
    }
}

fn subtract(left: &AtomicU64, count: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(count)).is_ok()
}

fn malformed(why: &str) -> TooMuch {
    TooMuch(Error::Malformed { what: format!("its answers are not compared: {why}") })
}

impl From<TooMuch> for Error {
    fn from(TooMuch(error): TooMuch) -> Self {
        error
    }
}

/// Checks that `image` is within all limits of the builder. The image is built once more for this, which takes much
/// less time than the comparison.
///
/// # Errors
///
/// [`Error::Malformed`] names the limit. Also those of [`BuildOptions::build_into`].
pub(crate) fn check_limits(image: &Image<'_>, options: BuildOptions<'_>) -> Result<(), Error> {
    let built = match options.allow_empty(true).build_into(image, io::sink()) {
        // The comparison says what the index lacks.
        Err(Error::NothingIndexed { .. }) => return Ok(()),
        built => built?,
    };
    match built.report.exceeded {
        Some(limit) => Err(malformed(&limit).into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exceeds_the_budget_fails_with_the_limit() {
        let budget = Budget::new(10, 5000, Deadline::default());
        let error = |result: Result<(), TooMuch>| result.err().map(|TooMuch(error)| error.to_string());
        assert_eq!(error(budget.take(9)), None);
        assert!(
            error(budget.take(2)).is_some_and(|error| error.contains("more line rows and address ranges"))
        );
        assert_eq!(error(budget.take_unit()), None);
        let large = budget.take_unit().err().map(|TooMuch(error)| error);
        assert!(matches!(large, Some(Error::TooLarge { limit: 5000, .. })), "{large:?}");
        let late = Budget::new(10, 5000, Deadline::after(Some(0))).take(1);
        assert!(matches!(late, Err(TooMuch(Error::TooSlow { seconds: 0 }))));
    }
}
