//! Where the addresses and offsets of the original are in a copy.

use anyhow::{Context, Result, ensure};

use super::rename::rename;
use super::source::{Section, Source};

/// A section that is mapped. In the made file it is as long as all copies, one behind the other.
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) is_code: bool,
    pub(super) new_start: u64,
    /// How far each copy is from the one before.
    pub(super) stride: u64,
}

/// From the original to copy number `copy`.
pub(super) struct Shift<'s> {
    pub(super) copy: u32,
    pub(super) source: &'s Source<'s>,
    pub(super) spans: &'s [Span],
}

impl Span {
    /// Whether `address` is in the section or is its end.
    pub(super) fn reaches(&self, address: u64) -> bool {
        (self.start..=self.start + self.size).contains(&address)
    }

    /// Where `address` is in a copy.
    pub(super) fn address(&self, address: u64, copy: u32) -> u64 {
        (self.new_start + u64::from(copy) * self.stride).wrapping_add(address.wrapping_sub(self.start))
    }
}

impl Shift<'_> {
    /// Where an address of the debug information is in the copy. One that is in no section moves with the code.
    ///
    /// # Errors
    /// Code behind the first section of code: lists of ranges are relative to a unit's lowest address, so all code has to move alike.
    pub(super) fn address(&self, address: u64) -> Result<u64> {
        if address == u64::MAX {
            return Ok(address);
        }
        let code = self.spans.iter().find(|span| span.is_code).context("there is no section of code")?;
        if code.reaches(address) {
            return Ok(code.address(address, self.copy));
        }
        let holds = |span: &&Span| span.reaches(address) && address < span.start + span.size;
        let span = self.spans.iter().find(holds);
        ensure!(span.is_none_or(|span| !span.is_code), "two sections have code with debug information");
        Ok(span.unwrap_or(code).address(address, self.copy))
    }

    /// Puts the copy's address in the place of the original's at `at`.
    ///
    /// # Errors
    /// As [`Shift::address`]; fewer than eight bytes.
    pub(super) fn patch_address(&self, bytes: &mut [u8], at: usize) -> Result<()> {
        let field = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut).context("an address is cut")?;
        *field = self.address(u64::from_le_bytes(*field))?.to_le_bytes();
        Ok(())
    }

    /// Puts the offset of the copy's part of `section` in the place of the original's, four bytes at `at`.
    ///
    /// # Errors
    /// Fewer than four bytes; an offset that four bytes do not hold.
    pub(super) fn patch_offset(&self, bytes: &mut [u8], at: usize, section: Section) -> Result<()> {
        let field = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut).context("an offset is cut")?;
        let by = self.source.bytes(section).len() as u64 * u64::from(self.copy);
        let offset = u64::from(u32::from_le_bytes(*field)) + by;
        *field = u32::try_from(offset).context("an offset of over 4 GiB")?.to_le_bytes();
        Ok(())
    }

    pub(super) fn rename(&self, name: &mut [u8]) {
        rename(name, self.copy);
    }
}
