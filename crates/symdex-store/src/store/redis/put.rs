//! Puts indexes into Redis.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use symdex::{Index, write};

use super::client::Client;
use super::failure::Failure;
use super::found::{Found, find_one};
use super::keys::value_key;
use super::record::{BadRecord, MAX_VALUES, Record, milliseconds};
use super::renewal::Renewals;
use super::value::ValueName;
use super::{scripts, values};
use crate::error::Error;
use crate::provenance::{PutOptions, replaces};
use crate::publish::PublishOutcome;

/// Values that are not visible yet expire after this time. Those of a killed process are gone then.
const UPLOAD_TTL: Duration = Duration::from_secs(60 * 60);

/// Values are written in batches of this number or of this many bytes.
const VALUES_PER_BATCH: usize = 64;
const BYTES_PER_BATCH: usize = 4 << 20;

/// How often a `put` starts again because another one was faster. Each time the index there is better than before.
const MAX_TURNS: u32 = 1000;

/// Puts images into one store.
pub(super) struct Putter<'c> {
    pub(super) client: &'c Arc<Client>,
    pub(super) location: String,
}

impl Putter<'_> {
    /// Makes `new` visible if the rule prefers it. `upload` writes its values, and returns the bytes that they take. It
    /// is called at most once.
    pub(super) fn put(
        &self,
        mut new: Record,
        options: &PutOptions,
        upload: impl FnOnce(&Record) -> Result<u64, Error>,
    ) -> Result<PublishOutcome, Error> {
        if new.value_len() > MAX_VALUES as u64 {
            let values = new.value_len();
            let reason =
                format!("the index needs {values} values; Redis keeps at most {MAX_VALUES} of an image");
            return Err(self.error(Failure::lasting(reason)));
        }
        let mut upload = Some(upload);
        for _ in 0..MAX_TURNS {
            let id = &new.metadata.id;
            let found = find_one(self.client, id).map_err(|failure| self.error(failure))?;
            let outcome = self.compare(&new, &found, options)?;
            if outcome.keeps_existing() {
                if let Found::Record(record, ttl) = &found {
                    Renewals::renew_now(self.client, record, *ttl).map_err(|failure| self.error(failure))?;
                }
                if upload.is_none() {
                    self.discard(&new);
                }
                return Ok(outcome);
            }
            if let Some(upload) = upload.take() {
                // A server without free memory needs the space of what was written before it was full.
                new.stored_size = upload(&new).inspect_err(|_| self.discard(&new))?;
            }
            if self.switch(&found, &new)? {
                return Ok(outcome);
            }
        }
        Err(self.error(Failure::transient("other processes put other indexes of this image all the time")))
    }

    /// Compares `new` with the index that was found.
    fn compare(&self, new: &Record, found: &Found, options: &PutOptions) -> Result<PublishOutcome, Error> {
        let existing = match found {
            Found::Nothing => return Ok(PublishOutcome::Written),
            Found::Bad(_, BadRecord::Damaged(damage)) => {
                return Ok(PublishOutcome::Repaired { damage: damage.clone() });
            }
            Found::Bad(_, BadRecord::Unsupported(error)) => {
                let reason = format!("the index there is not replaced: {error}");
                return Err(self.error(Failure::lasting(reason)));
            }
            Found::Record(existing, _) => existing,
        };
        let is_same = existing.digest == new.digest;
        if !is_same && replaces(options, &new.rank(), &existing.rank(), existing.provenance.as_ref()) {
            return Ok(PublishOutcome::of_different(&new.metadata, &existing.metadata, true));
        }
        // Otherwise a damaged index could win by functions that it cannot answer.
        let damage = values::damage(self.client, existing).map_err(|failure| self.error(failure))?;
        Ok(match damage {
            Some(damage) => PublishOutcome::Repaired { damage },
            None if is_same => PublishOutcome::Unchanged,
            None => PublishOutcome::of_different(&new.metadata, &existing.metadata, false),
        })
    }

    /// Makes `new` visible in one step, unless the metadata has changed since it was `found`.
    fn switch(&self, found: &Found, new: &Record) -> Result<bool, Error> {
        let (mark, old) = match found {
            Found::Nothing => (Vec::new(), None),
            Found::Bad(mark, _) => (mark.clone(), None),
            Found::Record(record, _) => (record.mark(), Some(&**record)),
        };
        let command = scripts::switch(&mark, old, new);
        let reply = self.client.send_one(command).map_err(|failure| self.error(failure))?;
        match reply {
            Value::Int(1) => Ok(true),
            Value::Int(0) => Ok(false),
            Value::Int(missing) => {
                self.discard(new);
                let reason = format!(
                    "the server has evicted {} of {} values while they were written; raise its maxmemory",
                    missing.unsigned_abs(),
                    new.value_len()
                );
                Err(self.error(Failure { is_unavailable: true, ..Failure::lasting(reason) }))
            }
            _ => Err(self.error(Failure::unexpected_reply())),
        }
    }

    /// Removes the values of `record`, which no metadata names. If this fails, they expire.
    fn discard(&self, record: &Record) {
        let keys: Vec<_> = record.value_keys().collect();
        for keys in keys.chunks(1024) {
            let mut command = redis::cmd("UNLINK");
            command.arg(keys);
            _ = self.client.send_one(command);
        }
    }

    /// Writes the values of `index`, whose record is `record`. Returns the bytes that they take.
    pub(super) fn upload_split(
        &self,
        index: &Index<&[u8]>,
        record: &Record,
        level: i32,
    ) -> Result<u64, Error> {
        let failed = |error: symdex::Error| Error::Index { path: self.location.clone().into(), error };
        let mut parts = write::split(index);
        let mut stored = 0;
        loop {
            let batch: Result<Vec<_>, _> = parts.by_ref().take(VALUES_PER_BATCH).collect();
            let batch = batch.map_err(failed)?;
            if batch.is_empty() {
                return Ok(stored);
            }
            let values = compress(record, &batch, level)
                .map_err(|error| self.error(Failure::lasting(format!("cannot compress a value: {error}"))))?;
            stored += self.upload(record, values)?;
        }
    }

    /// Copies the values of `source`, an image of the store of `from`, as those of `record`. Returns the bytes that
    /// they take.
    pub(super) fn upload_copies(
        &self,
        from: &Putter<'_>,
        source: &Record,
        record: &Record,
    ) -> Result<u64, Error> {
        let numbers: Vec<u64> = source.numbers().collect();
        let mut stored = 0;
        for numbers in numbers.chunks(VALUES_PER_BATCH) {
            let fetched = values::fetch_raw(from.client, &[(source, numbers)]).pop();
            let fetched = fetched.unwrap_or_else(|| Ok(Vec::new())).map_err(|failure| from.error(failure))?;
            let copies = numbers.iter().zip(fetched).map(|(number, value)| {
                let name = |record: &Record| ValueName {
                    id: &source.metadata.id,
                    generation: record.generation,
                    number: *number,
                };
                let frame = value.as_deref().and_then(|value| name(source).frame(value));
                let damage = || Error::DamagedObject {
                    location: from.location.clone(),
                    what: format!("value {number} was lost, or its checksum does not match"),
                };
                Ok((*number, name(record).seal(frame.ok_or_else(damage)?)))
            });
            stored += self.upload(record, copies.collect::<Result<_, Error>>()?)?;
        }
        Ok(stored)
    }

    /// Writes values with their numbers. Returns the bytes that they take.
    fn upload(&self, record: &Record, values: Vec<(u64, Vec<u8>)>) -> Result<u64, Error> {
        let stored = values.iter().map(|(_, value)| value.len() as u64).sum();
        let (mut commands, mut size) = (Vec::new(), 0);
        let send = |commands: &mut Vec<_>| {
            let replies = self.client.send(std::mem::take(commands))?;
            replies.into_iter().try_for_each(|reply| reply.map(|_| ()))
        };
        for (number, value) in values {
            if size + value.len() > BYTES_PER_BATCH {
                send(&mut commands).map_err(|failure| self.error(failure))?;
                size = 0;
            }
            size += value.len();
            let mut command = redis::cmd("SET");
            command.arg(value_key(&record.metadata.id, record.generation, number)).arg(value);
            command.arg("PX").arg(milliseconds(UPLOAD_TTL));
            commands.push(command);
        }
        send(&mut commands).map_err(|failure| self.error(failure))?;
        Ok(stored)
    }

    fn error(&self, failure: Failure) -> Error {
        failure.at(&self.location, "write")
    }
}

/// Compresses the parts of an index, on all processors.
fn compress(record: &Record, parts: &[write::Value], level: i32) -> std::io::Result<Vec<(u64, Vec<u8>)>> {
    let compress_one = |part: &write::Value| {
        let name = ValueName { id: &record.metadata.id, generation: record.generation, number: part.number };
        Ok((part.number, name.compress(&part.bytes, level)?))
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = parts.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let shares: Vec<_> = parts
            .chunks(share)
            .map(|share| {
                scope.spawn(move || share.iter().map(compress_one).collect::<std::io::Result<Vec<_>>>())
            })
            .collect();
        let join = |share: std::thread::ScopedJoinHandle<'_, _>| {
            share.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread has panicked")))
        };
        let shares: Vec<_> = shares.into_iter().map(join).collect::<std::io::Result<_>>()?;
        Ok(shares.into_iter().flatten().collect())
    })
}
