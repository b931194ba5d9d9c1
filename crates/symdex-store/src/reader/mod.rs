//! Reads images from several stores.

mod breaker;
mod memory;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Index};

use self::breaker::Breaker;
use self::memory::{Kept, Key, Memory};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::publish::PublishOutcome;
use crate::single_flight::SingleFlight;
use crate::store::{Store, StoreUrl, StoredImage};

/// The options of a [`StoreReader`].
#[must_use]
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    memory: u64,
    fresh: Duration,
    absent: Duration,
    pause: Duration,
}

impl ReaderOptions {
    /// The default options.
    pub fn new() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self { memory: 256 << 20, fresh: minutes(10), absent: minutes(1), pause: Duration::from_secs(30) }
    }

    /// Sets the memory for open indexes and values, in bytes. Mapped files do not count. The default is 256 MiB.
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

    /// Sets how long a store is not asked after three calls in a row could not reach it. The default is 30 seconds.
    pub fn pause(mut self, time: Duration) -> Self {
        self.pause = time;
        self
    }
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads images from several stores, with one memory for all of them. Threads share it.
///
/// Threads that need the same image at the same time wait for one of them to open it. A store that cannot be reached is
/// left alone for a while.
///
/// ```
/// use symdex_store::{FolderStore, ReaderOptions, StoreReader};
///
/// # let near = tempfile::tempdir()?;
/// # let far = tempfile::tempdir()?;
/// # let id = "0c37c502aba03641a08f84c794684f36".parse()?;
/// let stores = [near.path(), far.path()].map(|path| Box::new(FolderStore::at(path)) as _);
/// let reader = StoreReader::new(stores.into(), &ReaderOptions::new());
/// match reader.find(&id)? {
///     Some((store, image)) => println!("{} is in {}", image.metadata().image_name, reader.stores()[store].url()),
///     None => println!("no store has {id}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StoreReader {
    stores: Vec<Box<dyn Store>>,
    states: Vec<State>,
    memory: Mutex<Memory>,
    flights: SingleFlight<Key>,
    fresh: Duration,
    absent: Duration,
}

/// What a reader knows of a store.
#[derive(Debug)]
struct State {
    breaker: Breaker,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    found: AtomicU64,
    from_memory: AtomicU64,
    absent: AtomicU64,
    lost_values: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
}

/// What a store has answered to a [`StoreReader`], in numbers of images and values.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCounts {
    /// The URL of the store.
    pub url: StoreUrl,
    /// Found in the store.
    pub found: u64,
    /// Found in the memory of the reader.
    pub from_memory: u64,
    /// Images that the store did not have when it was asked.
    pub absent: u64,
    /// Values that the store had lost.
    pub lost_values: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that were not made because earlier ones could not reach the store.
    pub skipped: u64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl StoreReader {
    /// A reader of `stores`, in the order in which they are asked.
    #[must_use]
    pub fn new(stores: Vec<Box<dyn Store>>, options: &ReaderOptions) -> Self {
        let state = || State { breaker: Breaker::new(options.pause), counts: Counts::default() };
        let states = stores.iter().map(|_| state()).collect();
        let memory = Mutex::new(Memory::new(options.memory));
        let (fresh, absent) = (options.fresh, options.absent);
        Self { stores, states, memory, flights: SingleFlight::default(), fresh, absent }
    }

    /// The stores, in the order in which they are asked.
    #[must_use]
    pub fn stores(&self) -> &[Box<dyn Store>] {
        &self.stores
    }

    /// The image `id` of the first store that has it, and the number of the store. `None` if no store has it.
    ///
    /// # Errors
    ///
    /// The first [`Error`], if a store has failed and no other store has the image.
    pub fn find(&self, id: &ImageId) -> Result<Option<(usize, Arc<StoredImage>)>, Error> {
        let mut first_error = None;
        for store in 0..self.stores.len() {
            match self.open(store, id) {
                Ok(Some(image)) => return Ok(Some((store, image))),
                Ok(None) => {}
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// The image `id` of the store with this number. `None` if the store does not have it.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read or the index is damaged. An index in memory answers even if its store
    /// cannot be reached any more.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn open(&self, store: usize, id: &ImageId) -> Result<Option<Arc<StoredImage>>, Error> {
        let key = Key { store, id: id.clone(), value: None };
        let (home, State { counts, .. }) = (&self.stores[store], &self.states[store]);
        if let Some(image) = self.fresh_image(&key) {
            return Ok(image);
        }
        let _flight = self.flights.turn(&key);
        if let Some(image) = self.fresh_image(&key) {
            return Ok(image);
        }
        match self.ask(store, || home.open(id)) {
            Ok(Some(image)) => {
                count(&counts.found);
                let image = Arc::new(image);
                self.memory().put(key, Kept::Image(Arc::clone(&image)), Instant::now());
                Ok(Some(image))
            }
            Ok(None) => {
                count(&counts.absent);
                self.memory().put(key, Kept::Absent, Instant::now());
                Ok(None)
            }
            Err(error) => match self.memory().get(&key) {
                Some((Kept::Image(image), _)) if error.is_unavailable() => Ok(Some(image)),
                _ => Err(error),
            },
        }
    }

    /// The image in memory, if it need not be asked for again.
    fn fresh_image(&self, key: &Key) -> Option<Option<Arc<StoredImage>>> {
        let (kept, since) = self.memory().get(key)?;
        match kept {
            Kept::Image(image) if since.elapsed() < self.fresh => {
                count(&self.states[key.store].counts.from_memory);
                Some(Some(image))
            }
            Kept::Absent if since.elapsed() < self.absent => Some(None),
            _ => None,
        }
    }

    /// The values of the image `id` with these numbers, in the order of `numbers`. `image` is what
    /// [`open`](Self::open) has returned for it. The values that are not in memory are fetched at once. `None` stands
    /// for a value that the store has lost.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read or a value is damaged.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn values(
        &self,
        store: usize,
        image: &StoredImage,
        numbers: &[u64],
    ) -> Result<Vec<Option<Arc<Index<IndexBytes>>>>, Error> {
        let StoredImage::Values(values) = image else { return Ok(vec![None; numbers.len()]) };
        let id = &image.metadata().id;
        let key = |number| Key { store, id: id.clone(), value: Some(number) };
        let counts = &self.states[store].counts;
        let mut found: Vec<_> = {
            let mut memory = self.memory();
            let mut kept = |number| match memory.get(&key(number)) {
                Some((Kept::Value(index), _)) => Some(index),
                _ => None,
            };
            numbers.iter().map(|number| kept(*number)).collect()
        };
        let missing: Vec<_> = (0..numbers.len()).filter(|at| found[*at].is_none()).collect();
        (missing.len()..numbers.len()).for_each(|_| count(&counts.from_memory));
        if missing.is_empty() {
            return Ok(found);
        }
        let wanted: Vec<_> = missing.iter().map(|at| numbers[*at]).collect();
        let fetched = self.ask(store, || values.fetch(&wanted))?;
        for ((at, number), value) in missing.into_iter().zip(wanted).zip(fetched) {
            let Some(value) = value else {
                count(&counts.lost_values);
                continue;
            };
            count(&counts.found);
            let value = Arc::new(value);
            self.memory().put(key(number), Kept::Value(Arc::clone(&value)), Instant::now());
            found[at] = Some(value);
        }
        Ok(found)
    }

    /// Drops the image `id` of the store with this number from memory, so that it is opened again.
    #[cfg(all(feature = "object-store", feature = "symbolicate"))]
    pub(crate) fn forget(&self, store: usize, id: &ImageId) {
        self.memory().forget(&Key { store, id: id.clone(), value: None });
    }

    /// Puts `index` into the store with this number. See [`Store::put`].
    ///
    /// # Errors
    ///
    /// As [`Store::put`].
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn put(&self, store: usize, index: &Index<&[u8]>) -> Result<PublishOutcome, Error> {
        let outcome = self.ask(store, || self.stores[store].put(index))?;
        // Values have the numbers of the old index.
        let numbers = index.metadata().value_numbers().into_iter().flatten().map(Some);
        let key = |value| Key { store, id: index.id().clone(), value };
        let mut memory = self.memory();
        numbers.chain([None]).for_each(|value| memory.forget(&key(value)));
        Ok(outcome)
    }

    /// Calls `call`, unless the store could not be reached lately.
    fn ask<T>(&self, store: usize, call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let State { breaker, counts } = &self.states[store];
        if !breaker.allows(Instant::now()) {
            count(&counts.skipped);
            return Err(Error::Store {
                location: self.stores[store].url().to_string(),
                action: "ask",
                reason: "it could not be reached several times; it is asked again after a pause".to_owned(),
                is_unavailable: true,
            });
        }
        let answer = call();
        let is_reached = !answer.as_ref().is_err_and(Error::is_unavailable);
        breaker.record(is_reached, Instant::now());
        if answer.is_err() {
            count(&counts.failed);
        }
        answer
    }

    /// What the stores have answered until now, in their order.
    #[must_use]
    pub fn counts(&self) -> Vec<StoreCounts> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = |(store, State { counts, .. }): (usize, &State)| StoreCounts {
            url: self.stores[store].url().clone(),
            found: read(&counts.found),
            from_memory: read(&counts.from_memory),
            absent: read(&counts.absent),
            lost_values: read(&counts.lost_values),
            failed: read(&counts.failed),
            skipped: read(&counts.skipped),
        };
        self.states.iter().enumerate().map(counts).collect()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests;
