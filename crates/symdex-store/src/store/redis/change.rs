//! Replaces, renews or removes the metadata of an image, with the values that depend on it, in one step.
//!
//! The step is a script: a transaction (`WATCH`) needs a connection of its own, and `SET` with `IFEQ` needs Redis 8.4.
//! It is sent with its text, so that a restarted server needs no preparation.

use std::time::Duration;

use redis::Cmd;
use symdex::ImageId;

use super::keys::{ids_key, member, metadata_key};
use super::record::{Record, milliseconds};

/// Replaces the metadata `ARGV[1]` by `ARGV[2]`; an empty argument stands for none. Does nothing if the metadata
/// expires in more than `ARGV[3]` milliseconds. `KEYS[2]` is the set of ids, `ARGV[8]` the id's member in it, or empty.
/// The next `ARGV[4]` keys are the values that the new metadata names, the others are values to drop. `ARGV[5]`,
/// `ARGV[6]`, `ARGV[7]`: milliseconds until the metadata, its values and the values to drop expire. Returns 1; 0 if
/// nothing was changed; the negative number of missing values, in which case new metadata is not written. May be
/// repeated.
const CHANGE: &str = "\
local there = redis.call('GET', KEYS[1]) or ''
if there ~= ARGV[1] then return there ~= '' and there == ARGV[2] and 1 or 0 end
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[3]) then return 0 end
local last, missing = 2 + tonumber(ARGV[4]), 0
for i = 3, last do missing = missing + 1 - redis.call('PEXPIRE', KEYS[i], ARGV[6]) end
if ARGV[1] == ARGV[2] then redis.call('PEXPIRE', KEYS[1], ARGV[5])
elseif missing > 0 then return -missing
elseif ARGV[2] == '' then redis.call('UNLINK', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[5]) end
for i = last + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[7]) end
if ARGV[8] ~= '' and ARGV[2] == '' then redis.call('SREM', KEYS[2], ARGV[8])
elseif ARGV[8] ~= '' then
  redis.call('SADD', KEYS[2], ARGV[8])
  redis.call('PEXPIRE', KEYS[2], ARGV[6], 'NX')
  redis.call('PEXPIRE', KEYS[2], ARGV[6], 'GT')
end
return 1";

/// The values of an index that was replaced stay for this time, for readers that have its metadata.
const REPLACED_TTL: Duration = Duration::from_secs(60);

/// Metadata of an image as Redis has it, and what it states; `None` if that cannot be read.
pub(super) type Version<'r> = (&'r [u8], Option<&'r Record>);

/// The command that replaces `old` by `new`, if `old` is there and expires in `below` milliseconds or less. Values that
/// `new` does not name expire soon. Without `new`, the image is removed. If `new` is `old`, its expiry is put off.
pub(super) fn change(id: &ImageId, old: Version<'_>, new: Option<(&[u8], &Record)>, below: u64) -> Cmd {
    let keys = |record: &Record| record.value_keys().collect::<Vec<_>>();
    let (new_bytes, new) = new.unzip();
    let kept = new.map(keys).unwrap_or_default();
    let dropped = old.1.filter(|old| new.is_none_or(|new| new.generation != old.generation));
    let dropped = dropped.map(keys).unwrap_or_default();
    let (ttl, value_ttl) = new.map_or((0, 0), |new| (new.ttl, new.value_ttl()));
    let dropped_ttl = new.map_or(0, |_| milliseconds(REPLACED_TTL));
    let mut command = redis::cmd("EVAL");
    command.arg(CHANGE).arg(2 + kept.len() + dropped.len()).arg(metadata_key(id)).arg(ids_key(id));
    command.arg(&kept).arg(dropped).arg(old.0).arg(new_bytes.unwrap_or_default()).arg(below.min(FOREVER));
    command.arg(kept.len()).arg(ttl).arg(value_ttl).arg(dropped_ttl).arg(member(id));
    command
}

/// The command that puts off the expiry of `record`, whose bytes are `bytes`, if it is time to.
pub(super) fn renew(bytes: &[u8], record: &Record) -> Cmd {
    change(&record.metadata.id, (bytes, Some(record)), Some((bytes, record)), record.renew_below())
}

/// More milliseconds than any image lives.
pub(super) const FOREVER: u64 = u64::MAX >> 1;
