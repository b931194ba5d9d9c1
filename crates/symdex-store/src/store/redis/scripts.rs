//! The steps that change several keys of an image at once. Each is a script, which Redis runs as one step.
//!
//! Scripts are sent with their text, so that a restarted server needs no preparation. The first key is that of the
//! metadata, the others are those of the values. The first 16 bytes of the metadata are its mark.

use redis::Cmd;

use super::keys::metadata_key;
use super::record::Record;

/// Replaces the metadata whose mark is `ARGV[1]`, or no metadata if it is empty, by `ARGV[2]`, if all values exist.
/// `ARGV[3]`, `ARGV[4]`: milliseconds until the metadata and the values expire. Returns 1, or 0 if the metadata has
/// another mark, or the negative number of missing values. May be repeated.
const SWITCH: &str = "\
local mark = redis.call('GETRANGE', KEYS[1], 0, 15)
if mark == string.sub(ARGV[2], 1, 16) then return 1 end
if mark ~= ARGV[1] then return 0 end
local missing = 0
for i = 2, #KEYS do missing = missing + 1 - redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
if missing > 0 then return -missing end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
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

/// `script` with the keys of `record`.
fn eval(script: &str, record: &Record) -> Cmd {
    let mut command = redis::cmd("EVAL");
    let values: Vec<String> = record.value_keys().collect();
    command.arg(script).arg(values.len() + 1).arg(metadata_key(&record.metadata.id)).arg(values);
    command
}

/// Makes `new` visible instead of the metadata with the mark `old`, which is empty if there was none.
pub(super) fn switch(old: &[u8], new: &Record) -> Cmd {
    let mut command = eval(SWITCH, new);
    command.arg(old).arg(new.encode()).arg(new.ttl).arg(new.value_ttl());
    command
}

/// Puts off the expiry of `record`.
pub(super) fn renew(record: &Record) -> Cmd {
    let mut command = eval(RENEW, record);
    command.arg(record.mark()).arg(record.ttl).arg(record.value_ttl()).arg(record.renew_below());
    command
}

/// Removes `record` if it would expire in `below` milliseconds or less.
pub(super) fn remove(record: &Record, below: u64) -> Cmd {
    let mut command = eval(REMOVE, record);
    command.arg(record.mark()).arg(below);
    command
}

/// Removes metadata that cannot be read. Its mark is `mark`.
pub(super) fn remove_damaged(key: String, mark: &[u8]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(REMOVE).arg(1).arg(key).arg(mark).arg(i64::MAX);
    command
}
