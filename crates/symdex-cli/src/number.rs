//! Numbers on command lines: addresses, sizes and times.

use std::time::Duration;

/// Parses an address: hexadecimal if it begins with `0x` or has a letter among its digits, otherwise decimal.
pub(crate) fn address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => digits_of(digits, 16),
        None => digits_of(text, 10).or_else(|| digits_of(text, 16).filter(|_| !are_decimal(text))),
    }
}

/// Whether `text` has only decimal digits. A decimal number that is too large is not read as hexadecimal.
fn are_decimal(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Parses a hexadecimal number with or without `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    digits_of(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text), 16)
}

fn digits_of(text: &str, radix: u32) -> Option<u64> {
    // The standard library accepts a sign.
    let only_digits = text.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(text, radix).ok().filter(|_| only_digits)
}

pub(crate) const EXPECTED: &str =
    "expected a decimal number, or a hexadecimal one that begins with 0x or has a digit from a to f";

/// [`address`] for command line options.
pub(crate) fn parse_address(text: &str) -> Result<u64, String> {
    address(text).ok_or_else(|| EXPECTED.to_owned())
}

/// [`hexadecimal`] for command line options.
pub(crate) fn parse_hexadecimal(text: &str) -> Result<u64, String> {
    hexadecimal(text).ok_or_else(|| "expected hexadecimal digits, with or without 0x".to_owned())
}

/// Parses a time for command line options: `45d`, `12h`, `1h 30m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a time such as 45d, 12h or 30m".to_owned())
}

/// Parses a size for command line options: a number of bytes, or of kB, MB or GB if the text ends so.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let units = [("", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
    let unit = units.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_start()));
    let size = digits_of(digits, 10).zip(unit).and_then(|(number, (_, unit))| number.checked_mul(unit));
    let size = size.and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| "expected a size such as 512MB or 2GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_printed() {
        for (text, size) in [("512MB", 512_000_000), ("2 GB", 2_000_000_000), ("3gb", 3_000_000_000)] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "MB", "5TB", "-1", "1.5GB", "99999999999GB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!((parse_size("0"), parse_size("7kB")), (Ok(0), Ok(7000)));
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("45d"), Ok(Duration::from_secs(45 * 24 * 60 * 60)));
        assert_eq!(parse_time("1h 30m"), Ok(Duration::from_secs(90 * 60)));
        for wrong in ["45", "", "d", "-1d", "99999999999999999999d"] {
            assert!(parse_time(wrong).is_err_and(|error| error.contains("45d")), "{wrong}");
        }
    }

    #[test]
    fn a_letter_among_the_digits_makes_a_number_hexadecimal() {
        assert_eq!((address("42ef"), address("1049902EF")), (Some(0x42ef), Some(0x1_0499_02ef)));
        assert_eq!((address("1234"), address("0x1234")), (Some(1234), Some(0x1234)));
    }

    #[test]
    fn numbers_are_read_whole_or_not_at_all() {
        assert_eq!(address("0x10"), Some(16));
        assert_eq!(address("0XfF"), Some(255));
        assert_eq!(address("10"), Some(10));
        assert_eq!(address("0xffffffffffffffff"), Some(u64::MAX));
        for wrong in [
            "",
            "0x",
            "fg",
            "+1",
            "+f",
            "99999999999999999999",
            "1_f",
            "0x+1",
            "-1",
            "1 ",
            "0x10000000000000000",
            "\u{663}",
        ] {
            assert_eq!(address(wrong), None, "{wrong:?}");
        }
        assert_eq!(hexadecimal("10"), Some(16));
        assert_eq!(hexadecimal("0x10"), Some(16));
        assert_eq!(hexadecimal("xyz"), None);
    }
}
