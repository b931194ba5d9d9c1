//! The memory that requests may take together, and that the program may allocate.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lane::{Client, Lane};
use crate::problem::{Problem, ProblemKind};

/// Bytes are counted in units of this size.
const UNIT: u64 = 64 << 10;

/// A request that reserves at most this many units is small.
const SMALL: u64 = 16;

/// For how long the allocator is not asked again. It takes locks of all threads to count.
const FRESH: Duration = Duration::from_millis(20);

/// The memory that the reports and answers of all requests may take together. One client may take three quarters of it.
/// Requests are also refused if the program has allocated too much, for whatever reason.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    state: Arc<Mutex<State>>,
}

/// Counts of units.
#[derive(Debug)]
struct State {
    free: u64,
    /// What one client may hold.
    share: u64,
    /// What each client holds. Clients that hold nothing are left out.
    held: HashMap<Client, u64>,
    allocated: Allocated,
}

/// What the program has allocated, as its allocator counts it.
#[derive(Debug)]
struct Allocated {
    /// Asks the allocator. `None` if it does not count.
    read: fn() -> Option<u64>,
    /// How many bytes it may be.
    max: u64,
    /// When the allocator was asked.
    read_at: Option<Instant>,
    /// What it was then, and what requests have reserved since.
    bytes: u64,
}

impl Allocated {
    /// Whether there is room for `bytes` more, which count if so. A fifth is left for small requests.
    fn add(&mut self, bytes: u64, is_small: bool) -> bool {
        if self.read_at.is_none_or(|at| at.elapsed() >= FRESH) {
            let Some(allocated) = (self.read)() else { return true };
            (self.read_at, self.bytes) = (Some(Instant::now()), allocated);
        }
        let max = if is_small { self.max } else { self.max - self.max / 5 };
        let fits = self.bytes.saturating_add(bytes) <= max;
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

/// A part of the budget. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Budget,
    client: Client,
    bytes: u64,
    /// The units that all parts of the request have.
    request: Arc<AtomicU64>,
}

impl Budget {
    /// The budget of a program that may allocate `memory` bytes: requests reserve at most half of them, so that one
    /// client leaves room for the others, and for caches. `allocated` returns how many bytes are allocated, or `None`
    /// if that is not known.
    pub(crate) fn new(memory: u64, allocated: fn() -> Option<u64>) -> Self {
        let free = memory / 2 / UNIT;
        let allocated = Allocated { read: allocated, max: memory, read_at: None, bytes: 0 };
        let state = State { free, share: free - free / 4, held: HashMap::new(), allocated };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A part of the budget that has no bytes yet, for the client of this task's request.
    pub(crate) fn reserve(&self) -> Reserved {
        Reserved { budget: self.clone(), client: Lane::current().client, bytes: 0, request: Arc::default() }
    }

    /// Fails if the program has allocated more than it may.
    ///
    /// # Errors
    ///
    /// A problem `overloaded`.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.lock().allocated.add(0, true) { Ok(()) } else { Err(lacks_memory()) }
    }

    /// How many bytes are free.
    pub(crate) fn free(&self) -> u64 {
        self.lock().free * UNIT
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lacks_memory() -> Problem {
    Problem::overloaded("memory", "the server has too little memory left")
}

impl State {
    /// Whether there is as much for the client. If so, the client holds it.
    fn take(&mut self, client: Client, units: u64) -> bool {
        let held = self.held.get(&client).copied().unwrap_or_default();
        let fits = units <= self.free && units <= self.share - held;
        if fits {
            self.free -= units;
            self.held.insert(client, held + units);
        }
        fits
    }

    fn give_back(&mut self, client: Client, units: u64) {
        if units == 0 {
            return;
        }
        self.free += units;
        match self.held.get_mut(&client) {
            Some(held) if *held > units => *held -= units,
            _ => _ = self.held.remove(&client),
        }
    }
}

impl Reserved {
    /// Another part of `bytes`, for the same request.
    ///
    /// # Errors
    ///
    /// As [`grow`](Self::grow).
    pub(crate) fn another(&self, bytes: u64) -> Result<Self, Problem> {
        let (budget, request) = (self.budget.clone(), Arc::clone(&self.request));
        let mut another = Self { budget, client: self.client, bytes: 0, request };
        another.grow(bytes)?;
        Ok(another)
    }

    /// Gives back all but `bytes`.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        let units = self.bytes.div_ceil(UNIT) - bytes.div_ceil(UNIT);
        self.bytes = bytes;
        self.request.fetch_sub(units, Ordering::Relaxed);
        self.budget.lock().give_back(self.client, units);
    }

    /// Makes this part `bytes` larger.
    ///
    /// # Errors
    ///
    /// A problem `overloaded` if the budget has fewer bytes left for the client, or if the program has allocated too
    /// much. `too-large` if the request needs more than a client may have.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Problem> {
        let total = self.bytes.saturating_add(bytes);
        let more = total.div_ceil(UNIT) - self.bytes.div_ceil(UNIT);
        if more != 0 {
            let mut state = self.budget.lock();
            let all = self.request.load(Ordering::Relaxed).saturating_add(more);
            if all > state.share {
                return Err(Problem::new(
                    ProblemKind::TooLarge,
                    "the request needs more memory than a client may have",
                ));
            }
            if !state.allocated.add(more * UNIT, all <= SMALL) {
                return Err(lacks_memory());
            }
            if !state.take(self.client, more) {
                return Err(Problem::overloaded("memory", "other requests take all memory"));
            }
            self.request.store(all, Ordering::Relaxed);
        }
        self.bytes = total;
        Ok(())
    }

    /// Makes this part as large as `bytes`.
    ///
    /// # Errors
    ///
    /// As [`grow`](Self::grow).
    pub(super) fn resize(&mut self, bytes: u64) -> Result<(), Problem> {
        self.shrink(bytes);
        self.grow(bytes - self.bytes)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A budget of `bytes` for requests, whatever is allocated.
    pub(in crate::limits) fn budget_of(bytes: u64) -> Budget {
        Budget::new(2 * bytes, || None)
    }

    /// The kind of problem with `bytes` more.
    fn refusal(reserved: &mut Reserved, bytes: u64) -> &'static str {
        let problem = reserved.grow(bytes).expect_err("refused");
        if format!("{problem:?}").contains("Overloaded") { "overloaded" } else { "too large" }
    }

    /// A part for the client with this number.
    fn reserve(budget: &Budget, client: usize) -> Reserved {
        let mut reserved = budget.reserve();
        reserved.client = Client::Token(client);
        reserved
    }

    #[test]
    fn a_budget_is_never_exceeded_and_comes_back() {
        let budget = budget_of(10 * UNIT);
        let (mut one, mut other) = (reserve(&budget, 1), reserve(&budget, 2));
        one.grow(1).expect("free");
        one.grow(UNIT - 1).expect("the same unit");
        assert_eq!(budget.free(), 9 * UNIT);
        other.grow(5 * UNIT).expect("free");
        assert!(one.grow(5 * UNIT).is_err());
        one.grow(4 * UNIT).expect("free");
        assert!(one.grow(1).is_err());
        drop(other);
        one.grow(1).expect("free again");
        assert_eq!(budget.free(), 4 * UNIT);
        drop(one);
        assert_eq!(budget.free(), 10 * UNIT);
        assert!(budget.lock().held.is_empty());
        assert!(budget.reserve().grow(u64::MAX).is_err());
    }

    #[test]
    fn a_part_gives_back_what_it_no_longer_needs() {
        let budget = budget_of(8 * UNIT);
        let mut one = reserve(&budget, 1);
        one.grow(UNIT).expect("free");
        assert!(one.another(6 * UNIT).is_err());
        let mut another = one.another(5 * UNIT).expect("free");
        another.shrink(UNIT + 1);
        assert_eq!(budget.free(), 5 * UNIT);
        another.shrink(2 * UNIT);
        assert_eq!(budget.free(), 5 * UNIT);
        drop((one, another));
        assert_eq!(budget.free(), 8 * UNIT);
        assert!(budget.lock().held.is_empty());
    }

    #[test]
    fn what_a_client_can_never_have_is_too_large_whatever_others_hold() {
        let budget = budget_of(8 * UNIT);
        let (mut one, mut other) = (reserve(&budget, 1), reserve(&budget, 1));
        assert_eq!(refusal(&mut one, 7 * UNIT), "too large");
        one.grow(4 * UNIT).expect("free");
        assert_eq!(refusal(&mut other, 6 * UNIT), "overloaded");
        // All parts of a request count.
        let mut another = one.another(UNIT).expect("free");
        assert_eq!(refusal(&mut another, UNIT + 1), "too large");
        another.resize(0).expect("less");
        another.resize(2 * UNIT).expect("free again");
        drop((one, another));
        other.grow(6 * UNIT).expect("free again");
    }

    #[test]
    fn what_the_program_has_allocated_counts_and_small_requests_go_last() {
        static ALLOCATED: AtomicU64 = AtomicU64::new(0);
        let budget = Budget::new(100 * UNIT, || Some(ALLOCATED.load(Ordering::Relaxed)));
        let set = |units: u64| {
            ALLOCATED.store(units * UNIT, Ordering::Relaxed);
            budget.lock().allocated.read_at = None;
            let _ = budget.check();
            // It is not read again, however slow this test is.
            budget.lock().allocated.read_at = Some(Instant::now() + Duration::from_secs(3600));
        };
        let large = |units| reserve(&budget, 1).grow(units * UNIT).is_ok();
        set(60);
        assert!(!large(21), "81 of 100 are too many");
        assert!(large(20));
        assert!(!large(17), "the first one may not have allocated its bytes yet");
        assert!(large(SMALL) && !large(SMALL), "of the last fifth");
        set(0);
        let mut growing = reserve(&budget, 1);
        growing.grow(SMALL * UNIT).expect("free");
        set(81);
        assert_eq!(refusal(&mut growing, UNIT), "overloaded");
        assert!(large(1) && budget.check().is_ok());
        set(101);
        assert!(!large(1) && budget.check().is_err());
        set(60);
        growing.grow(UNIT).expect("free again");
        assert_eq!(budget.free(), (50 - SMALL - 1) * UNIT, "refusals take nothing");
    }

    #[test]
    fn a_client_leaves_a_quarter_for_others() {
        let budget = budget_of(8 * UNIT);
        let (mut one, mut again, mut other) = (reserve(&budget, 1), reserve(&budget, 1), reserve(&budget, 2));
        one.grow(4 * UNIT).expect("free");
        again.grow(2 * UNIT).expect("free");
        assert!(again.grow(1).is_err());
        other.grow(2 * UNIT).expect("left by the first client");
        drop(one);
        again.grow(1).expect("given back");
    }
}
