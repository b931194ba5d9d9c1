//! What names an image: its id and its architecture.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arch::ARM;

/// The id of one linked binary for one architecture: `LC_UUID` or the ELF build id; where it has neither, a hash of the slice.
///
/// Printed in lower-case hexadecimal without dashes, which is also the index's file name; a hash with `h-` before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u8, Vec<u8>)", into = "(u8, Vec<u8>)")]
pub struct ImageId {
    kind: u8,
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl ImageId {
    /// The longest id there is, in bytes.
    pub const MAX_LEN: usize = 32;

    /// The id with these bytes; `None` where there are none or more than [`Self::MAX_LEN`].
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        Self::with_kind(OWN, id)
    }

    /// The id of an image that has none of its own: a hash of its bytes.
    #[must_use]
    pub fn of_hash(hash: u128) -> Self {
        let mut id = Self { kind: HASH, bytes: [0; Self::MAX_LEN], len: 16 };
        id.bytes.iter_mut().zip(hash.to_be_bytes()).for_each(|(to, from)| *to = from);
        id
    }

    pub(crate) fn with_kind(kind: u8, id: &[u8]) -> Option<Self> {
        let len = u8::try_from(id.len()).ok().filter(|len| *len != 0 && matches!(kind, OWN | HASH))?;
        let mut bytes = [0; Self::MAX_LEN];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { kind, bytes, len })
    }

    /// 0 for an id of the image's own, 1 for a hash.
    pub(crate) fn kind(&self) -> u8 {
        self.kind
    }

    /// The id's own bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// The id followed by zeros, as every checksum begins.
    pub(crate) fn padded(&self) -> &[u8; Self::MAX_LEN] {
        &self.bytes
    }
}

/// What kind of id it is, as indexes store it.
const OWN: u8 = 0;
const HASH: u8 = 1;

impl TryFrom<(u8, Vec<u8>)> for ImageId {
    type Error = &'static str;

    fn try_from((kind, bytes): (u8, Vec<u8>)) -> Result<Self, Self::Error> {
        Self::with_kind(kind, &bytes).ok_or("an image id is its own or a hash, and has 1 to 32 bytes")
    }
}

impl From<ImageId> for (u8, Vec<u8>) {
    fn from(id: ImageId) -> Self {
        (id.kind, id.as_bytes().to_vec())
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == HASH {
            f.write_str("h-")?;
        }
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageId({self})")
    }
}

/// Text that is not an image id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an image id: {found:?}; expected 2 to 64 hexadecimal digits, dashes allowed")]
pub struct ParseImageIdError {
    /// The text as given.
    pub found: String,
}

impl FromStr for ImageId {
    type Err = ParseImageIdError;

    /// Reads an id from hexadecimal digits of either case, after `h-` for a hash; dashes are passed over.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseImageIdError { found: text.to_owned() };
        let (kind, digits) = text.strip_prefix("h-").map_or((OWN, text), |digits| (HASH, digits));
        let digits: Vec<u8> = digits
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or_else(error))
            .collect::<Result<_, _>>()?;
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(error()) };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        Self::with_kind(kind, &bytes).ok_or_else(error)
    }
}

/// The architecture an image was linked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arch {
    /// Apple's name for it, as `atos -arch` and `lipo` take it: `arm64`, `x86_64h`, ...
    pub name: String,
    /// Mach-O `cputype`.
    pub cputype: u32,
    /// Mach-O `cpusubtype`, capability bits included.
    pub cpusubtype: u32,
}

impl Arch {
    /// Whether this is 32-bit ARM, where bit 0 of a code address is the Thumb flag.
    #[must_use]
    pub fn is_arm32(&self) -> bool {
        self.cputype == ARM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse_alike() {
        let id: ImageId = "0C37C502-ABA0-3641-A08F-84C794684F36".parse().expect("a UUID is an id");
        assert_eq!(id.to_string(), "0c37c502aba03641a08f84c794684f36");
        assert_eq!(id.as_bytes().len(), 16);
        let hash = ImageId::of_hash(0x0123);
        assert_eq!(hash.to_string(), "h-00000000000000000000000000000123");
        assert_eq!(hash.to_string().parse(), Ok(hash.clone()));
        assert_ne!(Some(hash), ImageId::new(&0x0123u128.to_be_bytes()), "a hash is no id of the image's own");
        assert!("0c3".parse::<ImageId>().is_err());
        assert!("".parse::<ImageId>().is_err());
        assert!("zz".parse::<ImageId>().is_err());
        assert!(ImageId::new(&[0; 33]).is_none());
    }
}
