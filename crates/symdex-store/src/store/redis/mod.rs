//! A store in Redis or Valkey.
//!
//! An image has one value of metadata and one value for each part of its index ([`keys`]). A `put` writes the parts
//! under new keys and then replaces the metadata in one step, which decides what readers see ([`scripts`]).

mod client;
mod config;
mod failure;
mod found;
mod ids;
mod keys;
mod list;
mod put;
mod record;
mod renewal;
mod scripts;
mod value;
mod values;

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symdex::{ImageId, Index};

use self::client::Client;
use self::config::Config;
use self::failure::Failure;
use self::found::{Found, find, find_one};
use self::keys::metadata_key;
use self::put::Putter;
use self::record::{BadRecord, Record, milliseconds};
use self::renewal::Renewals;
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
    renewals: Arc<Renewals>,
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
        Ok(Self { url: url.clone(), options: options.clone(), client, renewals: Arc::default() })
    }

    /// What was sent and received since the store was opened.
    #[must_use]
    pub fn counts(&self) -> RedisCounts {
        self.client.counts()
    }

    fn find(&self, id: &ImageId, action: &'static str) -> Result<Found, Error> {
        find_one(&self.client, id).map_err(|failure| self.error(id, action, failure))
    }

    fn image(&self, id: &ImageId, found: Result<Found, Failure>) -> Result<Option<StoredImage>, Error> {
        let location = self.location(id);
        match found.map_err(|failure| self.error(id, "read", failure))? {
            Found::Nothing => Ok(None),
            Found::Bad(_, BadRecord::Damaged(what)) => Err(Error::DamagedObject { location, what }),
            Found::Bad(_, BadRecord::Unsupported(error)) => {
                Err(Error::Index { path: location.into(), error })
            }
            Found::Record(record, ttl) => {
                let (client, renewals) = (Arc::clone(&self.client), Arc::clone(&self.renewals));
                let (record, renew_at) = (Arc::new(*record), Mutex::new(None));
                let values = RedisValues { client, renewals, record, location, renew_at };
                values.used_now(ttl);
                Ok(Some(StoredImage::Values(Box::new(values))))
            }
        }
    }

    /// Removes the image that was found, if it would expire in `below` milliseconds or less.
    fn remove_found(&self, id: &ImageId, found: &Found, below: u64) -> Result<bool, Failure> {
        let command = match found {
            Found::Nothing => return Ok(false),
            Found::Bad(mark, _) => scripts::remove_damaged(id, mark),
            Found::Record(record, _) => scripts::remove(record, below),
        };
        Ok(matches!(self.client.send_one(command)?, redis::Value::Int(1)))
    }

    fn putter(&self, id: &ImageId) -> Putter<'_> {
        Putter { client: &self.client, location: self.location(id) }
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
        let putter = self.putter(index.id());
        let record = Record::new(index, self.options.ttl, options.provenance.clone());
        putter.put(record, options, |record| {
            putter.upload_split(index, record, self.options.zstd_level.unwrap_or(DEFAULT_ZSTD_LEVEL).max(1))
        })
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
        Ok(self.find(id, "read")?.entry(id.clone(), self.location(id)))
    }

    fn stat_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoreEntry>, Error>> {
        let stated = |(id, found): (&ImageId, Result<Found, _>)| {
            let found = found.map_err(|failure| self.error(id, "read", failure))?;
            Ok(found.entry(id.clone(), self.location(id)))
        };
        ids.iter().zip(find(&self.client, ids)).map(stated).collect()
    }

    /// Always an error if the store has the index, because the index file cannot be made from its values.
    fn get(&self, id: &ImageId) -> Result<Option<IndexBytes>, Error> {
        match self.find(id, "read")? {
            Found::Nothing => Ok(None),
            _ => Err(self.error(id, "copy", Failure::lasting(NO_FILE))),
        }
    }

    /// Only another store in Redis can be the target. The values are copied unchanged.
    fn copy_to(&self, id: &ImageId, target: &dyn Store) -> Result<Option<PublishOutcome>, Error> {
        let any: &dyn Any = target;
        let (Some(target), source) = (any.downcast_ref::<Self>(), self.find(id, "read")?) else {
            return self.get(id).map(|_| None);
        };
        let source = match source {
            Found::Record(record, _) => record,
            // Damage is an error.
            found => return self.image(id, Ok(found)).map(|_| None),
        };
        let (from, to) = (self.putter(id), target.putter(id));
        let mut record = Record { generation: keys::Generation::new(), ..(*source).clone() };
        record.ttl = milliseconds(target.options.ttl).max(1);
        let options = PutOptions::new().provenance(record.provenance.clone());
        to.put(record, &options, |record| to.upload_copies(&from, &source, record)).map(Some)
    }

    fn ids_from(&self, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Error>> {
        let failed = |failure: Failure| failure.at(&self.url.to_string(), "search ids in");
        ids::ids_from(&self.client, starts).into_iter().map(|ids| ids.map_err(failed)).collect()
    }

    /// Redis may name an index twice while its table of keys grows or shrinks.
    fn list(&self, visit: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>) -> Result<(), Error> {
        let mut visit = |id: ImageId, found: Found| {
            let location = self.location(&id);
            found.entry(id, location).map_or(ControlFlow::Continue(()), &mut *visit)
        };
        list::list(&self.client, &mut visit).map_err(|failure| failure.at(&self.url.to_string(), "list"))
    }

    fn touch(&self, id: &ImageId) -> Result<bool, Error> {
        let Found::Record(record, ttl) = self.find(id, "read")? else { return Ok(false) };
        Renewals::renew_now(&self.client, &record, ttl)
            .map_err(|failure| self.error(id, "record a use of", failure))?;
        Ok(true)
    }

    fn remove(&self, id: &ImageId) -> Result<bool, Error> {
        let found = self.find(id, "read")?;
        self.remove_found(id, &found, FOREVER).map_err(|failure| self.error(id, "remove", failure))
    }

    /// Values of killed processes are not removed: they expire after an hour.
    fn gc(&self, unused: Duration) -> Result<GcCounts, Error> {
        let mut counts = GcCounts::default();
        let mut visit = |id: ImageId, found: Found| {
            let below = match &found {
                Found::Record(record, ttl) => {
                    let below = record.ttl.checked_sub(milliseconds(unused));
                    below
                        .filter(|below| ttl.is_some_and(|ttl| ttl <= *below))
                        .map(|below| (below, record.stored_size))
                }
                // When unreadable metadata was used last is unknown. It expires.
                Found::Bad(..) => None,
                Found::Nothing => return ControlFlow::Continue(()),
            };
            match below {
                None => counts.kept += 1,
                Some((below, size)) => {
                    let removed = self.remove_found(&id, &found, below);
                    counts.count(removed.map_err(|failure| self.error(&id, "remove", failure)), size);
                }
            }
            ControlFlow::Continue(())
        };
        list::list(&self.client, &mut visit).map_err(|failure| failure.at(&self.url.to_string(), "list"))?;
        Ok(counts)
    }
}

/// More milliseconds than any image lives.
const FOREVER: u64 = u64::MAX >> 1;

/// The level at which values are compressed, if the options state none. They take memory for as long as they are used.
const DEFAULT_ZSTD_LEVEL: i32 = 19;

/// Why [`Store::get`] fails.
const NO_FILE: &str = "Redis keeps an index as values, from which the index file cannot be made again; copy to another \
     Redis, copy from a store of files, or build the index again from its debug file";
