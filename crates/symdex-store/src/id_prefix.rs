//! Whole image ids, or their first digits, as people type them.

use std::fmt;
use std::str::FromStr;

use symdex::ImageId;

/// With fewer digits, a mistyped id would often match an image.
const MIN_DIGITS: usize = 4;

/// An image id or its first digits, at least four.
///
/// ```
/// use symdex_store::IdPrefix;
///
/// let prefix: IdPrefix = "0C37C502-ABA0".parse()?;
/// assert!(prefix.matches(&"0c37c502aba03641a08f84c794684f36".parse()?));
/// assert_eq!(prefix.to_string(), "0c37c502aba0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdPrefix {
    /// Lower-case digits without dashes, as ids are printed. The id of a hash begins with `h-`.
    digits: String,
}

/// Text that is neither an image id nor the start of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an image id: {text:?}; expected {MIN_DIGITS} to {} hexadecimal digits, dashes allowed",
    2 * ImageId::MAX_LEN
)]
pub struct ParseIdPrefixError {
    text: String,
}

impl IdPrefix {
    /// Whether `id` begins with these digits.
    #[must_use]
    pub fn matches(&self, id: &ImageId) -> bool {
        self.matches_text(&id.to_string())
    }

    /// Whether an id that is printed as `id` begins with these digits.
    pub(crate) fn matches_text(&self, id: &str) -> bool {
        id.starts_with(&self.digits)
    }

    /// The id of exactly these digits; `None` if they cannot be a whole id.
    #[must_use]
    pub fn to_id(&self) -> Option<ImageId> {
        self.digits.parse().ok()
    }
}

/// The digits of `id`, with which longer ids may begin. An id of debug files is not the prefix of the id of a hash.
impl From<&ImageId> for IdPrefix {
    fn from(id: &ImageId) -> Self {
        Self { digits: id.to_string() }
    }
}

impl FromStr for IdPrefix {
    type Err = ParseIdPrefixError;

    fn from_str(text: &str) -> Result<Self, ParseIdPrefixError> {
        let lower = text.to_ascii_lowercase();
        let (mark, digits) = lower.strip_prefix("h-").map_or(("", lower.as_str()), |digits| ("h-", digits));
        let digits = digits.replace('-', "");
        let are_digits = digits.chars().all(|c| c.is_ascii_hexdigit());
        if are_digits && (MIN_DIGITS..=2 * ImageId::MAX_LEN).contains(&digits.len()) {
            return Ok(Self { digits: format!("{mark}{digits}") });
        }
        Err(ParseIdPrefixError { text: text.to_owned() })
    }
}

impl fmt::Display for IdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_spelling_and_from_four_digits_on() {
        let read = |text: &str| text.parse::<IdPrefix>().map(|id| id.to_string()).map_err(|e| e.to_string());
        assert_eq!(read("0C37C502-ABA0").as_deref(), Ok("0c37c502aba0"));
        assert_eq!(read("h-01ab").as_deref(), Ok("h-01ab"));
        for wrong in ["", "0c3", "0c-3", "xyzw", "h-123", "+123", &"0".repeat(65)] {
            assert!(
                read(wrong).is_err_and(|error| error.contains("expected 4 to 64 hexadecimal digits")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_id_begins_with_its_own_digits() {
        let id: ImageId = "0c37c502aba03641a08f84c794684f36".parse().expect("an id");
        let begins = |text: &str| text.parse::<IdPrefix>().expect("digits").matches(&id);
        assert!(begins("0c37") && begins("0C37C502-ABA0-3641-A08F-84C794684F36"));
        assert!(!begins("c37c") && !begins("h-0c37") && !begins("0c37c502aba03641a08f84c794684f3600"));
    }
}
