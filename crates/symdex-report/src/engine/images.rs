//! Finds the image that an address lies in.

use symdex::{Arch, FrameAddress, ImageOffset};

use crate::report::{AddressKind, Base, Frame, ReportImage};

/// A report's images in the order of their addresses.
pub(crate) struct ImageMap<'r> {
    images: &'r [ReportImage],
    /// Positions of images, in the order of their load addresses, then of the report.
    order: Vec<usize>,
    /// Whether addresses may carry a pointer authentication code in their high bits.
    may_be_signed: bool,
}

/// The bits of an address without the code: on iOS and macOS, and in processes with a small address space.
const SIGNIFICANT_BITS: [u32; 2] = [47, 36];

impl<'r> ImageMap<'r> {
    pub(crate) fn new(images: &'r [ReportImage]) -> Self {
        let mut order: Vec<_> =
            (0..images.len()).filter(|number| images[*number].base != Base::Absolute).collect();
        order.sort_by_key(|number| (images[*number].load_address, *number));
        let is_arm64 = |arch: &Arch| arch.name.starts_with("arm64");
        // If no architecture is known, removing high bits is harmless: valid addresses have none.
        let may_be_signed = images.iter().filter_map(|image| image.arch.as_ref()).all(is_arm64);
        Self { images, order, may_be_signed }
    }

    /// Whether addresses may carry a pointer authentication code.
    pub(crate) fn may_be_signed(&self) -> bool {
        self.may_be_signed
    }

    /// Returns the image that contains `address`, and the address. The pointer authentication code is removed if the
    /// address lies in no image with it.
    pub(crate) fn containing(&self, address: u64) -> Option<(usize, u64)> {
        let stripped = SIGNIFICANT_BITS.iter().map(|bits| address & ((1 << bits) - 1));
        let candidates = std::iter::once(address).chain(stripped.filter(|_| self.may_be_signed));
        candidates.into_iter().find_map(|address| Some((self.of_address(address)?, address)))
    }

    fn of_address(&self, address: u64) -> Option<usize> {
        let after = self.order.partition_point(|number| self.images[*number].load_address <= address);
        let number = *self.order.get(after.checked_sub(1)?)?;
        self.images[number].contains(address).then_some(number)
    }

    /// Returns the image of `frame`, and the frame's address without a pointer authentication code.
    pub(crate) fn of_frame(&self, frame: &Frame) -> Option<(usize, u64)> {
        let number = frame.image().map(|number| number as usize);
        let stated = number.and_then(|number| Some((number, self.images.get(number)?)));
        match stated {
            Some((number, image)) if image.base != Base::Absolute => {
                if image.contains(frame.address) {
                    return Some((number, frame.address));
                }
                // The image that the report states counts, unless the address lies in another image.
                self.containing(frame.address).or(Some((number, frame.address)))
            }
            _ => self.containing(frame.address),
        }
    }
}

/// Returns `address`, which lies in `image`, without its pointer authentication code.
pub(crate) fn without_code(image: &ReportImage, address: u64, may_be_signed: bool) -> u64 {
    if image.contains(address) || !may_be_signed {
        return address;
    }
    let mut stripped = SIGNIFICANT_BITS.iter().map(|bits| address & ((1 << bits) - 1));
    stripped.find(|address| image.contains(*address)).unwrap_or(address)
}

/// Returns the offset at which to look up `address` in `image`. `None` if the address lies below the image.
pub(crate) fn offset(image: &ReportImage, address: u64, kind: AddressKind) -> Option<ImageOffset> {
    let address = match kind {
        AddressKind::ProgramCounter => FrameAddress::ProgramCounter(address),
        AddressKind::ReturnAddress => FrameAddress::ReturnAddress(address),
    };
    let adjusted = match &image.arch {
        Some(arch) => address.lookup_address(arch),
        // Every report of a 32-bit ARM process states the architecture.
        None => address.lookup_address(&Arch::from_macho(0, 0)),
    };
    adjusted.checked_sub(image.load_address).map(ImageOffset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(load_address: u64, size: u64, arch: Arch) -> ReportImage {
        ReportImage { load_address, size: Some(size), arch: Some(arch), ..ReportImage::default() }
    }

    #[test]
    fn authentication_codes_are_removed_only_from_addresses_in_no_image() {
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
    fn an_address_without_its_code_lies_in_the_stated_image() {
        let arm64 = Arch::from_macho(0x0100_000c, 2);
        let images = [image(0x1_0000_0000, 0x1000, arm64)];
        let images = ImageMap::new(&images);
        let frame = |address| Frame {
            address,
            image: Some(crate::report::Number::from(0)),
            kind: AddressKind::ReturnAddress,
            site: (0..0).into(),
            detail: crate::report::SymbolDetail::AddressOnly,
            function: None,
            inlined: false,
        };
        assert_eq!(images.of_frame(&frame(0x7e00_0001_0000_0010)), Some((0, 0x1_0000_0010)));
        assert_eq!(images.of_frame(&frame(0x3_0000_0010)), Some((0, 0x3_0000_0010)));
    }
}
