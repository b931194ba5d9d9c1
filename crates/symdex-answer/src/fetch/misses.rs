//! Images without an index, or without one that has lines: each is looked up once, in the background.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::ImageId;

use super::layout::WantedImage;

/// How many images are remembered.
const MAX_KNOWN: usize = 100_000;

/// What the work for an image has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The image has an index now.
    Built,
    /// No source has a debug file of it.
    Absent,
    /// Something failed. The text says what.
    Failed(String),
}

/// How the work is done, and for how long its outcomes are remembered.
#[must_use]
#[derive(Clone, Debug)]
pub struct MissOptions {
    threads: usize,
    queue: usize,
    waiting: usize,
    built: Duration,
    absent: Duration,
    failed: Duration,
}

impl MissOptions {
    /// The default options.
    pub fn new() -> Self {
        Self {
            threads: 4,
            queue: 1024,
            waiting: usize::MAX,
            built: Duration::from_secs(60),
            absent: Duration::from_secs(10 * 60),
            failed: Duration::from_secs(60),
        }
    }

    /// Sets how many images are fetched or built at the same time. The default is 4.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets how many images may wait for a thread, half of them for one client. The others are pending, and the next
    /// request for them is as the first one. The default is 1024.
    pub fn queue(mut self, images: usize) -> Self {
        self.queue = images;
        self
    }

    /// Sets how many threads may wait in [`Misses::ask`] at one time. The images of others are pending at once. There
    /// is no limit by default.
    pub fn waiting(mut self, threads: usize) -> Self {
        self.waiting = threads;
        self
    }

    /// Sets for how long an image counts as built. Then it is built again, if it is missing again, but not if it has an
    /// index that [has no lines](WantedImage::has_index). The default is one minute.
    pub fn built(mut self, time: Duration) -> Self {
        self.built = time;
        self
    }

    /// Sets for how long an image is known to be in no source, so that they are not asked for it. The default is 10
    /// minutes.
    pub fn absent(mut self, time: Duration) -> Self {
        self.absent = time;
        self
    }

    /// Sets for how long a failure is remembered, so that the work is not done again. The default is one minute.
    pub fn failed(mut self, time: Duration) -> Self {
        self.failed = time;
        self
    }
}

impl Default for MissOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Fetches images that have no index, on separate threads. The work for an image is done once, however many threads
/// ask for it, and runs to its end even if no thread waits for it.
///
/// ```
/// use symdex_answer::fetch::{DebugSources, MissOptions, Misses, FetchOutcome, Verdict, WantedImage};
///
/// let sources = DebugSources::default();
/// let misses = Misses::new(&MissOptions::new(), move |wanted| {
///     // Build an index of the file here, and put it into a store.
///     match sources.fetch(wanted, |file| Verdict::Used(file.size())) {
///         Ok(Some(_)) => FetchOutcome::Built,
///         Ok(None) => FetchOutcome::Absent,
///         Err(error) => FetchOutcome::Failed(error.to_string()),
///     }
/// });
/// let wanted = WantedImage::new("0c37c502aba03641a08f84c794684f36".parse()?);
/// assert_eq!(misses.ask(&[wanted], None), [Some(FetchOutcome::Absent)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Misses {
    shared: Arc<Shared>,
}

struct Shared {
    work: Box<dyn Fn(&WantedImage) -> FetchOutcome + Send + Sync>,
    options: MissOptions,
    state: Mutex<State>,
    /// An outcome is known.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: Queue,
    images: HashMap<ImageId, ImageState>,
    threads: usize,
    /// How many threads wait in [`Misses::ask`].
    waiting: usize,
}

enum ImageState {
    /// In the queue, or a thread works for it.
    Pending,
    Done(FetchOutcome, Instant),
}

/// Images that wait for a thread. Clients take turns.
#[derive(Default)]
struct Queue {
    /// The images of each client that has any. The first one is next.
    lanes: VecDeque<(u64, VecDeque<WantedImage>)>,
    len: usize,
}

impl Queue {
    fn count(&self, client: u64) -> usize {
        self.lanes.iter().find(|(of, _)| *of == client).map_or(0, |(_, images)| images.len())
    }

    /// Whether `client` may add an image to a queue of `max`: it may have as many as are free, so that some are left
    /// for each further client.
    fn has_room(&self, client: u64, max: usize) -> bool {
        self.count(client) < max.saturating_sub(self.len)
    }

    fn push(&mut self, client: u64, wanted: WantedImage) {
        self.len += 1;
        match self.lanes.iter_mut().find(|(of, _)| *of == client) {
            Some((_, images)) => images.push_back(wanted),
            None => self.lanes.push_back((client, VecDeque::from([wanted]))),
        }
    }

    /// Removes the next image of the first client, which is last in turn then.
    fn pop(&mut self) -> Option<WantedImage> {
        let (client, mut images) = self.lanes.pop_front()?;
        let wanted = images.pop_front()?;
        self.len -= 1;
        if !images.is_empty() {
            self.lanes.push_back((client, images));
        }
        Some(wanted)
    }

    /// `client` wants an image that may wait for its turn behind more images of another client than it has itself.
    fn hurry(&mut self, client: u64, id: &ImageId) {
        let own = self.count(client);
        let found = self.lanes.iter_mut().enumerate().filter(|(_, (of, _))| *of != client);
        let found = found.flat_map(|(at, (_, images))| {
            let place = images.iter().skip(own + 1).position(|wanted| wanted.id == *id);
            place.and_then(|place| Some((at, images.remove(place + own + 1)?)))
        });
        if let Some((_, wanted)) = found.into_iter().next() {
            self.len -= 1;
            self.push(client, wanted);
        }
    }
}

impl Misses {
    /// Does `work` for each image that is asked for.
    pub fn new(
        options: &MissOptions,
        work: impl Fn(&WantedImage) -> FetchOutcome + Send + Sync + 'static,
    ) -> Self {
        let (work, options) = (Box::new(work), options.clone());
        let shared = Shared { work, options, state: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The outcomes for `images`, in their order. Work that has not begun is begun. Waits for the outcomes until
    /// `deadline`; without one, as long as it takes. `None` stands for an image whose outcome is not known yet.
    #[must_use]
    pub fn ask(&self, images: &[WantedImage], deadline: Option<Instant>) -> Vec<Option<FetchOutcome>> {
        self.ask_for(0, images, deadline)
    }

    /// As [`ask`](Self::ask), for the client with this number. Clients take turns for the threads.
    #[must_use]
    pub fn ask_for(
        &self,
        client: u64,
        images: &[WantedImage],
        deadline: Option<Instant>,
    ) -> Vec<Option<FetchOutcome>> {
        let mut state = self.shared.state();
        for wanted in images {
            self.begin(&mut state, client, wanted);
        }
        let outcomes = |state: &State| {
            let of = |wanted: &WantedImage| match state.images.get(&wanted.id) {
                Some(ImageState::Done(outcome, _)) => Some(outcome.clone()),
                _ => None,
            };
            images.iter().map(of).collect::<Vec<_>>()
        };
        // An image that the full queue has refused is not waited for.
        let is_any_pending = |state: &mut State| {
            let is_pending =
                |wanted: &WantedImage| matches!(state.images.get(&wanted.id), Some(ImageState::Pending));
            images.iter().any(is_pending)
        };
        if state.waiting >= self.shared.options.waiting {
            return outcomes(&state);
        }
        state.waiting += 1;
        let mut state = match deadline {
            None => {
                let waited = self.shared.changed.wait_while(state, is_any_pending);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
            Some(deadline) => {
                let time = deadline.saturating_duration_since(Instant::now());
                let waited = self.shared.changed.wait_timeout_while(state, time, is_any_pending);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.waiting -= 1;
        outcomes(&state)
    }

    /// Begins the work for `wanted`, unless its outcome is known, it has begun, or the queue is full.
    fn begin(&self, state: &mut State, client: u64, wanted: &WantedImage) {
        let now = Instant::now();
        match state.images.get(&wanted.id) {
            Some(ImageState::Pending) => return state.queue.hurry(client, &wanted.id),
            // Its file was fetched, and has no lines either.
            Some(ImageState::Done(FetchOutcome::Built, _)) if wanted.has_index => return,
            Some(ImageState::Done(outcome, since)) if self.shared.is_remembered(outcome, *since, now) => {
                return;
            }
            // A request for this image that waits elsewhere has its outcome already, or sees the next one.
            _ => _ = state.images.remove(&wanted.id),
        }
        if !state.queue.has_room(client, self.shared.options.queue) {
            return;
        }
        self.shared.forget_old(state, now);
        state.queue.push(client, wanted.clone());
        state.images.insert(wanted.id.clone(), ImageState::Pending);
        if state.threads < self.shared.options.threads {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("symdex-fetch".to_owned());
            match thread.spawn(move || shared.run()) {
                Ok(_) => state.threads += 1,
                // A thread that runs takes it later.
                Err(_) if state.threads != 0 => {}
                Err(error) => {
                    // No other image waits: threads run until the queue is empty.
                    state.queue = Queue::default();
                    let outcome = FetchOutcome::Failed(format!("no thread can be started: {error}"));
                    state.images.insert(wanted.id.clone(), ImageState::Done(outcome, now));
                }
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works for the images of the queue until it is empty.
    fn run(&self) {
        loop {
            let wanted = {
                let mut state = self.state();
                let Some(wanted) = state.queue.pop() else {
                    state.threads -= 1;
                    return;
                };
                wanted
            };
            let panicked = |_| FetchOutcome::Failed(format!("{}: the work for it has panicked", wanted.id));
            let outcome = catch_unwind(AssertUnwindSafe(|| (self.work)(&wanted))).unwrap_or_else(panicked);
            self.state().images.insert(wanted.id, ImageState::Done(outcome, Instant::now()));
            self.changed.notify_all();
        }
    }

    fn is_remembered(&self, outcome: &FetchOutcome, since: Instant, now: Instant) -> bool {
        let time = match outcome {
            FetchOutcome::Built => self.options.built,
            FetchOutcome::Absent => self.options.absent,
            FetchOutcome::Failed(_) => self.options.failed,
        };
        now.saturating_duration_since(since) < time
    }

    /// If the table is full, evicts expired outcomes. If these are few, clears the table.
    fn forget_old(&self, state: &mut State, now: Instant) {
        if state.images.len() < MAX_KNOWN {
            return;
        }
        state.images.retain(|_, image| match image {
            ImageState::Pending => true,
            ImageState::Done(outcome, since) => self.is_remembered(outcome, *since, now),
        });
        if state.images.len() > MAX_KNOWN / 2 {
            state.images.retain(|_, image| matches!(image, ImageState::Pending));
        }
    }
}

impl fmt::Debug for Misses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Misses").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};

    use super::*;

    fn wanted(number: u8) -> WantedImage {
        WantedImage::new(ImageId::new(&[number; 16]).expect("16 bytes are an id"))
    }

    #[test]
    fn threads_that_ask_for_one_image_share_the_work() {
        let (count, barrier) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(64)));
        let counted = Arc::clone(&count);
        let misses = Misses::new(&MissOptions::new(), move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            FetchOutcome::Built
        });
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    barrier.wait();
                    assert_eq!(misses.ask(&[wanted(1)], None), [Some(FetchOutcome::Built)]);
                });
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    /// Misses whose work waits until the test sends its outcome.
    fn held(options: &MissOptions) -> (Misses, mpsc::Sender<FetchOutcome>) {
        let (send, outcomes) = mpsc::channel();
        let outcomes = Mutex::new(outcomes);
        let work =
            move |_: &WantedImage| outcomes.lock().expect("not poisoned").recv().expect("the test sends");
        (Misses::new(options, work), send)
    }

    #[test]
    fn a_request_that_does_not_wait_leaves_the_work_running() {
        let (misses, send) = held(&MissOptions::new());
        let now = Some(Instant::now());
        assert_eq!(misses.ask(&[wanted(1)], now), [None], "pending");
        send.send(FetchOutcome::Built).expect("it waits");
        assert_eq!(misses.ask(&[wanted(1)], None), [Some(FetchOutcome::Built)]);
    }

    #[test]
    fn a_full_queue_and_too_many_waiting_threads_are_pending() {
        let (misses, send) = held(&MissOptions::new().threads(1).queue(1).waiting(0));
        // One runs, or is about to; then the queue has room for one.
        assert_eq!(misses.ask(&[wanted(1)], None), [None]);
        while misses.shared.state().queue.len != 0 {
            std::thread::yield_now();
        }
        assert_eq!(misses.ask(&[wanted(2), wanted(3)], None), [None, None]);
        assert!(!misses.shared.state().images.contains_key(&wanted(3).id), "the queue has refused it");
        for _ in 0..2 {
            send.send(FetchOutcome::Absent).expect("it waits");
        }
        while misses.ask(&[wanted(2)], None) != [Some(FetchOutcome::Absent)] {
            std::thread::yield_now();
        }
    }

    #[test]
    fn outcomes_are_remembered_for_their_time() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let options = MissOptions::new().absent(Duration::MAX).failed(Duration::ZERO);
        let misses = Misses::new(&options, move |wanted| {
            counted.fetch_add(1, Ordering::SeqCst);
            match wanted.id.as_bytes()[0] {
                1 => FetchOutcome::Absent,
                _ => panic!("as the test wants"),
            }
        });
        for _ in 0..3 {
            assert_eq!(misses.ask(&[wanted(1)], None), [Some(FetchOutcome::Absent)]);
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
        for round in 1..=3 {
            let outcomes = misses.ask(&[wanted(2)], None);
            assert!(matches!(&outcomes[..], [Some(FetchOutcome::Failed(why))] if why.contains("panicked")));
            assert_eq!(count.load(Ordering::SeqCst), 1 + round, "a failure is not remembered here");
        }
    }

    #[test]
    fn clients_take_turns_and_leave_room_for_others() {
        let mut queue = Queue::default();
        for number in 0..8 {
            if queue.has_room(1, 8) {
                queue.push(1, wanted(number));
            }
        }
        assert_eq!(queue.len, 4, "half of the queue");
        queue.push(2, wanted(10));
        // Another client wants an image that would be the fourth one of the first client.
        queue.hurry(2, &wanted(3).id);
        // The next one of the first client is as soon as it would be otherwise.
        queue.hurry(2, &wanted(0).id);
        let order: Vec<_> =
            std::iter::from_fn(|| queue.pop()).map(|wanted| wanted.id.as_bytes()[0]).collect();
        assert_eq!((order, queue.len), (vec![0, 10, 1, 3, 2], 0));
    }
}
