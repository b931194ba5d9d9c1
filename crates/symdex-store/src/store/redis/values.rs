//! Reads the values of images.

use std::fmt;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use symdex::Metadata;

use super::client::{Client, Reply};
use super::failure::Failure;
use super::found::get_mark;
use super::keys::value_key;
use super::record::Record;
use super::renewal::Renewals;
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
    pub(super) renewals: Arc<Renewals>,
    pub(super) record: Arc<Record>,
    pub(super) location: String,
    /// When the expiry is to be put off.
    pub(super) renew_at: Mutex<Option<Instant>>,
}

impl RedisValues {
    /// Counts as a use of the image. `ttl`: milliseconds until it expires.
    pub(super) fn used_now(&self, ttl: Option<u64>) {
        let until_due =
            ttl.map(|ttl| Duration::from_millis((ttl + 1).saturating_sub(self.record.renew_below())));
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
            self.renewals.renew(&self.client, &self.record);
        }
    }

    fn name(&self, number: u64) -> ValueName<'_> {
        ValueName { id: &self.record.metadata.id, generation: self.record.generation, number }
    }

    /// The values with these numbers, which Redis has sent as `raw`.
    fn open_all(&self, numbers: &[u64], raw: Result<Vec<Option<Vec<u8>>>, Failure>) -> FetchedValues {
        let raw = raw.map_err(|failure| self.error(failure))?;
        let open = |(number, value): (&u64, Option<Vec<u8>>)| {
            let Some(value) = value else { return Ok(FetchedValue::Lost) };
            match self.name(*number).open(&value, &self.location) {
                Ok(index) => Ok(FetchedValue::Index(Arc::new(index))),
                Err(Error::DamagedObject { what, .. }) => Ok(FetchedValue::Damaged(what)),
                Err(error) => Err(error),
            }
        };
        numbers.iter().zip(raw).map(open).collect()
    }

    /// Reads those of the `fetched` values with these numbers again that seem to be damaged. Most often, only the
    /// transfer went wrong.
    fn read_damaged_again(&self, numbers: &[u64], fetched: &mut [FetchedValue]) -> Result<(), Error> {
        let damaged =
            numbers.iter().zip(fetched).filter(|(_, value)| matches!(value, FetchedValue::Damaged(_)));
        let (numbers, damaged): (Vec<u64>, Vec<_>) = damaged.map(|(number, value)| (*number, value)).unzip();
        if let Some(raw) = fetch_raw(&self.client, &[(&self.record, &numbers)]).pop() {
            damaged.into_iter().zip(self.open_all(&numbers, raw)?).for_each(|(value, again)| *value = again);
        }
        Ok(())
    }

    fn error(&self, failure: Failure) -> Error {
        failure.at(&self.location, "read")
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

/// Fetches values of several images in one round trip. A second one follows if a value is missing.
pub(super) fn fetch(client: &Arc<Client>, requests: &[(&RedisValues, &[u64])]) -> Vec<FetchedValues> {
    requests.iter().for_each(|(values, _)| values.renew_if_due());
    let wanted: Vec<_> = requests.iter().map(|(values, numbers)| (&*values.record, *numbers)).collect();
    let raw = fetch_raw(client, &wanted);
    let mut fetched: Vec<_> = requests
        .iter()
        .zip(raw)
        .map(|((values, numbers), raw)| {
            let mut opened = values.open_all(numbers, raw)?;
            values.read_damaged_again(numbers, &mut opened)?;
            Ok(opened)
        })
        .collect();
    check_generations(client, requests, &mut fetched);
    fetched
}

/// The values with these numbers as Redis has them, in the same order. `None` stands for a value that is not there.
/// One round trip fetches up to [`VALUES_PER_BATCH`] values of [`BYTES_PER_BATCH`].
pub(super) fn fetch_raw(
    client: &Arc<Client>,
    wanted: &[(&Record, &[u64])],
) -> Vec<Result<Vec<Option<Vec<u8>>>, Failure>> {
    let mut fetched: Vec<_> =
        wanted.iter().map(|(_, numbers)| Ok(Vec::with_capacity(numbers.len()))).collect();
    let mut places = wanted
        .iter()
        .enumerate()
        .flat_map(|(place, (record, numbers))| numbers.iter().map(move |number| (place, *record, *number)))
        .peekable();
    loop {
        let mut size = 0;
        let next = || {
            let place = places.next_if(|_| size < BYTES_PER_BATCH)?;
            size = place.1.value_size().saturating_add(size);
            Some(place)
        };
        let batch: Vec<_> = std::iter::from_fn(next).take(VALUES_PER_BATCH).collect();
        if batch.is_empty() {
            return fetched;
        }
        let images = batch.chunk_by(|a, b| a.0 == b.0);
        let replies = client.send(images.clone().map(mget).collect());
        let mut replies = replies.map(Vec::into_iter);
        for image in images {
            let reply = match &mut replies {
                Ok(replies) => replies.next().unwrap_or_else(|| Err(Failure::unexpected_reply())),
                Err(failure) => Err(failure.clone()),
            };
            let Some((place, ..)) = image.first() else { continue };
            match (strings(reply, image.len()), &mut fetched[*place]) {
                (Ok(values), Ok(fetched)) => fetched.extend(values),
                (Err(failure), place) => *place = Err(failure),
                (Ok(_), Err(_)) => {}
            }
        }
    }
}

/// The command that fetches values of one image.
fn mget(values: &[(usize, &Record, u64)]) -> Cmd {
    let mut command = redis::cmd("MGET");
    for (_, record, number) in values {
        command.arg(value_key(&record.metadata.id, record.generation, *number));
    }
    command
}

/// The strings of a reply to `MGET`.
fn strings(reply: Reply, len: usize) -> Result<Vec<Option<Vec<u8>>>, Failure> {
    let Value::Array(values) = reply? else { return Err(Failure::unexpected_reply()) };
    if values.len() != len {
        return Err(Failure::unexpected_reply());
    }
    let string = |value| match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::Nil => Ok(None),
        _ => Err(Failure::unexpected_reply()),
    };
    values.into_iter().map(string).collect()
}

/// Tells lost values from values of an index that was removed or replaced since it was opened: those become errors.
fn check_generations(
    client: &Arc<Client>,
    requests: &[(&RedisValues, &[u64])],
    fetched: &mut [FetchedValues],
) {
    let is_lost = |value: &FetchedValue| matches!(value, FetchedValue::Lost);
    let lacks = |fetched: &FetchedValues| fetched.as_ref().is_ok_and(|values| values.iter().any(is_lost));
    let doubtful: Vec<_> = requests
        .iter()
        .zip(fetched)
        .filter(|(_, fetched)| lacks(fetched))
        .map(|((values, _), f)| (*values, f))
        .collect();
    let replies =
        client.send(doubtful.iter().map(|(values, _)| get_mark(&values.record.metadata.id)).collect());
    let mut replies = replies.map(Vec::into_iter);
    for (values, fetched) in doubtful {
        let reply = match &mut replies {
            Ok(replies) => replies.next().unwrap_or_else(|| Err(Failure::unexpected_reply())),
            Err(failure) => Err(failure.clone()),
        };
        match reply {
            Ok(Value::BulkString(mark)) if mark == values.record.mark() => {}
            Ok(_) => *fetched = Err(Error::Replaced { location: values.location.clone() }),
            Err(failure) => *fetched = Err(values.error(failure)),
        }
    }
}

/// Returns what is wrong with the values of `record`, or `None` if all are there and intact.
pub(super) fn damage(client: &Arc<Client>, record: &Record) -> Result<Option<String>, Failure> {
    let numbers: Vec<u64> = record.numbers().collect();
    for numbers in numbers.chunks(VALUES_PER_CHECK) {
        let values = fetch_raw(client, &[(record, numbers)]).pop().unwrap_or_else(|| Ok(Vec::new()))?;
        for (number, value) in numbers.iter().zip(values) {
            let name = ValueName { id: &record.metadata.id, generation: record.generation, number: *number };
            match value {
                None => return Ok(Some(format!("value {number} was lost"))),
                Some(value) if name.frame(&value).is_none() => {
                    return Ok(Some(format!("the checksum of value {number} does not match")));
                }
                Some(_) => {}
            }
        }
    }
    Ok(None)
}
