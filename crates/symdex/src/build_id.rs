//! Build ids as profiles state them.

use xxhash_rust::xxh3::xxh3_128;

use crate::image::ImageId;

/// Returns the id of the image whose build id is `text`: hexadecimal digits of the id itself, or Go's build id, as it
/// is or, as Parca writes it, as the hexadecimal digits of its text. `None` for other texts.
///
/// ```
/// use symdex::build_id;
///
/// assert_eq!(build_id::parse("0123abcd").map(|id| id.to_string()).as_deref(), Some("0123abcd"));
/// assert_eq!(build_id::parse("a/b/c/d"), build_id::of_go(b"a/b/c/d"));
/// assert_eq!(build_id::parse("612f622f632f64"), build_id::of_go(b"a/b/c/d"));
/// ```
#[must_use]
pub fn parse(text: &str) -> Option<ImageId> {
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let of_digits = || text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
    let of_go = || of_go(text.as_bytes()).or_else(|| of_go(&of_digits()?));
    of_go().or_else(|| text.parse().ok())
}

/// Returns the id of a Go program without another id, whose build id is `build_id`: a hash of it. `None` if it does not
/// have the four parts of Go's: others, such as Bazel's `redacted`, are those of many programs.
#[must_use]
pub fn of_go(build_id: &[u8]) -> Option<ImageId> {
    let parts = || build_id.split(|byte| *byte == b'/');
    let is_go = parts().count() == 4 && parts().all(|part| !part.is_empty() && part.is_ascii());
    is_go.then(|| ImageId::of_hash(xxh3_128(build_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_go_with_all_parts_count() {
        let id = of_go(b"wQ/x-_/y/z").expect("an id of Go");
        assert!(id.is_hash() && Some(&id) == parse("77512f782d5f2f792f7a").as_ref());
        for other in ["redacted", "a/b/c", "a//c/d", "a/b/c/d/e", ""] {
            assert_eq!(of_go(other.as_bytes()), None, "{other}");
        }
        assert_eq!((parse("redacted"), parse("zz/"), parse("123")), (None, None, None));
        let uuid = "6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0";
        assert_eq!(parse(uuid), uuid.parse().ok());
    }
}
