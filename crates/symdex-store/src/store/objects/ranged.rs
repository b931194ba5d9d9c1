//! An index that is read in parts from an object store, without a cache.
//!
//! The parts that were fetched lie in a buffer of the index's size, whose other bytes are zero. A lookup that reads
//! other bytes finds a wrong checksum. The bytes that it needed are then fetched, for all offsets at once, and the lookup is
//! repeated.

use std::collections::BTreeSet;
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
/// The first bytes of an object, which tell the rest: header, metadata, codes.
const HEAD: u64 = 64 << 10;
/// The last bytes have the checksums of all pages, about a 128th of the object, and the names of files.
const TAIL_SHARE: u64 = 64;
/// A round fetches this many bytes around each that is missing: the first round the first number, and each further one
/// twice as many. A request takes longer than the transfer of a megabyte, and each name leads to others.
const AROUND: u64 = 32 << 10;
const MAX_AROUND: u64 = 1 << 20;
/// The section of names is fetched whole if it has at most so many bytes, because a name is read all over it.
const MAX_NAMES: u64 = 4 << 20;
/// A round has at most so many requests, which run at the same time.
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
    /// Opens the index in the object `key`. `None` if there is no such object.
    pub(super) fn open(
        client: Arc<dyn ObjectStore>,
        key: Key,
        location: String,
        timeout: Duration,
    ) -> Result<Option<Self>, Error> {
        let refused = |reason: &str| Error::Store {
            location: location.clone(),
            action: "read parts of",
            reason: reason.to_owned(),
            is_unavailable: false,
        };
        let (from, path) = (Arc::clone(&client), key.clone());
        let first = async move {
            let range = Some(GetRange::Bounded(0..HEAD));
            let got = from.get_opts(&path, GetOptions { range, ..GetOptions::default() }).await?;
            let meta = got.meta.clone();
            Ok((meta, got.bytes().await?))
        };
        let first = runtime::wait(timeout, first).map_err(Failed::from);
        let (meta, head) = match first.and_then(|first| first.map_err(Failed::Client)) {
            Err(error) if error.is_not_found() => return Ok(None),
            first => first.map_err(|error| error.at(location.clone(), "read"))?,
        };
        let tag =
            meta.e_tag.ok_or_else(|| refused("the store states no tags of objects; read it with a cache"))?;
        let size = usize::try_from(meta.size).ok().filter(|_| meta.size <= MAX_SIZE);
        let size = size.ok_or_else(|| refused("the index is larger than 4 GiB; read it with a cache"))?;
        let there = vec![false; size.div_ceil(usize::try_from(BLOCK).unwrap_or(usize::MAX))];
        let mut parts = Parts { bytes: vec![0; size], there, requests: 1 };
        let object = Object { client, key, location, tag, timeout };
        parts.put(&object, 0..HEAD.min(meta.size), &head)?;
        let tail = (meta.size / TAIL_SHARE).max(HEAD);
        parts.fetch(
            &object,
            &parts.missing(std::iter::once(meta.size.saturating_sub(tail)..meta.size), BLOCK),
        )?;
        let metadata = parts.with(&object, |_| Vec::new(), |index| index.metadata().clone())?;
        Ok(Some(Self { object, metadata, parts: Mutex::new(parts) }))
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

    /// The number of requests.
    #[cfg(test)]
    pub(super) fn requests(&self) -> u64 {
        self.parts().requests
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
            let around = MAX_AROUND.min(AROUND << round.min(16));
            let missing = match Index::open(&self.bytes[..]) {
                Ok(index) => {
                    let errors = errors_of(&index);
                    let names = index.sections().into_iter().find(|section| section.name == "names");
                    let names = names.filter(|names| names.size <= MAX_NAMES);
                    let names = names.map(|names| names.offset..names.offset + names.size);
                    let missing = errors.iter().flat_map(|error| self.ranges_of(error));
                    let missing = missing.map(|range| match &names {
                        Some(names) if names.contains(&range.start) => names.clone(),
                        _ => range,
                    });
                    let missing = self.missing(missing, around);
                    if missing.is_empty() || round == MAX_ROUNDS {
                        return Ok(ask(&index));
                    }
                    missing
                }
                Err(error) => {
                    let missing = self.missing(self.ranges_of(&error), around);
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

    /// The blocks of `ranges` that were not fetched, each with those around it in `around` bytes, in ascending order, as
    /// at most [`REQUESTS`] ranges of block numbers.
    fn missing(&self, ranges: impl IntoIterator<Item = Range<u64>>, around: u64) -> Vec<Range<u64>> {
        let is_missing =
            |block: &u64| usize::try_from(*block).is_ok_and(|block| self.there.get(block) == Some(&false));
        let blocks = ranges.into_iter().filter(|range| !range.is_empty());
        let blocks =
            blocks.flat_map(|range| range.start / BLOCK..range.end.div_ceil(BLOCK)).filter(is_missing);
        let blocks: BTreeSet<u64> = blocks.collect();
        let around = around / BLOCK;
        let aligned = blocks.into_iter().flat_map(|block| {
            let start = block / around * around;
            start..start + around
        });
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in aligned.filter(is_missing).collect::<BTreeSet<_>>() {
            match runs.last_mut() {
                Some(run) if block == run.end => run.end = block + 1,
                _ => runs.push(block..block + 1),
            }
        }
        joined(runs)
    }

    /// Puts `part` into its place.
    fn put(&mut self, object: &Object, range: Range<u64>, part: &[u8]) -> Result<(), Error> {
        let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let place = place.and_then(|(start, end)| self.bytes.get_mut(start..end));
        match place.filter(|place| place.len() == part.len()) {
            Some(place) => place.copy_from_slice(part),
            None => {
                let what = format!("{} bytes came for the range {range:?}", part.len());
                return Err(Error::DamagedObject { location: object.location.clone(), what });
            }
        }
        for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            if let Some(there) = usize::try_from(block).ok().and_then(|block| self.there.get_mut(block)) {
                *there = true;
            }
        }
        Ok(())
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
        ranges.into_iter().zip(parts).try_for_each(|(range, part)| self.put(object, range, &part))
    }
}

/// `runs`, which ascend, with the smallest gaps between them filled until there are at most [`REQUESTS`].
fn joined(runs: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut gaps: Vec<_> = runs.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    // The largest gaps stay.
    let filled = gaps.get(REQUESTS - 1).copied();
    let mut joined: Vec<Range<u64>> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if filled.is_some_and(|filled| run.start - last.end <= filled) => last.end = run.end,
            _ => joined.push(run),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_gaps_between_ranges_are_filled() {
        let runs = |starts: &[u64]| starts.iter().map(|start| *start..start + 1).collect::<Vec<_>>();
        let few = runs(&[0, 2, 4, 6, 8, 10, 12, 14]);
        assert_eq!(joined(few.clone()), few);
        let many = joined(runs(&[0, 10, 20, 22, 30, 40, 43, 50, 60, 70]));
        assert_eq!(many, [0..1, 10..11, 20..23, 30..31, 40..44, 50..51, 60..61, 70..71]);
        assert!(
            (9..1000).all(|len| joined(runs(&(0..len).map(|n| 2 * n).collect::<Vec<_>>())).len() <= REQUESTS)
        );
        assert!(joined(Vec::new()).is_empty());
    }
}
