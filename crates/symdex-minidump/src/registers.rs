//! Registers: their names in `minidump-unwind` and their numbers in DWARF.

use std::collections::HashSet;

use minidump::system_info::Cpu;
use minidump::{CpuContext, MinidumpContext, MinidumpContextValidity, MinidumpRawContext};

/// The names by DWARF number, as the ABI of each processor numbers them.
const X86: [&str; 9] = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"];
const X86_64: [&str; 17] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", "rip",
];
const ARM: [&str; 16] =
    ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "fp", "r12", "sp", "lr", "pc"];
const ARM64: [&str; 33] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr",
    "sp", "pc",
];

/// The registers of a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    /// The names by DWARF number.
    pub(crate) names: &'static [&'static str],
    pub(crate) stack_pointer: &'static str,
    pub(crate) frame_pointer: &'static str,
    pub(crate) program_counter: &'static str,
    /// The registers that a function has to restore, besides the stack pointer.
    callee_saved: &'static [&'static str],
    /// The bits of a return address that count: on 32-bit ARM the lowest bit states the instruction set.
    pub(crate) address_mask: u64,
}

impl Registers {
    /// The registers of `cpu`; `None` if it is not supported.
    pub(crate) fn of(cpu: Cpu) -> Option<Self> {
        Some(match cpu {
            Cpu::X86 => Self {
                names: &X86,
                stack_pointer: "esp",
                frame_pointer: "ebp",
                program_counter: "eip",
                callee_saved: &["ebx", "ebp", "esi", "edi"],
                address_mask: u64::MAX,
            },
            Cpu::X86_64 => Self {
                names: &X86_64,
                stack_pointer: "rsp",
                frame_pointer: "rbp",
                program_counter: "rip",
                callee_saved: &["rbx", "rbp", "r12", "r13", "r14", "r15"],
                address_mask: u64::MAX,
            },
            Cpu::Arm => Self {
                names: &ARM,
                stack_pointer: "sp",
                frame_pointer: "fp",
                program_counter: "pc",
                callee_saved: &["r4", "r5", "r6", "r7", "r8", "r9", "r10", "fp"],
                address_mask: !1,
            },
            Cpu::Arm64 => Self {
                names: &ARM64,
                stack_pointer: "sp",
                frame_pointer: "fp",
                program_counter: "pc",
                callee_saved: &["x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp"],
                address_mask: u64::MAX,
            },
            _ => return None,
        })
    }

    /// The name of the register with this DWARF number.
    pub(crate) fn name(&self, number: u16) -> Option<&'static str> {
        self.names.get(usize::from(number)).copied()
    }

    /// Whether a function leaves the register as it was, unless a rule says otherwise.
    pub(crate) fn is_callee_saved(&self, name: &str) -> bool {
        self.callee_saved.contains(&name)
    }
}

/// A context of the processor of `model` in which only the registers of `values` are known.
pub(crate) fn context_with(model: &MinidumpContext, values: &[(&'static str, u64)]) -> MinidumpContext {
    let mut context = model.clone();
    let valid: HashSet<_> = values.iter().map(|(name, _)| *name).collect();
    for (name, value) in values {
        set(&mut context.raw, name, *value);
    }
    context.valid = MinidumpContextValidity::Some(valid);
    context
}

/// Sets a register. A value that is too wide, and a register that the processor does not have, are ignored.
fn set(context: &mut MinidumpRawContext, name: &str, value: u64) {
    let narrow = u32::try_from(value).ok();
    let _ = match context {
        MinidumpRawContext::X86(context) => narrow.and_then(|value| context.set_register(name, value)),
        MinidumpRawContext::Amd64(context) => context.set_register(name, value),
        MinidumpRawContext::Arm(context) => narrow.and_then(|value| context.set_register(name, value)),
        MinidumpRawContext::Arm64(context) => context.set_register(name, value),
        MinidumpRawContext::OldArm64(context) => context.set_register(name, value),
        _ => None,
    };
}
