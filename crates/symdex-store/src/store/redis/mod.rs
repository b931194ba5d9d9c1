//! A store in Redis or Valkey.
//!
//! An image has one value of metadata and one value for each part of its index ([`keys`]). A `put` writes the parts
//! under new keys and then replaces the metadata in one step, which decides what readers see ([`change`]).

mod change;
mod client;
mod config;
mod failure;
mod ids;
mod keys;
mod list;
mod metadata;
mod put;
mod record;
mod seal;
mod value;
mod values;

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symdex::{ImageId, Index};

use self::change::{FOREVER, change, renew};
use self::client::{Client, typed};
use self::config::Config;
use self::failure::Failure;
use self::keys::metadata_key;
use self::metadata::{StoredMetadata, find, find_one};
use self::record::{BadRecord, Record, milliseconds};
use self::values::RedisValues;
use super::{
    FetchedValues, GcCounts, RecordedUses, Store, StoreEntry, StoreOptions, StoreUrl, StoredImage,
    ValueRequest,
};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::provenance::PutOptions;
use crate::publish::PublishOutcome;

pub use self::client::RedisCounts;

/// A store in a server or a cluster of Redis or Valkey.
///
/// An image expires some time after its last use: [`StoreOptions::ttl`]. A use is recorded at most once an hour, and at
/// most once in a tenth of this time.
pub struct RedisStore {
    url: StoreUrl,
    options: StoreOptions,
    client: Arc<Client>,
}

impl RedisStore {
    /// The store at `url`. Nothing is connected yet.
    ///
    /// The password is that of the URL, or of the environment variable `SYMDEX_REDIS_PASSWORD`, or of the file that
    /// `SYMDEX_REDIS_PASSWORD_FILE` names.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the URL or the environment is not valid, or if the URL is not one of Redis.
    pub fn open(url: &StoreUrl, options: &StoreOptions) -> Result<Self, Error> {
        let config = match url.kind() {
            super::url::StoreKind::Redis => Config::new(url, options, &|name| std::env::var(name).ok()),
            _ => Err("this is not a URL of Redis; expected redis://HOST:PORT/DB".to_owned()),
        };
        let config =
            config.map_err(|reason| Failure::lasting(reason).at(&url.to_string(), "use the store"))?;
        let client = Arc::new(Client::new(config, options.timeout));
        Ok(Self { url: url.clone(), options: options.clone(), client })
    }

    /// What was sent since the store was opened.
    #[must_use]
    pub fn counts(&self) -> RedisCounts {
        self.client.counts()
    }

    fn find(&self, id: &ImageId, action: &'static str) -> Result<Option<StoredMetadata>, Error> {
        find_one(&self.client, id).map_err(|failure| self.error(id, action, failure))
    }

    /// The image of `found`. Counts as a use.
    fn image(
        &self,
        id: &ImageId,
        found: Result<Option<StoredMetadata>, Failure>,
    ) -> Result<Option<StoredImage>, Error> {
        let location = self.location(id);
        let found = found.map_err(|failure| self.error(id, "read", failure))?;
        let Some(StoredMetadata { record, bytes, ttl }) = found else { return Ok(None) };
        match record {
            Err(BadRecord::Damaged(what)) => Err(Error::DamagedObject { location, what }),
            Err(BadRecord::Unsupported(error)) => Err(Error::Index { path: location.into(), error }),
            Ok(record) => {
                let (client, renew_at) = (Arc::clone(&self.client), Mutex::new(None));
                let values = RedisValues { client, record, bytes, location, renew_at };
                values.used_now(ttl);
                Ok(Some(StoredImage::Values(Box::new(values))))
            }
        }
    }

    /// Removes the image that was found, if it would expire in `below` milliseconds or less.
    fn remove_found(&self, id: &ImageId, found: &StoredMetadata, below: u64) -> Result<bool, Error> {
        let removed = typed::<i64>(self.client.send_one(change(id, found.version(), None, below)));
        Ok(removed.map_err(|failure| self.error(id, "remove", failure))? == 1)
    }

    /// Puts off the expiry of what was found if it is time to.
    fn renew(&self, found: &StoredMetadata) -> Result<(), Failure> {
        match &found.record {
            Ok(record) if found.ttl.is_none_or(|ttl| ttl < record.renew_below()) => {
                self.client.renew(renew(&found.bytes, record))
            }
            _ => Ok(()),
        }
    }

    fn list_found(&self, visit: &mut list::VisitImage<'_>) -> Result<(), Error> {
        list::list(&self.client, visit).map_err(|failure| failure.at(&self.url.to_string(), "list"))
    }

    fn error(&self, id: &ImageId, action: &'static str, failure: Failure) -> Error {
        failure.at(&self.location(id), action)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.url)
    }
}

impl Store for RedisStore {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn recorded_uses(&self) -> RecordedUses {
        RecordedUses::Hourly
    }

    fn location(&self, id: &ImageId) -> String {
        format!("{}#{}", self.url, metadata_key(id))
    }

    /// If the store has the same index or a better one, its values are read and checked, and lost or damaged ones are
    /// written again.
    fn put_with(&self, index: &Index<&[u8]>, options: &PutOptions) -> Result<PublishOutcome, Error> {
        let record = Record::new(index, self.options.ttl, options.provenance.clone());
        let level = self.options.zstd_level.unwrap_or(DEFAULT_ZSTD_LEVEL).max(1);
        self.put_record(record, options, |record| self.upload_split(index, record, level))
    }

    fn open(&self, id: &ImageId) -> Result<Option<StoredImage>, Error> {
        self.open_many(std::slice::from_ref(id)).pop().unwrap_or(Ok(None))
    }

    fn open_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoredImage>, Error>> {
        let open = |(id, found)| match self.image(id, found) {
            // Most often, only the transfer went wrong.
            Err(error) if error.cause().is_damage() => self.image(id, find_one(&self.client, id)),
            image => image,
        };
        ids.iter().zip(find(&self.client, ids)).map(open).collect()
    }

    fn images_at_once(&self) -> usize {
        4096
    }

    fn fetch_many<'v>(&self, requests: &[ValueRequest<'v>]) -> Vec<FetchedValues> {
        let own = |request: &ValueRequest<'v>| -> Option<(&'v RedisValues, &'v [u64])> {
            let values: &dyn Any = request.values;
            let values = values.downcast_ref::<RedisValues>()?;
            Arc::ptr_eq(&values.client, &self.client).then_some((values, request.numbers))
        };
        let all: Option<Vec<_>> = requests.iter().map(own).collect();
        match all {
            Some(all) => values::fetch(&self.client, &all),
            // Some are values of another store.
            None => requests.iter().map(|request| request.values.fetch(request.numbers)).collect(),
        }
    }

    fn stat(&self, id: &ImageId) -> Result<Option<StoreEntry>, Error> {
        self.stat_many(std::slice::from_ref(id)).pop().unwrap_or(Ok(None))
    }

    fn stat_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoreEntry>, Error>> {
        let stated = |(id, found): (&ImageId, Result<Option<StoredMetadata>, _>)| {
            let found = found.map_err(|failure| self.error(id, "read", failure))?;
            Ok(found.map(|found| found.entry(id.clone(), self.location(id))))
        };
        ids.iter().zip(find(&self.client, ids)).map(stated).collect()
    }

    /// Always an error if the store has the index, because the index file cannot be made from its values.
    fn get(&self, id: &ImageId) -> Result<Option<IndexBytes>, Error> {
        match self.find(id, "read")? {
            None => Ok(None),
            Some(_) => Err(self.error(id, "copy", Failure::lasting(NO_FILE))),
        }
    }

    /// Only another store in Redis can be the target. The values are copied unchanged.
    fn copy_to(&self, id: &ImageId, target: &dyn Store) -> Result<Option<PublishOutcome>, Error> {
        let any: &dyn Any = target;
        let Some(target) = any.downcast_ref::<Self>() else { return self.get(id).map(|_| None) };
        let source = match self.find(id, "read")? {
            Some(StoredMetadata { record: Ok(record), .. }) => record,
            // Damage is an error.
            found => return self.image(id, Ok(found)).map(|_| None),
        };
        let ttl = milliseconds(target.options.ttl).max(1);
        let record = Record { generation: keys::Generation::new(), ttl, ..source.clone() };
        let options = PutOptions::new().provenance(record.provenance.clone());
        target.put_record(record, &options, |record| target.upload_copies(self, &source, record)).map(Some)
    }

    fn ids_from(&self, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Error>> {
        let failed = |failure: Failure| failure.at(&self.url.to_string(), "search ids in");
        ids::ids_from(&self.client, starts).into_iter().map(|ids| ids.map_err(failed)).collect()
    }

    /// Redis may name an index twice while its table of keys grows or shrinks.
    fn list(&self, visit: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>) -> Result<(), Error> {
        self.list_found(&mut |id, found| {
            let location = self.location(&id);
            visit(found.entry(id, location))
        })
    }

    fn touch(&self, id: &ImageId) -> Result<bool, Error> {
        let Some(found) = self.find(id, "read")? else { return Ok(false) };
        self.renew(&found).map_err(|failure| self.error(id, "record a use of", failure))?;
        Ok(found.record.is_ok())
    }

    fn remove(&self, id: &ImageId) -> Result<bool, Error> {
        let found = self.find(id, "read")?;
        found.map_or(Ok(false), |found| self.remove_found(id, &found, FOREVER))
    }

    /// Values of killed processes are not removed: they expire after an hour.
    fn gc(&self, unused: Duration) -> Result<GcCounts, Error> {
        let mut counts = GcCounts::default();
        self.list_found(&mut |id, found| {
            // When unreadable metadata was used last is unknown. It expires.
            let record = found.record.as_ref().ok();
            let below = record.and_then(|record| record.ttl.checked_sub(milliseconds(unused)));
            match below.filter(|below| found.ttl.is_some_and(|ttl| ttl <= *below)) {
                None => counts.kept += 1,
                Some(below) => counts.count(
                    self.remove_found(&id, &found, below),
                    record.map_or(0, |record| record.stored_size),
                ),
            }
            ControlFlow::Continue(())
        })?;
        Ok(counts)
    }
}

/// The level at which values are compressed, if the options state none. They take memory for as long as they are used.
const DEFAULT_ZSTD_LEVEL: i32 = 19;

/// Why [`Store::get`] fails.
const NO_FILE: &str = "Redis keeps an index as values, from which the index file cannot be made again; copy to another \
     Redis, copy from a store of files, or build the index again from its debug file";
