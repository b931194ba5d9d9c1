//! The steps that change several keys of an image at once. Each is a script, which Redis runs as one step.
//!
//! Scripts are sent with their text, so that a restarted server needs no preparation. The first key is that of the
//! metadata, the others are those of the values. The first 16 bytes of the metadata are its mark.

use std::time::Duration;

use redis::Cmd;

use super::keys::metadata_key;
use super::record::{Record, milliseconds};

/// Replaces the metadata whose mark is `ARGV[1]`, or no metadata if it is empty, by `ARGV[2]`, if all new values exist.
/// `ARGV[3]`, `ARGV[4]`: milliseconds until the metadata and the new values expire. The first `ARGV[5]` values are the
/// new ones. The others are those of the index that is replaced; they expire in `ARGV[6]` milliseconds. Returns 1, or 0
/// if the metadata has another mark, or the negative number of missing values. May be repeated.
const SWITCH: &str = "\
local mark = redis.call('GETRANGE', KEYS[1], 0, 15)
if mark == string.sub(ARGV[2], 1, 16) then return 1 end
if mark ~= ARGV[1] then return 0 end
local missing, last = 0, 1 + tonumber(ARGV[5])
for i = 2, last do missing = missing + 1 - redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
if missing > 0 then return -missing end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
for i = last + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[6]) end
return 1";

/// Puts off the expiry of the image whose metadata has the mark `ARGV[1]`, if it would expire in less than `ARGV[4]`
/// milliseconds. `ARGV[2]`, `ARGV[3]`: milliseconds until the metadata and the values expire. Returns 1 if the expiry
/// was put off.
const RENEW: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
for i = 2, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1";

/// Removes the image whose metadata has the mark `ARGV[1]`, if it would expire in `ARGV[2]` milliseconds or less.
/// Returns 1 if it was removed.
const REMOVE: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then return 0 end
for i = 1, #KEYS do redis.call('UNLINK', KEYS[i]) end
return 1";

/// The values of an index that was replaced stay for this time, for readers that have its metadata.
const REPLACED_TTL: Duration = Duration::from_secs(60);

/// `script` with the key of the metadata and the keys `values` of `record`.
fn eval(script: &str, record: &Record, values: &[String]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(values.len() + 1).arg(metadata_key(&record.metadata.id)).arg(values);
    command
}

/// Makes `new` visible instead of the metadata with the mark `mark`, which is empty if there was none. `old` is what
/// could be read of that metadata.
pub(super) fn switch(mark: &[u8], old: Option<&Record>, new: &Record) -> Cmd {
    let mut values: Vec<_> = new.value_keys().collect();
    let new_len = values.len();
    values.extend(old.into_iter().flat_map(Record::value_keys));
    let mut command = eval(SWITCH, new, &values);
    command.arg(mark).arg(new.encode()).arg(new.ttl).arg(new.value_ttl());
    command.arg(new_len).arg(milliseconds(REPLACED_TTL));
    command
}

/// Puts off the expiry of `record`.
pub(super) fn renew(record: &Record) -> Cmd {
    let mut command = eval(RENEW, record, &record.value_keys().collect::<Vec<_>>());
    command.arg(record.mark()).arg(record.ttl).arg(record.value_ttl()).arg(record.renew_below());
    command
}

/// Removes `record` if it would expire in `below` milliseconds or less.
pub(super) fn remove(record: &Record, below: u64) -> Cmd {
    let mut command = eval(REMOVE, record, &record.value_keys().collect::<Vec<_>>());
    command.arg(record.mark()).arg(below);
    command
}

/// Removes metadata that cannot be read. Its mark is `mark`.
pub(super) fn remove_damaged(key: String, mark: &[u8]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(REMOVE).arg(1).arg(key).arg(mark).arg(i64::MAX);
    command
}
