//! Image ids, architectures, offsets and addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The id of one linked binary for one architecture: `LC_UUID` or the ELF build id; if it has neither, a hash of
/// the slice.
///
/// Printed in lower-case hexadecimal without dashes, as in the name of the index file; a hash has the prefix `h-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u8, Vec<u8>)", into = "(u8, Vec<u8>)")]
pub struct ImageId {
    /// [`OWN`] or [`HASH`].
    pub(crate) kind: u8,
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl ImageId {
    /// The length of the longest id, in bytes.
    pub const MAX_LEN: usize = 32;

    /// The id with these bytes. Returns `None` if there are none or more than [`Self::MAX_LEN`].
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        Self::with_kind(OWN, id)
    }

    /// Whether the image has no id of its own, so that this is a hash.
    #[must_use]
    pub fn is_hash(&self) -> bool {
        self.kind == HASH
    }

    /// The id of an image that has none of its own: a hash of its bytes.
    #[must_use]
    pub fn of_hash(hash: u128) -> Self {
        let mut id = Self { kind: HASH, bytes: [0; Self::MAX_LEN], len: 16 };
        id.bytes.iter_mut().zip(hash.to_be_bytes()).for_each(|(to, from)| *to = from);
        id
    }

    pub(crate) fn with_kind(kind: u8, id: &[u8]) -> Option<Self> {
        let len = u8::try_from(id.len()).ok().filter(|len| *len != 0 && matches!(kind, OWN | HASH))?;
        let mut bytes = [0; Self::MAX_LEN];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { kind, bytes, len })
    }

    /// The id's own bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // `len` is at most `MAX_LEN`.
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// The id followed by zeros, as every checksum begins.
    pub(crate) fn padded(&self) -> &[u8; Self::MAX_LEN] {
        &self.bytes
    }
}

/// What kind of id it is, as indexes store it.
const OWN: u8 = 0;
const HASH: u8 = 1;

impl TryFrom<(u8, Vec<u8>)> for ImageId {
    type Error = &'static str;

    fn try_from((kind, bytes): (u8, Vec<u8>)) -> Result<Self, Self::Error> {
        Self::with_kind(kind, &bytes).ok_or("an image id is its own or a hash, and has 1 to 32 bytes")
    }
}

impl From<ImageId> for (u8, Vec<u8>) {
    fn from(id: ImageId) -> Self {
        (id.kind, id.as_bytes().to_vec())
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == HASH {
            f.write_str("h-")?;
        }
        let mut text = String::with_capacity(2 * self.as_bytes().len());
        let digits = self.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 15]);
        text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
        f.write_str(&text)
    }
}

impl fmt::Debug for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageId({self})")
    }
}

/// Text that is not an image id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an image id: {found:?}; expected 2 to 64 hexadecimal digits, dashes allowed")]
pub struct ParseImageIdError {
    /// The text as given.
    pub found: String,
}

impl FromStr for ImageId {
    type Err = ParseImageIdError;

    /// Reads an id from hexadecimal digits of either case, after `h-` for a hash; dashes are skipped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseImageIdError { found: text.to_owned() };
        let (kind, digits) = text.strip_prefix("h-").map_or((OWN, text), |digits| (HASH, digits));
        let (mut bytes, mut len) = ([0u8; Self::MAX_LEN], 0);
        for digit in digits.bytes().filter(|digit| *digit != b'-') {
            let digit = char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let (Some(byte), Some(digit)) = (bytes.get_mut(len / 2), digit) else { return Err(error()) };
            *byte = *byte << 4 | digit;
            len += 1;
        }
        let id = bytes.get(..len / 2).filter(|_| len % 2 == 0).and_then(|id| Self::with_kind(kind, id));
        id.ok_or_else(error)
    }
}

/// The architecture an image was linked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arch {
    /// Apple's name for it, as `atos -arch` and `lipo` take it: `arm64`, `x86_64h`, ...
    pub name: String,
    /// Mach-O `cputype`.
    pub cputype: u32,
    /// Mach-O `cpusubtype`, capability bits included.
    pub cpusubtype: u32,
}

impl Arch {
    /// Whether this is 32-bit ARM, where bit 0 of a code address is the Thumb flag.
    #[must_use]
    pub fn is_arm32(&self) -> bool {
        self.cputype == ARM
    }

    /// Whether addresses have 64 bits.
    ///
    /// ```
    /// let is_64_bit = |name| symdex::Arch::from_name(name).map(|arch| arch.is_64_bit());
    /// assert_eq!(["arm64", "arm64_32", "i386"].map(is_64_bit), [Some(true), Some(false), Some(false)]);
    /// ```
    #[must_use]
    pub fn is_64_bit(&self) -> bool {
        let known = ELF_ARCHS.iter().find(|(_, _, name)| self.cputype == 0 && self.name == *name);
        known.map_or(self.cputype & ABI64 != 0, |(_, is_64, _)| *is_64)
    }
}

impl Arch {
    /// Whether registers have 32 bits. Those of arm64_32 have 64, as on arm64, but its addresses have 32.
    pub(crate) fn is_32_bit(&self) -> bool {
        !self.is_64_bit() && self.cputype & ABI64_32 == 0
    }
}

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

    /// The architecture of this name, as [`Self::name`] has it. Returns `None` for a name that is not known.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some((machine, is_64, _)) = ELF_ARCHS.iter().find(|(_, _, known)| *known == name) {
            return Some(Self::from_elf(*machine, *is_64));
        }
        let (cputype, cpusubtype, _) = *MACHO_ARCHS.iter().find(|(_, _, known)| *known == name)?;
        Some(Self::from_macho(cputype, cpusubtype))
    }

    /// The architecture with this `e_machine` of an ELF header, for files of 64 or 32 bits. It has Apple's name and
    /// numbers if Apple has the architecture. Otherwise `cputype` is 0 and `cpusubtype` is `e_machine`.
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

/// Machines that Apple never supported, with LLVM's names for them.
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

/// Bytes from the start of the image: an address of the debug file minus [`crate::Metadata::base`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageOffset(pub u64);

impl fmt::Display for ImageOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// An address of a stack frame.
///
/// A return address points after the call, possibly at the next line or the next function. It is looked up one byte
/// earlier. A program counter (frame 0, or the frame above a signal trampoline) is looked up unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameAddress {
    /// The address of an instruction.
    ProgramCounter(u64),
    /// The address at which execution continues after a call.
    ReturnAddress(u64),
}

impl FrameAddress {
    /// The runtime address to look up.
    ///
    /// On 32-bit ARM bit 0 is the Thumb flag and is cleared first. No other architecture masks anything before
    /// the subtraction: Swift's async continuations rely on the exact value.
    #[must_use]
    pub fn lookup_address(self, arch: &Arch) -> u64 {
        let clear_thumb = |address: u64| if arch.is_arm32() { address & !1 } else { address };
        match self {
            FrameAddress::ProgramCounter(pc) => clear_thumb(pc),
            FrameAddress::ReturnAddress(address) => clear_thumb(address).wrapping_sub(1),
        }
    }

    /// The offset to look up in an image that is loaded at `load_address`. Returns `None` if the address lies below
    /// it.
    #[must_use]
    pub fn image_offset(self, load_address: u64, arch: &Arch) -> Option<ImageOffset> {
        self.lookup_address(arch).checked_sub(load_address).map(ImageOffset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse_alike() {
        let id: ImageId = "0C37C502-ABA0-3641-A08F-84C794684F36".parse().expect("a UUID is an id");
        assert_eq!(id.to_string(), "0c37c502aba03641a08f84c794684f36");
        assert_eq!(id.as_bytes().len(), 16);
        let hash = ImageId::of_hash(0x0123);
        assert_eq!(hash.to_string(), "h-00000000000000000000000000000123");
        assert_eq!(hash.to_string().parse(), Ok(hash.clone()));
        assert_ne!(Some(hash), ImageId::new(&0x0123u128.to_be_bytes()), "a hash is no id of the image's own");
        assert!("0c3".parse::<ImageId>().is_err());
        assert!("".parse::<ImageId>().is_err());
        assert!("zz".parse::<ImageId>().is_err());
        assert!("00".repeat(33).parse::<ImageId>().is_err());
        assert!(ImageId::new(&[0; 33]).is_none());
        for len in 1..=ImageId::MAX_LEN {
            let bytes: Vec<u8> = (0..len).map(|at| [0, 0xf, 0xab][at % 3]).collect();
            let id = ImageId::new(&bytes).expect("a length of ids");
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((id.to_string(), digits.parse()), (digits, Ok(id)));
        }
    }

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
        assert_eq!(Arch::from_name("riscv64"), Some(Arch::from_elf(243, true)));
        assert_eq!(Arch::from_elf(4711, true).name, "elf-4711");
    }

    #[test]
    fn return_addresses_step_back_by_one_byte() {
        let arm64 = Arch::from_macho(0x0100_000c, 0);
        assert_eq!(FrameAddress::ProgramCounter(0x1005).image_offset(0x1000, &arm64), Some(ImageOffset(5)));
        assert_eq!(FrameAddress::ReturnAddress(0x1005).image_offset(0x1000, &arm64), Some(ImageOffset(4)));
        assert_eq!(FrameAddress::ReturnAddress(0x1000).image_offset(0x1000, &arm64), None);
    }

    #[test]
    fn the_thumb_bit_goes_first_on_32_bit_arm_only() {
        let armv7 = Arch::from_macho(12, 9);
        let x86_64 = Arch::from_macho(0x0100_0007, 3);
        assert_eq!(FrameAddress::ReturnAddress(0x2005).lookup_address(&armv7), 0x2003);
        assert_eq!(FrameAddress::ProgramCounter(0x2005).lookup_address(&armv7), 0x2004);
        assert_eq!(FrameAddress::ReturnAddress(0x2005).lookup_address(&x86_64), 0x2004);
    }
}
