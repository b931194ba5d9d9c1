//! An index that is read in parts from an object store, without a cache.
//!
//! The parts that were fetched lie in a buffer of the index's size, whose other bytes are zero. A lookup that reads
//! other bytes finds a wrong checksum. The bytes that it needed are then fetched, for all offsets at once, and the lookup is
//! repeated.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectStore};
use symdex::{ImageOffset, Index, LinePolicy, Metadata, Scratch, checked_bytes};

use super::errors::Failed;
use crate::error::Error;
use crate::store::runtime;

/// Bytes are fetched in blocks of this size.
const BLOCK: u64 = 16 << 10;
/// Blocks with at most so many others between them are fetched at once.
const GAP: u64 = 2;
/// So many requests run at the same time.
const REQUESTS: usize = 8;
/// The largest index. Its buffer takes as many bytes of address space, and memory only for what is fetched.
const MAX_SIZE: u64 = 4 << 30;
/// Names lead to other names, each perhaps in another block. Each round fetches at least a block.
const MAX_ROUNDS: usize = 64;

/// An index of which only the needed parts are fetched.
pub struct RangedIndex {
    object: Object,
    metadata: Metadata,
    parts: Mutex<Parts>,
}

/// The object with the index.
struct Object {
    client: Arc<dyn ObjectStore>,
    key: Key,
    /// The URL of the store and the key.
    location: String,
    /// All parts are of the object with this tag.
    tag: String,
    timeout: Duration,
}

/// The parts of an index that were fetched.
struct Parts {
    bytes: Vec<u8>,
    /// Whether each block was fetched.
    there: Vec<bool>,
    requests: u64,
}

impl fmt::Debug for RangedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        f.debug_struct("RangedIndex")
            .field("location", &self.object.location)
            .field("size", &parts.bytes.len())
            .field("fetched", &parts.fetched())
            .field("requests", &parts.requests)
            .finish_non_exhaustive()
    }
}

impl RangedIndex {
    /// Opens the index in the object `key`, which has this size and this tag.
    pub(super) fn open(
        client: Arc<dyn ObjectStore>,
        key: Key,
        location: String,
        (size, tag): (u64, Option<String>),
        timeout: Duration,
    ) -> Result<Self, Error> {
        let refused = |reason: &str| Error::Store {
            location: location.clone(),
            action: "read parts of",
            reason: reason.to_owned(),
            is_unavailable: false,
        };
        let tag = tag.ok_or_else(|| refused("the store states no tags of objects; read it with a cache"))?;
        let size = usize::try_from(size).ok().filter(|size| *size as u64 <= MAX_SIZE);
        let size = size.ok_or_else(|| refused("the index is larger than 4 GiB; read it with a cache"))?;
        let there = vec![false; size.div_ceil(usize::try_from(BLOCK).unwrap_or(usize::MAX))];
        let mut parts = Parts { bytes: vec![0; size], there, requests: 1 };
        let object = Object { client, key, location, tag, timeout };
        // The header is in the first block, the trailer in the last.
        parts.fetch(&object, &parts.missing([0..1, (size as u64).saturating_sub(32)..size as u64]))?;
        let metadata = parts.with(&object, |_| Vec::new(), |index| index.metadata().clone())?;
        Ok(Self { object, metadata, parts: Mutex::new(parts) })
    }

    /// The metadata of the index.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Calls `ask` with the index, in which lookups of `offsets` find all bytes. Others may find wrong checksums.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read, or if the object was replaced since the index was opened.
    pub fn with<T>(&self, offsets: &[ImageOffset], ask: impl FnOnce(&Index<&[u8]>) -> T) -> Result<T, Error> {
        let lookup = |index: &Index<&[u8]>| {
            let mut scratch = Scratch::default();
            let mut errors = Vec::new();
            index.lookup_many(offsets, LinePolicy::Statement, &mut scratch, |_, found| {
                errors.extend(found.err())
            });
            index
                .lookup_many(offsets, LinePolicy::Exact, &mut scratch, |_, found| errors.extend(found.err()));
            errors
        };
        self.parts().with(&self.object, lookup, ask)
    }

    /// Calls `ask` with the index, which has all names of the function that starts at `start`.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with).
    pub(crate) fn with_names<T>(
        &self,
        start: ImageOffset,
        ask: impl FnOnce(&Index<&[u8]>) -> T,
    ) -> Result<T, Error> {
        let names = |index: &Index<&[u8]>| {
            let error = index.function_names(start, &mut Scratch::default()).err();
            error.into_iter().collect()
        };
        self.parts().with(&self.object, names, ask)
    }

    /// The bytes that were fetched.
    pub(crate) fn fetched(&self) -> u64 {
        self.parts().fetched()
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    fn fetched(&self) -> u64 {
        self.there.iter().filter(|there| **there).count() as u64 * BLOCK
    }

    /// Fetches parts until `errors_of` the index are not about parts that are missing. Then calls `ask`.
    fn with<T>(
        &mut self,
        object: &Object,
        errors_of: impl Fn(&Index<&[u8]>) -> Vec<symdex::Error>,
        ask: impl FnOnce(&Index<&[u8]>) -> T,
    ) -> Result<T, Error> {
        for round in 0.. {
            let missing = match Index::open(&self.bytes[..]) {
                Ok(index) => {
                    let missing =
                        self.missing(errors_of(&index).iter().flat_map(|error| self.ranges_of(error)));
                    if missing.is_empty() || round == MAX_ROUNDS {
                        return Ok(ask(&index));
                    }
                    missing
                }
                Err(error) => {
                    let missing = self.missing(self.ranges_of(&error));
                    if missing.is_empty() || round == MAX_ROUNDS {
                        return Err(Error::index(object.location.as_ref(), error));
                    }
                    missing
                }
            };
            self.fetch(object, &missing)?;
        }
        unreachable!("the rounds end at {MAX_ROUNDS}")
    }

    /// The bytes that `error` is about.
    fn ranges_of(&self, error: &symdex::Error) -> Vec<Range<u64>> {
        match error {
            symdex::Error::Checksum { location } => {
                checked_bytes(&self.bytes, *location).into_iter().flatten().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The blocks of `ranges` that were not fetched, in ascending order, as ranges of block numbers.
    fn missing(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let mut blocks: Vec<u64> = ranges
            .into_iter()
            .filter(|range| !range.is_empty())
            .flat_map(|range| range.start / BLOCK..range.end.div_ceil(BLOCK))
            .filter(|block| usize::try_from(*block).is_ok_and(|block| self.there.get(block) == Some(&false)))
            .collect();
        blocks.sort_unstable();
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in blocks {
            match runs.last_mut() {
                Some(run) if block <= run.end + GAP => run.end = run.end.max(block + 1),
                _ => runs.push(block..block + 1),
            }
        }
        runs
    }

    /// Fetches these blocks.
    fn fetch(&mut self, object: &Object, blocks: &[Range<u64>]) -> Result<(), Error> {
        let size = self.bytes.len() as u64;
        let ranges = blocks.iter().map(|run| run.start * BLOCK..size.min(run.end * BLOCK));
        let ranges: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
        self.requests += ranges.len() as u64;
        let get = |range: Range<u64>| {
            let (client, key) = (Arc::clone(&object.client), object.key.clone());
            let range = Some(GetRange::Bounded(range));
            let options = GetOptions { range, if_match: Some(object.tag.clone()), ..GetOptions::default() };
            async move { client.get_opts(&key, options).await?.bytes().await }
        };
        let requests: Vec<_> = ranges.iter().cloned().map(get).collect();
        let all = async move {
            futures_util::stream::iter(requests).buffered(REQUESTS).try_collect::<Vec<Bytes>>().await
        };
        let failed = |error: Failed| error.at(object.location.clone(), "read");
        let parts = runtime::wait(object.timeout, all).map_err(|error| failed(error.into()))?;
        let parts = parts.map_err(|error| failed(error.into()))?;
        for (range, part) in ranges.into_iter().zip(parts) {
            let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
            let place = place.and_then(|(start, end)| self.bytes.get_mut(start..end));
            match place.filter(|place| place.len() == part.len()) {
                Some(place) => place.copy_from_slice(&part),
                None => {
                    let what = format!("{} bytes came for the range {range:?}", part.len());
                    return Err(Error::DamagedObject { location: object.location.clone(), what });
                }
            }
        }
        for block in blocks.iter().cloned().flatten() {
            if let Some(there) = usize::try_from(block).ok().and_then(|block| self.there.get_mut(block)) {
                *there = true;
            }
        }
        Ok(())
    }
}
