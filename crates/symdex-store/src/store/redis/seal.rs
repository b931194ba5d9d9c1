//! Bytes with a checksum that ties them to what they are.
//!
//! Eight bytes are the XXH3-64, little-endian, of a name and of the content. The content follows.

use xxhash_rust::xxh3::Xxh3;

/// `content` with its checksum.
pub(super) fn seal(name: &str, content: &[u8]) -> Vec<u8> {
    [&checksum(name, content), content].concat()
}

/// The content of `sealed`; `None` if it is damaged or has another name.
pub(super) fn unseal<'s>(name: &str, sealed: &'s [u8]) -> Option<&'s [u8]> {
    let (stated, content) = sealed.split_first_chunk()?;
    (checksum(name, content) == *stated).then_some(content)
}

fn checksum(name: &str, content: &[u8]) -> [u8; 8] {
    let mut hash = Xxh3::new();
    hash.update(name.as_bytes());
    hash.update(content);
    hash.digest().to_le_bytes()
}
