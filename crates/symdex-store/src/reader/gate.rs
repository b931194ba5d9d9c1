//! Whether a store is asked.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::breaker::Breaker;
use super::options::ReaderOptions;

/// The breaker of one kind of calls of a store. Threads share it.
#[derive(Debug)]
pub(super) struct Gate {
    breaker: Breaker,
    /// Why the store could not be reached the last time.
    failure: Mutex<String>,
}

impl Gate {
    pub(super) fn new(options: &ReaderOptions) -> Self {
        Self { breaker: Breaker::of_store(options.first_pause, options.pause), failure: Mutex::default() }
    }

    /// Whether the store may be asked now.
    ///
    /// # Errors
    ///
    /// Why it is left alone for a while.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.breaker.allows(Instant::now()) {
            return Ok(());
        }
        let why = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        Err(format!("{why} (it is not asked again for a while)"))
    }

    /// Records why the store could not be reached, or that it was.
    pub(super) fn record(&self, failure: Option<String>) {
        self.breaker.record(failure.is_none(), Instant::now());
        if let Some(why) = failure {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = why;
        }
    }
}
