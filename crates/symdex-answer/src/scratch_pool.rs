//! The working memory of lookups, passed on from question to question with the answers that it caches.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use symdex::Scratch;

/// How many bytes of answers each [`Scratch`] caches. Most answers are found before an index is asked, among those that
/// all threads share.
const CAPACITY: usize = 1 << 20;
/// How many [`Scratch`]es wait for a question at most.
const MOST: usize = 32;

/// The [`Scratch`]es that no session uses now. A session takes one only while it looks up addresses, and the one that
/// was used last is taken first. So there are as many as questions were looked up at one time, at most [`MOST`]: about
/// as many as the machine has CPUs, even if a server answers more requests at one time.
#[derive(Default)]
pub(crate) struct ScratchPool {
    free: Mutex<Vec<Scratch>>,
}

/// A [`Scratch`] that goes back to its pool when this is dropped.
pub(crate) struct PooledScratch<'p> {
    pool: &'p ScratchPool,
    scratch: Scratch,
}

impl ScratchPool {
    /// A [`Scratch`] that nobody else uses.
    pub(crate) fn take(&self) -> PooledScratch<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        PooledScratch { pool: self, scratch: free.unwrap_or_else(|| Scratch::with_capacity(CAPACITY)) }
    }
}

impl Drop for PooledScratch<'_> {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MOST {
            // An empty one allocates nothing.
            free.push(std::mem::replace(&mut self.scratch, Scratch::with_capacity(0)));
        }
    }
}

impl Deref for PooledScratch<'_> {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

impl DerefMut for PooledScratch<'_> {
    fn deref_mut(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_is_used_by_one_question_at_a_time_and_then_by_the_next() {
        let pool = ScratchPool::default();
        let free = || pool.free.lock().expect("not poisoned").len();
        let (first, second) = (pool.take(), pool.take());
        assert_eq!(free(), 0);
        drop(first);
        assert_eq!(free(), 1);
        let third = pool.take();
        assert_eq!(free(), 0);
        drop((second, third));
        assert_eq!(free(), 2);
        drop((0..2 * MOST).map(|_| pool.take()).collect::<Vec<_>>());
        assert_eq!(free(), MOST);
    }
}
