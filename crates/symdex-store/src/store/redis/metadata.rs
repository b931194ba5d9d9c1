//! Reads the metadata of images.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use redis::Cmd;
use symdex::ImageId;

use super::change::Version;
use super::client::{Client, Reply, typed};
use super::failure::Failure;
use super::keys::metadata_key;
use super::record::{BadRecord, Record};
use crate::store::{StoreEntry, StoredLayout};

/// The metadata of an image, as the store has it.
#[derive(Debug)]
pub(super) struct StoredMetadata {
    pub(super) bytes: Vec<u8>,
    pub(super) record: Result<Record, BadRecord>,
    /// The milliseconds until the metadata expires. `None` if it does not.
    pub(super) ttl: Option<u64>,
}

/// Reads the metadata of `ids` in one round trip. `None` stands for an image that is not there.
pub(super) fn find(client: &Arc<Client>, ids: &[ImageId]) -> Vec<Result<Option<StoredMetadata>, Failure>> {
    let commands = |id| {
        let key = metadata_key(id);
        [command("GET", &key), command("PTTL", &key)]
    };
    let mut replies = client.send(ids.iter().flat_map(commands).collect()).into_iter();
    let mut next = || replies.next().unwrap_or_else(|| Err(Failure::unexpected_reply()));
    ids.iter().map(|id| read(id, next(), next())).collect()
}

/// Reads the metadata of one image.
pub(super) fn find_one(client: &Arc<Client>, id: &ImageId) -> Result<Option<StoredMetadata>, Failure> {
    find(client, std::slice::from_ref(id)).pop().unwrap_or(Ok(None))
}

pub(super) fn command(name: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    command
}

fn read(id: &ImageId, bytes: Reply, ttl: Reply) -> Result<Option<StoredMetadata>, Failure> {
    let (bytes, ttl) = (typed::<Option<Vec<u8>>>(bytes)?, typed::<i64>(ttl)?);
    // It may have expired between the two commands.
    let found = bytes.filter(|_| ttl != -2).map(|bytes| StoredMetadata {
        record: Record::decode(id, &bytes),
        bytes,
        ttl: u64::try_from(ttl).ok(),
    });
    Ok(found)
}

impl StoredMetadata {
    pub(super) fn version(&self) -> Version<'_> {
        (&self.bytes, self.record.as_ref().ok())
    }

    /// What listings say of the image.
    pub(super) fn entry(&self, id: ImageId, location: String) -> StoreEntry {
        let mut entry = StoreEntry::new(id, location, 0, StoredLayout::Values);
        if let Ok(record) = &self.record {
            let now = SystemTime::now();
            let milliseconds = Duration::from_millis;
            entry.image_name = Some(record.metadata.image_name.clone());
            entry.grade = Some(record.metadata.grade());
            entry.stored_size = record.stored_size;
            entry.index_size = Some(record.index_size);
            entry.digest = Some(record.digest);
            entry.provenance.clone_from(&record.provenance);
            entry.written = SystemTime::UNIX_EPOCH.checked_add(milliseconds(record.written));
            if let Some(ttl) = self.ttl {
                entry.expires = now.checked_add(milliseconds(ttl));
                entry.last_use = now.checked_sub(milliseconds(record.ttl.saturating_sub(ttl)));
            }
        }
        entry
    }
}
