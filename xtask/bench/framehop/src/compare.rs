//! Compares the callers that unwind rows and framehop find, and counts the differences by their reason.

use anyhow::Result;
use fastrand::Rng;
use symdex::{ImageOffset, Index, UnwindValue};

use crate::frame::{Caller, Registers, caller, word};
use crate::peer::Peer;

/// How many examples of differences without a known reason are printed.
const EXAMPLES: usize = 10;

/// The size of an instruction on ARM64, where framehop treats the first one of a function differently.
const INSTRUCTION: u64 = 4;

/// How the two answers of an address compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Equal,
    /// The file does not describe the address. framehop then guesses: a leaf function, or a frame pointer.
    Guessed,
    /// The row needs a register that framehop does not keep.
    OtherRegister,
    /// The canonical frame address is in memory, as in the frame of a signal handler's caller. framehop does not read
    /// memory for it, and guesses.
    CfaInMemory,
    /// The first instruction of a function with compact unwind information: framehop knows that there is no frame yet.
    /// At the next instruction, it has the row's answer.
    FunctionStart,
    /// The row says that the return address is undefined. framehop takes the link register in the innermost frame.
    NoReturnAddress,
    /// No known reason.
    Other,
}

impl Class {
    pub const ALL: [Self; 7] = [
        Self::Equal,
        Self::Guessed,
        Self::OtherRegister,
        Self::CfaInMemory,
        Self::FunctionStart,
        Self::NoReturnAddress,
        Self::Other,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Guessed => "no row",
            Self::OtherRegister => "needs another register",
            Self::CfaInMemory => "CFA in memory",
            Self::FunctionStart => "function start",
            Self::NoReturnAddress => "no return address",
            Self::Other => "differ",
        }
    }
}

/// How many addresses are in each class.
#[derive(Default)]
pub struct Tally {
    counts: [u64; Class::ALL.len()],
    examples: Vec<String>,
}

impl Tally {
    pub fn count(&self, class: Class) -> u64 {
        Class::ALL.iter().zip(self.counts).find(|(other, _)| **other == class).map_or(0, |(_, count)| count)
    }

    /// Differences without a known reason, in words.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    /// The number of addresses and of each class, as the cells of a table.
    pub fn row(&self) -> String {
        let counts = std::iter::once(self.counts.iter().sum::<u64>()).chain(self.counts);
        counts.map(|count| format!("| {count} ")).collect::<String>() + "|"
    }

    pub fn add(&mut self, other: Self) {
        for (count, other) in self.counts.iter_mut().zip(other.counts) {
            *count += other;
        }
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }

    fn add_one(&mut self, class: Class, example: impl FnOnce() -> String) {
        let place = Class::ALL.iter().position(|other| *other == class);
        if let Some(count) = place.and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
        if class == Class::Other && self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// Compares at the first and last byte of each row, and at `random` addresses from the first row to the last one.
///
/// # Errors
/// The index is damaged.
pub fn compare(index: &Index<Vec<u8>>, peer: &mut Peer<'_>, random: usize) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut described = 0..0;
    for row in index.unwind_rows()? {
        let range = row?.range();
        let start = if described.is_empty() { range.start.0 } else { described.start };
        described = start..range.end.0;
        one(index, peer, range.start.0, &mut tally)?;
        one(index, peer, range.end.0 - 1, &mut tally)?;
    }
    let mut rng = Rng::with_seed(2026);
    for _ in 0..if described.is_empty() { 0 } else { random } {
        one(index, peer, rng.u64(described.clone()), &mut tally)?;
    }
    Ok(tally)
}

fn one(index: &Index<Vec<u8>>, peer: &mut Peer<'_>, offset: u64, tally: &mut Tally) -> Result<()> {
    let address = peer.base + offset;
    let stack_pointer = 0x7000_0000_0000;
    // On x86_64, expressions compute with the address of the instruction.
    let frame = Registers { stack_pointer, frame_pointer: stack_pointer + 0x1_0000, return_address: address };
    let row = index.unwind_row(ImageOffset(offset))?;
    let ours = row.as_ref().map(|row| caller(row, frame, peer.numbers));
    let theirs = peer.caller(address, frame);
    let class = match (&row, &ours, &theirs) {
        (_, Some(Caller::Is(ours)), Ok(Some(theirs))) if ours == theirs => Class::Equal,
        (_, Some(Caller::None), Ok(None)) => Class::Equal,
        (_, Some(Caller::NeedsOther), _) => Class::OtherRegister,
        (None, _, Ok(Some(theirs))) if is_guess(frame, *theirs) => Class::Guessed,
        (Some(row), _, Ok(Some(theirs)))
            if matches!(row.cfa(), UnwindValue::Loaded { .. }) && is_guess(frame, *theirs) =>
        {
            Class::CfaInMemory
        }
        (Some(row), Some(Caller::Is(ours)), Ok(Some(theirs)))
            if row.holds_at_calls_only()
                && *theirs == frame
                && peer.caller(address + INSTRUCTION, frame) == Ok(Some(*ours)) =>
        {
            Class::FunctionStart
        }
        (_, Some(Caller::None), Ok(Some(theirs))) if theirs.return_address == frame.return_address => {
            Class::NoReturnAddress
        }
        _ => Class::Other,
    };
    tally.add_one(class, || format!("{address:#x}: {row:x?}: {ours:x?}, framehop: {theirs:x?}"));
    Ok(())
}

/// Whether this is the caller of a frame with a frame pointer, or of a leaf function without a stack.
fn is_guess(frame: Registers, caller: Registers) -> bool {
    let Registers { stack_pointer, frame_pointer, .. } = frame;
    let by_frame_pointer = Registers {
        stack_pointer: frame_pointer + 16,
        frame_pointer: word(frame_pointer),
        return_address: word(frame_pointer + 8),
    };
    let of_leaf =
        Registers { stack_pointer: stack_pointer + 8, return_address: word(stack_pointer), ..frame };
    [by_frame_pointer, of_leaf, frame].contains(&caller)
}
