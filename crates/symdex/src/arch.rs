//! The names of architectures.

use crate::image::Arch;

/// `CPU_ARCH_ABI64` and `CPU_ARCH_ABI64_32` of `mach/machine.h`.
const ABI64: u32 = 0x0100_0000;
const ABI64_32: u32 = 0x0200_0000;
const X86: u32 = 7;
pub(crate) const ARM: u32 = 12;

impl Arch {
    /// The architecture with these Mach-O header fields; the top byte of the subtype holds capability bits and does
    /// not count towards the name. An unknown pair is named `cpu-<type>-<subtype>`.
    #[must_use]
    pub fn from_macho(cputype: u32, cpusubtype: u32) -> Self {
        let subtype = cpusubtype & 0x00ff_ffff;
        let known = MACHO_ARCHS.iter().find(|(t, s, _)| *t == cputype && *s == subtype);
        let family = || MACHO_ARCHS.iter().find(|(t, _, _)| *t == cputype && matches!(cputype, X86));
        let name = match known.or_else(family) {
            Some((_, _, name)) => (*name).to_owned(),
            None => format!("cpu-{cputype:x}-{subtype:x}"),
        };
        Self { name, cputype, cpusubtype }
    }

    /// The architecture of this name, as [`Self::name`] has it; `None` for a name that is not known.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let (cputype, cpusubtype, _) = *MACHO_ARCHS.iter().find(|(_, _, known)| *known == name)?;
        Some(Self::from_macho(cputype, cpusubtype))
    }

    /// The architecture with this `e_machine` of an ELF header, for files of 64 bits or of 32: under Apple's name and numbers where
    /// there are such, else `cputype` is 0 and `cpusubtype` the machine's number.
    #[must_use]
    pub fn from_elf(machine: u16, is_64: bool) -> Self {
        let (cputype, cpusubtype) = match (machine, is_64) {
            (3, _) => (X86, 3),
            (40, _) => (ARM, 0),
            (62, _) => (X86 | ABI64, 3),
            (183, _) => (ARM | ABI64, 0),
            _ => {
                let known = ELF_ARCHS.iter().find(|(m, is_64_too, _)| (*m, *is_64_too) == (machine, is_64));
                let name = known.map_or_else(|| format!("elf-{machine}"), |(_, _, name)| (*name).to_owned());
                return Self { name, cputype: 0, cpusubtype: machine.into() };
            }
        };
        Self::from_macho(cputype, cpusubtype)
    }
}

/// Machines that Apple never had, with the names that LLVM has for them.
const ELF_ARCHS: &[(u16, bool, &str)] = &[
    (8, false, "mipsel"),
    (8, true, "mips64el"),
    (21, true, "ppc64le"),
    (243, false, "riscv32"),
    (243, true, "riscv64"),
    (258, true, "loongarch64"),
];

/// Names as `lipo` prints them.
const MACHO_ARCHS: &[(u32, u32, &str)] = &[
    (X86, 3, "i386"),
    (X86 | ABI64, 3, "x86_64"),
    (X86 | ABI64, 8, "x86_64h"),
    (ARM, 0, "arm"),
    (ARM, 5, "armv4t"),
    (ARM, 6, "armv6"),
    (ARM, 7, "armv5"),
    (ARM, 9, "armv7"),
    (ARM, 11, "armv7s"),
    (ARM, 12, "armv7k"),
    (ARM, 14, "armv6m"),
    (ARM, 15, "armv7m"),
    (ARM, 16, "armv7em"),
    (ARM | ABI64, 0, "arm64"),
    (ARM | ABI64, 1, "arm64v8"),
    (ARM | ABI64, 2, "arm64e"),
    (ARM | ABI64_32, 0, "arm64_32"),
    (ARM | ABI64_32, 1, "arm64_32"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtypes_name_the_arch_whatever_their_capability_bits() {
        assert_eq!(Arch::from_macho(ARM | ABI64, 0x8000_0002).name, "arm64e");
        assert_eq!(Arch::from_macho(ARM | ABI64, 0).name, "arm64");
        assert_eq!(Arch::from_macho(X86 | ABI64, 8).name, "x86_64h");
        assert_eq!(Arch::from_macho(99, 1).name, "cpu-63-1");
        assert_eq!(Arch::from_name("arm64e"), Some(Arch::from_macho(ARM | ABI64, 2)));
        assert_eq!(Arch::from_name("arm65"), None);
    }

    #[test]
    fn machines_of_elf_are_those_of_apple_where_it_has_them() {
        assert_eq!(Arch::from_elf(183, true), Arch::from_macho(ARM | ABI64, 0));
        assert!(Arch::from_elf(40, false).is_arm32());
        assert_eq!(Arch::from_elf(243, true).name, "riscv64");
        assert_eq!(Arch::from_elf(4711, true).name, "elf-4711");
    }
}
