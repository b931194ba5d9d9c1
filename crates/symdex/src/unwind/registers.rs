//! The names of registers, by their DWARF numbers.

use crate::image::Arch;

impl Arch {
    /// The name of the register that DWARF numbers so on this architecture, such as `rsp`, `x29`, `lr` or `d8`. Returns
    /// `None` for registers that unwind rows of compilers do not have, and for other architectures than those of x86
    /// and ARM.
    ///
    /// The numbers are those of the processor supplements of the System V ABI for x86, and of DWARF for the Arm
    /// architecture, in 32 and 64 bits.
    ///
    /// ```
    /// let x86_64 = symdex::Arch::from_name("x86_64").expect("known");
    /// assert_eq!([7, 16, 99].map(|number| x86_64.register_name(number)), [Some("rsp"), Some("rip"), None]);
    /// ```
    #[must_use]
    pub fn register_name(&self, number: u16) -> Option<&'static str> {
        let (names, doubles): (&[&str], _) = match self.family()? {
            Family::X86_64 => (&X86_64, None),
            Family::I386 => (&I386, None),
            Family::Arm => (&ARM, number.checked_sub(256)),
            Family::Arm64 => (&ARM64, number.checked_sub(64)),
        };
        names.get(usize::from(number)).or_else(|| DOUBLES.get(usize::from(doubles?))).copied()
    }

    /// The DWARF number of the stack pointer. Returns `None` for other architectures than those of x86 and ARM.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u16> {
        Some(match self.family()? {
            Family::X86_64 => 7,
            Family::I386 => 4,
            Family::Arm => 13,
            Family::Arm64 => 31,
        })
    }

    fn family(&self) -> Option<Family> {
        Some(match self.name.as_str() {
            "x86_64" | "x86_64h" => Family::X86_64,
            "i386" => Family::I386,
            name if name.starts_with("arm64") => Family::Arm64,
            _ if self.is_arm32() => Family::Arm,
            _ => return None,
        })
    }
}

/// Architectures whose registers have the same numbers.
enum Family {
    X86_64,
    I386,
    Arm,
    Arm64,
}

const X86_64: [&str; 17] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", "rip",
];
const I386: [&str; 9] = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"];
const ARM: [&str; 16] =
    ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc"];
const ARM64: [&str; 32] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
    "sp",
];
/// On ARM64, these are the low halves of the registers that have the numbers.
const DOUBLES: [&str; 32] = [
    "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15",
    "d16", "d17", "d18", "d19", "d20", "d21", "d22", "d23", "d24", "d25", "d26", "d27", "d28", "d29", "d30",
    "d31",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_names_of_their_architecture() {
        let name = |arch, number| Arch::from_name(arch).expect("known").register_name(number);
        assert_eq!(
            ["x86_64", "i386", "arm64e", "armv7s"].map(|arch| name(arch, 4)),
            [Some("rsi"), Some("esp"), Some("x4"), Some("r4")]
        );
        assert_eq!(
            [name("arm64", 72), name("armv7", 264), name("x86_64", 72)],
            [Some("d8"), Some("d8"), None]
        );
        assert_eq!(Arch::from_elf(243, true).register_name(1), None);
        for arch in ["x86_64", "i386", "arm64", "armv7"] {
            let arch = Arch::from_name(arch).expect("known");
            let name = arch.stack_pointer().and_then(|number| arch.register_name(number));
            assert!(name.is_some_and(|name| name.ends_with("sp")), "{arch:?}");
        }
    }
}
