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

impl<'r> ImageMap<'r> {
    pub(crate) fn new(images: &'r [ReportImage]) -> Self {
        let mut order: Vec<_> = (0..images.len()).filter(|number| images[*number].is_placed()).collect();
        order.sort_by_key(|number| (images[*number].load_address, *number));
        let is_arm64 = |arch: &Arch| arch.name.starts_with("arm64");
        // If no architecture is known, removing high bits is harmless: valid addresses have none.
        let may_be_signed = images.iter().filter_map(|image| image.arch.as_ref()).all(is_arm64);
        Self { images, order, may_be_signed }
    }

    /// Returns the image that contains `address`.
    pub(crate) fn containing(&self, address: u64) -> Option<usize> {
        let after = self.order.partition_point(|number| self.images[*number].load_address <= address);
        let number = *self.order.get(after.checked_sub(1)?)?;
        self.images[number].contains(address).then_some(number)
    }

    /// Returns the image of `frame`.
    pub(crate) fn of_frame(&self, frame: &Frame) -> Option<usize> {
        let (number, image) = self.stated(frame).unzip();
        if image.is_some_and(|image| image.contains(frame.address)) {
            return number;
        }
        // The image that the report states counts, unless the address lies in another image.
        self.containing(frame.address).or(number)
    }

    /// The image that the report states for `frame`. An entry for addresses in no image does not count.
    fn stated(&self, frame: &Frame) -> Option<(usize, &'r ReportImage)> {
        let number = frame.image()? as usize;
        let image = self.images.get(number)?;
        (image.base != Base::Absolute).then_some((number, image))
    }

    /// Returns the address of `frame` without its pointer authentication code. An address in an image has none.
    pub(crate) fn without_signature(&self, frame: &Frame) -> u64 {
        let [more, fewer] = unsigned(frame.address);
        if !self.may_be_signed || frame.address == fewer {
            return frame.address;
        }
        let (_, stated) = self.stated(frame).unzip();
        let lies = |address: &u64| {
            stated.is_some_and(|image| image.contains(*address)) || self.containing(*address).is_some()
        };
        let of_any = [frame.address, more, fewer].into_iter().find(lies);
        // Whether an address lies in an image without a size is unknown, but not below it.
        let unsized_image = stated.filter(|image| image.base == Base::Image && image.size.is_none());
        let above =
            |image: &ReportImage| [fewer, more].into_iter().find(|address| *address >= image.load_address);
        let of_stated = || above(unsized_image.filter(|_| is_signed(frame.address))?);
        of_any.or_else(of_stated).unwrap_or(frame.address)
    }
}

/// Returns `address` without the bits of a pointer authentication code: on iOS and macOS, and in processes with a small
/// address space.
#[must_use]
pub fn unsigned(address: u64) -> [u64; 2] {
    [47, 36].map(|bits| address & ((1 << bits) - 1))
}

/// Whether the high bits of `address` differ, which those of a valid address do not.
fn is_signed(address: u64) -> bool {
    !matches!(address >> 47, 0 | 0x1_ffff)
}

/// Returns `address` without a pointer authentication code, if the report does not state which images there are.
pub(crate) fn without_signature(address: u64) -> u64 {
    if is_signed(address) { unsigned(address)[1] } else { address }
}

/// Returns the offset at which to look up `address` in `image`. `None` if the address lies below the image, or if it is
/// unknown where the image lies.
pub(crate) fn offset(image: &ReportImage, address: u64, kind: AddressKind) -> Option<ImageOffset> {
    (image.base != Base::Unknown).then_some(())?;
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

    fn frame(address: u64, image: Option<usize>) -> Frame {
        Frame { kind: AddressKind::ReturnAddress, ..Frame::new(address, image) }
    }

    #[test]
    fn authentication_codes_are_removed_only_from_addresses_in_no_image() {
        let arm64 = Arch::from_macho(0x0100_000c, 2);
        let images = [image(0x2_0000_0000, 0x1000, arm64.clone()), image(0x1_0000_0000, 0x1000, arm64)];
        let images = ImageMap::new(&images);
        let found = |address| {
            let mut frame = frame(address, None);
            frame.address = images.without_signature(&frame);
            images.of_frame(&frame).map(|image| (image, frame.address))
        };
        assert_eq!(found(0x1_0000_0010), Some((1, 0x1_0000_0010)));
        assert_eq!(found(0x8123_8001_0000_0010), Some((1, 0x1_0000_0010)));
        assert_eq!(found(0x2_0000_0fff), Some((0, 0x2_0000_0fff)));
        assert_eq!(found(0x2_0000_1000), None);
        assert_eq!(found(0), None);
        let x86_64 = [image(0x1_0000_0000, 0x1000, Arch::from_macho(0x0100_0007, 3))];
        let signed = frame(0x8000_0001_0000_0010, Some(0));
        assert_eq!(ImageMap::new(&x86_64).without_signature(&signed), signed.address);
    }

    #[test]
    fn an_address_without_its_code_lies_in_the_stated_image() {
        let arm64 = Arch::from_macho(0x0100_000c, 2);
        let sized = image(0x1_0000_0000, 0x1000, arm64.clone());
        for size in [Some(0x1000), None] {
            let images = [ReportImage { size, ..sized.clone() }];
            let images = ImageMap::new(&images);
            let without = |address| images.without_signature(&frame(address, Some(0)));
            assert_eq!(without(0x7e00_0001_0000_0010), 0x1_0000_0010);
            assert_eq!(without(0x3_0000_0010), 0x3_0000_0010, "of another image");
            assert_eq!(images.of_frame(&frame(0x3_0000_0010, Some(0))), Some(0));
        }
        // Without a size, the address is near the image: `0x7f0100000010` of a file is not.
        let kernel = [ReportImage { load_address: 0xffff_fff0_0700_4000, ..ReportImage::default() }];
        let address = 0xffff_fff0_0700_4010;
        assert_eq!(ImageMap::new(&kernel).without_signature(&frame(address, Some(0))), address);
        let lists = [ReportImage { load_address: 0x1_0498_c000, ..ReportImage::default() }];
        let lists = ImageMap::new(&lists);
        assert_eq!(lists.without_signature(&frame(0x552d_8101_0499_02f0, Some(0))), 0x1_0499_02f0);
        assert_eq!(lists.without_signature(&frame(0x5555_0498_d000, Some(0))), 0x5555_0498_d000);
    }
}
