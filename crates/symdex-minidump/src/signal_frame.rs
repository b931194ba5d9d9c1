//! Frames of signal handlers without unwind information: what Linux puts on the stack when a signal interrupts a
//! thread.
//!
//! On ARM64 a handler returns to code of the kernel (the vDSO) or of an emulator, for which there is no index. On ARM
//! it returns to code of the C library whose tables do not say that it is a signal frame. At that point the stack
//! pointer is the address of the structure that has the interrupted registers.

use minidump::system_info::{Cpu, Os};

use crate::process::Block;

/// Where the interrupted registers are in a frame of a signal handler.
struct Layout {
    /// The position of the first register.
    first: u64,
    /// The size of a register.
    width: u64,
    /// The registers, in order.
    names: &'static [&'static str],
}

/// `struct rt_sigframe` of arch/arm64/kernel/signal.c: `siginfo_t`, then `struct ucontext` with `struct sigcontext`
/// after the signal mask, in which the fault address comes before the registers.
const ARM64: [Layout; 1] = [Layout {
    first: 128 + 176 + 8,
    width: 8,
    names: &[
        "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
        "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp",
        "lr", "sp", "pc",
    ],
}];

const ARM_NAMES: &[&str] =
    &["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "fp", "r12", "sp", "lr", "pc"];

/// `struct rt_sigframe` and `struct sigframe` of arch/arm/kernel/signal.c: with `siginfo_t` before `struct ucontext`,
/// for handlers with `SA_SIGINFO`, and without it.
const ARM: [Layout; 2] = [
    Layout { first: 128 + 32, width: 4, names: ARM_NAMES },
    Layout { first: 32, width: 4, names: ARM_NAMES },
];

fn layouts(os: Os, cpu: Cpu) -> &'static [Layout] {
    match (os, cpu) {
        (Os::Linux | Os::Android, Cpu::Arm64) => &ARM64,
        (Os::Linux | Os::Android, Cpu::Arm) => &ARM,
        _ => &[],
    }
}

/// Whether the layout of frames of signal handlers is known here.
pub(crate) fn has_layout(os: Os, cpu: Cpu) -> bool {
    !layouts(os, cpu).is_empty()
}

/// The registers that a signal has interrupted, by name, if the stack pointer of a handler's return is the start of
/// `stack`. `is_code` says whether an address lies in an image. Returns `None` if the stack does not look so.
pub(crate) fn interrupted(
    os: Os,
    cpu: Cpu,
    stack: Block<'_>,
    is_code: impl Fn(u64) -> bool,
) -> Option<Vec<(&'static str, u64)>> {
    layouts(os, cpu).iter().find_map(|layout| {
        let registers = layout.read(stack)?;
        let value = |name| registers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let (program_counter, stack_pointer) = (value("pc")?, value("sp")?);
        // Without another stack for signals, the interrupted stack is older, so above.
        let is_plausible = is_code(program_counter) && stack_pointer.is_multiple_of(layout.width);
        is_plausible.then_some(registers)
    })
}

impl Layout {
    fn read(&self, stack: Block<'_>) -> Option<Vec<(&'static str, u64)>> {
        let word = |number: u64| {
            let bytes =
                stack.starting_at(stack.address.checked_add(self.first + number * self.width)?)?.bytes;
            match self.width {
                4 => Some(u32::from_le_bytes(*bytes.first_chunk()?).into()),
                _ => Some(u64::from_le_bytes(*bytes.first_chunk()?)),
            }
        };
        (0..).zip(self.names).map(|(number, name)| Some((*name, word(number)?))).collect()
    }
}
