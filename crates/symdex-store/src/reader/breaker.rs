//! A circuit breaker: a store that cannot be reached is not asked for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts the failures of a store or another service. After some in a row, it is left alone for a while. Threads share
/// it. A [`StoreReader`](super::StoreReader) has one for each store; this is for services beside stores.
///
/// ```
/// use std::time::{Duration, Instant};
/// use symdex_store::Breaker;
///
/// let (breaker, now) = (Breaker::new(Duration::from_secs(30)), Instant::now());
/// (0..3).for_each(|_| breaker.record(false, now));
/// assert!(!breaker.allows(now));
/// assert!(breaker.allows(now + Duration::from_secs(30)));
/// ```
#[derive(Debug)]
pub struct Breaker {
    /// This many calls in a row must fail before the service is left alone.
    failures: u32,
    first_pause: Duration,
    longest_pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// The store is not asked before this time.
    until: Option<Instant>,
}

impl Breaker {
    /// A breaker that leaves a service alone for `pause` after three failures in a row.
    #[must_use]
    pub fn new(pause: Duration) -> Self {
        Self { failures: 3, first_pause: pause, longest_pause: pause, state: Mutex::default() }
    }

    /// A breaker that leaves a store alone after its first failure: at first for `first`, and for twice as long after
    /// each further failure in a row, up to `longest`. Stores repeat their requests, so that one failure is enough.
    pub(crate) fn of_store(first: Duration, longest: Duration) -> Self {
        Self { failures: 1, first_pause: first.min(longest), longest_pause: longest, state: Mutex::default() }
    }

    /// Whether the service may be asked now. After the pause, one call is let through. The others wait for its end, or
    /// for the longest pause.
    #[must_use]
    pub fn allows(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.until {
            Some(until) if now < until => false,
            Some(_) => {
                // It may take long. If its end is never recorded, another call is let through after the longest pause.
                state.until = Some(now + self.longest_pause);
                true
            }
            None => true,
        }
    }

    /// Records whether the service could be reached.
    pub fn record(&self, is_reached: bool, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if is_reached {
            *state = State::default();
            return;
        }
        state.failures += 1;
        if let Some(doublings) = state.failures.checked_sub(self.failures) {
            let pause = self.first_pause.saturating_mul(1 << doublings.min(20));
            state.until = Some(now + pause.min(self.longest_pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_left_alone_after_three_failures_and_then_tried_once() {
        let second = Duration::from_secs(1);
        let (breaker, begin) = (Breaker::new(10 * second), Instant::now());
        for _ in 0..3 {
            assert!(breaker.allows(begin));
            breaker.record(false, begin);
        }
        assert!(!breaker.allows(begin + 9 * second));
        assert!(breaker.allows(begin + 10 * second), "one call tries");
        assert!(!breaker.allows(begin + 11 * second), "the others wait for it");
        breaker.record(false, begin + 11 * second);
        assert!(!breaker.allows(begin + 20 * second) && breaker.allows(begin + 21 * second));
        breaker.record(true, begin + 21 * second);
        assert!(breaker.allows(begin + 21 * second) && breaker.allows(begin + 21 * second));
    }

    #[test]
    fn a_store_is_left_alone_after_one_failure_and_for_longer_after_each_further_one() {
        let second = Duration::from_secs(1);
        let (breaker, mut now) = (Breaker::of_store(second, 5 * second), Instant::now());
        for pause in [1, 2, 4, 5, 5] {
            assert!(breaker.allows(now));
            if pause != 1 {
                assert!(!breaker.allows(now + 4 * second), "the others wait for it");
            }
            breaker.record(false, now);
            now += pause * second;
            assert!(!breaker.allows(now - Duration::from_millis(1)), "{pause}");
        }
        breaker.record(true, now);
        breaker.record(false, now);
        assert!(breaker.allows(now + second));
    }

    #[test]
    fn a_success_forgets_earlier_failures() {
        let (breaker, now) = (Breaker::new(Duration::from_secs(1)), Instant::now());
        for _ in 0..10 {
            breaker.record(false, now);
            breaker.record(false, now);
            breaker.record(true, now);
        }
        assert!(breaker.allows(now));
    }
}
