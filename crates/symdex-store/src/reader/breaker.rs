//! A circuit breaker: a store that cannot be reached is not asked for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// This many calls in a row must fail before the store is left alone.
const FAILURES: u32 = 3;

/// Counts the failures of a store or another service. After three in a row, it is left alone for a while.
#[derive(Debug)]
pub struct Breaker {
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// The store is not asked before this time.
    until: Option<Instant>,
}

impl Breaker {
    /// A breaker that leaves a store alone for `pause`.
    #[must_use]
    pub fn new(pause: Duration) -> Self {
        Self { pause, state: Mutex::default() }
    }

    /// Whether the store may be asked now. After the pause, one call is let through, and the pause begins again for
    /// the others.
    #[must_use]
    pub fn allows(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.until {
            Some(until) if now < until => false,
            Some(_) => {
                state.until = Some(now + self.pause);
                true
            }
            None => true,
        }
    }

    /// Records whether the store could be reached.
    pub fn record(&self, is_reached: bool, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if is_reached {
            *state = State::default();
            return;
        }
        state.failures += 1;
        if state.failures >= FAILURES {
            state.until = Some(now + self.pause);
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
        for _ in 0..FAILURES {
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
