//! Image ids as people give them on a command line: whole, or only the first digits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use symdex::ImageId;
use symdex_build::publish;

use crate::failure::{Failure, Kind};
use crate::text;

/// With fewer digits a mistyped id would often name an image.
const MIN_DIGITS: usize = 4;

/// An image id, or the first digits of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedId {
    /// As ids are printed: lower-case digits without dashes, `h-` before those of a hash.
    start: String,
}

impl WantedId {
    /// Whether `id` is the wanted one, or begins as it does.
    pub(crate) fn is_start_of(&self, id: &ImageId) -> bool {
        id.to_string().starts_with(&self.start)
    }

    /// The whole id; `None` if these digits are none.
    pub(crate) fn whole(&self) -> Option<ImageId> {
        self.start.parse().ok()
    }

    /// The index of the image in `folder`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Several ids in the folder begin with these digits, or the folder cannot be read.
    pub(crate) fn index_in(&self, folder: &Path) -> Result<Option<PathBuf>, Failure> {
        let whole = self.whole().map(|id| publish::find_index(folder, &id)).transpose();
        if let Some(path) = whole.map_err(|error| Failure::unreadable(folder, &error))?.flatten() {
            return Ok(Some(path));
        }
        let mut found = publish::indexes_below(folder).paths;
        found.retain(|path| {
            path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(&self.start))
        });
        // An index may lie in the folder and fanned out, too; the first of the two counts everywhere.
        found.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
        found.dedup_by(|a, b| a.file_stem() == b.file_stem());
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => {
                let ids = found.iter().filter_map(|path| path.file_stem()).map(|stem| stem.display());
                let message = format!(
                    "{}: several ids begin with {self}: {}; give more digits",
                    folder.display(),
                    text::list(ids)
                );
                Err(Failure::new(Kind::Usage, message))
            }
        }
    }
}

impl From<&ImageId> for WantedId {
    fn from(id: &ImageId) -> Self {
        Self { start: id.to_string() }
    }
}

impl FromStr for WantedId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (mark, digits) = lower.strip_prefix("h-").map_or(("", lower.as_str()), |digits| ("h-", digits));
        let digits = digits.replace('-', "");
        let are_digits = digits.chars().all(|c| c.is_ascii_hexdigit());
        if are_digits && (MIN_DIGITS..=2 * ImageId::MAX_LEN).contains(&digits.len()) {
            return Ok(Self { start: format!("{mark}{digits}") });
        }
        Err(format!(
            "not an image id: {text:?}; expected {MIN_DIGITS} to {} hexadecimal digits, dashes allowed",
            2 * ImageId::MAX_LEN
        ))
    }
}

impl fmt::Display for WantedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_spelling_and_from_four_digits_on() {
        let read = |text: &str| text.parse::<WantedId>().map(|id| id.to_string());
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
        let begins = |text: &str| text.parse::<WantedId>().expect("digits").is_start_of(&id);
        assert!(begins("0c37") && begins("0C37C502-ABA0-3641-A08F-84C794684F36"));
        assert!(!begins("c37c") && !begins("h-0c37") && !begins("0c37c502aba03641a08f84c794684f3600"));
    }
}
