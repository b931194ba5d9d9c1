//! The readable names of an index.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use symdex::write::MAX_STRING;

use crate::error::Error;
use crate::limits::Deadline;
use crate::memory::Budget;

/// Returns the readable form of a name, such as `symdex_demangle::demangle` does. For a name that is readable as it is,
/// it returns the name itself.
pub type Demangle = fn(&[u8]) -> Cow<'_, str>;

/// For each of `names`, its readable form if that is another text. All names and paths take `others` bytes of memory.
///
/// # Errors
///
/// [`Error::TooLarge`] if the index would have more strings than the memory of `budget` allows, [`Error::TooSlow`]
/// after the deadline.
pub(crate) fn readable_names(
    names: &[Cow<'_, [u8]>],
    demangle: Demangle,
    others: usize,
    budget: Budget,
    deadline: Deadline,
) -> Result<Vec<Option<Box<[u8]>>>, Error> {
    let taken = AtomicUsize::new(others + size_of_val(names));
    let readable = names.par_iter().map(|name| {
        deadline.check()?;
        let text = demangle(name);
        if text.as_bytes() == &name[..] || text.len() > MAX_STRING {
            return Ok(None);
        }
        budget.check_names(taken.fetch_add(text.len(), Ordering::Relaxed) + text.len())?;
        Ok(Some(text.as_bytes().into()))
    });
    let readable = readable.collect();
    // Several names can fail, for different reasons.
    deadline.check()?;
    readable
}
