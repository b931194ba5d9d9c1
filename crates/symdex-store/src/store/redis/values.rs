//! Reads the values of images.

use std::fmt;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Metadata};

use super::change::renew;
use super::client::{Client, typed};
use super::failure::Failure;
use super::keys::value_key;
use super::metadata::{command, find};
use super::record::Record;
use super::value::ValueName;
use crate::error::Error;
use crate::store::{FetchedValue, FetchedValues, StoredValues};

/// How many bytes of indexes one round trip fetches at most, unless one value has more.
const BYTES_PER_BATCH: u64 = 64 << 20;
/// How many values one round trip fetches at most. Small ones take as long as their keys.
const VALUES_PER_BATCH: usize = 16_384;

/// How many values of an image are checked at once.
const VALUES_PER_CHECK: usize = 1024;

/// An open image in Redis.
pub(super) struct RedisValues {
    pub(super) client: Arc<Client>,
    pub(super) record: Record,
    /// The bytes of the record.
    pub(super) bytes: Vec<u8>,
    pub(super) location: String,
    /// When the expiry is to be put off.
    pub(super) renew_at: Mutex<Option<Instant>>,
}

/// Values of an open image.
type Request<'r> = (&'r RedisValues, &'r [u64]);

impl RedisValues {
    /// Counts as a use of the image. `ttl`: milliseconds until it expires.
    pub(super) fn used_now(&self, ttl: Option<u64>) {
        let until_due = ttl.map(|ttl| Duration::from_millis(ttl.saturating_sub(self.record.renew_below())));
        *self.renew_at.lock().unwrap_or_else(PoisonError::into_inner) =
            until_due.and_then(|until_due| Instant::now().checked_add(until_due));
        self.renew_if_due();
    }

    /// Puts off the expiry of the image in the background if it is time to.
    fn renew_if_due(&self) {
        let mut renew_at = self.renew_at.lock().unwrap_or_else(PoisonError::into_inner);
        if renew_at.is_some_and(|at| at <= Instant::now()) {
            // If this attempt fails, there are at least eight more before the image expires.
            *renew_at = Instant::now().checked_add(Duration::from_millis(self.record.renewal_interval()));
            self.client.renew_later(renew(&self.bytes, &self.record));
        }
    }

    /// The value with this number, which Redis has sent as `value`.
    fn open(&self, number: u64, value: Result<Option<Vec<u8>>, Failure>) -> Result<FetchedValue, Error> {
        let value = value.map_err(|failure| failure.at(&self.location, "read"))?;
        let Some(value) = value else { return Ok(FetchedValue::Lost) };
        match ValueName::new(&self.record, number).open(&value, &self.location) {
            Ok(index) => Ok(FetchedValue::Index(Arc::new(index))),
            Err(Error::DamagedObject { what, .. }) => Ok(FetchedValue::Damaged(what)),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for RedisValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisValues({})", self.location)
    }
}

impl StoredValues for RedisValues {
    fn metadata(&self) -> &Metadata {
        &self.record.metadata
    }

    fn generation(&self) -> u64 {
        self.record.generation.0
    }

    fn value_size(&self) -> u64 {
        self.record.value_size()
    }

    fn fetch(&self, numbers: &[u64]) -> FetchedValues {
        fetch(&self.client, &[(self, numbers)]).pop().unwrap_or_else(|| Ok(Vec::new()))
    }
}

/// Fetches values of several images in one round trip. Values that seem to be damaged are read again, once: most often,
/// only the transfer went wrong. If a value is missing, the metadata is read again.
pub(super) fn fetch(client: &Arc<Client>, requests: &[Request<'_>]) -> Vec<FetchedValues> {
    requests.iter().for_each(|(values, _)| values.renew_if_due());
    let mut fetched = read(client, requests);
    read_damaged_again(client, requests, &mut fetched);
    check_generations(client, requests, &mut fetched);
    fetched
}

fn read(client: &Arc<Client>, requests: &[Request<'_>]) -> Vec<FetchedValues> {
    let wanted = requests
        .iter()
        .flat_map(|(values, numbers)| numbers.iter().map(|number| (&values.record, *number)))
        .collect::<Vec<_>>();
    let mut raw = get(client, &wanted).into_iter();
    let mut fetched = |(values, numbers): &Request<'_>| {
        // Each value takes its reply, even if one before it has failed.
        let raw: Vec<_> = raw.by_ref().take(numbers.len()).collect();
        numbers.iter().zip(raw).map(|(number, raw)| values.open(*number, raw)).collect()
    };
    requests.iter().map(&mut fetched).collect()
}

/// The values with these numbers as Redis has them. `None` stands for a value that is not there. One round trip fetches
/// up to [`VALUES_PER_BATCH`] values of [`BYTES_PER_BATCH`].
pub(super) fn get(
    client: &Arc<Client>,
    mut wanted: &[(&Record, u64)],
) -> Vec<Result<Option<Vec<u8>>, Failure>> {
    let mut values = Vec::with_capacity(wanted.len());
    while !wanted.is_empty() {
        let mut size: u64 = 0;
        let has_room = |(record, _): &&(&Record, u64)| {
            let has_room = size < BYTES_PER_BATCH;
            size = size.saturating_add(record.value_size());
            has_room
        };
        let len = wanted.iter().take(VALUES_PER_BATCH).take_while(has_room).count();
        let (batch, rest) = wanted.split_at(len);
        let key =
            |(record, number): &(&Record, u64)| value_key(&record.metadata.id, record.generation, *number);
        let replies = client.send(batch.iter().map(|value| command("GET", &key(value))).collect());
        values.extend(replies.into_iter().map(typed));
        wanted = rest;
    }
    values
}

fn read_damaged_again(client: &Arc<Client>, requests: &[Request<'_>], fetched: &mut [FetchedValues]) {
    let is_damaged = |value: &FetchedValue| matches!(value, FetchedValue::Damaged(_));
    for ((values, numbers), fetched) in requests.iter().zip(fetched) {
        let Ok(of_image) = &mut *fetched else { continue };
        let damaged = of_image.iter_mut().zip(*numbers).filter(|(value, _)| is_damaged(value));
        let (damaged, numbers): (Vec<_>, Vec<u64>) = damaged.map(|(value, number)| (value, *number)).unzip();
        match read(client, &[(values, &numbers)]).pop() {
            Some(Ok(again)) => damaged.into_iter().zip(again).for_each(|(value, again)| *value = again),
            Some(Err(error)) => *fetched = Err(error),
            None => {}
        }
    }
}

/// Tells lost values from values of an index that was removed or replaced since it was opened: those become errors.
fn check_generations(client: &Arc<Client>, requests: &[Request<'_>], fetched: &mut [FetchedValues]) {
    let is_lost = |value: &FetchedValue| matches!(value, FetchedValue::Lost);
    let doubtful = requests.iter().zip(fetched).filter(|(_, fetched)| fetched.iter().flatten().any(is_lost));
    let (doubtful, fetched): (Vec<_>, Vec<_>) = doubtful.map(|((values, _), f)| (*values, f)).unzip();
    let ids: Vec<ImageId> = doubtful.iter().map(|values| values.record.metadata.id.clone()).collect();
    for ((values, fetched), found) in doubtful.into_iter().zip(fetched).zip(find(client, &ids)) {
        match found {
            Ok(Some(found)) if found.bytes == values.bytes => {}
            Ok(_) => *fetched = Err(Error::Replaced { location: values.location.clone() }),
            Err(failure) => *fetched = Err(failure.at(&values.location, "read")),
        }
    }
}

/// Returns what is wrong with the values of `record`, or `None` if all are there and intact.
pub(super) fn damage(client: &Arc<Client>, record: &Record) -> Result<Option<String>, Failure> {
    let wanted: Vec<_> = record.numbers().map(|number| (record, number)).collect();
    for wanted in wanted.chunks(VALUES_PER_CHECK) {
        for ((_, number), value) in wanted.iter().zip(get(client, wanted)) {
            match value? {
                None => return Ok(Some(format!("value {number} was lost"))),
                Some(value) if ValueName::new(record, *number).frame(&value).is_none() => {
                    return Ok(Some(format!("the checksum of value {number} does not match")));
                }
                Some(_) => {}
            }
        }
    }
    Ok(None)
}
