//! Puts indexes into Redis.

use std::num::NonZero;
use std::time::Duration;

use symdex::{Index, write};

use super::RedisStore;
use super::change::{FOREVER, change};
use super::client::typed;
use super::failure::Failure;
use super::keys::value_key;
use super::metadata::{StoredMetadata, command};
use super::record::{BadRecord, MAX_VALUES, Record, milliseconds};
use super::value::ValueName;
use super::values::{damage, get};
use crate::error::Error;
use crate::provenance::{PutOptions, replaces};
use crate::publish::PublishOutcome;
use crate::store::Store as _;

/// Values that are not visible yet expire after this time. Those of a killed process are gone then.
const UPLOAD_TTL: Duration = Duration::from_secs(60 * 60);

/// Values are written in batches of this number.
const VALUES_PER_BATCH: usize = 64;

/// How often a `put` starts again because another one was faster. Each time the index there is better than before.
const MAX_TURNS: u32 = 1000;

impl RedisStore {
    /// Makes `new` visible if the rule prefers it. `upload` writes its values, and returns the bytes that they take. It
    /// is called at most once.
    pub(super) fn put_record(
        &self,
        mut new: Record,
        options: &PutOptions,
        upload: impl FnOnce(&Record) -> Result<u64, Error>,
    ) -> Result<PublishOutcome, Error> {
        let id = new.metadata.id.clone();
        let failed = |failure| self.error(&id, "write", failure);
        if new.value_len() > MAX_VALUES as u64 {
            let values = new.value_len();
            let reason =
                format!("the index needs {values} values; Redis keeps at most {MAX_VALUES} of an image");
            return Err(failed(Failure::lasting(reason)));
        }
        let mut upload = Some(upload);
        for _ in 0..MAX_TURNS {
            let found = self.find(&id, "write")?;
            let outcome = self.compare(&new, found.as_ref(), options)?;
            if outcome.keeps_existing() {
                found.iter().try_for_each(|found| self.renew(found)).map_err(failed)?;
                if upload.is_none() {
                    self.discard(&new);
                }
                return Ok(outcome);
            }
            if let Some(upload) = upload.take() {
                // A server without free memory needs the space of what was written before it was full.
                new.stored_size = upload(&new).inspect_err(|_| self.discard(&new))?;
            }
            let old = found.as_ref().map(StoredMetadata::version).unwrap_or_default();
            let change = change(&id, old, Some((&new.encode(), &new)), FOREVER);
            match typed::<i64>(self.client.send_one(change)).map_err(failed)? {
                1 => return Ok(outcome),
                // Another process has changed the metadata since.
                0 => {}
                missing => {
                    self.discard(&new);
                    let reason = format!(
                        "the server has evicted {} of {} values while they were written; raise its maxmemory",
                        missing.unsigned_abs(),
                        new.value_len()
                    );
                    return Err(failed(Failure { is_unavailable: true, ..Failure::lasting(reason) }));
                }
            }
        }
        Err(failed(Failure::transient("other processes put other indexes of this image all the time")))
    }

    /// Compares `new` with the index that was found.
    fn compare(
        &self,
        new: &Record,
        found: Option<&StoredMetadata>,
        options: &PutOptions,
    ) -> Result<PublishOutcome, Error> {
        let failed = |failure| self.error(&new.metadata.id, "write", failure);
        let existing = match found.map(|found| &found.record) {
            None => return Ok(PublishOutcome::Written),
            Some(Err(BadRecord::Damaged(damage))) => {
                return Ok(PublishOutcome::Repaired { damage: damage.clone() });
            }
            Some(Err(BadRecord::Unsupported(error))) => {
                return Err(failed(Failure::lasting(format!("the index there is not replaced: {error}"))));
            }
            Some(Ok(existing)) => existing,
        };
        let is_same = existing.digest == new.digest;
        let (new_rank, existing_rank) = (new.rank(), existing.rank());
        let (new, of_existing) = ((&new.metadata, &new_rank), (&existing.metadata, &existing_rank));
        if !is_same && replaces(options, &new_rank, &existing_rank, existing.provenance.as_ref()) {
            return Ok(PublishOutcome::of_different(new, of_existing, true));
        }
        // Otherwise a damaged index could win by functions that it cannot answer.
        Ok(match damage(&self.client, existing).map_err(failed)? {
            Some(damage) => PublishOutcome::Repaired { damage },
            None if is_same => PublishOutcome::Unchanged,
            None => PublishOutcome::of_different(new, of_existing, false),
        })
    }

    /// Removes the values of `record`, which no metadata names. If this fails, they expire.
    fn discard(&self, record: &Record) {
        _ = self.client.send(record.value_keys().map(|key| command("UNLINK", &key)).collect());
    }

    /// Writes the values of `index`, whose record is `record`. Returns the bytes that they take.
    pub(super) fn upload_split(
        &self,
        index: &Index<&[u8]>,
        record: &Record,
        level: i32,
    ) -> Result<u64, Error> {
        let id = &record.metadata.id;
        let failed = |error: symdex::Error| Error::Index { path: self.location(id).into(), error };
        let mut parts = write::split(index);
        let mut stored = 0;
        loop {
            let batch: Result<Vec<_>, _> = parts.by_ref().take(VALUES_PER_BATCH).collect();
            let batch = batch.map_err(failed)?;
            if batch.is_empty() {
                return Ok(stored);
            }
            let values = compress(record, &batch, level).map_err(|error| {
                self.error(id, "write", Failure::lasting(format!("cannot compress a value: {error}")))
            })?;
            stored += self.upload(record, values)?;
        }
    }

    /// Copies the values of `source`, an image of the store `from`, as those of `record`. Returns the bytes that they
    /// take.
    pub(super) fn upload_copies(&self, from: &Self, source: &Record, record: &Record) -> Result<u64, Error> {
        let id = &source.metadata.id;
        let wanted: Vec<_> = source.numbers().map(|number| (source, number)).collect();
        let mut stored = 0;
        for wanted in wanted.chunks(VALUES_PER_BATCH) {
            let copy = |(&(_, number), value): (&(_, u64), Result<Option<Vec<u8>>, Failure>)| {
                let value = value.map_err(|failure| from.error(id, "write", failure))?;
                let is_intact = |value: &Vec<u8>| ValueName::new(source, number).frame(value).is_some();
                let value = value.filter(is_intact).ok_or_else(|| Error::DamagedObject {
                    location: from.location(id),
                    what: format!("value {number} was lost, or its checksum does not match"),
                });
                Ok((number, value?))
            };
            let copies = wanted.iter().zip(get(&from.client, wanted)).map(copy);
            stored += self.upload(record, copies.collect::<Result<_, Error>>()?)?;
        }
        Ok(stored)
    }

    /// Writes values with their numbers. Returns the bytes that they take.
    fn upload(&self, record: &Record, values: Vec<(u64, Vec<u8>)>) -> Result<u64, Error> {
        let stored = values.iter().map(|(_, value)| value.len() as u64).sum();
        let set = |(number, value)| {
            let mut command = command("SET", &value_key(&record.metadata.id, record.generation, number));
            command.arg::<Vec<u8>>(value).arg("PX").arg(milliseconds(UPLOAD_TTL));
            command
        };
        let replies = self.client.send(values.into_iter().map(set).collect());
        let written = replies.into_iter().try_for_each(|reply| reply.map(|_| ()));
        written.map_err(|failure| self.error(&record.metadata.id, "write", failure))?;
        Ok(stored)
    }
}

/// Compresses the parts of an index, on all processors.
fn compress(record: &Record, parts: &[write::Value], level: i32) -> std::io::Result<Vec<(u64, Vec<u8>)>> {
    let compress_one = |part: &write::Value| {
        Ok((part.number, ValueName::new(record, part.number).compress(&part.bytes, level)?))
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = parts.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let compress_share = |share| {
            scope.spawn(move || {
                <[write::Value]>::iter(share).map(compress_one).collect::<std::io::Result<Vec<_>>>()
            })
        };
        let shares: Vec<_> = parts.chunks(share).map(compress_share).collect();
        let join = |share: std::thread::ScopedJoinHandle<'_, _>| {
            share.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread has panicked")))
        };
        let shares: Vec<_> = shares.into_iter().map(join).collect::<std::io::Result<_>>()?;
        Ok(shares.into_iter().flatten().collect())
    })
}
