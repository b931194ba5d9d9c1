//! The strings of an index, and how many bytes it may make when it is written as text.

use symdex::{Index, NonMaxU32, StringReader};

use crate::limits::{EXPORT_BYTES, EXPORT_BYTES_RATIO};
use crate::{Demangler, Error};

/// The bytes that an index may still make.
pub(crate) struct Allowance {
    left: u64,
    limit: u64,
}

impl Allowance {
    pub(crate) fn of<B: AsRef<[u8]>>(index: &Index<B>) -> Self {
        let limit =
            EXPORT_BYTES.saturating_add(EXPORT_BYTES_RATIO.saturating_mul(index.as_bytes().len() as u64));
        Self { left: limit, limit }
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Expands`] if too few are left.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes as u64).ok_or(Error::Expands { limit: self.limit })?;
        Ok(())
    }
}

/// The names and files of an index, which count against its allowance each time they are read.
pub(crate) struct Strings<'a, B> {
    reader: StringReader<'a, B>,
    demangler: Demangler<'a>,
    pub(crate) allowance: Allowance,
}

impl<'a, B: AsRef<[u8]>> Strings<'a, B> {
    pub(crate) fn new(index: &'a Index<B>, demangler: Demangler<'a>) -> Self {
        Self { reader: index.strings(), demangler, allowance: Allowance::of(index) }
    }

    /// The name, as the output is to have it.
    pub(crate) fn name(&mut self, id: NonMaxU32) -> Result<Vec<u8>, Error> {
        let name = (self.demangler)(self.reader.name(id)?);
        self.allowance.take(name.len())?;
        Ok(name)
    }

    /// The path of a file.
    pub(crate) fn file(&mut self, id: NonMaxU32) -> Result<&[u8], Error> {
        let path = self.reader.file(id)?;
        self.allowance.take(path.len())?;
        Ok(path)
    }
}
