//! Addresses in JSON.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An address: a number, or text with a hexadecimal number that begins with `0x`. JSON's numbers are exact up to 2^53
/// in many languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) u64);

/// Text with a hexadecimal number.
impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AddressVisitor)
    }
}

struct AddressVisitor;

impl de::Visitor<'_> for AddressVisitor {
    type Value = Address;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address: a number, or text such as \"0x5ed8\"")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Address(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let digits =
            text.strip_prefix("0x").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        // A message has the text with escapes.
        let start = text.split_at(text.floor_char_boundary(1000)).0;
        number.map(Address).ok_or_else(|| E::invalid_value(de::Unexpected::Str(start), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_numbers_or_hexadecimal_text() {
        let read = |json: &str| serde_json::from_str::<Address>(json).ok().map(|address| address.0);
        assert_eq!(read("\"0x5Ed8\""), Some(0x5ed8));
        assert_eq!(read("24280"), Some(24280));
        assert_eq!(serde_json::to_string(&Address(24280)).expect("JSON"), "\"0x5ed8\"");
        for wrong in ["-1", "1.5", "\"5ed8\"", "\"0x\"", "\"0x+1\"", "\"0x10000000000000000\"", "null"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
