//! Reads the metadata of images.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use redis::{Cmd, Value};
use symdex::ImageId;

use super::client::{Client, Reply};
use super::failure::Failure;
use super::keys::metadata_key;
use super::record::{BadRecord, MARK_SIZE, Record};
use crate::store::{StoreEntry, StoredLayout};

/// The metadata of an image, as the store has it.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// The metadata cannot be read. The bytes are its first ones.
    Bad(Vec<u8>, BadRecord),
    /// The metadata, and the milliseconds until it expires. `None` if it does not.
    Record(Box<Record>, Option<u64>),
}

/// Reads the metadata of `ids` in one round trip.
pub(super) fn find(client: &Arc<Client>, ids: &[ImageId]) -> Vec<Result<Found, Failure>> {
    let commands = |id| {
        let key = metadata_key(id);
        [command("GET", &key), command("PTTL", &key)]
    };
    match client.send(ids.iter().flat_map(commands).collect()) {
        Ok(replies) => {
            let mut replies = replies.into_iter();
            let mut next = || replies.next().unwrap_or_else(|| Err(Failure::unexpected_reply()));
            ids.iter().map(|id| read(id, next(), next())).collect()
        }
        Err(failure) => ids.iter().map(|_| Err(failure.clone())).collect(),
    }
}

/// Reads the metadata of one image.
pub(super) fn find_one(client: &Arc<Client>, id: &ImageId) -> Result<Found, Failure> {
    find(client, std::slice::from_ref(id)).pop().unwrap_or(Ok(Found::Nothing))
}

/// The command that reads the first bytes of the metadata of `id`, which [`Record::mark`] compares.
pub(super) fn get_mark(id: &ImageId) -> Cmd {
    let mut command = command("GETRANGE", &metadata_key(id));
    command.arg(0).arg(MARK_SIZE - 1);
    command
}

pub(super) fn command(name: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    command
}

fn read(id: &ImageId, record: Reply, ttl: Reply) -> Result<Found, Failure> {
    let bytes = match record? {
        Value::Nil => return Ok(Found::Nothing),
        Value::BulkString(bytes) => bytes,
        _ => return Err(Failure::unexpected_reply()),
    };
    let ttl = match ttl? {
        // It expired between the two commands.
        Value::Int(-2) => return Ok(Found::Nothing),
        Value::Int(ttl) => u64::try_from(ttl).ok(),
        _ => return Err(Failure::unexpected_reply()),
    };
    Ok(match Record::decode(id, &bytes) {
        Ok(record) => Found::Record(Box::new(record), ttl),
        Err(bad) => Found::Bad(bytes.into_iter().take(MARK_SIZE).collect(), bad),
    })
}

impl Found {
    /// What listings say of the image; `None` if there is nothing.
    pub(super) fn entry(&self, id: ImageId, location: String) -> Option<StoreEntry> {
        let mut entry = StoreEntry::new(id, location, 0, StoredLayout::Values);
        match self {
            Self::Nothing => return None,
            Self::Bad(..) => {}
            Self::Record(record, ttl) => {
                let now = SystemTime::now();
                let milliseconds = Duration::from_millis;
                entry.image_name = Some(record.metadata.image_name.clone());
                entry.grade = Some(record.metadata.grade());
                entry.stored_size = record.stored_size;
                entry.index_size = Some(record.index_size);
                entry.digest = Some(record.digest);
                entry.provenance.clone_from(&record.provenance);
                entry.written = SystemTime::UNIX_EPOCH.checked_add(milliseconds(record.written));
                if let Some(ttl) = *ttl {
                    entry.expires = now.checked_add(milliseconds(ttl));
                    entry.last_use = now.checked_sub(milliseconds(record.ttl.saturating_sub(ttl)));
                }
            }
        }
        Some(entry)
    }
}
