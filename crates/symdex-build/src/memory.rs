//! The memory that a build may take, and how it is divided.
//!
//! Only what a file can make large is counted: decompressed sections, the list of units, the functions and rows of the
//! units that are being read, pending units, names, and chunks. The sizes are those of the elements, so they do not
//! depend on the machine's allocator.
//!
//! Whether a build fails does not depend on the number of threads. A unit that is read ahead of its turn and finds no
//! memory left is read again when its turn comes, and then shares the memory with no other unit.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// The least value of `max_memory`.
pub(crate) const LEAST: usize = 32_000_000;
/// Memory of a build that is not counted: code, stacks, tasks in queues, and buffers of the writer.
const UNCOUNTED: usize = 8 << 20;

/// What takes the memory of a build with too many names.
const NAMES: &str = "its names";

/// How the memory of a build is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// `max_memory`.
    pub(crate) limit: usize,
    /// The bytes that are taken for the whole build: sections, symbols and the list of units.
    fixed: usize,
}

impl Budget {
    /// The budget of a build that takes `fixed` bytes for its whole duration.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if these leave less than a quarter of the memory.
    pub(crate) fn new(limit: usize, fixed: usize) -> Result<Self, Error> {
        let fixed = fixed.saturating_add(UNCOUNTED);
        let budget = Self { limit, fixed };
        budget.check("its sections, symbols and units", fixed.saturating_add(limit / 4))?;
        Ok(budget)
    }

    /// The bytes that are not taken for the whole build.
    fn free(&self) -> usize {
        self.limit - self.fixed
    }

    /// How many bytes one unit may take while it is read in turn, if all names take `names` bytes then. Many names
    /// leave less for it, but at least as much as all units may take that are read ahead.
    pub(crate) fn of_unit(&self, names: usize) -> usize {
        let tenth = self.free() / 10;
        (5 * tenth).saturating_sub(names).clamp(self.of_units_ahead(), 4 * tenth)
    }

    /// How many bytes all units together may take that are read ahead of their turn. A unit that fits ahead of its turn
    /// also fits in its turn.
    pub(crate) fn of_units_ahead(&self) -> usize {
        self.free() / 10 * 2
    }

    /// How many bytes chunks may take while they are encoded.
    pub(crate) fn of_chunks(&self) -> usize {
        self.free() / 10
    }

    /// How many bytes pending units may take if all names take `names` bytes. As many bytes are left for those that are
    /// being merged.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if the names leave too little.
    pub(crate) fn of_pending(&self, names: usize) -> Result<usize, Error> {
        let least = self.free() / 10;
        let others = self.fixed + self.of_unit(names) + self.of_units_ahead() + self.of_chunks();
        self.check(NAMES, others.saturating_add(names).saturating_add(least))?;
        Ok((self.limit - others - names) / 2)
    }

    /// Fails if the names take more than is left after all units are merged. `names` has their bytes, with those of the
    /// paths.
    pub(crate) fn check_names(&self, names: usize) -> Result<(), Error> {
        self.check(NAMES, self.fixed.saturating_add(names))
    }

    /// The error of a build whose names cannot be encoded in [`Self::of_encoding`].
    pub(crate) fn too_many_names(&self) -> Error {
        Error::TooLarge { limit: self.limit, what: NAMES }
    }

    /// How many bytes may be taken to encode each of the names, the paths, and the readable names after all units are
    /// merged, if `names` bytes are taken for all of these.
    pub(crate) fn of_encoding(&self, names: usize) -> [usize; 3] {
        let eighth = self.free().saturating_sub(names) / 8;
        [4 * eighth, eighth, 3 * eighth]
    }

    /// Fails if `bytes` are more than the limit. Most of them are for `what`.
    pub(crate) fn check(&self, what: &'static str, bytes: usize) -> Result<(), Error> {
        if bytes > self.limit { Err(Error::TooLarge { limit: self.limit, what }) } else { Ok(()) }
    }
}

/// Bytes of memory that several owners share.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    used: AtomicUsize,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// The bytes that all owners together may take.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes `bytes`. Returns `false`, and takes nothing, if fewer are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Returns `bytes` that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How many bytes are taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// The memory that the reading of one unit takes. It is released when this value is dropped.
#[derive(Debug)]
pub(crate) struct Share<'m> {
    memory: &'m Memory,
    taken: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl<'m> Share<'m> {
    pub(crate) fn new(memory: &'m Memory) -> Self {
        Self { memory, taken: Cell::new(0), is_exceeded: Cell::new(false) }
    }

    /// Takes `bytes` more. Returns `false` if fewer are left. The unit is then abandoned.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let is_taken = self.memory.take(bytes);
        self.taken.set(self.taken.get() + if is_taken { bytes } else { 0 });
        self.is_exceeded.set(self.is_exceeded.get() || !is_taken);
        is_taken
    }

    /// Takes what `bytes` are more than was taken.
    pub(crate) fn take_up_to(&self, bytes: usize) -> bool {
        self.take(bytes.saturating_sub(self.taken.get()))
    }

    /// Whether fewer bytes were left than the unit needs.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Releases all but `bytes`, which then belong to the caller.
    pub(crate) fn keep(self, bytes: usize) {
        if bytes > self.taken.get() {
            self.memory.used.fetch_add(bytes - self.taken.get(), Ordering::Relaxed);
            self.taken.set(bytes);
        }
        self.taken.set(self.taken.get() - bytes);
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.memory.give_back(self.taken.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_take_no_more_than_there_is_and_give_it_back() {
        let memory = Memory::new(100);
        let (one, other) = (Share::new(&memory), Share::new(&memory));
        assert!(one.take(60) && !other.take(50) && other.is_exceeded() && other.take(40));
        assert!(!one.is_exceeded());
        one.keep(30);
        drop(other);
        assert_eq!(memory.used(), 30);
        memory.give_back(30);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn all_parts_together_stay_within_the_limit() {
        let budget = Budget::new(64 << 20, 10 << 20).expect("leaves enough");
        for names in [1 << 20, 4 << 20, 12 << 20] {
            let pending = budget.of_pending(names).expect("leaves enough");
            let units = budget.of_unit(names) + budget.of_units_ahead();
            assert!(budget.of_unit(names) >= budget.of_units_ahead());
            let all = budget.fixed + units + budget.of_chunks() + 2 * pending + names;
            assert!((63 << 20..=64 << 20).contains(&all), "{all}");
        }
        let error = budget.of_pending(60 << 20).expect_err("too many names").to_string();
        assert!(error.contains("`max_memory`") && error.contains("its names"), "{error}");
        assert!(Budget::new(64 << 20, 41 << 20).is_err());
    }
}
