//! Numbers on command lines: addresses, sizes and times.

use std::time::Duration;

/// Parses an address as atos does: hexadecimal if it begins with `0x`, otherwise decimal.
pub(crate) fn atos_address(text: &str) -> Option<u64> {
    match prefixed(text) {
        Some(digits) => digits_of(digits, 16),
        None => digits_of(text, 10),
    }
}

/// The base of the number in an address without a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Decimal,
    Hexadecimal,
}

impl Notation {
    /// The notation of `text`: hexadecimal if it begins with `0x` or a further zero, has a letter, or has 8, 12 or 16
    /// digits, as programs print addresses. `None` for a single digit, which is the same number in both.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let is_decimal = text.bytes().all(|digit| digit.is_ascii_digit());
        match text.len() {
            1 if is_decimal => None,
            8 | 12 | 16 => Some(Self::Hexadecimal),
            _ if is_decimal && !text.starts_with('0') => Some(Self::Decimal),
            _ => Some(Self::Hexadecimal),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hexadecimal => "hexadecimal",
        }
    }
}

/// The first address of a list that has a notation. All addresses of a list must have the same one.
#[derive(Default)]
pub(crate) struct ListNotation(Option<(Notation, String)>);

impl ListNotation {
    /// Fails if the address `text` has another notation than those before it.
    pub(crate) fn check(&mut self, text: &str) -> Result<(), String> {
        let Some(notation) = Notation::of(text).filter(|_| address(text).is_some()) else { return Ok(()) };
        match &self.0 {
            Some((known, first)) if *known != notation => Err(format!(
                "`{text}` is {} and `{first}` is {}; write all addresses in hexadecimal, with 0x",
                notation.name(),
                known.name()
            )),
            Some(_) => Ok(()),
            None => {
                self.0 = Some((notation, text.to_owned()));
                Ok(())
            }
        }
    }
}

/// Parses an address in its [`Notation`].
pub(crate) fn address(text: &str) -> Option<u64> {
    match (prefixed(text), Notation::of(text)) {
        (Some(digits), _) => digits_of(digits, 16),
        (None, Some(Notation::Hexadecimal)) => digits_of(text, 16),
        (None, _) => digits_of(text, 10),
    }
}

/// The digits after `0x`.
fn prefixed(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// Parses a hexadecimal number with or without `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    digits_of(prefixed(text).unwrap_or(text), 16)
}

fn digits_of(text: &str, radix: u32) -> Option<u64> {
    // The standard library accepts a sign.
    let only_digits = text.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(text, radix).ok().filter(|_| only_digits)
}

pub(crate) const EXPECTED: &str = "expected a hexadecimal number with 0x, with a digit from a to f, or of 8, 12 or \
                                   16 digits; or a decimal number";

/// [`address`] for command line options.
pub(crate) fn parse_address(text: &str) -> Result<u64, String> {
    address(text).ok_or_else(|| EXPECTED.to_owned())
}

/// [`atos_address`] for command line options.
pub(crate) fn parse_atos_address(text: &str) -> Result<u64, String> {
    atos_address(text).ok_or_else(|| "expected a hexadecimal number with 0x, or a decimal number".to_owned())
}

/// [`hexadecimal`] for command line options.
pub(crate) fn parse_hexadecimal(text: &str) -> Result<u64, String> {
    hexadecimal(text).ok_or_else(|| "expected hexadecimal digits, with or without 0x".to_owned())
}

/// The start of a page, where images are loaded.
const PAGE: u64 = 0x1000;

/// [`hexadecimal`] for a load address. An image begins with a page, so a number that does only if it is read as a decimal
/// one is refused: atos reads it as a hexadecimal one.
pub(crate) fn parse_load_address(text: &str) -> Result<u64, String> {
    let address = parse_hexadecimal(text)?;
    match digits_of(text, 10) {
        Some(decimal) if !address.is_multiple_of(PAGE) && decimal.is_multiple_of(PAGE) => {
            Err(format!("a load address is hexadecimal, with or without 0x; write {decimal} as {decimal:#x}"))
        }
        _ => Ok(address),
    }
}

/// Parses a time for command line options: `45d`, `12h`, `1h 30m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a time such as 45d, 12h or 30m".to_owned())
}

/// Parses a size for command line options: a number of bytes, or of kB, MB or GB with such a suffix.
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
    fn addresses_are_read_as_programs_print_them() {
        assert_eq!((address("42ef"), address("1049902EF")), (Some(0x42ef), Some(0x1_0499_02ef)));
        assert_eq!((address("1234"), address("0x1234")), (Some(1234), Some(0x1234)));
        let padded =
            [address("0000000000001500"), address("00000000000015d0"), address("0150"), address("00")];
        assert_eq!(padded, [Some(0x1500), Some(0x15d0), Some(0x150), Some(0)]);
        // 8, 12 and 16 digits are the widths of addresses; 9 digits are not.
        let wide =
            [address("10401500"), address("555555555500"), address("1000000000401500"), address("104015000")];
        let expected = [0x1040_1500, 0x5555_5555_5500, 0x1000_0000_0040_1500, 104_015_000];
        assert_eq!(wide, expected.map(Some));
    }

    #[test]
    fn a_list_has_one_notation() {
        let check = |list: &[&str]| {
            let mut notation = ListNotation::default();
            list.iter().try_for_each(|text| notation.check(text))
        };
        for list in
            [&["0x10", "15d0", "0000000000001500", "0"][..], &["10", "7", "1600"], &["main", "10"], &[]]
        {
            assert_eq!(check(list), Ok(()), "{list:?}");
        }
        let mixed = check(&["3", "15d0", "1600", "x"]).expect_err("mixed");
        assert!(mixed.starts_with("`1600` is decimal and `15d0` is hexadecimal; write"), "{mixed}");
        assert!(check(&["1600", "0x15d0"]).is_err_and(|error| error.starts_with("`0x15d0` is hexadecimal")));
    }

    #[test]
    fn atos_reads_only_prefixed_numbers_as_hexadecimal() {
        let read = ["0x10", "10", "0000000000001500", "12345678", "42ef", ""].map(atos_address);
        assert_eq!(read, [Some(16), Some(10), Some(1500), Some(12_345_678), None, None]);
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
        let load_addresses = ["0x104834000", "104834000", "b0000", "1", "5001"].map(parse_load_address);
        assert_eq!(load_addresses, [0x1_0483_4000, 0x1_0483_4000, 0xb0000, 1, 0x5001].map(Ok));
        assert!(parse_load_address("4370677760").is_err_and(|error| error.ends_with("as 0x104834000")));
    }
}
