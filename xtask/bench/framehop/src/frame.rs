//! The made-up frame that both unwind, and its caller.

use symdex::{FrameState, UnwindRow};

/// The numbers of registers in unwind rows.
#[derive(Clone, Copy)]
pub struct Numbers {
    pub stack_pointer: u16,
    pub frame_pointer: u16,
    /// On x86_64, the instruction pointer; on ARM64, the link register.
    pub return_register: u16,
}

/// The registers that framehop keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// In the made-up frame, the value of [`Numbers::return_register`]. In its caller, the return address.
    pub return_address: u64,
}

/// The word in memory at an address: a number that depends on all bits of the address.
pub fn word(address: u64) -> u64 {
    let mixed = (address ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The made-up frame, as an unwind row reads it.
struct State {
    registers: Registers,
    numbers: Numbers,
    /// Whether the row needs a register that framehop does not keep.
    needs_other: bool,
}

impl FrameState for State {
    fn register(&mut self, register: u16) -> Option<u64> {
        match register {
            number if number == self.numbers.stack_pointer => Some(self.registers.stack_pointer),
            number if number == self.numbers.frame_pointer => Some(self.registers.frame_pointer),
            number if number == self.numbers.return_register => Some(self.registers.return_address),
            _ => {
                self.needs_other = true;
                None
            }
        }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        Some(word(address))
    }
}

/// What a row says about the caller of the made-up frame.
#[derive(Debug)]
pub enum Caller {
    Is(Registers),
    /// The frame is the outermost one, or the return address is lost.
    None,
    /// The row needs a register that framehop does not keep.
    NeedsOther,
}

/// Applies a row to the frame with these registers.
pub fn caller(row: &UnwindRow<'_>, registers: Registers, numbers: Numbers) -> Caller {
    let mut state = State { registers, numbers, needs_other: false };
    let found = row.find_cfa(&mut state).and_then(|cfa| {
        let return_address = row.find_register(row.return_register(), cfa, &mut state)?;
        // An undefined frame pointer keeps its value in framehop.
        let frame_pointer = row.find_register(numbers.frame_pointer, cfa, &mut state);
        let frame_pointer = frame_pointer.unwrap_or(registers.frame_pointer);
        Some(Registers { stack_pointer: cfa, frame_pointer, return_address })
    });
    match found {
        _ if state.needs_other => Caller::NeedsOther,
        Some(registers) => Caller::Is(registers),
        None => Caller::None,
    }
}
