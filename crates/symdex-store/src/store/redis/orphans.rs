//! What readers cannot find: values that no metadata names, and metadata whose values are all gone.
//!
//! A server that evicts keys makes both. Values of a put that is not finished have no metadata, either; they expire
//! within [`UPLOAD_TTL`], and are not counted.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use symdex::ImageId;

use super::client::Client;
use super::failure::Failure;
use super::found::{command, get_mark};
use super::keys::{Generation, VALUES_PATTERN, value_key, value_of_key};
use super::list::scan;
use super::put::UPLOAD_TTL;
use super::record::{Record, mark, milliseconds};
use super::scripts;

/// How many values one script removes.
const VALUES_PER_STEP: usize = 1024;

/// Values of one image that no metadata names.
pub(super) struct OrphanedValues {
    pub(super) id: ImageId,
    pub(super) generation: Generation,
    pub(super) numbers: Vec<u64>,
    /// The time since the last access to one of them. `None` if the server does not record it.
    pub(super) unused: Option<Duration>,
}

/// All values that no metadata names.
pub(super) fn find(client: &Arc<Client>) -> Result<Vec<OrphanedValues>, Failure> {
    let mut orphans: BTreeMap<(ImageId, Generation), Vec<u64>> = BTreeMap::new();
    scan(client, VALUES_PATTERN, &mut |keys| {
        let mut of_image: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for (id, generation, number) in keys.iter().filter_map(|key| value_of_key(key)) {
            of_image.entry((id, generation)).or_default().push(number);
        }
        let marks = client.send(of_image.keys().map(|(id, _)| get_mark(id)).collect())?;
        for ((image, numbers), found) in of_image.into_iter().zip(marks) {
            let Value::BulkString(found) = found? else { return Err(Failure::unexpected_reply()) };
            if found != mark(image.1) {
                orphans.entry(image).or_default().extend(numbers);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut found = Vec::new();
    for ((id, generation), mut numbers) in orphans {
        numbers.sort_unstable();
        numbers.dedup();
        found.extend(visible_once(client, id, generation, &numbers)?);
    }
    Ok(found)
}

/// Those of `numbers` that stay longer than values of a put that is not finished; `None` if there are none.
fn visible_once(
    client: &Arc<Client>,
    id: ImageId,
    generation: Generation,
    numbers: &[u64],
) -> Result<Option<OrphanedValues>, Failure> {
    let commands = numbers.iter().flat_map(|number| {
        let key = value_key(&id, generation, *number);
        let mut idle = redis::cmd("OBJECT");
        idle.arg("IDLETIME").arg(&key);
        [command("PTTL", &key), idle]
    });
    let replies = client.send(commands.collect())?;
    let (pairs, _) = replies.as_chunks::<2>();
    let upload = i64::try_from(milliseconds(UPLOAD_TTL)).unwrap_or(i64::MAX);
    let mut found = OrphanedValues { id, generation, numbers: Vec::new(), unused: Some(Duration::MAX) };
    for (number, [ttl, idle]) in numbers.iter().zip(pairs) {
        match ttl {
            Ok(Value::Int(ttl)) if *ttl == -1 || *ttl > upload => found.numbers.push(*number),
            Ok(Value::Int(_)) => continue,
            Ok(_) => return Err(Failure::unexpected_reply()),
            Err(failure) => return Err(failure.clone()),
        }
        // Servers that evict by frequency do not record the last access.
        let idle = match idle {
            Ok(Value::Int(seconds)) => u64::try_from(*seconds).ok().map(Duration::from_secs),
            _ => None,
        };
        found.unused = found.unused.zip(idle).map(|(least, idle)| least.min(idle));
    }
    Ok((!found.numbers.is_empty()).then_some(found))
}

impl OrphanedValues {
    /// Removes the values, unless a put has made them visible since. Returns how many were removed.
    pub(super) fn remove(&self, client: &Arc<Client>) -> Result<u64, Failure> {
        let mut removed = 0;
        for numbers in self.numbers.chunks(VALUES_PER_STEP) {
            let command =
                scripts::remove_orphans(&self.id, self.generation, numbers, milliseconds(UPLOAD_TTL));
            match client.send_one(command)? {
                Value::Int(count) => removed += u64::try_from(count).unwrap_or(0),
                _ => return Err(Failure::unexpected_reply()),
            }
        }
        Ok(removed)
    }
}

/// Which of `records` have values but none of them is there.
pub(super) fn without_values(client: &Arc<Client>, records: &[Record]) -> Result<Vec<bool>, Failure> {
    let exists = |record: &Record| {
        let mut command = redis::cmd("EXISTS");
        command.arg(record.value_keys().collect::<Vec<_>>());
        command
    };
    let with_values: Vec<_> = records.iter().filter(|record| record.value_len() > 0).collect();
    let mut replies = client.send(with_values.iter().map(|record| exists(record)).collect())?.into_iter();
    let is_empty = |record: &Record| match record.value_len() {
        0 => Ok(false),
        _ => match replies.next() {
            Some(Ok(Value::Int(count))) => Ok(count == 0),
            Some(Err(failure)) => Err(failure),
            _ => Err(Failure::unexpected_reply()),
        },
    };
    records.iter().map(is_empty).collect()
}
