//! Stores: where indexes live, whatever kind of service keeps them.

mod folder;
#[cfg(feature = "object-store")]
mod objects;
mod open;
mod options;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "object-store", feature = "redis"))]
mod runtime;
mod stored;
mod url;

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use symdex::{Grade, ImageId, Index};

use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::json::{id_as_text, some_time_as_text};
use crate::provenance::{Orphan, Provenance, PutOptions};
use crate::publish::PublishOutcome;

#[cfg(feature = "object-store")]
pub use self::objects::{ListedObject, ObjectBody, ObjectVersion, Objects};
pub use self::open::{open_indexes, open_store};
pub use self::options::StoreOptions;
#[cfg(feature = "redis")]
pub use self::redis::{RedisCounts, RedisStore};
#[cfg(any(feature = "object-store", feature = "redis"))]
pub use self::runtime::wait as wait_for;
pub use self::stored::{FetchedValue, FetchedValues, StoredImage, StoredValues, ValueRequest};
pub use self::url::{StoreUrl, StoreUrlError, is_this_machine};

/// A store of indexes: a folder, an object store, or Redis. [`open_store`] opens the store of a URL.
///
/// All methods block until the store has answered or the time-out has passed. They may be called from any thread, and
/// several threads may share a store.
pub trait Store: Any + fmt::Debug + Send + Sync {
    /// The URL of the store.
    fn url(&self) -> &StoreUrl;

    /// Whether the store can only be read, as a web server. Its writing methods return [`Error::read_only`]. New
    /// indexes are put into other stores.
    fn is_read_only(&self) -> bool;

    /// Which uses of an index the store records.
    fn recorded_uses(&self) -> RecordedUses;

    /// Where the index of `id` is, or would be, in the store: a path, or a URL with a key. For messages, and to tell
    /// the indexes of several stores apart. In a folder, it is the path of the index file.
    fn location(&self, id: &ImageId) -> String;

    /// Puts `index` into the store, unless the store has the same index or, by
    /// [`OnConflict::More`](crate::OnConflict::More), a better one of the same image. See
    /// [`put_with`](Self::put_with).
    ///
    /// # Errors
    ///
    /// As [`put_with`](Self::put_with).
    fn put(&self, index: &Index<&[u8]>) -> Result<PublishOutcome, Error> {
        self.put_with(index, &PutOptions::new())
    }

    /// Puts `index` into the store, unless the store has the same index, or a different one that stays by
    /// [`PutOptions::on_conflict`]. Counts as a use of the index that is there afterwards. The provenance is kept
    /// beside the index if the index is written. It does not change the index.
    ///
    /// Readers find no index, the whole old one, or the whole new one. The call may be repeated after an error.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read or written, or has an index of a newer version.
    fn put_with(&self, index: &Index<&[u8]>, options: &PutOptions) -> Result<PublishOutcome, Error>;

    /// Opens the index of `id`; `None` if the store has none. Counts as a use of the index.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read, or if the index is damaged, unsupported or of another image.
    fn open(&self, id: &ImageId) -> Result<Option<StoredImage>, Error>;

    /// Opens the indexes of several images, in the order of `ids`. Each result is that of [`open`](Self::open). Redis
    /// needs one round trip for all. An object store is asked for up to 64 at the same time.
    fn open_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoredImage>, Error>> {
        ids.iter().map(|id| self.open(id)).collect()
    }

    /// Fetches values of several images that this store has opened, in the order of `requests`. Each result is that of
    /// [`StoredValues::fetch`]. Redis needs one round trip for about 64 MiB.
    fn fetch_many<'v>(&self, requests: &[ValueRequest<'v>]) -> Vec<FetchedValues> {
        requests.iter().map(|request| request.values.fetch(request.numbers)).collect()
    }

    /// The number of images that [`open_many`](Self::open_many) opens in parallel. If it is 1, the caller can as well
    /// open each image when it is needed.
    fn images_at_once(&self) -> usize {
        1
    }

    /// Asks the store for an image that does not exist, to learn whether it can be asked.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read.
    fn check(&self) -> Result<(), Error> {
        let Some(id) = ImageId::new(&[0; 16]) else { return Ok(()) };
        match self.stat(&id) {
            // The key does not matter.
            Err(Error::Store { reason, is_unavailable, .. }) => {
                Err(Error::Store { location: self.url().to_string(), action: "ask", reason, is_unavailable })
            }
            stated => stated.map(|_| ()),
        }
    }

    /// What the store states of the index of `id`; `None` if the store has none. The index is not read.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read.
    fn stat(&self, id: &ImageId) -> Result<Option<StoreEntry>, Error>;

    /// What the store states of several indexes, in the order of `ids`. Each result is that of [`stat`](Self::stat).
    /// Redis needs one round trip for all. An object store is asked for up to 64 at the same time.
    fn stat_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoreEntry>, Error>> {
        ids.iter().map(|id| self.stat(id)).collect()
    }

    /// The whole index of `id`, to copy it elsewhere; `None` if the store has none. This is not a use of the index.
    ///
    /// The caller opens and verifies the index.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read, or if it does not keep whole indexes. See [`copy_to`](Self::copy_to).
    fn get(&self, id: &ImageId) -> Result<Option<IndexBytes>, Error>;

    /// Puts the index of `id` into `target`, with its provenance; `None` if this store has none. The index is verified
    /// before it is put.
    ///
    /// # Errors
    ///
    /// [`Error`] if the index is damaged, if one of the stores fails, or if this store keeps values and the target
    /// needs a whole index. Redis can be copied to Redis only.
    fn copy_to(&self, id: &ImageId, target: &dyn Store) -> Result<Option<PublishOutcome>, Error> {
        let Some(bytes) = self.get(id)? else { return Ok(None) };
        let path = || self.location(id).into();
        let damaged = |error| Error::Index { path: path(), error };
        let index = Index::open(&bytes[..]).map_err(damaged)?;
        index.verify().map_err(damaged)?;
        if index.id() != id {
            let (found, wanted) = (index.id().clone(), id.clone());
            return Err(Error::OtherImage { path: path(), found, wanted });
        }
        let provenance = self.stat(id)?.filter(|entry| entry.digest == Some(index.digest()));
        let provenance = provenance.and_then(|entry| entry.provenance);
        target.put_with(&index, &PutOptions::new().provenance(provenance)).map(Some)
    }

    /// The ids of indexes that begin with each of `starts`, sorted, in the order of `starts`. Reports can state only
    /// the first 16 bytes of an ELF image's build id.
    ///
    /// Redis answers all in one or two round trips, and knows longer ids by their first 16 bytes only. An object store
    /// is listed in part, and a folder is searched. A web server answers whole ids only, because it cannot be listed.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read.
    fn ids_from(&self, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Error>> {
        let ids_from = |start: &ImageId| {
            let mut ids = Vec::new();
            self.list(&mut |entry| {
                ids.extend(Some(entry.id).filter(|id| begins_with(id, start)));
                ControlFlow::Continue(())
            })?;
            ids.sort();
            ids.dedup();
            Ok(ids)
        };
        starts.iter().map(ids_from).collect()
    }

    /// Calls `visit` for each index, in no particular order, until it returns [`ControlFlow::Break`]. The memory in use
    /// does not depend on the number of indexes. Indexes that are added or removed during the call may be missing.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be listed.
    fn list(&self, visit: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>) -> Result<(), Error>;

    /// Counts as a use of the index of `id`, which then expires later. Returns whether the store has the index.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be reached or the index cannot be changed.
    fn touch(&self, id: &ImageId) -> Result<bool, Error>;

    /// Removes the index of `id`. Returns whether the store had it.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be reached or the index cannot be removed.
    fn remove(&self, id: &ImageId) -> Result<bool, Error>;

    /// Calls `visit` with the files that belong to no index. Only folders have such files.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be listed.
    fn orphans(&self, visit: &mut dyn FnMut(Orphan)) -> Result<(), Error> {
        _ = visit;
        Ok(())
    }

    /// Removes the indexes that were not used for `unused`, [orphans](Self::orphans) of that age, and what killed
    /// processes have left.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be listed. An index that cannot be removed is counted, and the others are removed.
    fn gc(&self, unused: Duration) -> Result<GcCounts, Error>;
}

/// What `read` returns. What seems to be damaged is read again, once: most often, only the transfer went wrong.
pub(crate) fn again_if_damaged<T>(mut read: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    match read() {
        Err(error) if error.cause().is_damage() => read(),
        answer => answer,
    }
}

/// Whether `id` is one that a debug file states and begins with the bytes of `start`.
pub(crate) fn begins_with(id: &ImageId, start: &ImageId) -> bool {
    id.to_string().starts_with(&start.to_string())
}

/// What a store states of one index.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct StoreEntry {
    /// The image.
    #[serde(serialize_with = "id_as_text")]
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub id: ImageId,
    /// The name of the image. A folder and an object store state it only in [`Store::stat`], and an object store only
    /// of objects that have it. `None` if the store does not state it.
    #[serde(rename = "name")]
    pub image_name: Option<String>,
    /// [`Metadata::grade`](symdex::Metadata::grade) of the index. Stated where [`image_name`](Self::image_name) is.
    pub grade: Option<Grade>,
    /// Where the index is: a path, or a URL with a key. The same as [`Store::location`].
    pub location: String,
    /// How many bytes the store keeps, compressed or not.
    pub stored_size: u64,
    /// The size of the index in bytes. `None` if the store does not state it.
    pub index_size: Option<u64>,
    /// [`Index::digest`]: equal for equal indexes. Only [`Store::stat`] states it. `None` if the store does not.
    #[serde(skip)]
    pub digest: Option<[u8; 16]>,
    /// When the index was written. `None` if the store does not state it.
    #[serde(serialize_with = "some_time_as_text")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub written: Option<SystemTime>,
    /// The last use that is recorded. Uses are recorded at most once a day. `None` if the store records none.
    #[serde(serialize_with = "some_time_as_text")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub last_use: Option<SystemTime>,
    /// When the store removes the index by itself. `None` if it does not.
    #[serde(serialize_with = "some_time_as_text")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub expires: Option<SystemTime>,
    /// Whether the store has the index in one piece, or as values.
    pub layout: StoredLayout,
    /// Who has put the index into the store. Only [`Store::stat`] states it. `None` if that is not known.
    pub provenance: Option<Provenance>,
}

impl StoreEntry {
    /// An entry that states no times and no size of the index.
    pub(crate) fn new(id: ImageId, location: String, stored_size: u64, layout: StoredLayout) -> Self {
        let (image_name, grade, index_size, digest, provenance) = (None, None, None, None, None);
        let (written, last_use, expires) = (None, None, None);
        Self {
            id,
            image_name,
            grade,
            location,
            stored_size,
            index_size,
            digest,
            written,
            last_use,
            expires,
            layout,
            provenance,
        }
    }
}

/// How a store keeps an index.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StoredLayout {
    /// In one piece.
    Whole,
    /// As values, each of a part of the image.
    Values,
}

impl StoredLayout {
    /// The name in JSON: `whole` or `values`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Values => "values",
        }
    }
}

/// Which uses of an index a store records, for [`StoreEntry::last_use`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedUses {
    /// None. The age of an index counts.
    None,
    /// One a day, by readers that may write the file of the index.
    Daily,
    /// One an hour, or in a tenth of the time after which the index expires if that is less.
    Hourly,
}

/// What [`Store::gc`] did.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcCounts {
    /// The indexes that stay.
    pub kept: u64,
    /// The indexes that were removed.
    pub removed: u64,
    /// The bytes that the removed indexes had in the store.
    pub removed_bytes: u64,
    /// The files that killed processes had left, and that were removed.
    pub leftovers: u64,
    /// The files that belonged to no index and were removed.
    pub orphans: u64,
    /// The indexes, orphans and files that could not be removed.
    pub failed: u64,
}

impl GcCounts {
    /// Counts the removal of an index of `size` bytes. `removed` says whether it was there.
    pub(crate) fn count(&mut self, removed: Result<bool, Error>, size: u64) {
        match removed {
            Ok(true) => {
                self.removed += 1;
                self.removed_bytes += size;
            }
            Ok(false) => self.kept += 1,
            Err(_) => self.failed += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_seems_to_be_damaged_is_read_again_once() {
        let damaged = || Error::DamagedObject { location: "here".to_owned(), what: "cut".to_owned() };
        let lost = || Error::Store {
            location: "here".to_owned(),
            action: "read",
            reason: "no answer".to_owned(),
            is_unavailable: true,
        };
        for (answers, is_read, calls) in [
            (vec![Err(damaged()), Ok(())], true, 2),
            (vec![Err(damaged()), Err(damaged()), Ok(())], false, 2),
            (vec![Err(lost()), Ok(())], false, 1),
        ] {
            let (mut answers, mut called) = (answers.into_iter(), 0);
            let read = again_if_damaged(|| {
                called += 1;
                answers.next().expect("not asked a third time")
            });
            assert_eq!((read.is_ok(), called), (is_read, calls));
        }
    }
}
