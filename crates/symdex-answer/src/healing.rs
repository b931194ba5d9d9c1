//! Indexes that a store has lost or that are damaged: what is known of them, and how they are put into the store again.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{Cause, ImageId};
use symdex_report::Unanswered;
use symdex_store::{PublishOutcome, SharedStore, StoreUrl};

/// How long an index that was found to be damaged is not read again, and how long a store is not refilled with an index
/// again. A service may run for months.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How many indexes may wait until they are put into a store. Reports that need the others ask again.
const MAX_WAITING: usize = 1000;

/// The damage of indexes and when it was found, by the path or the location in a store.
#[derive(Default)]
pub(crate) struct KnownDamage(Mutex<HashMap<String, (Instant, String)>>);

impl KnownDamage {
    fn all(&self) -> MutexGuard<'_, HashMap<String, (Instant, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The damage of the index at `location`, if it was found in the last ten minutes. The index is not asked again in
    /// that time: whether a new one has replaced it meanwhile depends on the order in which reports are answered.
    /// `location` is called only if there is any damage, because a folder is searched for the path.
    pub(crate) fn known(&self, location: impl FnOnce() -> String) -> Option<Unanswered> {
        if self.all().is_empty() {
            return None;
        }
        let location = location();
        let all = self.all();
        let (found, damage) = all.get(&location)?;
        (found.elapsed() < REMEMBERED).then(|| Unanswered::Failed(Cause::Damaged, damage.clone()))
    }

    /// Returns `answered`, which the index at `location` has answered. Remembers it if it is damage.
    pub(crate) fn noting<T>(
        &self,
        location: impl FnOnce() -> String,
        answered: Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        if let Err(Unanswered::Failed(Cause::Damaged, damage)) = &answered {
            self.all().insert(location(), (Instant::now(), damage.clone()));
        }
        answered
    }

    /// The index at `location` has been replaced or removed.
    pub(crate) fn forget(&self, location: &str) {
        self.all().remove(location);
    }
}

/// An index that a store had lost, or of which it had a damaged one, and that another store has.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Refill {
    /// The image.
    pub id: ImageId,
    /// The store that gets the index.
    pub to: StoreUrl,
    /// The store that has it.
    pub from: StoreUrl,
    /// What has become of it, or why the index could not be copied. `None` if the other store has it no longer.
    pub outcome: Result<Option<PublishOutcome>, String>,
}

/// Puts indexes into the stores that have lost them, one after the other, on a thread that runs as long as there are
/// some.
pub(crate) struct Healer(Arc<Shared>);

struct Shared {
    damaged: Arc<KnownDamage>,
    on_refill: Option<fn(&Refill)>,
    state: Mutex<State>,
    is_done: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Lost>,
    /// When an index was put into a store, or could not be, by its location in the store.
    tried: HashMap<String, Instant>,
    is_running: bool,
}

struct Lost {
    id: ImageId,
    to: Arc<SharedStore>,
    from: Arc<SharedStore>,
}

impl Healer {
    pub(crate) fn new(damaged: Arc<KnownDamage>, on_refill: Option<fn(&Refill)>) -> Self {
        let (state, is_done) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { damaged, on_refill, state, is_done }))
    }

    /// Puts the index of `id`, which the store `from` has, into `to`, in the background. Does nothing if `to` is
    /// read-only, or if this was done in the last ten minutes.
    pub(crate) fn refill(&self, id: &ImageId, to: &Arc<SharedStore>, from: &Arc<SharedStore>) {
        if to.store().is_read_only() {
            return;
        }
        let (location, mut state) = (to.store().location(id), self.0.state());
        state.tried.retain(|_, since| since.elapsed() < REMEMBERED);
        if state.waiting.len() >= MAX_WAITING || state.tried.contains_key(&location) {
            return;
        }
        state.tried.insert(location, Instant::now());
        state.waiting.push_back(Lost { id: id.clone(), to: Arc::clone(to), from: Arc::clone(from) });
        if !state.is_running {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("symdex-refill".to_owned());
            state.is_running = thread.spawn(move || shared.run()).is_ok();
        }
    }

    /// Waits until nothing is left to do.
    pub(crate) fn finish(&self) {
        drop(self.0.is_done.wait_while(self.0.state(), |state| state.is_running));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let next = {
                let mut state = self.state();
                let next = state.waiting.pop_front();
                state.is_running = next.is_some();
                next
            };
            let Some(lost) = next else {
                self.is_done.notify_all();
                return;
            };
            // A panic of a store does not end the thread, for which others may wait.
            _ = catch_unwind(AssertUnwindSafe(|| self.put(&lost)));
        }
    }

    fn put(&self, Lost { id, to, from }: &Lost) {
        let outcome = to.copy_from(id, from).map_err(|error| error.to_string());
        if outcome.is_ok() {
            self.damaged.forget(&to.store().location(id));
        }
        if let Some(on_refill) = self.on_refill {
            on_refill(&Refill { id: id.clone(), to: to.url().clone(), from: from.url().clone(), outcome });
        }
    }
}
