//! A store in an object store: S3, Google Cloud Storage, Azure, or a web server.

mod body;
mod cache;
mod client;
mod errors;
mod gc;
mod open;
mod parallel;
mod put;
mod single;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, UpdateVersion,
};
use symdex::{Grade, ImageId, Index};

use self::cache::Cache;
use self::client::StoreClient;
use self::errors::Failed;
use self::parallel::{AT_ONCE, in_parallel};
pub use self::single::{ListedObject, ObjectBody, ObjectVersion, Objects};
use super::url::Scheme;
use super::{
    GcCounts, RecordedUses, Store, StoreEntry, StoreOptions, StoreUrl, StoredImage, StoredLayout,
    again_if_damaged, begins_with, runtime,
};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::folder::{EXTENSION, IndexFolder, USE_INTERVAL};
use crate::provenance::{Provenance, PutOptions};
use crate::publish::PublishOutcome;

/// The level at which objects are compressed, if the options state none. Level 19 takes twice the CPU time of the build
/// and saves 3 to 5 %.
const DEFAULT_ZSTD_LEVEL: i32 = 6;
/// The metadata field with the size of the index. Azure allows no dash in the name.
const SIZE_FIELD: &str = "symdexsize";
/// The metadata field with the digest of the index, as a hexadecimal number. Older objects do not have it.
const DIGEST_FIELD: &str = "symdexdigest";
/// The metadata field with who has put the index into the store, if that is known.
const PROVENANCE_FIELD: &str = "symdexprovenance";
/// The metadata field with the name of the image, percent-encoded. Older objects do not have it.
const NAME_FIELD: &str = "symdexname";
/// The metadata field with the grade of the index. Older objects do not have it.
const GRADE_FIELD: &str = "symdexgrade";
/// Longer names are left out. The metadata of an object may have 2 kB.
const MAX_NAME: usize = 1000;
/// How many objects a page of S3's list has.
const PAGE: usize = 1000;

/// A store in an object store. Each index is one object, `PREFIX/0c/0c37c502aba03641a08f84c794684f36.symdex`,
/// compressed or not: one request learns that there is none.
pub(super) struct ObjectsStore {
    url: StoreUrl,
    client: Arc<dyn ObjectStore>,
    /// What all keys begin with.
    prefix: Key,
    is_read_only: bool,
    /// How long the store may take to answer, or to send the next bytes.
    timeout: Duration,
    /// The level of zstd; 0 stands for objects that are not compressed.
    zstd_level: i32,
    cache: Option<Cache>,
    /// How old an index is that a put of an equal or worse one writes again.
    renewed_after: Duration,
    /// How long a writer waits for the removal of a mark of [`gc`].
    writers_wait: Duration,
    damaged: Damaged,
}

/// The images whose objects were damaged when this process read them, up to [`Self::MAX`].
#[derive(Default)]
struct Damaged(Mutex<BTreeSet<ImageId>>);

impl Damaged {
    const MAX: usize = 4096;

    fn note(&self, id: &ImageId, error: &Error) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if error.cause().is_damage() && ids.len() < Self::MAX {
            ids.insert(id.clone());
        }
    }

    /// Returns whether the image was damaged, and forgets it.
    fn take(&self, id: &ImageId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

impl std::fmt::Debug for ObjectsStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectsStore").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The object of an image.
enum ObjectState {
    Object(GetResult),
    /// The index was removed: this is the mark of [`gc`].
    Mark(UpdateVersion),
    /// Its tag is still the one of the request.
    Unchanged,
}

impl ObjectsStore {
    pub(super) fn open(url: &StoreUrl, options: &StoreOptions) -> Result<Self, Error> {
        let failed = |reason: String| Error::Store {
            location: url.to_string(),
            action: "open",
            reason,
            is_unavailable: false,
        };
        let opened = client::of_url(url, options.timeout).map_err(|error| failed(errors::reason(&error)))?;
        let StoreClient { client, prefix, server } = opened;
        let cache = options.cache.as_ref();
        let cache = cache.map(|(folder, size)| Cache::new(folder, *size, url, &server)).transpose()?;
        Ok(Self { cache, ..Self::new(url.clone(), client, prefix, options) })
    }

    /// A store without a cache.
    fn new(url: StoreUrl, client: Arc<dyn ObjectStore>, prefix: Key, options: &StoreOptions) -> Self {
        let is_read_only = matches!(url.scheme(), Scheme::Http | Scheme::Https);
        let (timeout, zstd_level) = (options.timeout, options.zstd_level.unwrap_or(DEFAULT_ZSTD_LEVEL));
        let (renewed_after, writers_wait) = (USE_INTERVAL, gc::WRITERS_WAIT);
        Self {
            url,
            client,
            prefix,
            is_read_only,
            timeout,
            zstd_level,
            cache: None,
            renewed_after,
            writers_wait,
            damaged: Damaged::default(),
        }
    }

    fn key(&self, id: &ImageId) -> Key {
        key_of(&self.prefix, id)
    }

    fn location_of(&self, key: &Key) -> String {
        let below = key.as_ref().strip_prefix(self.prefix.as_ref()).unwrap_or(key.as_ref());
        format!("{}/{}", self.url, below.trim_start_matches('/'))
    }

    /// Whether this store compresses the objects that it writes.
    fn compresses(&self) -> bool {
        self.zstd_level != 0
    }

    /// Runs `work` with the client and `key`.
    fn run<T: Send + 'static, F: Future<Output = object_store::Result<T>> + Send + 'static>(
        &self,
        key: &Key,
        work: impl FnOnce(Arc<dyn ObjectStore>, Key) -> F,
    ) -> Result<T, Failed> {
        let future = work(Arc::clone(&self.client), key.clone());
        Ok(runtime::wait(self.timeout, future)??)
    }

    /// The object of `id`; `None` if there is none.
    fn find(&self, id: &ImageId, options: GetOptions) -> Result<Option<ObjectState>, Error> {
        let key = self.key(id);
        match self.run(&key, |client, key| async move { client.get_opts(&key, options).await }) {
            Ok(object) if gc::is_mark(&object.attributes) => {
                Ok(Some(ObjectState::Mark(gc::version_of(&object.meta))))
            }
            Ok(object) => Ok(Some(ObjectState::Object(object))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(Failed::Client(object_store::Error::NotModified { .. })) => Ok(Some(ObjectState::Unchanged)),
            Err(error) => Err(error.at(self.location_of(&key), "read")),
        }
    }

    /// The entry of an object; `None` if its key is not that of an index.
    fn entry(&self, object: &ObjectMeta) -> Option<StoreEntry> {
        let id = id_of(&self.prefix, object)?;
        let location = self.location_of(&object.location);
        let mut entry = StoreEntry::new(id, location, object.size, StoredLayout::Whole);
        entry.written = Some(SystemTime::from(object.last_modified));
        Some(entry)
    }

    /// Calls `visit` with each of `objects`.
    fn visit(
        &self,
        objects: BoxStream<'static, object_store::Result<ObjectMeta>>,
        visit: &mut dyn FnMut(&ObjectMeta) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut objects = objects.ready_chunks(PAGE);
        loop {
            let next = async move { (objects.next().await, objects) };
            let failed = |error: Failed| error.at(self.url.to_string(), "list");
            let (page, rest) = runtime::wait(self.timeout, next).map_err(|error| failed(error.into()))?;
            objects = rest;
            let Some(page) = page else { return Ok(()) };
            for object in page {
                let object = object.map_err(|error| failed(error.into()))?;
                if visit(&object).is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// The ids that begin with `start`, sorted. A list of one subfolder begins at the key of `start`. It goes to its
    /// end, because not all servers sort.
    fn ids_of_start(&self, start: &ImageId) -> Result<Vec<ImageId>, Error> {
        if self.is_read_only {
            return Ok(self.stat(start)?.map(|entry| entry.id).into_iter().collect());
        }
        let digits = start.to_string();
        let folder = self.prefix.clone().join(digits.get(..2).unwrap_or_default());
        let objects = self.client.list_with_offset(Some(&folder), &folder.clone().join(digits));
        let mut ids = Vec::new();
        self.visit(objects, &mut |object| {
            let id = self.entry(object).map(|entry| entry.id);
            ids.extend(id.filter(|id| begins_with(id, start)));
            ControlFlow::Continue(())
        })?;
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn check_writable(&self, action: &'static str) -> Result<(), Error> {
        if self.is_read_only { Err(Error::read_only(&self.url, action)) } else { Ok(()) }
    }
}

/// The key of the index of `id` below `prefix`.
fn key_of(prefix: &Key, id: &ImageId) -> Key {
    let name = IndexFolder::file_name(id);
    prefix.clone().join(name.get(..2).unwrap_or_default()).join(name)
}

/// The id of the index below `prefix` that `object` is, in a list; `None` if it is another object.
fn id_of(prefix: &Key, object: &ObjectMeta) -> Option<ImageId> {
    let name = object.location.filename()?;
    let id = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok()?;
    (key_of(prefix, &id) == object.location && !gc::is_mark_in_list(object)).then_some(id)
}

/// The digest of the index that an object with these attributes states.
fn digest_of(attributes: &Attributes) -> Option<[u8; 16]> {
    let digest = attributes.get(&Attribute::Metadata(DIGEST_FIELD.into()))?;
    Some(u128::from_str_radix(digest, 16).ok()?.to_be_bytes())
}

/// What the object states of who has put it.
fn provenance_of(object: &GetResult) -> Option<Provenance> {
    Provenance::parse(object.attributes.get(&Attribute::Metadata(PROVENANCE_FIELD.into()))?)
}

impl Store for ObjectsStore {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn recorded_uses(&self) -> RecordedUses {
        RecordedUses::None
    }

    fn location(&self, id: &ImageId) -> String {
        self.location_of(&self.key(id))
    }

    fn put_with(&self, index: &Index<&[u8]>, options: &PutOptions) -> Result<PublishOutcome, Error> {
        self.check_writable("write")?;
        let outcome = self.put_index(index, options);
        if let Some(cache) = &self.cache {
            let _turn = cache.turn(index.id());
            match &outcome {
                Ok(outcome) if !outcome.keeps_existing() => cache.forget(index.id()),
                // The cache may not have the index that is there. A put that failed may have written its index.
                _ => cache.doubt(index.id()),
            }
        }
        outcome
    }

    fn open(&self, id: &ImageId) -> Result<Option<StoredImage>, Error> {
        let open = || match &self.cache {
            Some(cache) => self.open_cached(cache, id),
            None => self.open_uncached(id),
        };
        let index = again_if_damaged(open).inspect_err(|error| self.damaged.note(id, error))?;
        Ok(index.map(|index| StoredImage::Index(Arc::new(index))))
    }

    fn open_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoredImage>, Error>> {
        in_parallel(ids, |id| self.open(id))
    }

    fn images_at_once(&self) -> usize {
        AT_ONCE
    }

    fn stat(&self, id: &ImageId) -> Result<Option<StoreEntry>, Error> {
        let Some(ObjectState::Object(object)) = self.find(id, GetOptions::new().with_head(true))? else {
            return Ok(None);
        };
        if let Some(cache) = &self.cache {
            cache.set_there(id);
        }
        let attributes = &object.attributes;
        let field = |name: &'static str| attributes.get(&Attribute::Metadata(name.into()));
        let is_plain = attributes.get(&Attribute::ContentEncoding).is_none();
        let plain_size = is_plain.then_some(object.meta.size);
        let index_size = field(SIZE_FIELD).and_then(|size| size.parse().ok()).or(plain_size);
        let digest = digest_of(attributes);
        let image_name = field(NAME_FIELD).and_then(|name| {
            Some(percent_encoding::percent_decode_str(name).decode_utf8().ok()?.into_owned())
        });
        let grade = field(GRADE_FIELD)
            .and_then(|word| Grade::ALL.into_iter().find(|grade| grade.name() == word.as_ref()));
        let entry = self.entry(&object.meta);
        let provenance = provenance_of(&object);
        let stated = |entry| StoreEntry { index_size, digest, image_name, grade, provenance, ..entry };
        Ok(entry.map(stated))
    }

    fn stat_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoreEntry>, Error>> {
        in_parallel(ids, |id| self.stat(id))
    }

    fn get(&self, id: &ImageId) -> Result<Option<IndexBytes>, Error> {
        match self.find(id, GetOptions::new())? {
            Some(ObjectState::Object(object)) => self.fetch(id, object).map(Some),
            _ => Ok(None),
        }
    }

    fn ids_from(&self, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Error>> {
        starts.iter().map(|start| self.ids_of_start(start)).collect()
    }

    fn list(&self, visit: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>) -> Result<(), Error> {
        let mut visit = |object: &ObjectMeta| match self.entry(object) {
            Some(entry) => visit(entry),
            None => ControlFlow::Continue(()),
        };
        self.visit(self.client.list(Some(&self.prefix)), &mut visit)
    }

    fn touch(&self, id: &ImageId) -> Result<bool, Error> {
        // Object stores record no uses. Their age counts, and only writing an object again would change it.
        Ok(matches!(self.find(id, GetOptions::new().with_head(true))?, Some(ObjectState::Object(_))))
    }

    fn remove(&self, id: &ImageId) -> Result<bool, Error> {
        self.check_writable("remove")?;
        if let Some(cache) = &self.cache {
            let _turn = cache.turn(id);
            cache.forget(id);
        }
        // S3 does not say whether there was an object.
        if !self.touch(id)? {
            return Ok(false);
        }
        let key = self.key(id);
        match self.run(&key, |client, key| async move { client.delete(&key).await }) {
            Err(error) if error.is_not_found() => Ok(false),
            deleted => deleted.map(|()| true).map_err(|error| error.at(self.location_of(&key), "remove")),
        }
    }

    fn gc(&self, unused: Duration) -> Result<GcCounts, Error> {
        self.check_writable("remove from")?;
        let mut counts = GcCounts::default();
        self.visit(self.client.list(Some(&self.prefix)), &mut |object| {
            self.collect(object, unused, &mut counts);
            ControlFlow::Continue(())
        })?;
        Ok(counts)
    }
}

#[cfg(test)]
mod tests;
