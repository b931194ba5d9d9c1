//! The memory that requests may take together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Bytes are counted in units of this size.
const UNIT: u64 = 64 << 10;

/// The memory that the reports and answers of all requests may take together.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    units: Arc<Semaphore>,
}

/// A part of the budget. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Budget,
    permit: Option<OwnedSemaphorePermit>,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        let units = usize::try_from(bytes / UNIT).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(units)) }
    }

    /// A part of the budget that has no bytes yet.
    pub(crate) fn reserve(&self) -> Reserved {
        Reserved { budget: self.clone(), permit: None, bytes: 0 }
    }

    /// How many bytes are free.
    pub(crate) fn free(&self) -> u64 {
        self.units.available_permits() as u64 * UNIT
    }
}

impl Reserved {
    /// How many bytes this part has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes this part `bytes` larger.
    ///
    /// # Errors
    ///
    /// A problem `overloaded` if the budget has fewer bytes left.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Problem> {
        let units = |bytes: u64| bytes.div_ceil(UNIT);
        let total = self.bytes.saturating_add(bytes);
        let more = u32::try_from(units(total) - units(self.bytes)).unwrap_or(u32::MAX);
        if more != 0 {
            let taken = Arc::clone(&self.budget.units).try_acquire_many_owned(more);
            let taken = taken.map_err(|_| Problem::overloaded("other requests take all memory"))?;
            match &mut self.permit {
                Some(permit) => permit.merge(taken),
                none => *none = Some(taken),
            }
        }
        self.bytes = total;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_exceeded_and_comes_back() {
        let budget = Budget::new(10 * UNIT);
        let (mut one, mut other) = (budget.reserve(), budget.reserve());
        one.grow(1).expect("free");
        one.grow(UNIT - 1).expect("the same unit");
        assert_eq!(budget.free(), 9 * UNIT);
        other.grow(9 * UNIT).expect("free");
        assert!(one.grow(1).is_err());
        drop(other);
        one.grow(9 * UNIT).expect("free again");
        assert_eq!(budget.free(), 0);
        drop(one);
        assert_eq!(budget.free(), 10 * UNIT);
        assert!(budget.reserve().grow(u64::MAX).is_err());
    }
}
