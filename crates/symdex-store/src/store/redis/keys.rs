//! The keys of an image in Redis.
//!
//! | key | value |
//! |---|---|
//! | `symdex/1/{<id>}/metadata` | [`Record`](super::record::Record) |
//! | `symdex/1/{<id>}/<generation>/<number>` | [a part of the index](super::value), with the number of a `put` |
//! | `symdex/1/{<start>}/ids` | the ids of more than 16 bytes that begin with these 16, as a set |
//!
//! The `1` is the version of this layout. The braces keep all keys of an image in one slot of a cluster. Of an id of
//! more than 16 bytes, only the first 16 are between them: `symdex/1/{<start>}<rest>/metadata`. So the set is in the
//! same slot, and [a script](super::change) changes it in one step with the image.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use symdex::ImageId;

/// Matches the keys of the metadata of all images.
pub(super) const METADATA_PATTERN: &str = "symdex/1/{*}*/metadata";

/// Tells the values of one `put` from those of another one. The metadata names the generation that readers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(pub(super) u64);

impl Generation {
    /// A new random generation.
    pub(super) fn new() -> Self {
        // The keys of the hasher are random in each process, and different each time.
        Self(RandomState::new().hash_one(std::process::id()))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The bytes of an id that decide its slot, and that reports state of an ELF image at least.
pub(super) const START: usize = 16;

/// What all keys of `id` begin with.
fn prefix(id: &ImageId) -> String {
    let digits = id.to_string();
    let (start, rest) =
        if id.as_bytes().len() > START { digits.split_at(2 * START) } else { (digits.as_str(), "") };
    format!("symdex/1/{{{start}}}{rest}")
}

/// The key of the metadata of `id`.
pub(super) fn metadata_key(id: &ImageId) -> String {
    format!("{}/metadata", prefix(id))
}

/// The key of the set of ids with the first [`START`] bytes of `id`.
pub(super) fn ids_key(id: &ImageId) -> String {
    let digits = id.to_string();
    format!("symdex/1/{{{}}}/ids", digits.get(..2 * START).unwrap_or(&digits))
}

/// The member that `id` is in the set of [`ids_key`]. Empty if it is found by its first [`START`] bytes anyway.
pub(super) fn member(id: &ImageId) -> String {
    if id.as_bytes().len() > START { id.to_string() } else { String::new() }
}

/// The key of a value of `id`.
pub(super) fn value_key(id: &ImageId, generation: Generation, number: u64) -> String {
    format!("{}/{generation}/{number}", prefix(id))
}

/// The image whose metadata has this key; `None` if no metadata has it.
pub(super) fn id_of_metadata_key(key: &[u8]) -> Option<ImageId> {
    let prefix = std::str::from_utf8(key).ok()?.strip_suffix("/metadata")?;
    let id = prefix.strip_prefix("symdex/1/{")?.replacen('}', "", 1).parse().ok()?;
    (metadata_key(&id).as_bytes() == key).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_image_in_braces() {
        let id: ImageId = "0c37c502aba03641a08f84c794684f36".parse().expect("an id");
        let key = metadata_key(&id);
        assert_eq!(key, "symdex/1/{0c37c502aba03641a08f84c794684f36}/metadata");
        assert_eq!(id_of_metadata_key(key.as_bytes()), Some(id.clone()));
        let value = value_key(&id, Generation(0xab), 7);
        assert_eq!(value, "symdex/1/{0c37c502aba03641a08f84c794684f36}/00000000000000ab/7");
        let long: ImageId = "0c37c502aba03641a08f84c794684f36deadbeef".parse().expect("an id");
        let key = metadata_key(&long);
        assert_eq!(key, "symdex/1/{0c37c502aba03641a08f84c794684f36}deadbeef/metadata");
        assert_eq!(id_of_metadata_key(key.as_bytes()), Some(long.clone()));
        let ids = "symdex/1/{0c37c502aba03641a08f84c794684f36}/ids";
        assert_eq!((ids_key(&id).as_str(), ids_key(&long).as_str()), (ids, ids));
        assert_eq!((member(&id).as_str(), member(&long)), ("", long.to_string()));
        for other in [key.replace('}', ""), key.replace("}dead", "dead}"), ids.to_owned()] {
            assert_eq!(id_of_metadata_key(other.as_bytes()), None, "{other}");
        }
        for other in ["symdex/1/{}/metadata", "symdex/1/{0C37}/metadata", value.as_str(), "x"] {
            assert_eq!(id_of_metadata_key(other.as_bytes()), None, "{other}");
        }
        assert_ne!(Generation::new(), Generation::new());
    }
}
