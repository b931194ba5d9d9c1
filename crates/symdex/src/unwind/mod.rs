//! Unwind rows: from the registers of a frame to those of its caller. They are an optional section of an index.

mod evaluate;
mod layout;
mod registers;
mod section;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::evaluate::FrameState;
pub(crate) use self::layout::{CALLS_ONLY, SIGNAL_FRAME, SIGNED};
use self::layout::{FrameLayout, Registers};
#[cfg(feature = "write")]
pub(crate) use self::layout::{MAX_LAYOUT, MAX_REGISTERS, OWN_CFA, RuleKind, ValueKind, is_known_expression};
#[cfg(feature = "write")]
pub(crate) use self::section::{AFTER_GAP, CONTEXTS, LENGTH, MAX_BLOCK_RANGES, RULE, align_up, step_context};
pub(crate) use self::section::{UnwindReader, UnwindSection};
use crate::error::Error;
use crate::image::ImageOffset;
use crate::index::Index;

/// How a number is computed from the registers and the memory of a frame. Additions wrap around.
///
/// Registers have the numbers that DWARF gives them on the image's architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnwindValue<'i> {
    /// The frame's canonical frame address (CFA) plus this number.
    Cfa(i64),
    /// The value of `register` plus `offset`.
    Register {
        /// The number of the register.
        register: u16,
        /// What is added to its value.
        offset: i64,
    },
    /// The word in memory at the value of `register` plus `offset`, plus `add`.
    Loaded {
        /// The number of the register.
        register: u16,
        /// What is added to its value to get the address of the word.
        offset: i64,
        /// What is added to the word.
        add: i64,
    },
    /// The result of a DWARF expression (DWARF 5, 2.5), at most 255 bytes, without branches and calls. Such an
    /// expression for a register begins with the CFA on its stack.
    Expression(&'i [u8]),
    /// A value that the debug file states in a way that the index cannot express.
    Unknown,
}

/// How the caller's value of a register is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnwindRule<'i> {
    /// The value is lost. An undefined return address means that the frame has no caller.
    Undefined,
    /// The register still has the caller's value.
    SameValue,
    /// The caller's value is in memory at this address.
    Stored(UnwindValue<'i>),
    /// This is the caller's value.
    Value(UnwindValue<'i>),
}

/// The rules of a range of code for finding the registers of the caller.
///
/// [`Self::find_cfa`] and [`Self::find_register`] apply the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindRow<'i> {
    start: u64,
    end: u64,
    cfa: UnwindValue<'i>,
    layout: FrameLayout<'i>,
    /// The bits of a register.
    mask: u64,
}

impl<'i> UnwindRow<'i> {
    /// The code for which the rules hold, half-open. Neighbouring rows differ.
    #[must_use]
    pub fn range(&self) -> Range<ImageOffset> {
        ImageOffset(self.start)..ImageOffset(self.end)
    }

    /// The canonical frame address (CFA): the stack pointer of the caller, unless the row has a rule for that register.
    #[must_use]
    pub fn cfa(&self) -> UnwindValue<'i> {
        self.cfa
    }

    /// The number of the register whose value in the caller is the return address. On x86 it is a number that no
    /// register of the processor has (16, in 32-bit code 8); on ARM it is that of `lr`, or of `pc` if the function
    /// pops that.
    #[must_use]
    pub fn return_register(&self) -> u16 {
        self.layout.return_register
    }

    /// The rule for the return address. Without a rule, the register still has it, as `lr` in a leaf function.
    #[must_use]
    pub fn return_address(&self) -> UnwindRule<'i> {
        self.rule(self.return_register()).unwrap_or(UnwindRule::SameValue)
    }

    /// The rule for a register. Without a rule, the calling convention decides: a callee-saved register has its value,
    /// the value of another one is lost.
    #[must_use]
    pub fn rule(&self, register: u16) -> Option<UnwindRule<'i>> {
        self.rules().find(|(number, _)| *number == register).map(|(_, rule)| rule)
    }

    /// The registers that have rules, in ascending order, and their rules.
    pub fn rules(&self) -> impl Iterator<Item = (u16, UnwindRule<'i>)> + use<'i> {
        Registers::of(&self.layout)
    }

    /// Whether this is code that a signal handler returns to. The caller was interrupted, so its address is that of an
    /// instruction and not a return address.
    #[must_use]
    pub fn is_signal_frame(&self) -> bool {
        self.layout.has(SIGNAL_FRAME)
    }

    /// Whether the return address is signed (ARM64 pointer authentication). The signature is in its high bits.
    #[must_use]
    pub fn is_return_address_signed(&self) -> bool {
        self.layout.has(SIGNED)
    }

    /// Whether the rules hold only at calls, not between the instructions that set up or remove the frame. This is so
    /// for `.ARM.exidx` and Apple's compact unwind information, which have one rule for a whole function.
    #[must_use]
    pub fn holds_at_calls_only(&self) -> bool {
        self.layout.has(CALLS_ONLY)
    }
}

/// An [`UnwindRow`] that is independent of its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedUnwindRow {
    start: u64,
    end: u64,
    /// The CFA, unless the layout states it.
    cfa: Option<(u16, i64)>,
    layout: Box<[u8]>,
    mask: u64,
}

impl OwnedUnwindRow {
    /// The row.
    #[must_use]
    pub fn row(&self) -> UnwindRow<'_> {
        // The layout was decoded before.
        let layout = FrameLayout::decode(&self.layout).unwrap_or_default();
        let cfa = match self.cfa {
            Some((register, offset)) => UnwindValue::Register { register, offset },
            None => layout.cfa.unwrap_or(UnwindValue::Unknown),
        };
        UnwindRow { start: self.start, end: self.end, cfa, layout, mask: self.mask }
    }
}

impl From<UnwindRow<'_>> for OwnedUnwindRow {
    fn from(row: UnwindRow<'_>) -> Self {
        let UnwindRow { start, end, cfa, layout, mask } = row;
        let cfa = match cfa {
            UnwindValue::Register { register, offset } if layout.cfa.is_none() => Some((register, offset)),
            _ => None,
        };
        Self { start, end, cfa, layout: layout.bytes.into(), mask }
    }
}

/// How many unwind rows an index has; see [`Index::unwind_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct UnwindCounts {
    /// Rows, each for another range of code.
    pub rows: u64,
    /// Bytes of code that have a row.
    pub covered: u64,
    /// Distinct rules: rows that differ in more than their ranges.
    pub rules: u64,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Whether the index has unwind rows. They are an option of the build.
    #[must_use]
    pub fn has_unwind_rows(&self) -> bool {
        self.unwind_pages().is_some()
    }

    /// Returns the unwind row of the code at `offset`. Returns `None` if the code has no unwind information, or the
    /// index has no unwind rows.
    ///
    /// The offset is that of [`FrameAddress::image_offset`](crate::FrameAddress::image_offset): a return address is
    /// looked up one byte earlier. After the first call, no memory is allocated.
    ///
    /// ```
    /// use symdex::{FrameState, ImageOffset, Index};
    ///
    /// /// A frame of a stopped thread: its registers by number, and its stack from `stack_start` on.
    /// struct Stopped<'s> {
    ///     registers: [u64; 32],
    ///     stack_start: u64,
    ///     stack: &'s [u8],
    /// }
    ///
    /// impl FrameState for Stopped<'_> {
    ///     fn register(&mut self, register: u16) -> Option<u64> {
    ///         self.registers.get(usize::from(register)).copied()
    ///     }
    ///
    ///     fn word(&mut self, address: u64) -> Option<u64> {
    ///         let at = usize::try_from(address.checked_sub(self.stack_start)?).ok()?;
    ///         self.stack.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    ///     }
    /// }
    ///
    /// # fn demo(index: Index<Vec<u8>>, mut frame: Stopped<'_>) -> Result<(), symdex::Error> {
    /// let Some(row) = index.unwind_row(ImageOffset(0x3cf))? else { return Ok(()) };
    /// let caller = row.find_cfa(&mut frame).and_then(|cfa| {
    ///     let return_address = row.find_register(row.return_register(), cfa, &mut frame)?;
    ///     Some((return_address, cfa))
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the part of the index that is read is damaged.
    pub fn unwind_row(&self, offset: ImageOffset) -> Result<Option<UnwindRow<'_>>, Error> {
        self.unwind_reader()?.map_or(Ok(None), |reader| reader.find(offset.0))
    }

    /// Iterates over all unwind rows in address order. The iterator ends after the first error.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the section is damaged.
    pub fn unwind_rows(
        &self,
    ) -> Result<impl Iterator<Item = Result<UnwindRow<'_>, Error>> + use<'_, B>, Error> {
        Ok(self.unwind_reader()?.into_iter().flat_map(|reader| reader.rows_from(0)))
    }

    /// Counts the unwind rows. This reads all of them.
    ///
    /// # Errors
    ///
    /// As [`Self::unwind_rows`].
    pub fn unwind_counts(&self) -> Result<UnwindCounts, Error> {
        let Some(reader) = self.unwind_reader()? else { return Ok(UnwindCounts::default()) };
        let mut counts = UnwindCounts { rules: reader.rule_count(), ..UnwindCounts::default() };
        for row in reader.rows_from(0) {
            let row = row?;
            counts.rows += 1;
            counts.covered += row.end - row.start;
        }
        Ok(counts)
    }
}
