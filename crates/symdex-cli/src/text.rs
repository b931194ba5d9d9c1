//! Names and paths as text for people.

use std::borrow::Cow;
use std::path::Path;

use symdex::Partial;
use symdex_build::meaning_of;

pub(crate) use symdex_demangle::printable;

/// Bytes as [`printable`] text. Invalid UTF-8 is replaced.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    printable(String::from_utf8_lossy(bytes))
}

/// The demangled name of a function.
pub(crate) fn demangled(name: &[u8]) -> Cow<'_, str> {
    printable(symdex_demangle::demangle(name))
}

/// The last part of the path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// `count` and `noun`, in the plural unless the count is 1.
pub(crate) fn count(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with(['s', 'x']) => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// The number of losses for one reason in an index or debug file, and their effect on answers.
pub(crate) fn partial(Partial { count, reason, .. }: &Partial) -> String {
    format!("partial: {count} x {reason}; {}", meaning_of(reason))
}

/// The first ten of `items`, separated by commas, and how many more there are.
pub(crate) fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 10;
    let mut items = items.into_iter();
    let mut text = items.by_ref().take(SHOWN).map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    match items.count() {
        0 => {}
        more => text += &format!(" and {more} more"),
    }
    text
}

/// A size in bytes, kB, MB or GB.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = bytes as f64;
    match units.into_iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", value / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_on_its_line() {
        assert_eq!(lossy(b"a\nb\x1b[31m\xff"), "a\\nb\\u{1b}[31m\u{fffd}");
        assert_eq!(lossy("überß".as_bytes()), "überß");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| count(n, "image")), ["0 images", "1 image", "2 images"]);
        assert_eq!([1, 2].map(|n| count(n, "address")), ["1 address", "2 addresses"]);
        assert_eq!(count(3, "index"), "3 indexes");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(["a", "b"]), "a, b");
        assert_eq!(list(1..=12), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
        assert_eq!(list(1..=10), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(1500), "1.5 kB");
        assert_eq!(size(2_000_000_000), "2.0 GB");
    }
}
