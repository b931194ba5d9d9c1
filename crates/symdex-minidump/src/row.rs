//! Applies unwind rows to the registers and the stack of a frame.

use minidump_unwind::FrameWalker;
use symdex::{FrameState, UnwindRow, UnwindRule};

use crate::registers::Registers;

/// The frame that a frame returns to.
pub(crate) enum Caller {
    /// It has made a call. Its registers are set.
    Returned,
    /// A signal has interrupted it. These are its registers, by name.
    Interrupted(Vec<(&'static str, u64)>),
}

/// The registers and the stack of a frame, as [`UnwindRow`] reads them.
struct WalkedFrame<'f, 'w> {
    registers: &'f Registers,
    walker: &'f mut (dyn FrameWalker + Send + 'w),
}

impl FrameState for WalkedFrame<'_, '_> {
    fn register(&mut self, register: u16) -> Option<u64> {
        let name = self.registers.name(register)?;
        // The rows of PLT stubs depend on the exact instruction.
        if name == self.registers.program_counter {
            Some(self.walker.get_instruction())
        } else {
            self.walker.get_callee_register(name)
        }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        self.walker.get_register_at_address(address)
    }
}

/// Finds the caller of the frame of `walker` by `row`. A frame without a caller, such as the first one of a thread, has
/// one with the return address 0, at which the walk ends. `None` if the row does not apply: it needs memory or
/// registers that are not known.
pub(crate) fn caller(
    row: &UnwindRow<'_>,
    registers: &Registers,
    walker: &mut (dyn FrameWalker + Send),
) -> Option<Caller> {
    let mut frame = WalkedFrame { registers, walker };
    if row.return_address() == UnwindRule::Undefined {
        let stack_pointer = frame.walker.get_callee_register(registers.stack_pointer)?;
        frame.walker.set_cfa(stack_pointer)?;
        frame.walker.set_ra(0)?;
        return Some(Caller::Returned);
    }
    let cfa = row.find_cfa(&mut frame)?;
    let return_address = row.find_register(row.return_register(), cfa, &mut frame)? & registers.address_mask;
    let mut values = Vec::with_capacity(registers.names.len());
    for (number, name) in (0..).zip(registers.names) {
        let value = match row.rule(number) {
            _ if *name == registers.program_counter => Some(return_address),
            None if *name == registers.stack_pointer => Some(cfa),
            None if !registers.is_callee_saved(name) => None,
            _ => row.find_register(number, cfa, &mut frame),
        };
        values.extend(value.map(|value| (*name, value)));
    }
    if row.is_signal_frame() {
        return Some(Caller::Interrupted(values));
    }
    for name in registers.names {
        let value = values.iter().find(|(known, _)| known == name);
        match value {
            Some((_, value)) => frame.walker.set_caller_register(name, *value)?,
            None => frame.walker.clear_caller_register(name),
        }
    }
    Some(Caller::Returned)
}

/// The return address of the frame of `walker`, which is at the first instruction of a function, and the stack pointer
/// after the return. The address is in the link register or, on x86, on top of the stack.
pub(crate) fn return_at_entry(
    registers: &Registers,
    walker: &(dyn FrameWalker + Send),
) -> Option<(u64, u64)> {
    let stack_pointer = walker.get_callee_register(registers.stack_pointer)?;
    let (return_address, cfa) = match registers.stack_pointer {
        "rsp" => (walker.get_register_at_address(stack_pointer)?, stack_pointer.checked_add(8)?),
        "esp" => (walker.get_register_at_address(stack_pointer)?, stack_pointer.checked_add(4)?),
        _ => (walker.get_callee_register("lr")?, stack_pointer),
    };
    Some((return_address & registers.address_mask, cfa))
}
