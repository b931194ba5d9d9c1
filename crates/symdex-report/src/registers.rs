//! The registers of a thread.

/// A register and its value.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The name, as Apple's reports write it: `x0`, `rip`.
    pub name: String,
    /// The value.
    pub value: u64,
    /// The report's description of the value; empty if there is none.
    pub description: String,
}

impl Register {
    /// A register without a description.
    #[must_use]
    pub fn new(name: impl Into<String>, value: u64) -> Self {
        Self { name: name.into(), value, description: String::new() }
    }
}

/// The most registers that are read of a thread. Processors have a few dozen.
pub(crate) const MAX_REGISTERS: usize = 128;

/// Register names in the order of Apple's reports. Numbered registers stand between the two lists.
const BEFORE_NUMBERED: [&str; 16] = [
    "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "rbp", "rsp", "eax", "ebx", "ecx", "edx", "edi", "esi", "ebp",
    "esp",
];
const AFTER_NUMBERED: [&str; 23] = [
    "ss",
    "efl",
    "rip",
    "eip",
    "rfl",
    "cr2",
    "cs",
    "ds",
    "es",
    "fs",
    "gs",
    "fp",
    "ip",
    "lr",
    "sp",
    "pc",
    "cpsr",
    "far",
    "esr",
    "fsr",
    "exception",
    "trap",
    "err",
];

/// Sorts `registers` into the order of Apple's reports. Registers with other names come last.
pub(crate) fn in_order(registers: impl Iterator<Item = Register>) -> Vec<Register> {
    let mut registers: Vec<_> = registers.take(MAX_REGISTERS).collect();
    for register in &mut registers {
        match register.name.as_str() {
            "rflags" => register.name = "rfl".to_owned(),
            "eflags" => register.name = "efl".to_owned(),
            _ => {}
        }
    }
    registers.sort_by_cached_key(|register| rank(&register.name));
    registers
}

/// The sort key: the list, and the position in it.
fn rank(name: &str) -> (usize, usize) {
    let position = |names: &[&str]| names.iter().position(|known| *known == name);
    let number = || name.strip_prefix(['x', 'r'])?.parse().ok();
    if let Some(position) = position(&BEFORE_NUMBERED) {
        (0, position)
    } else if let Some(number) = number() {
        (1, number)
    } else {
        (2, position(&AFTER_NUMBERED).unwrap_or(AFTER_NUMBERED.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_in_apples_order() {
        let order = |names: &[&str]| {
            let register = |name: &&str| Register::new(*name, 0);
            let names = in_order(names.iter().map(register)).into_iter().map(|register| register.name);
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(&["cr2", "rflags", "r10", "r8", "zmm", "rax", "rip"]), "rax r8 r10 rip rfl cr2 zmm");
        assert_eq!(order(&["esr", "pc", "sp", "lr", "fp", "x10", "x9"]), "x9 x10 fp lr sp pc esr");
    }
}
