//! Reads images from several stores.

mod breaker;
mod counts;
mod ids;
mod lookup;
mod memory;
mod options;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Index};

use self::counts::{Counts, count};
use self::memory::{Kept, Key, Memory, Part, ValueKey};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::provenance::PutOptions;
use crate::publish::PublishOutcome;
use crate::single_flight::SingleFlight;
use crate::store::{Store, StoreEntry, StoredImage, StoredValues, ValueRequest};

pub use self::breaker::Breaker;
pub use self::counts::StoreCounts;
pub use self::lookup::positions_by_value;
pub use self::options::ReaderOptions;

/// An image that was opened; `None` if the store does not have it.
type Opened = Result<Option<Arc<StoredImage>>, Error>;

/// Values of an image that a [`StoreReader`] has read. `None` stands for a value that the store has lost.
pub type ReadValues = Vec<Option<Arc<Index<IndexBytes>>>>;

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
    /// Why the store could not be reached the last time.
    failure: Mutex<String>,
}

impl StoreReader {
    /// A reader of `stores`, in the order in which they are asked.
    #[must_use]
    pub fn new(stores: Vec<Box<dyn Store>>, options: &ReaderOptions) -> Self {
        let state = || State {
            breaker: Breaker::of_store(options.first_pause, options.pause),
            counts: Counts::default(),
            failure: Mutex::default(),
        };
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
        let opened = self.open_at_once(store, std::slice::from_ref(id)).pop();
        opened.unwrap_or(Ok(None))
    }

    /// The images `ids` of the store with this number, in the order of `ids`. Each result is that of
    /// [`open`](Self::open). A store that [has batches](Store::has_batches) is asked once for those that are not in
    /// memory.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn open_many(&self, store: usize, ids: &[ImageId]) -> Vec<Result<Option<Arc<StoredImage>>, Error>> {
        match self.stores[store].has_batches() {
            true => self.open_at_once(store, ids),
            // The breaker counts each call.
            false => ids.iter().map(|id| self.open(store, id)).collect(),
        }
    }

    /// Opens the images that are not in memory with one call of the store.
    fn open_at_once(&self, store: usize, ids: &[ImageId]) -> Vec<Opened> {
        let keys: Vec<_> = ids.iter().map(|id| Key { store, id: id.clone(), part: Part::Image }).collect();
        let mut opened: Vec<_> = keys.iter().map(|key| self.fresh_image(key).map(Ok)).collect();
        let mut left: Vec<_> = (0..keys.len()).filter(|at| opened[*at].is_none()).collect();
        if !left.is_empty() {
            let waiting: Vec<_> = left.iter().map(|at| keys[*at].clone()).collect();
            let _flight = self.flights.turn(&waiting);
            // Other threads may have opened some of them meanwhile.
            left.retain(|at| {
                opened[*at] = self.fresh_image(&keys[*at]).map(Ok);
                opened[*at].is_none()
            });
            let ids: Vec<_> = left.iter().map(|at| ids[*at].clone()).collect();
            let new = self.ask(store, ids.len(), || self.stores[store].open_many(&ids));
            for (at, new) in left.into_iter().zip(new) {
                opened[at] = Some(self.keep(&keys[at], new));
            }
        }
        opened.into_iter().map(|opened| opened.unwrap_or(Ok(None))).collect()
    }

    /// Keeps what the store has answered for the image `key`. If the store could not be reached, an older image in memory
    /// answers.
    fn keep(&self, key: &Key, answer: Result<Option<StoredImage>, Error>) -> Opened {
        let counts = &self.states[key.store].counts;
        match answer {
            Ok(Some(image)) => {
                count(&counts.found);
                let image = Arc::new(image);
                self.memory().put(key.clone(), Kept::Image(Arc::clone(&image)), Instant::now());
                Ok(Some(image))
            }
            Ok(None) => {
                count(&counts.absent);
                self.memory().put(key.clone(), Kept::Absent, Instant::now());
                Ok(None)
            }
            Err(error) => match self.memory().get(key) {
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
    /// [`Error`] if the store cannot be read or a value is damaged. [`Error::Replaced`] if the index was removed or
    /// replaced since it was opened, and its values are gone.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn values(&self, store: usize, image: &StoredImage, numbers: &[u64]) -> Result<ReadValues, Error> {
        self.values_many(store, &[(image, numbers)]).pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Values of several images of the store with this number, in the order of `requests`. Each result is that of
    /// [`values`](Self::values). The store is asked once for those that are not in memory.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn values_many(
        &self,
        store: usize,
        requests: &[(&StoredImage, &[u64])],
    ) -> Vec<Result<ReadValues, Error>> {
        let mut found: Vec<_> = requests
            .iter()
            .map(|(image, numbers)| Ok(self.values_in_memory(store, image, numbers)))
            .collect();
        let mut missing: Vec<(usize, &dyn StoredValues, Vec<u64>)> = Vec::new();
        for (at, ((image, numbers), found)) in requests.iter().zip(&found).enumerate() {
            let (StoredImage::Values(values), Ok(found)) = (image, found) else { continue };
            let numbers = numbers.iter().zip(found).filter(|(_, value)| value.is_none());
            let numbers: Vec<_> = numbers.map(|(number, _)| *number).collect();
            if !numbers.is_empty() {
                missing.push((at, &**values, numbers));
            }
        }
        let wanted = missing.iter().map(|(_, values, numbers)| ValueRequest { values: *values, numbers });
        let wanted: Vec<_> = wanted.collect();
        let fetched = self.ask(store, wanted.len(), || self.stores[store].fetch_many(&wanted));
        for ((at, values, numbers), fetched) in missing.into_iter().zip(fetched) {
            match (fetched, &mut found[at]) {
                (Ok(fetched), Ok(found)) => self.keep_values(store, values, &numbers, fetched, found),
                (Err(error), found) => *found = Err(error),
                (Ok(_), Err(_)) => {}
            }
        }
        found
    }

    /// The values of `image` that are in memory. The others are `None`.
    fn values_in_memory(&self, store: usize, image: &StoredImage, numbers: &[u64]) -> ReadValues {
        let StoredImage::Values(values) = image else { return vec![None; numbers.len()] };
        let mut memory = self.memory();
        let mut kept = |number| match memory.get(&value_key(store, &**values, number)) {
            Some((Kept::Value(index), _)) => {
                count(&self.states[store].counts.from_memory);
                Some(index)
            }
            _ => None,
        };
        numbers.iter().map(|number| kept(*number)).collect()
    }

    /// Keeps the values that were fetched, and puts them into the gaps of `found`, which are in the order of `numbers`.
    fn keep_values(
        &self,
        store: usize,
        values: &dyn StoredValues,
        numbers: &[u64],
        fetched: Vec<Option<Index<IndexBytes>>>,
        found: &mut ReadValues,
    ) {
        let counts = &self.states[store].counts;
        let gaps = found.iter_mut().filter(|value| value.is_none());
        for ((number, value), gap) in numbers.iter().zip(fetched).zip(gaps) {
            let Some(value) = value else {
                count(&counts.lost_values);
                continue;
            };
            count(&counts.found);
            let value = Arc::new(value);
            let key = value_key(store, values, *number);
            self.memory().put(key, Kept::Value(Arc::clone(&value)), Instant::now());
            *gap = Some(value);
        }
    }

    /// Drops the image `id` of the store with this number from memory, so that it is opened again.
    pub fn forget(&self, store: usize, id: &ImageId) {
        self.memory().forget(&Key { store, id: id.clone(), part: Part::Image });
    }

    /// Puts `index` into the store with this number. See [`Store::put_with`].
    ///
    /// # Errors
    ///
    /// As [`Store::put_with`].
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn put(
        &self,
        store: usize,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<PublishOutcome, Error> {
        let outcome = self.ask(store, 1, || vec![self.stores[store].put_with(index, options)]).pop();
        self.forget_changed(store, index.id());
        outcome.unwrap_or(Ok(PublishOutcome::Unchanged))
    }

    /// Removes the image `id` from the store with this number. Returns whether the store had it. See [`Store::remove`].
    ///
    /// # Errors
    ///
    /// As [`Store::remove`].
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn remove(&self, store: usize, id: &ImageId) -> Result<bool, Error> {
        let removed = self.ask(store, 1, || vec![self.stores[store].remove(id)]).pop();
        self.forget_changed(store, id);
        removed.unwrap_or(Ok(false))
    }

    /// Drops what is known of the image `id`, which has changed in the store.
    fn forget_changed(&self, store: usize, id: &ImageId) {
        // Values of the old index have its generation. They are not used any more.
        self.forget(store, id);
        // Reports state the first 16 bytes of a longer id.
        if let Some(id) = id.as_bytes().get(..16).and_then(ImageId::new) {
            self.memory().forget(&Key { store, id, part: Part::Ids });
        }
    }

    /// Asks the store with this number for an image that does not exist. See [`Store::check`].
    ///
    /// # Errors
    ///
    /// As [`Store::check`], and if the store could not be reached lately.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn check(&self, store: usize) -> Result<(), Error> {
        self.ask(store, 1, || vec![self.stores[store].check()]).pop().unwrap_or(Ok(()))
    }

    /// What the store with this number states now of the index of `id`, whatever is in memory; `None` if it has none.
    /// See [`Store::stat`].
    ///
    /// # Errors
    ///
    /// As [`Store::stat`], and if the store could not be reached lately.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn stat(&self, store: usize, id: &ImageId) -> Result<Option<StoreEntry>, Error> {
        self.ask(store, 1, || vec![self.stores[store].stat(id)]).pop().unwrap_or(Ok(None))
    }

    /// The whole index of `id` in the store with this number. See [`Store::get`].
    ///
    /// # Errors
    ///
    /// As [`Store::get`], and if the store could not be reached lately.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn get(&self, store: usize, id: &ImageId) -> Result<Option<IndexBytes>, Error> {
        self.ask(store, 1, || vec![self.stores[store].get(id)]).pop().unwrap_or(Ok(None))
    }

    /// Calls `call`, which returns an answer for each of several images, unless the store could not be reached lately. Does
    /// not call it for no images.
    fn ask<T>(
        &self,
        store: usize,
        images: usize,
        call: impl FnOnce() -> Vec<Result<T, Error>>,
    ) -> Vec<Result<T, Error>> {
        if images == 0 {
            return Vec::new();
        }
        let State { breaker, counts, failure } = &self.states[store];
        if !breaker.allows(Instant::now()) {
            count(&counts.skipped);
            return (0..images).map(|_| Err(self.left_alone(store))).collect();
        }
        count(&counts.calls);
        let answers = call();
        let lost = |answer: &Result<T, Error>| match answer {
            Err(Error::Store { reason, is_unavailable: true, .. }) => Some(reason.clone()),
            _ => None,
        };
        // Answers for other images may have come before the store was lost.
        let why = answers.iter().map(lost).collect::<Option<Vec<_>>>().and_then(|mut reasons| reasons.pop());
        breaker.record(why.is_none(), Instant::now());
        if let Some(why) = why {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = why;
        }
        let is_failure = |error: &Error| !matches!(error, Error::Replaced { .. });
        if answers.iter().any(|answer| answer.as_ref().is_err_and(is_failure)) {
            count(&counts.failed);
        }
        answers
    }

    /// The error for a store that is not asked for a while.
    fn left_alone(&self, store: usize) -> Error {
        let why = self.states[store].failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Error::Store {
            location: self.stores[store].url().to_string(),
            action: "ask",
            reason: format!("{why} (it is not asked again for a while)"),
            is_unavailable: true,
        }
    }

    /// What the stores have answered until now, in their order.
    #[must_use]
    pub fn counts(&self) -> Vec<StoreCounts> {
        let states = self.stores.iter().zip(&self.states);
        states.map(|(store, state)| state.counts.of(store.url().clone())).collect()
    }

    /// The bytes of the images and values that are in memory now, at most [`ReaderOptions::memory`].
    #[must_use]
    pub fn memory_in_use(&self) -> u64 {
        self.memory().in_use()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a value of an image.
fn value_key(store: usize, values: &dyn StoredValues, number: u64) -> Key {
    let part = Part::Value(ValueKey { generation: values.generation(), number });
    Key { store, id: values.metadata().id.clone(), part }
}

#[cfg(test)]
mod tests;
