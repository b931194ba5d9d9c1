//! The steps that change several keys of an image at once. Each is a script, which Redis runs as one step.
//!
//! Scripts are sent with their text, so that a restarted server needs no preparation. The first key is that of the
//! metadata, the second that of the set of ids, the others are those of the values. The first 16 bytes of the metadata
//! are its mark. The first argument is the member that the id is in the set, and is empty if it is in none.

use std::time::Duration;

use redis::Cmd;
use symdex::ImageId;

use super::keys::{ids_key, member, metadata_key};
use super::record::{Record, milliseconds};

/// Replaces the metadata whose mark is `ARGV[2]`, or no metadata if it is empty, by `ARGV[3]`, if all new values exist.
/// `ARGV[4]`, `ARGV[5]`: milliseconds until the metadata and the new values expire. The first `ARGV[6]` values are the
/// new ones. The others are those of the index that is replaced; they expire in `ARGV[7]` milliseconds. Returns 1, or 0
/// if the metadata has another mark, or the negative number of missing values. May be repeated.
const SWITCH: &str = "\
local mark = redis.call('GETRANGE', KEYS[1], 0, 15)
if mark == string.sub(ARGV[3], 1, 16) then return 1 end
if mark ~= ARGV[2] then return 0 end
local missing, last = 0, 2 + tonumber(ARGV[6])
for i = 3, last do missing = missing + 1 - redis.call('PEXPIRE', KEYS[i], ARGV[5]) end
if missing > 0 then return -missing end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
for i = last + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[7]) end
if ARGV[1] ~= '' then
  redis.call('SADD', KEYS[2], ARGV[1])
  if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[5]) then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
end
return 1";

/// Puts off the expiry of the image whose metadata has the mark `ARGV[2]`, if it would expire in less than `ARGV[5]`
/// milliseconds. `ARGV[3]`, `ARGV[4]`: milliseconds until the metadata and the values expire. The set of ids stays as
/// long as the values. Returns 1 if the expiry was put off.
const RENEW: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[2] then return 0 end
if redis.call('PTTL', KEYS[1]) >= tonumber(ARGV[5]) then return 0 end
for i = 3, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
if ARGV[1] ~= '' then
  redis.call('SADD', KEYS[2], ARGV[1])
  if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1";

/// Removes the image whose metadata has the mark `ARGV[2]`, if it would expire in `ARGV[3]` milliseconds or less.
/// Returns 1 if it was removed.
const REMOVE: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[2] then return 0 end
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[3]) then return 0 end
redis.call('UNLINK', KEYS[1])
for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
if ARGV[1] ~= '' then redis.call('SREM', KEYS[2], ARGV[1]) end
return 1";

/// The values of an index that was replaced stay for this time, for readers that have its metadata.
const REPLACED_TTL: Duration = Duration::from_secs(60);

/// `script` with the keys of `id`, among them `values`, and the first argument.
fn eval(script: &str, id: &ImageId, values: &[String]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(values.len() + 2).arg(metadata_key(id)).arg(ids_key(id)).arg(values);
    command.arg(member(id));
    command
}

/// Makes `new` visible instead of the metadata with the mark `mark`, which is empty if there was none. `old` is what
/// could be read of that metadata.
pub(super) fn switch(mark: &[u8], old: Option<&Record>, new: &Record) -> Cmd {
    let mut values: Vec<_> = new.value_keys().collect();
    let new_len = values.len();
    values.extend(old.into_iter().flat_map(Record::value_keys));
    let mut command = eval(SWITCH, &new.metadata.id, &values);
    command.arg(mark).arg(new.encode()).arg(new.ttl).arg(new.value_ttl());
    command.arg(new_len).arg(milliseconds(REPLACED_TTL));
    command
}

/// Puts off the expiry of `record`.
pub(super) fn renew(record: &Record) -> Cmd {
    let mut command = eval(RENEW, &record.metadata.id, &record.value_keys().collect::<Vec<_>>());
    command.arg(record.mark()).arg(record.ttl).arg(record.value_ttl()).arg(record.renew_below());
    command
}

/// Removes `record` if it would expire in `below` milliseconds or less.
pub(super) fn remove(record: &Record, below: u64) -> Cmd {
    let mut command = eval(REMOVE, &record.metadata.id, &record.value_keys().collect::<Vec<_>>());
    command.arg(record.mark()).arg(below);
    command
}

/// Removes the metadata of `id`, which cannot be read. Its mark is `mark`.
pub(super) fn remove_damaged(id: &ImageId, mark: &[u8]) -> Cmd {
    let mut command = eval(REMOVE, id, &[]);
    command.arg(mark).arg(i64::MAX);
    command
}
