//! The limits of the work that a debug file can cause. A small crafted file can cause any amount of it.
//!
//! If a unit exceeds a limit, the unit or a part of it is omitted, and the metadata states the reason. docs/SECURITY.md
//! lists the limits.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::image::Image;
use crate::memory::Memory;

/// How many bytes of sections are decompressed, beside [`DECOMPRESSED_RATIO`].
pub(crate) const DECOMPRESSED: u64 = 16 << 20;
/// How many further bytes of sections are decompressed for each byte of the file. Debug sections shrink to a third or a
/// fifth.
pub(crate) const DECOMPRESSED_RATIO: u64 = 32;
/// How many units a section may have, beside [`UNIT_BYTES`].
pub(crate) const UNITS: usize = 1 << 16;
/// A section may have one further unit for each `UNIT_BYTES` bytes. A unit with one function takes more.
pub(crate) const UNIT_BYTES: usize = 128;
/// How many attributes an abbreviation may have. DWARF 5 defines fewer than 150.
pub(crate) const ATTRIBUTES: usize = 1 << 10;
/// How many attributes of a unit's entries may be read one by one, beside [`READS_PER_BYTE`].
pub(crate) const READS: u64 = 1 << 12;
/// How many further attributes may be read one by one for each byte of the unit. An attribute can take no bytes.
pub(crate) const READS_PER_BYTE: u64 = 16;
/// How many rows the line program of a unit may have.
pub(crate) const ROWS: usize = 1 << 22;
/// How many directories and files the line program of a unit may list, all in all.
pub(crate) const FILES: usize = 1 << 17;
/// How many range-list entries are read of an image, beside [`RANGE_BYTES`].
pub(crate) const RANGES: u64 = 1 << 20;
/// A further range-list entry is read for each `RANGE_BYTES` bytes of the image. An entry takes at least two bytes.
pub(crate) const RANGE_BYTES: u64 = 4;
/// How many bytes of a name are kept. Longer names are truncated.
pub(crate) const NAME: usize = 64 << 10;
/// How many bytes of a path are kept. Longer paths are truncated.
pub(crate) const PATH: usize = 64 << 10;
/// How many entries are searched for a name. Origins and specifications form chains, and may form cycles.
pub(crate) const ORIGINS: usize = 16;
/// How many types are read for the size of a variable. Typedefs, qualifiers and arrays form chains, and may form
/// cycles.
pub(crate) const TYPES: usize = 256;
/// Code of inlined subroutines below this depth belongs to the one at this depth. Real chains are shorter than 200.
pub(crate) const DEPTH: u32 = 512;

/// How many bytes of code a function of a symbol file may have if it has inlined calls. Each chunk of it repeats those
/// that it is in.
pub(crate) const CALLED_CODE: u64 = 16 << 20;
/// How many bytes of names and of paths are read for the functions of a symbol file that are read at a time, beside
/// [`STRING_BYTES_PER_BYTE`].
pub(crate) const STRING_BYTES: u64 = 1 << 20;
/// How many further such bytes are read for each byte of the records of these functions. Records may share strings.
pub(crate) const STRING_BYTES_PER_BYTE: u64 = 64;

/// How many bytes of code the functions of a Go program without DWARF may have for each byte of the file. Functions may
/// share tables. Half of a file that Parca's agent sends is the tables, and its code, which it lacks, is twice as large.
pub(crate) const GO_CODE: u64 = 16;

/// How many symbol stubs of an image are named. Large programs have some ten thousand.
pub(crate) const STUBS: usize = 1 << 18;

/// How many bytes the stated paths of an image's split units may have, multiplied by the number of folders that are
/// searched for them. A program of 30,000 units has about 5 MB.
pub(crate) const SEARCHED: usize = 32 << 20;

/// How many of the packages and supplementary files that were given together with a debug file are searched for each
/// file that it refers to. An untrusted archive may have any number of both.
pub(crate) const GIVEN: usize = 100;

/// How many bytes of call frame information are executed of a section, beside [`UNWIND_BYTES_RATIO`].
pub(crate) const UNWIND_BYTES: u64 = 1 << 16;
/// How many further bytes of call frame information are executed for each byte of the section. Those of a CIE count for
/// each entry that refers to it.
pub(crate) const UNWIND_BYTES_RATIO: u64 = 8;

/// How many units a section of `size` bytes may have.
pub(crate) fn units(size: usize) -> usize {
    UNITS + size / UNIT_BYTES
}

/// The deadline of a build, if it has a time limit, and the flag that stops it before, if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    at: Option<(Instant, u64)>,
    stop: StopFlag,
}

/// A flag that stops the work that has it once it is set.
pub type StopFlag = Option<&'static AtomicBool>;

impl Deadline {
    /// The deadline that many seconds from now; no deadline for `None`.
    #[must_use]
    pub fn after(seconds: Option<u64>) -> Self {
        let at = |seconds| Some((Instant::now().checked_add(Duration::from_secs(seconds))?, seconds));
        Self { at: seconds.and_then(at), stop: None }
    }

    /// The same deadline, which passes at once if the flag is set.
    #[must_use]
    pub fn stopped_by(self, stop: StopFlag) -> Self {
        Self { stop, ..self }
    }

    /// The deadline, reduced by the time that was already spent.
    #[must_use]
    pub fn less(self, needed: Duration) -> Self {
        let less =
            |(at, seconds): (Instant, u64)| (at.checked_sub(needed).unwrap_or_else(Instant::now), seconds);
        Self { at: self.at.map(less), ..self }
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_over(self) -> bool {
        self.check().is_err()
    }

    /// Fails once it has passed.
    ///
    /// # Errors
    ///
    /// [`Error::TooSlow`], and [`Error::Stopped`] if the flag is set.
    pub fn check(self) -> Result<(), Error> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Error::Stopped);
        }
        match self.at {
            Some((at, seconds)) if Instant::now() >= at => Err(Error::TooSlow { seconds }),
            _ => Ok(()),
        }
    }
}

/// The limits of one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitLimits<'m> {
    /// How many range-list entries.
    pub(crate) ranges: u64,
    /// When the build has to be done.
    pub(crate) deadline: Deadline,
    /// The memory that the unit takes its share of.
    pub(crate) memory: &'m Memory,
}

impl<'m> UnitLimits<'m> {
    /// The limits of a unit of `image` that may take any time.
    pub(crate) fn without_deadline(image: &Image<'_>, memory: &'m Memory) -> Self {
        Self { ranges: image.range_budget(), deadline: Deadline::default(), memory }
    }
}

/// Counts the attributes of a unit that are read one by one, against the unit's limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    left: u64,
    /// How many were read.
    pub(crate) done: u64,
}

impl Reads {
    /// The limit for a unit of `size` bytes.
    pub(crate) fn of_unit(size: usize) -> Self {
        Self { left: READS + READS_PER_BYTE.saturating_mul(size as u64), done: 0 }
    }

    /// Counts `attributes`, which are read next.
    ///
    /// # Errors
    ///
    /// [`UnitError::TooManyReads`] if the unit has exceeded its limit.
    pub(crate) fn add(&mut self, attributes: usize) -> Result<(), UnitError> {
        let attributes = attributes as u64;
        self.left = self.left.checked_sub(attributes).ok_or(UnitError::TooManyReads)?;
        self.done += attributes;
        Ok(())
    }
}

/// Why the rest of a unit's entries is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitError {
    /// The entries are damaged.
    Damaged(gimli::Error),
    /// The entries have more attributes than [`READS`] and [`READS_PER_BYTE`] allow.
    TooManyReads,
    /// The time or the memory of the build is exhausted. The build fails, so this is never reported.
    GivenUp,
}

impl From<gimli::Error> for UnitError {
    fn from(error: gimli::Error) -> Self {
        Self::Damaged(error)
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(error) => error.fmt(f),
            Self::GivenUp => f.write_str("the time or the memory is exhausted"),
            Self::TooManyReads => write!(
                f,
                "its entries have more attributes than the limit of {READS} and {READS_PER_BYTE} for each byte"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("DECOMPRESSED", DECOMPRESSED),
            ("DECOMPRESSED_RATIO", DECOMPRESSED_RATIO),
            ("UNITS", UNITS as u64),
            ("UNIT_BYTES", UNIT_BYTES as u64),
            ("ATTRIBUTES", ATTRIBUTES as u64),
            ("READS", READS),
            ("READS_PER_BYTE", READS_PER_BYTE),
            ("ROWS", ROWS as u64),
            ("FILES", FILES as u64),
            ("RANGES", RANGES),
            ("RANGE_BYTES", RANGE_BYTES),
            ("NAME", NAME as u64),
            ("PATH", PATH as u64),
            ("ORIGINS", ORIGINS as u64),
            ("TYPES", TYPES as u64),
            ("GO_CODE", GO_CODE),
            ("STUBS", STUBS as u64),
            ("DEPTH", u64::from(DEPTH)),
            ("CALLED_CODE", CALLED_CODE),
            ("STRING_BYTES", STRING_BYTES),
            ("STRING_BYTES_PER_BYTE", STRING_BYTES_PER_BYTE),
            ("SEARCHED", SEARCHED as u64),
            ("GIVEN", GIVEN as u64),
            ("UNWIND_BYTES", UNWIND_BYTES),
            ("UNWIND_BYTES_RATIO", UNWIND_BYTES_RATIO),
        ];
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
