//! The two string pools of an index, encoded.

use super::names::encode_names;
use crate::error::Error;
use crate::format::MAX_STRING;

/// An index's names, or its file paths.
pub struct EncodedStrings {
    pub(super) len: u64,
    pub(super) section: Vec<u8>,
}

impl EncodedStrings {
    /// `strings`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if a string is longer than [`MAX_STRING`], or if there are more strings than the format
    /// allows.
    pub fn new<S: AsRef<[u8]>>(strings: &[S]) -> Result<Self, Error> {
        if strings.iter().any(|string| string.as_ref().len() > MAX_STRING) {
            return Err(Error::Unwritable { what: "a name or a file path of more than 64 KiB" });
        }
        Ok(Self { len: strings.len() as u64, section: encode_names(strings)? })
    }
}
