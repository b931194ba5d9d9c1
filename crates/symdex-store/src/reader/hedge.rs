//! Calls of several stores at the same time, so that a slow store does not delay the answers of another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use symdex::{Grade, ImageId};

use super::memory::Part;
use super::{OpenImage, Opened, SharedStore, StoreReader};
use crate::error::Error;

/// How long a store may keep the next one waiting. A report of 500 images from a server with a latency of 50 ms takes
/// less, so that the next store is not asked in vain; see docs/STORES.md.
pub const HEDGE_DELAY: Duration = Duration::from_secs(1);

/// If so many calls of a store are late, it is not waited for.
const MAX_LATE: usize = 4;

const RUNS: u8 = 0;
const IS_LATE: u8 = 1;
const HAS_ENDED: u8 = 2;

/// Calls of several stores at the same time. Each has a thread of its own, which may give several answers, in parts. It
/// ends after the next part if this is dropped.
#[derive(Debug)]
pub struct HedgedCalls<T> {
    sender: SyncSender<HedgedAnswer<T>>,
    answers: Receiver<HedgedAnswer<T>>,
    calls: Vec<Arc<Call>>,
    ended: usize,
}

/// What [`HedgedCalls::next`] returns.
#[derive(Debug)]
pub enum HedgedAnswer<T> {
    /// A part of the answer of the call with this number.
    Part(usize, T),
    /// The call with this number has ended.
    End(usize),
}

#[derive(Debug)]
struct Call {
    store: Arc<SharedStore>,
    state: AtomicU8,
}

/// A call on its thread. Dropping it, also by a panic of the store, ends the call.
struct Running<T> {
    number: usize,
    call: Arc<Call>,
    sender: SyncSender<HedgedAnswer<T>>,
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if self.call.state.swap(HAS_ENDED, Ordering::Relaxed) == IS_LATE {
            self.call.store.late.fetch_sub(1, Ordering::Relaxed);
        }
        _ = self.sender.send(HedgedAnswer::End(self.number));
    }
}

impl<T> Default for HedgedCalls<T> {
    fn default() -> Self {
        let (sender, answers) = sync_channel(1);
        Self { sender, answers, calls: Vec::new(), ended: 0 }
    }
}

impl<T> HedgedCalls<T> {
    /// Whether no call runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ended == self.calls.len()
    }

    /// Calls `call` with `store` on a new thread. `call` gives each part of its answer to its second argument, and ends
    /// if that returns `false`. Returns the number of the call; numbers count up from 0.
    ///
    /// Returns `None` if four calls of the store are late, or if no thread can be started. Ask the next store first,
    /// and this one on the thread of the caller if that does not help.
    pub fn begin(
        &mut self,
        store: &Arc<SharedStore>,
        call: impl FnOnce(&Arc<SharedStore>, &mut dyn FnMut(T) -> bool) + Send + 'static,
    ) -> Option<usize>
    where
        T: Send + 'static,
    {
        if store.late.load(Ordering::Relaxed) >= MAX_LATE {
            return None;
        }
        let number = self.calls.len();
        let begun = Arc::new(Call { store: Arc::clone(store), state: AtomicU8::new(RUNS) });
        let (call_of_thread, sender) = (Arc::clone(&begun), self.sender.clone());
        let work = move || {
            let running = Running { number, call: call_of_thread, sender };
            let send = |part| running.sender.send(HedgedAnswer::Part(number, part)).is_ok();
            call(&running.call.store, &mut { send });
        };
        std::thread::Builder::new().name("symdex-ask".to_owned()).spawn(work).ok()?;
        self.calls.push(begun);
        Some(number)
    }

    /// The next answer of any call. Waits for it until `deadline`; without one, as long as calls run. `None` if there
    /// is none until then.
    pub fn next(&mut self, deadline: Option<Instant>) -> Option<HedgedAnswer<T>> {
        let waited_for = &self.calls.iter().find(|call| call.state.load(Ordering::Relaxed) != HAS_ENDED);
        let mut next = self.answers.try_recv().map_err(|_| RecvTimeoutError::Timeout);
        if let (Err(_), false) = (&next, self.is_empty()) {
            let wait = &mut || {
                next = match deadline {
                    Some(at) => self.answers.recv_timeout(at.saturating_duration_since(Instant::now())),
                    None => self.answers.recv().map_err(RecvTimeoutError::from),
                };
            };
            match waited_for {
                Some(call) => (call.store.shared.around_calls)(wait),
                None => wait(),
            }
        }
        let next = next.ok()?;
        self.ended += usize::from(matches!(next, HedgedAnswer::End(_)));
        Some(next)
    }

    /// Records that the call with this number is late. Returns the error for what it was asked for, for messages.
    pub fn set_late(&self, number: usize) -> Option<Error> {
        let Call { store, state } = &**self.calls.get(number)?;
        // Counted first: the thread may end at any time, and counts itself out.
        store.late.fetch_add(1, Ordering::Relaxed);
        if state.compare_exchange(RUNS, IS_LATE, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            store.late.fetch_sub(1, Ordering::Relaxed);
        }
        Some(store.unanswered(HEDGE_DELAY))
    }
}

impl StoreReader {
    /// The image `id` of the first store that answers with an index that has lines. If none has, the one of the
    /// greatest [grade](symdex::Metadata::grade). If a store has not answered within [`HEDGE_DELAY`], the next one is
    /// asked at the same time. Stores that have an error in `failures`, which is in the order of the stores, are left
    /// out. The errors of the others are added there.
    pub fn find_noting(&self, id: &ImageId, failures: &mut [Option<Error>]) -> Option<OpenImage> {
        let asked = self.stores().iter().zip(failures).filter(|(_, failure)| failure.is_none());
        let mut asked: Vec<_> = asked.collect();
        let (mut calls, mut of_call, mut refused) = (HedgedCalls::default(), Vec::new(), Vec::new());
        let (count, mut best) = (asked.len(), Best::default());
        for at in 0..count {
            if let Some(opened) = asked[at].0.opened_lately(id) {
                if best.offer(opened) {
                    return best.0;
                }
                continue;
            }
            if at + 1 == count && calls.is_empty() {
                // There is no other to ask meanwhile.
                if best.offer(noting(asked[at].0.open(id), asked[at].1)) {
                    return best.0;
                }
                continue;
            }
            let wanted = id.clone();
            let Some(number) = calls.begin(asked[at].0, move |store, answer| _ = answer(store.open(&wanted)))
            else {
                *asked[at].1 = Some(asked[at].0.unanswered(HEDGE_DELAY));
                refused.push(at);
                continue;
            };
            of_call.push(at);
            let deadline = (at + 1 < count).then(|| Instant::now() + HEDGE_DELAY);
            if ask_calls(&mut calls, Some(number), deadline, &of_call, &mut asked, &mut best) {
                return best.0;
            }
        }
        if ask_calls(&mut calls, None, None, &of_call, &mut asked, &mut best) {
            return best.0;
        }
        _ = refused.into_iter().any(|at| best.offer(noting(asked[at].0.open(id), asked[at].1)));
        best.0
    }
}

/// The image of the greatest grade that stores have answered with.
#[derive(Default)]
struct Best(Option<OpenImage>);

impl Best {
    /// Keeps `image` if it is better. Returns whether none can be better than the one that is kept.
    fn offer(&mut self, image: Option<OpenImage>) -> bool {
        let grade = |image: &Option<OpenImage>| image.as_ref().map(|image| image.metadata().grade());
        if grade(&image) > grade(&self.0) {
            self.0 = image;
        }
        grade(&self.0) == Some(Grade::Lines)
    }
}

impl SharedStore {
    /// What is in memory of the image `id`, if the store need not be asked again.
    pub(super) fn opened_lately(self: &Arc<Self>, id: &ImageId) -> Option<Option<OpenImage>> {
        self.fresh_image(&self.key(id, Part::Image))
    }
}

/// Offers the images of calls to `best`, until none can be better: then returns `true`. Otherwise returns `false` when
/// the call `number` ends or is late; without a number, when all calls have ended.
fn ask_calls(
    calls: &mut HedgedCalls<Opened>,
    number: Option<usize>,
    deadline: Option<Instant>,
    of_call: &[usize],
    asked: &mut [(&Arc<SharedStore>, &mut Option<Error>)],
    best: &mut Best,
) -> bool {
    loop {
        match calls.next(deadline) {
            Some(HedgedAnswer::Part(call, opened)) => {
                if best.offer(noting(opened, asked[of_call[call]].1)) {
                    return true;
                }
            }
            Some(HedgedAnswer::End(call)) if number == Some(call) => return false,
            Some(HedgedAnswer::End(_)) => {}
            None => {
                if let Some(number) = number {
                    *asked[of_call[number]].1 = calls.set_late(number);
                }
                return false;
            }
        }
    }
}

/// The image that was opened. Sets `failure` to the error if there is one, and otherwise to none: the store has
/// answered.
fn noting(opened: Opened, failure: &mut Option<Error>) -> Option<OpenImage> {
    let (image, error) = match opened {
        Ok(image) => (image, None),
        Err(error) => (None, Some(error)),
    };
    *failure = error;
    image
}
