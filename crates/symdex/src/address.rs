//! The kinds of address a crash report and a debug file speak of, as types that do not mix.

use std::fmt;

use crate::Arch;

/// An address as it stands in the debug file, before any slide ("stated virtual memory address").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Svma(pub u64);

/// Bytes from the start of the image: [`Svma`] minus the image's base, the unit every index is keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageOffset(pub u64);

impl fmt::Display for ImageOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// An address taken from a stack, with what it points at.
///
/// A return address points behind the call, possibly at the next line or the next function, so it is looked
/// up one byte earlier; a program counter (frame 0, or the frame above a signal trampoline) as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameAddress {
    /// The address of an instruction: looked up as it stands.
    ProgramCounter(u64),
    /// The address execution returns to: looked up one byte before.
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

    /// The offset to look up in an image that is loaded at `load_address`; `None` where the address lies below it.
    #[must_use]
    pub fn image_offset(self, load_address: u64, arch: &Arch) -> Option<ImageOffset> {
        self.lookup_address(arch).checked_sub(load_address).map(ImageOffset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
