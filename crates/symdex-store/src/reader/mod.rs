//! Reads images from several stores.

mod breaker;
mod counts;
mod gate;
mod ids;
mod memory;
mod open_image;
mod options;
mod publish;
mod refresh;
mod values;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{Cause, Grade, ImageId, Index};

use self::counts::{Counts, count};
use self::gate::Gate;
use self::memory::{Kept, Key, Memory, Part, ValueKey};
use self::options::AroundCalls;
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::provenance::PutOptions;
use crate::publish::PublishOutcome;
use crate::single_flight::{LONGEST_WAIT, SingleFlight};
use crate::store::{Store, StoreEntry, StoreUrl, StoredImage, StoredValues};

pub use self::breaker::Breaker;
pub use self::counts::StoreCounts;
pub use self::open_image::OpenImage;
pub use self::options::ReaderOptions;

/// An image that was opened; `None` if the store does not have it.
type Opened = Result<Option<OpenImage>, Error>;

/// Reads images from several stores, with one memory for all of them. Threads share it.
///
/// Threads that need the same image at the same time wait for one of them to open it. A store that cannot be reached is
/// left alone for a while.
///
/// ```
/// use symdex_store::{IndexFolder, ReaderOptions, StoreReader};
///
/// # let near = tempfile::tempdir()?;
/// # let far = tempfile::tempdir()?;
/// # let id = "0c37c502aba03641a08f84c794684f36".parse()?;
/// let stores = [near.path(), far.path()].map(|path| Box::new(IndexFolder::new(path)) as _);
/// let reader = StoreReader::new(stores.into(), &ReaderOptions::new());
/// match reader.find(&id)? {
///     Some(image) => println!("{} is {}", image.metadata().image_name, image.location()),
///     None => println!("no store has {id}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StoreReader {
    stores: Vec<Arc<SharedStore>>,
    shared: Arc<Shared>,
}

/// A store of a [`StoreReader`]. Threads share it. It asks the store for what is not in memory, counts the answers, and
/// leaves a store that cannot be reached alone for a while.
#[derive(Debug)]
pub struct SharedStore {
    store: Box<dyn Store>,
    /// Its position among the stores of the reader, for keys.
    number: usize,
    /// A store that takes no new indexes, because it is full or can only be read, still answers.
    reads: Gate,
    writes: Gate,
    counts: Counts,
    /// How many threads ask again for images in memory, and may wait longer than the requests that need them.
    refreshing: AtomicUsize,
    shared: Arc<Shared>,
}

/// What the stores of a reader share.
#[derive(Debug)]
struct Shared {
    memory: Mutex<Memory>,
    flights: SingleFlight<Key>,
    fresh: Duration,
    absent: Duration,
    patience: Option<Duration>,
    around_calls: AroundCalls,
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreReader {
    /// A reader of `stores`, in the order in which they are asked.
    #[must_use]
    pub fn new(stores: Vec<Box<dyn Store>>, options: &ReaderOptions) -> Self {
        let memory = Mutex::new(Memory::new(options.memory));
        let ReaderOptions { fresh, absent, patience, .. } = *options;
        let around_calls = options.around_calls.clone();
        let flights = SingleFlight::default();
        let shared = Arc::new(Shared { memory, flights, fresh, absent, patience, around_calls });
        let store = |(number, store)| {
            Arc::new(SharedStore {
                store,
                number,
                reads: Gate::new(options),
                writes: Gate::new(options),
                counts: Counts::default(),
                refreshing: AtomicUsize::new(0),
                shared: Arc::clone(&shared),
            })
        };
        Self { stores: stores.into_iter().enumerate().map(store).collect(), shared }
    }

    /// The stores, in the order in which they are asked.
    #[must_use]
    pub fn stores(&self) -> &[Arc<SharedStore>] {
        &self.stores
    }

    /// The image `id` of the first store that has it with lines; if none has, the index of the greatest
    /// [grade](symdex::Metadata::grade). `None` if no store has the image.
    ///
    /// # Errors
    ///
    /// The first [`Error`], if a store has failed and no other store has the image.
    pub fn find(&self, id: &ImageId) -> Result<Option<OpenImage>, Error> {
        let mut failures = self.no_failures();
        match (self.find_noting(id, &mut failures), failures.into_iter().flatten().next()) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    /// As [`find`](Self::find), and asks the stores again that are remembered not to have the image.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_now(&self, id: &ImageId) -> Result<Option<OpenImage>, Error> {
        let found = self.find(id);
        let is_there_now = || self.stores.iter().any(|store| matches!(store.stat(id), Ok(Some(_))));
        if !matches!(found, Ok(Some(_))) && is_there_now() { self.find(id) } else { found }
    }

    /// For [`find_noting`](Self::find_noting): the failure of each store, in their order. None has failed yet.
    #[must_use]
    pub fn no_failures(&self) -> Vec<Option<Error>> {
        self.stores.iter().map(|_| None).collect()
    }

    /// As [`find`](Self::find), without the stores that have a failure in `failures`. Those of the others are added
    /// there.
    pub fn find_noting(&self, id: &ImageId, failures: &mut [Option<Error>]) -> Option<OpenImage> {
        let id = std::slice::from_ref(id);
        self.best(id, failures, OpenImage::grade, SharedStore::open_many).pop().flatten()
    }

    /// What the stores have of each of `ids`, in their order: of the first store that has it with lines, or else of the
    /// first with the greatest `grade`. `None` if no store has it. `ask` asks a store for the ids that the stores
    /// before do not have with lines, which may be none. Stores that have a failure in `failures` are not asked.
    /// The first one of each of the others is added there.
    pub fn best<T>(
        &self,
        ids: &[ImageId],
        failures: &mut [Option<Error>],
        grade: impl Fn(&T) -> Grade,
        mut ask: impl FnMut(&Arc<SharedStore>, &[ImageId]) -> Vec<Result<Option<T>, Error>>,
    ) -> Vec<Option<T>> {
        let grade = |found: &Option<T>| found.as_ref().map(&grade);
        let mut best: Vec<Option<T>> = ids.iter().map(|_| None).collect();
        for (store, failure) in self.stores.iter().zip(failures).filter(|(_, failure)| failure.is_none()) {
            let left = ids.iter().zip(&mut best).filter(|(_, best)| grade(best) < Some(Grade::Lines));
            let (left, places): (Vec<_>, Vec<_>) = left.map(|(id, best)| (id.clone(), best)).unzip();
            for (best, found) in places.into_iter().zip(ask(store, &left)) {
                match found {
                    Ok(found) if grade(&found) > grade(best) => *best = found,
                    Ok(_) => {}
                    Err(error) => _ = failure.get_or_insert(error),
                }
            }
        }
        best
    }

    /// What the stores have answered until now, in their order.
    #[must_use]
    pub fn counts(&self) -> Vec<StoreCounts> {
        self.stores.iter().map(|store| store.counts()).collect()
    }

    /// The bytes of the images and values that are in memory now, at most [`ReaderOptions::memory`].
    #[must_use]
    pub fn memory_in_use(&self) -> u64 {
        self.shared.memory().in_use()
    }
}

impl SharedStore {
    /// `store` without others that share its memory.
    #[must_use]
    pub fn new(store: Box<dyn Store>, options: &ReaderOptions) -> Arc<Self> {
        StoreReader::new(vec![store], options).stores.remove(0)
    }

    /// The store itself. Calls of it are not counted, and are made even if it could not be reached lately.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The URL of the store.
    #[must_use]
    pub fn url(&self) -> &StoreUrl {
        self.store.url()
    }

    /// The image `id`. `None` if the store does not have it.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read or the index is damaged. An index in memory answers even if its store
    /// cannot be reached any more.
    pub fn open(self: &Arc<Self>, id: &ImageId) -> Opened {
        let opened = self.open_at_once(std::slice::from_ref(id)).pop();
        opened.unwrap_or(Ok(None))
    }

    /// The images `ids`, in the order of `ids`. Each result is that of
    /// [`open`](Self::open). The store is asked for those that are not in memory,
    /// [many at once](Store::images_at_once).
    pub fn open_many(self: &Arc<Self>, ids: &[ImageId]) -> Vec<Result<Option<OpenImage>, Error>> {
        ids.chunks(self.store.images_at_once()).flat_map(|ids| self.open_at_once(ids)).collect()
    }

    /// Opens the images that are not in memory with one call of the store. Those that are too old wait for a call of
    /// their own no longer than the [patience](ReaderOptions::patience).
    fn open_at_once(self: &Arc<Self>, ids: &[ImageId]) -> Vec<Opened> {
        let keys: Vec<_> = ids.iter().map(|id| self.key(id, Part::Image)).collect();
        let mut opened: Vec<_> = keys.iter().map(|key| self.fresh_image(key).map(Ok)).collect();
        if let Some(patience) = self.shared.patience {
            let is_old = |at: &usize| opened[*at].is_none() && self.old_image(&keys[*at]).is_some();
            let old: Vec<_> = (0..keys.len()).filter(is_old).collect();
            let old_ids = old.iter().map(|at| ids[*at].clone()).collect();
            for (at, refreshed) in old.into_iter().zip(self.refresh(old_ids, patience)) {
                opened[at] = Some(refreshed);
            }
        }
        self.open_left(ids, keys, opened)
    }

    /// Opens those of the images `ids` that are not in `opened`.
    fn open_left(
        self: &Arc<Self>,
        ids: &[ImageId],
        keys: Vec<Key>,
        mut opened: Vec<Option<Opened>>,
    ) -> Vec<Opened> {
        let mut left: Vec<_> = (0..keys.len()).filter(|at| opened[*at].is_none()).collect();
        if !left.is_empty() {
            let waiting: Vec<_> = left.iter().map(|at| keys[*at].clone()).collect();
            let flight = self.shared.flights.turn(&waiting, LONGEST_WAIT);
            // Other threads may have opened some of them meanwhile.
            left.retain(|at| {
                opened[*at] = self.fresh_image(&keys[*at]).map(Ok);
                opened[*at].is_none()
            });
            let ids: Vec<_> = left.iter().map(|at| ids[*at].clone()).collect();
            let new = match flight {
                Some(_) => self.ask(&self.reads, ids.len(), || self.store.open_many(&ids)),
                None => ids.iter().map(|_| Err(self.unanswered(LONGEST_WAIT))).collect(),
            };
            for (at, new) in left.into_iter().zip(new) {
                opened[at] = Some(self.keep(&keys[at], new));
            }
        }
        opened.into_iter().map(|opened| opened.unwrap_or(Ok(None))).collect()
    }

    /// Keeps what the store has answered for the image `key`. If the store could not be reached, an older image in
    /// memory answers.
    fn keep(self: &Arc<Self>, key: &Key, answer: Result<Option<StoredImage>, Error>) -> Opened {
        let counts = &self.counts;
        match answer {
            Ok(Some(image)) => {
                count(&counts.found);
                let image = Arc::new(image);
                self.shared.memory().put(key.clone(), Kept::Image(Arc::clone(&image)), Instant::now());
                Ok(Some(self.image(image)))
            }
            Ok(None) => {
                count(&counts.absent);
                self.shared.memory().put(key.clone(), Kept::Absent, Instant::now());
                Ok(None)
            }
            Err(error) if error.cause() == Cause::Unavailable => self.old_image(key).map(Some).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// The image in memory, if it need not be asked for again.
    fn fresh_image(self: &Arc<Self>, key: &Key) -> Option<Option<OpenImage>> {
        let (kept, since) = self.shared.memory().get(key)?;
        match kept {
            Kept::Image(image) if since.elapsed() < self.shared.fresh => {
                count(&self.counts.from_memory);
                Some(Some(self.image(image)))
            }
            Kept::Absent if since.elapsed() < self.shared.absent => Some(None),
            _ => None,
        }
    }

    /// Drops the image `id` from memory, so that it is opened again.
    fn forget(&self, id: &ImageId) {
        self.shared.memory().forget(&self.key(id, Part::Image));
    }

    /// Puts `index` into the store. See [`Store::put_with`].
    ///
    /// # Errors
    ///
    /// As [`Store::put_with`].
    pub fn put(&self, index: &Index<&[u8]>, options: &PutOptions) -> Result<PublishOutcome, Error> {
        let outcome = self.ask(&self.writes, 1, || vec![self.store.put_with(index, options)]).pop();
        self.forget_changed(index.id());
        outcome.unwrap_or(Ok(PublishOutcome::Unchanged))
    }

    /// Puts the index of `id` that `source` has into this store; `None` if `source` has none. See [`Store::copy_to`].
    ///
    /// # Errors
    ///
    /// As [`Store::copy_to`].
    pub fn copy_from(&self, id: &ImageId, source: &Self) -> Result<Option<PublishOutcome>, Error> {
        // A failure does not say which of the two stores cannot be reached.
        let copied = source.store.copy_to(id, &*self.store);
        self.forget_changed(id);
        copied
    }

    /// Removes the image `id` from the store. Returns whether the store had it. See [`Store::remove`].
    ///
    /// # Errors
    ///
    /// As [`Store::remove`].
    pub fn remove(&self, id: &ImageId) -> Result<bool, Error> {
        let removed = self.ask(&self.writes, 1, || vec![self.store.remove(id)]).pop();
        self.forget_changed(id);
        removed.unwrap_or(Ok(false))
    }

    /// Drops what is known of the image `id`, which has changed in the store.
    fn forget_changed(&self, id: &ImageId) {
        let mut memory = self.shared.memory();
        // Values of the old index have its generation. They are not used any more.
        self.keys(id).for_each(|key| memory.forget(&key));
    }

    /// Forgets that the store did not have the image `id`.
    fn forget_absent(&self, id: &ImageId) {
        let mut memory = self.shared.memory();
        for key in self.keys(id) {
            if memory.get(&key).is_some_and(|(kept, _)| kept.is_absent()) {
                memory.forget(&key);
            }
        }
    }

    /// The keys of what the store has answered for the image `id`, without its values.
    fn keys(&self, id: &ImageId) -> impl Iterator<Item = Key> + use<> {
        // Reports state the first 16 bytes of a longer id.
        let start = id.as_bytes().get(..16).and_then(ImageId::new);
        let ids = start.map(|start| self.key(&start, Part::Ids));
        [self.key(id, Part::Image)].into_iter().chain(ids)
    }

    /// Asks the store for an image that does not exist. See [`Store::check`].
    ///
    /// # Errors
    ///
    /// As [`Store::check`], and if the store could not be reached lately.
    pub fn check(&self) -> Result<(), Error> {
        self.ask(&self.reads, 1, || vec![self.store.check()]).pop().unwrap_or(Ok(()))
    }

    /// What the store states now of the index of `id`, whatever is in memory; `None` if it has none.
    /// See [`Store::stat`].
    ///
    /// # Errors
    ///
    /// As [`Store::stat`], and if the store could not be reached lately.
    pub fn stat(&self, id: &ImageId) -> Result<Option<StoreEntry>, Error> {
        self.stat_many(std::slice::from_ref(id)).pop().unwrap_or(Ok(None))
    }

    /// What the store states now of the indexes of `ids`, in the order of `ids`. Each result is that of
    /// [`stat`](Self::stat). If the store has an image that it did not have before, [`open`](Self::open) opens it.
    pub fn stat_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoreEntry>, Error>> {
        let stated = self.ask(&self.reads, ids.len(), || self.store.stat_many(ids));
        let there = ids.iter().zip(&stated).filter(|(_, entry)| matches!(entry, Ok(Some(_))));
        there.for_each(|(id, _)| self.forget_absent(id));
        stated
    }

    /// The whole index of `id` in the store. See [`Store::get`].
    ///
    /// # Errors
    ///
    /// As [`Store::get`], and if the store could not be reached lately.
    pub fn get(&self, id: &ImageId) -> Result<Option<IndexBytes>, Error> {
        self.ask(&self.reads, 1, || vec![self.store.get(id)]).pop().unwrap_or(Ok(None))
    }

    /// Calls `call`, which returns an answer for each of several images, unless the store could not be reached lately.
    /// Does not call it for no images. `gate` is that of calls of this kind.
    fn ask<T>(
        &self,
        gate: &Gate,
        images: usize,
        call: impl FnOnce() -> Vec<Result<T, Error>>,
    ) -> Vec<Result<T, Error>> {
        if images == 0 {
            return Vec::new();
        }
        let counts = &self.counts;
        if let Err(why) = gate.check() {
            count(&counts.skipped);
            return (0..images).map(|_| Err(self.unavailable(why.clone()))).collect();
        }
        count(&counts.calls);
        let (mut call, mut answers) = (Some(call), Vec::new());
        let mut call = || answers = call.take().map_or_else(Vec::new, |call| call());
        self.shared.around_calls.call(self.url(), &mut call);
        let lost = |answer: &Result<T, Error>| match answer {
            Err(Error::Store { reason, is_unavailable: true, .. }) => Some(reason.clone()),
            _ => None,
        };
        // Answers for other images may have come before the store was lost.
        let why = answers.iter().map(lost).collect::<Option<Vec<_>>>().and_then(|mut reasons| reasons.pop());
        gate.record(why);
        let is_failure = |error: &Error| !matches!(error, Error::Replaced { .. });
        if answers.iter().any(|answer| answer.as_ref().is_err_and(is_failure)) {
            count(&counts.failed);
        }
        answers
    }

    /// The error for an image that the store was asked for, and has not answered within `time`.
    fn unanswered(&self, time: Duration) -> Error {
        self.unavailable(format!("no answer within {time:?}"))
    }

    fn unavailable(&self, reason: String) -> Error {
        Error::Store { location: self.store.url().to_string(), action: "ask", reason, is_unavailable: true }
    }

    /// What the store has answered until now.
    #[must_use]
    pub fn counts(&self) -> StoreCounts {
        self.counts.of(self.url().clone())
    }

    /// `image`, which this store has.
    fn image(self: &Arc<Self>, image: Arc<StoredImage>) -> OpenImage {
        OpenImage::new(Arc::clone(self), image)
    }

    fn key(&self, id: &ImageId, part: Part) -> Key {
        Key { store: self.number, id: id.clone(), part }
    }

    /// The key of a value of an image.
    fn value_key(&self, values: &dyn StoredValues, number: u64) -> Key {
        let part = Part::Value(ValueKey { generation: values.generation(), number });
        self.key(&values.metadata().id, part)
    }
}
