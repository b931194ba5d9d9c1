//! The optional section of readable names, encoded.

use super::bits::BitWriter;
use super::strings::EncodedStrings;
use crate::error::Error;
use crate::names::readable::{RANK_BITS, RANKED};

/// The readable names of an index, for readers without a demangler.
pub struct EncodedReadableNames {
    /// How many names the index has.
    pub(crate) names: u64,
    pub(crate) section: Vec<u8>,
}

impl EncodedReadableNames {
    /// For each name of the index, in the order of their ids, its readable form, or `None` if that is the name itself.
    ///
    /// # Errors
    ///
    /// As [`EncodedStrings::new`].
    pub fn new<S: AsRef<[u8]>>(names: &[Option<S>]) -> Result<Self, Error> {
        Self::new_until(names, &|_| false)
    }

    /// As [`Self::new`]; `stop` is that of [`EncodedStrings::new_until`].
    ///
    /// # Errors
    ///
    /// As [`EncodedStrings::new_until`].
    pub fn new_until<S: AsRef<[u8]>>(
        names: &[Option<S>],
        stop: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Self, Error> {
        let readable: Vec<&[u8]> = names.iter().flatten().map(AsRef::as_ref).collect();
        let strings = EncodedStrings::new_until(&readable, stop)?;
        let mut head = BitWriter::default();
        head.put(strings.len, RANK_BITS);
        let mut before = 0;
        for group in names.chunks(RANKED as usize) {
            head.put(before, RANK_BITS);
            before += group.iter().flatten().count() as u64;
            let bits = group.iter().map(|name| u64::from(name.is_some()));
            bits.chain(std::iter::repeat(0)).take(RANKED as usize).for_each(|bit| head.put(bit, 1));
        }
        Ok(Self { names: names.len() as u64, section: [head.finish(), strings.section].concat() })
    }
}
