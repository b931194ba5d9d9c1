//! The two string pools of an index, ready to be put into a file.

use crate::error::Error;
use crate::format::{MAX_STRING, PoolInfo};
use crate::names::{GROUP_LEN, encode_names};

/// An index's names, or its file paths.
pub struct EncodedStrings {
    pub(super) info: PoolInfo,
    pub(super) section: Vec<u8>,
}

impl EncodedStrings {
    /// `strings`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where one is longer than [`MAX_STRING`], or there are more than the format has room for.
    pub fn new<S: AsRef<[u8]>>(strings: &[S]) -> Result<Self, Error> {
        let info = PoolInfo { strings: strings.len() as u64, strings_per_block: GROUP_LEN };
        check_lengths(strings)?;
        Ok(Self { info, section: encode_names(strings)? })
    }
}

fn check_lengths<S: AsRef<[u8]>>(strings: &[S]) -> Result<(), Error> {
    match strings.iter().any(|string| string.as_ref().len() > MAX_STRING) {
        true => Err(Error::Unwritable { what: "a name or a file path of more than 64 KiB" }),
        false => Ok(()),
    }
}
