//! A store that threads share: it asks the store for what is not in memory.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{Cause, ImageId, Index};

use super::StoreReader;
use super::counts::{Counts, StoreCounts, count};
use super::gate::Gate;
use super::memory::{Kept, Key, Memory, Part, ValueKey};
use super::open_image::OpenImage;
use super::options::{AroundCalls, ReaderOptions};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::provenance::PutOptions;
use crate::publish::PublishOutcome;
use crate::single_flight::{LONGEST_WAIT, SingleFlight};
use crate::store::{Store, StoreEntry, StoreUrl, StoredImage, StoredValues};

/// An image that was opened; `None` if the store does not have it.
pub(super) type Opened = Result<Option<OpenImage>, Error>;

/// A store of a [`StoreReader`]. Threads share it. It asks the store for what is not in memory, counts the answers, and
/// leaves a store that cannot be reached alone for a while.
#[derive(Debug)]
pub struct SharedStore {
    pub(super) store: Box<dyn Store>,
    /// Its position among the stores of the reader, for keys.
    pub(super) number: usize,
    /// A store that takes no new indexes, because it is full or can only be read, still answers.
    pub(super) reads: Gate,
    pub(super) writes: Gate,
    pub(super) counts: Counts,
    /// How many threads ask again for images in memory, and may wait longer than the requests that need them.
    pub(super) refreshing: AtomicUsize,
    pub(super) shared: Arc<Shared>,
}

/// What the stores of a reader share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) memory: Mutex<Memory>,
    pub(super) flights: SingleFlight<Key>,
    pub(super) fresh: Duration,
    pub(super) absent: Duration,
    pub(super) patience: Option<Duration>,
    pub(super) around_calls: AroundCalls,
}

impl Shared {
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn open_at_once(self: &Arc<Self>, ids: &[ImageId]) -> Vec<Opened> {
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
    pub(super) fn open_left(
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
    pub(super) fn keep(self: &Arc<Self>, key: &Key, answer: Result<Option<StoredImage>, Error>) -> Opened {
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
    pub(super) fn fresh_image(self: &Arc<Self>, key: &Key) -> Option<Option<OpenImage>> {
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
    pub(super) fn forget(&self, id: &ImageId) {
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
    pub(super) fn forget_changed(&self, id: &ImageId) {
        let mut memory = self.shared.memory();
        // Values of the old index have its generation. They are not used any more.
        self.keys(id).for_each(|key| memory.forget(&key));
    }

    /// Forgets that the store did not have the image `id`.
    pub(super) fn forget_absent(&self, id: &ImageId) {
        let mut memory = self.shared.memory();
        for key in self.keys(id) {
            if memory.get(&key).is_some_and(|(kept, _)| kept.is_absent()) {
                memory.forget(&key);
            }
        }
    }

    /// The keys of what the store has answered for the image `id`, without its values.
    pub(super) fn keys(&self, id: &ImageId) -> impl Iterator<Item = Key> + use<> {
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
    pub(super) fn ask<T>(
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
    pub(super) fn unanswered(&self, time: Duration) -> Error {
        self.unavailable(format!("no answer within {time:?}"))
    }

    pub(super) fn unavailable(&self, reason: String) -> Error {
        Error::Store { location: self.store.url().to_string(), action: "ask", reason, is_unavailable: true }
    }

    /// What the store has answered until now.
    #[must_use]
    pub fn counts(&self) -> StoreCounts {
        self.counts.of(self.url().clone())
    }

    /// `image`, which this store has.
    pub(super) fn image(self: &Arc<Self>, image: Arc<StoredImage>) -> OpenImage {
        OpenImage::new(Arc::clone(self), image)
    }

    pub(super) fn key(&self, id: &ImageId, part: Part) -> Key {
        Key { store: self.number, id: id.clone(), part }
    }

    /// The key of a value of an image.
    pub(super) fn value_key(&self, values: &dyn StoredValues, number: u64) -> Key {
        let part = Part::Value(ValueKey { generation: values.generation(), number });
        self.key(&values.metadata().id, part)
    }
}
