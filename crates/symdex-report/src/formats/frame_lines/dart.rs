//! Stacks of Dart's ahead-of-time compiler, which Flutter uses: `#00 abs 0000007a14807000 virt 00000000000e4807
//! _kDartIsolateSnapshotInstructions+0x1234`. The build id stands before the stack.

use memchr::memmem::find;

use super::{APPENDED, Dialect, FrameLine, ImageReference, has_frame, images_in_lines, parse};
use crate::formats::format::Format;
use crate::report::{AddressKind, Base, ReportImage};
use crate::text::{Cursor, lossy};

/// The format of Dart's stacks.
pub(crate) const FORMAT: Format = Format {
    name: "dart",
    description: "Stacks of Flutter and Dart ahead-of-time code",
    example: "    #00 abs 0000007a141e4807 virt 00000000000e4807 _kDartIsolateSnapshotInstructions+0x1234",
    marks: &["isolate_dso_base", "build_id:", "virt "],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect =
    Dialect { frame, images: |text, limit| images_in_lines(text, limit, image), ..Dialect::PLAIN };

/// The name of the image. Stacks do not state it.
const NAME: &str = "libapp.so";

/// Reads a frame. `virt` is the address in the image's file. The runtime has moved return addresses back into the call
/// already.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::at_byte(line, find(line, b" abs ")? + 1);
    let before = &line[..cursor.at()].trim_ascii_end();
    let number = Cursor::at_byte(before, memchr::memrchr(b'#', before)? + 1).decimal()?;
    cursor.take(b"abs ")?;
    cursor.hexadecimal_digits()?;
    cursor.take(b" virt ")?;
    let address = cursor.hexadecimal_digits()?;
    let (kind, image) = (AddressKind::ProgramCounter, ImageReference::Name(NAME.as_bytes()));
    Some(FrameLine::of_address(line, Some(number), address, kind, image))
}

/// Reads the image from `build_id: '0a1b2c'`.
fn image(line: &[u8]) -> Option<ReportImage> {
    let after = &line[find(line, b"build_id: '")? + b"build_id: '".len()..];
    let digits = &after[..memchr::memchr(b'\'', after)?];
    let id = lossy(digits).parse().ok();
    Some(ReportImage { name: NAME.to_owned(), id, base: Base::File, ..ReportImage::default() })
}
