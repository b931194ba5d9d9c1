//! How stores are read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::store::StoreUrl;

/// The options of a [`StoreReader`](super::StoreReader).
#[must_use]
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    pub(super) memory: u64,
    pub(super) fresh: Duration,
    pub(super) absent: Duration,
    pub(super) first_pause: Duration,
    pub(super) pause: Duration,
    pub(super) patience: Option<Duration>,
    pub(super) around_calls: AroundCalls,
}

/// Makes a call of the store at a URL.
type AroundCall = dyn Fn(&StoreUrl, &mut dyn FnMut()) + Send + Sync;

/// What is called around each call of a store.
#[derive(Clone)]
pub(super) struct AroundCalls(Arc<AroundCall>);

impl AroundCalls {
    /// Makes `call` of the store at `url`.
    pub(super) fn call(&self, url: &StoreUrl, call: &mut dyn FnMut()) {
        (self.0)(url, call);
    }
}

impl fmt::Debug for AroundCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AroundCalls")
    }
}

/// How long a store is not asked after its first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// Longer than a command runs.
const RUN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl ReaderOptions {
    /// The default options.
    pub fn new() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self {
            memory: 256 << 20,
            fresh: minutes(10),
            absent: minutes(1),
            first_pause: FIRST_PAUSE,
            pause: Duration::from_secs(30),
            patience: None,
            around_calls: AroundCalls(Arc::new(|_, call| call())),
        }
    }

    /// The options of a command that ends soon: a store that could not be reached is not asked again.
    pub fn of_one_run() -> Self {
        Self { first_pause: RUN, pause: RUN, ..Self::new() }
    }

    /// Sets the memory for open indexes and values, in bytes. Mapped files do not count. Images that a
    /// store does not have may take an eighth of it. The default is 256 MiB.
    pub fn memory(mut self, size: u64) -> Self {
        self.memory = size;
        self
    }

    /// Sets how long an index in memory answers before its store is asked for a newer one. The default is ten minutes.
    pub fn fresh(mut self, time: Duration) -> Self {
        self.fresh = time;
        self
    }

    /// Sets how long a store is not asked again for an image that it does not have. The default is one minute.
    pub fn absent(mut self, time: Duration) -> Self {
        self.absent = time;
        self
    }

    /// Sets how long a store is not asked at most after calls could not reach it. After the first failure, these are
    /// two seconds, and twice as many after each further one in a row. The default is 30 seconds.
    pub fn pause(mut self, time: Duration) -> Self {
        self.pause = time;
        self
    }

    /// Sets how long a request waits for the answer of a store that it has asked again for an image in memory. After
    /// that, the image in memory answers, and the next request has what the store answers later. By default, a request
    /// waits as long as the store takes.
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = Some(time);
        self
    }

    /// Sets what is called around each call of a store, on the thread that waits for the store. Its arguments are the
    /// URL of the store and the call, which it has to make once.
    pub fn around_calls(
        mut self,
        around: impl Fn(&StoreUrl, &mut dyn FnMut()) + Send + Sync + 'static,
    ) -> Self {
        self.around_calls = AroundCalls(Arc::new(around));
        self
    }
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self::new()
    }
}
