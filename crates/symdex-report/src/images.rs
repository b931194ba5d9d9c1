//! Which image an address lies in.

use symdex::{Arch, FrameAddress, ImageOffset};

use crate::report::{AddressKind, Base, Frame, Image};

/// A report's images in the order of their addresses.
pub(crate) struct ImageMap<'r> {
    images: &'r [Image],
    /// Numbers of images by load address; the report's order where one is loaded twice.
    order: Vec<usize>,
    /// Whether addresses may carry a signature in their high bits.
    may_be_signed: bool,
}

/// Bits that an address has without a signature: on iOS and macOS, and in processes with a small address space.
const SIGNIFICANT_BITS: [u32; 2] = [47, 36];

impl<'r> ImageMap<'r> {
    pub(crate) fn new(images: &'r [Image]) -> Self {
        let mut order: Vec<_> =
            (0..images.len()).filter(|number| images[*number].base != Base::Absolute).collect();
        order.sort_by_key(|number| (images[*number].load_address, *number));
        let is_arm64 = |arch: &Arch| arch.name.starts_with("arm64");
        // Where no architecture is known, no address that makes sense has high bits either.
        let may_be_signed = images.iter().filter_map(|image| image.arch.as_ref()).all(is_arm64);
        Self { images, order, may_be_signed }
    }

    /// The image that takes in `address`, and the address without its signature, if it lies in none with it.
    pub(crate) fn containing(&self, address: u64) -> Option<(usize, u64)> {
        let stripped = SIGNIFICANT_BITS.iter().map(|bits| address & ((1 << bits) - 1));
        let candidates = std::iter::once(address).chain(stripped.filter(|_| self.may_be_signed));
        candidates.into_iter().find_map(|address| Some((self.of_address(address)?, address)))
    }

    fn of_address(&self, address: u64) -> Option<usize> {
        let behind = self.order.partition_point(|number| self.images[*number].load_address <= address);
        let number = *self.order.get(behind.checked_sub(1)?)?;
        self.images[number].contains(address).then_some(number)
    }

    /// The image of `frame`, and the frame's address without a signature.
    pub(crate) fn of_frame(&self, frame: &Frame) -> Option<(usize, u64)> {
        let stated = frame.image.and_then(|number| Some((number, self.images.get(number)?)));
        match stated {
            Some((number, image)) if image.base != Base::Absolute => {
                if image.contains(frame.address) {
                    return Some((number, frame.address));
                }
                // What the report states counts, unless the address says otherwise.
                self.containing(frame.address).or(Some((number, frame.address)))
            }
            _ => self.containing(frame.address),
        }
    }
}

/// The offset to look up for an address in `image`; `None` below it. `kind` is what the address is of.
pub(crate) fn offset(image: &Image, address: u64, kind: AddressKind) -> Option<ImageOffset> {
    let address = match kind {
        AddressKind::ProgramCounter => FrameAddress::ProgramCounter(address),
        AddressKind::ReturnAddress => FrameAddress::ReturnAddress(address),
    };
    let adjusted = match &image.arch {
        Some(arch) => address.lookup_address(arch),
        // Of 32-bit ARM every report says so.
        None => address.lookup_address(&Arch::from_macho(0, 0)),
    };
    adjusted.checked_sub(image.load_address).map(ImageOffset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(load_address: u64, size: u64, arch: Arch) -> Image {
        Image { load_address, size: Some(size), arch: Some(arch), ..Image::default() }
    }

    #[test]
    fn signatures_are_stripped_only_from_what_lies_in_no_image() {
        let arm64 = Arch::from_macho(0x0100_000c, 2);
        let images = [image(0x2_0000_0000, 0x1000, arm64.clone()), image(0x1_0000_0000, 0x1000, arm64)];
        let images = ImageMap::new(&images);
        assert_eq!(images.containing(0x1_0000_0010), Some((1, 0x1_0000_0010)));
        assert_eq!(images.containing(0x8123_8001_0000_0010), Some((1, 0x1_0000_0010)));
        assert_eq!(images.containing(0x2_0000_0fff), Some((0, 0x2_0000_0fff)));
        assert_eq!(images.containing(0x2_0000_1000), None);
        assert_eq!(images.containing(0), None);
        let x86_64 = [image(0x1_0000_0000, 0x1000, Arch::from_macho(0x0100_0007, 3))];
        assert_eq!(ImageMap::new(&x86_64).containing(0x8000_0001_0000_0010), None);
    }

    #[test]
    fn an_address_that_is_stripped_keeps_its_place_in_the_image_that_is_stated() {
        let arm64 = Arch::from_macho(0x0100_000c, 2);
        let images = [image(0x1_0000_0000, 0x1000, arm64)];
        let images = ImageMap::new(&images);
        let frame = |address| Frame {
            address,
            image: Some(0),
            kind: AddressKind::ReturnAddress,
            site: 0..0,
            detail: crate::report::SymbolDetail::AddressOnly,
            function: None,
            inlined: false,
        };
        assert_eq!(images.of_frame(&frame(0x7e00_0001_0000_0010)), Some((0, 0x1_0000_0010)));
        assert_eq!(images.of_frame(&frame(0x3_0000_0010)), Some((0, 0x3_0000_0010)));
    }
}
