//! The two string pools of an index, encoded.

use super::names::encode_names_until;
use crate::error::Error;
use crate::format::MAX_STRING;

/// An index's names, or its file paths.
pub struct EncodedStrings {
    pub(crate) len: u64,
    pub(crate) section: Vec<u8>,
}

impl EncodedStrings {
    /// `strings`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if a string is longer than [`MAX_STRING`], or if there are more strings than the format
    /// allows.
    pub fn new<S: AsRef<[u8]>>(strings: &[S]) -> Result<Self, Error> {
        Self::new_until(strings, &|_| false)
    }

    /// As [`Self::new`], but from time to time calls `stop` with about how many bytes of memory the encoding takes, and
    /// fails once it returns true.
    ///
    /// # Errors
    ///
    /// As [`Self::new`], and [`Error::Io`] of the kind [`TimedOut`](std::io::ErrorKind::TimedOut) if `stop` returns
    /// true.
    pub fn new_until<S: AsRef<[u8]>>(
        strings: &[S],
        stop: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Self, Error> {
        if strings.iter().any(|string| string.as_ref().len() > MAX_STRING) {
            return Err(Error::Unwritable { what: "a name or a file path of more than 64 KiB" });
        }
        Ok(Self { len: strings.len() as u64, section: encode_names_until(strings, stop)? })
    }
}
