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

/// Strings that are in memory, and that the index will have.
#[derive(Clone, Copy)]
pub(crate) struct StringSizes {
    /// Bytes of memory that they take.
    pub(crate) size: usize,
    pub(crate) len: usize,
    /// Bytes of their texts.
    pub(crate) bytes: usize,
}

/// For each of `names`, its readable form if that is another text. `others` has all strings of the index.
///
/// # Errors
///
/// [`Error::TooLarge`] if the index would have more strings than the memory of `budget` allows, [`Error::TooSlow`] after
/// the deadline.
pub(crate) fn readable_names(
    names: &[Cow<'_, [u8]>],
    demangle: Demangle,
    others: StringSizes,
    budget: Budget,
    deadline: Deadline,
) -> Result<Vec<Option<Box<[u8]>>>, Error> {
    let size = std::mem::size_of_val(names);
    let (len, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let check = || {
        let (len, bytes) = (len.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        budget.check_strings(others.size + size + bytes, others.len + len, others.bytes + bytes)
    };
    let readable = names.par_iter().map(|name| {
        deadline.check()?;
        let text = demangle(name);
        if text.as_bytes() == &name[..] || text.len() > MAX_STRING {
            return Ok(None);
        }
        len.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(text.len(), Ordering::Relaxed);
        check()?;
        Ok(Some(text.as_bytes().into()))
    });
    let readable = readable.collect();
    // Several names can fail, for different reasons.
    deadline.check()?;
    readable
}
