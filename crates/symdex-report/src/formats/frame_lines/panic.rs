//! Panics of Apple's kernels: `0xffffff92250a31d0 : 0xffffff7f881042f0`, or `lr: 0xfffffe0012345e94  fp: ...` on ARM64,
//! and the kernel extensions in the backtrace with their ids.

use super::{APPENDED, Dialect, FrameLine, ImageReference, has_frame, images_in_lines, list, parse};
use crate::formats::apple_text::KERNEL;
use crate::formats::format::Format;
use crate::report::{AddressKind, Base, ReportImage, SymbolDetail};
use crate::text::{Cursor, lossy, split_once};

/// The format of kernel panics as text.
pub(crate) const FORMAT: Format = Format {
    name: "kernel-panic",
    description: "Panics of Apple's kernels as text, with the kernel extensions in their backtraces",
    example: "0xffffff92250a31d0 : 0xffffff7f881042f0",
    marks: &["panic(cpu ", "Kernel Extensions in backtrace:", "Kernel UUID:"],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect =
    Dialect { frame, images: |text, limit| images_in_lines(text, limit, image), ..Dialect::PLAIN };

/// Reads `0xffffff92250a31d0 : 0xffffff7f881042f0 mach_kernel : _panic + 0xc6`, the name if the panic has names.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let is_arm = cursor.take(b"lr: ").is_some();
    let first = cursor.hexadecimal()?;
    cursor.space();
    let address = if is_arm {
        cursor.take(b"fp: 0x").map(|()| first)?
    } else {
        cursor.take(b": ").filter(|()| first >= KERNEL)?;
        cursor.hexadecimal()?
    };
    let (kind, image) = (AddressKind::ReturnAddress, ImageReference::Address);
    let mut frame = FrameLine::of_address(line, None, address, kind, image);
    if memchr::memmem::find(cursor.rest(), b" : ").is_some() {
        frame.detail = frame.detail.max(SymbolDetail::Function);
    }
    (address >= KERNEL).then_some(frame)
}

/// Where ARM64 kernels and their extensions lie. Panics then state the address of `__TEXT_EXEC`.
const ARM64: [std::ops::Range<u64>; 2] =
    [0xffff_fe00_0000_0000..0xffff_ff00_0000_0000, 0xffff_fff0_0000_0000..0xffff_ffff_0000_0000];

/// Reads `com.example.Driver(1.0)[6DCD4E9D-...]@0xffffff7f88100000->0xffffff7f88107fff`.
fn image(line: &[u8]) -> Option<ReportImage> {
    let line = line.trim_ascii();
    let (named, rest) = split_once(line.strip_prefix(b"dependency: ").unwrap_or(line), b")[")?;
    let (name, _) = split_once(named, b"(")?;
    let (id, range) = split_once(rest, b"]@")?;
    let (id, mut cursor) = (list::id(id)?, Cursor::new(range));
    let load_address = cursor.hexadecimal()?;
    let last = cursor.take(b"->").and_then(|()| cursor.hexadecimal());
    let size = last.and_then(|last| last.checked_sub(load_address)?.checked_add(1));
    let is_exec = ARM64.iter().any(|kernels| kernels.contains(&load_address));
    let base = if is_exec { Base::TextExec } else { Base::Image };
    Some(ReportImage { name: lossy(name), id: Some(id), load_address, size, base, ..ReportImage::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_intel_and_of_arm() {
        let read = |line: &str| frame(line.as_bytes()).map(|frame| (frame.address, frame.detail));
        let (bare, named) = (SymbolDetail::AddressOnly, SymbolDetail::Function);
        assert_eq!(read("0xffffff92250a31d0 : 0xffffff7f881042f0 "), Some((0xffff_ff7f_8810_42f0, bare)));
        let line = "0xffffff92250a31d0 : 0xffffff80174931f4 mach_kernel : _panic + 0xc6";
        assert_eq!(read(line), Some((0xffff_ff80_1749_31f4, named)));
        assert_eq!(read("\t\t  lr: 0xfffffe0012345e94  fp: 0x0"), Some((0xffff_fe00_1234_5e94, bare)));
        for line in
            ["0x1 : 0xffffff7f881042f0", "lr: 0x104a343d0  fp: 0x1", "    lr: 0xfffffe0012345e94   x0: 0x1"]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn extensions_state_their_ids_and_on_arm_the_address_of_their_code() {
        let read = |line: &str| {
            let image = image(line.as_bytes())?;
            Some((image.name, image.id.is_some(), image.load_address, image.size, image.base))
        };
        let id = "6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0";
        let name = || "com.example.A".to_owned();
        let line = format!("    com.example.A(1.0.1)[{id}]@0xffffff7f88100000->0xffffff7f88107fff");
        assert_eq!(read(&line), Some((name(), true, 0xffff_ff7f_8810_0000, Some(0x8000), Base::Image)));
        let line = format!("dependency: com.example.A(1d1)[{id}]@0xfffffe0012ea35e0");
        assert_eq!(read(&line), Some((name(), true, 0xffff_fe00_12ea_35e0, None, Base::TextExec)));
        for line in ["com.example.A 1", "com.example.A(1)[653A540C]@0x1->0x2", "[0] 0x1 /a"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
