//! Converts addresses and offsets of the original to those of a copy.

use anyhow::{Context, Result, ensure};

use super::original::{Original, Section};
use super::rename::rename;

/// A mapped section. In the new file it is as long as all copies together.
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) is_code: bool,
    pub(super) new_start: u64,
    /// The distance between a copy and the next one.
    pub(super) stride: u64,
}

/// The conversion from the original to copy number `copy`.
pub(super) struct Shift<'s> {
    pub(super) copy: u32,
    pub(super) original: &'s Original<'s>,
    pub(super) spans: &'s [Span],
}

impl Span {
    /// Whether `address` lies in the section or at its end.
    pub(super) fn reaches(&self, address: u64) -> bool {
        (self.start..=self.start + self.size).contains(&address)
    }

    /// The address in a copy.
    pub(super) fn address(&self, address: u64, copy: u32) -> u64 {
        (self.new_start + u64::from(copy) * self.stride).wrapping_add(address.wrapping_sub(self.start))
    }
}

impl Shift<'_> {
    /// The address in the copy for an address of the debug information. An address in no section moves with the code.
    ///
    /// # Errors
    /// The address lies in a second section of code. Range lists are relative to the lowest address of a unit, so that
    /// all code must move by the same distance.
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

    /// Replaces the address at `at` by that of the copy.
    ///
    /// # Errors
    /// As [`Shift::address`], or if fewer than eight bytes are left.
    pub(super) fn patch_address(&self, bytes: &mut [u8], at: usize) -> Result<()> {
        let field = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut).context("an address is cut")?;
        *field = self.address(u64::from_le_bytes(*field))?.to_le_bytes();
        Ok(())
    }

    /// Replaces the four-byte offset into `section` at `at` by that of the copy.
    ///
    /// # Errors
    /// Fewer than four bytes are left, or the new offset exceeds 32 bits.
    pub(super) fn patch_offset(&self, bytes: &mut [u8], at: usize, section: Section) -> Result<()> {
        let field = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut).context("an offset is cut")?;
        let by = self.original.bytes(section).len() as u64 * u64::from(self.copy);
        let offset = u64::from(u32::from_le_bytes(*field)) + by;
        *field = u32::try_from(offset).context("an offset of over 4 GiB")?.to_le_bytes();
        Ok(())
    }

    pub(super) fn rename(&self, name: &mut [u8]) {
        rename(name, self.copy);
    }
}
