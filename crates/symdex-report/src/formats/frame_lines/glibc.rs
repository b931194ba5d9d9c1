//! What `backtrace_symbols` of glibc prints: `./app(+0x1234) [0x55d0c0de1234]`, and with the name of an exported
//! function `lib.so(f+0xc) [0x7f51400f302d]`. The lines have no ids, so an index is found by the name of the
//! file only.

use super::{APPENDED, Dialect, FrameLine, ImageReference, has_frame, parse};
use crate::formats::format::Format;
use crate::report::AddressKind;
use crate::text::Cursor;

/// The format of glibc's backtraces.
pub(crate) const FORMAT: Format = Format {
    name: "glibc-backtrace",
    description: "What glibc's `backtrace_symbols` prints, with `--match-by-name`",
    example: "/opt/app(+0x1234) [0x55d0c0de1234]",
    marks: &["(+0x", "Obtained ", " stack frames"],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame, ..Dialect::PLAIN };

/// Reads `PATH(+0xOFFSET) [0xADDRESS]`, `PATH(NAME+0xDISTANCE) [0xADDRESS]` or `PATH() [0xADDRESS]`. The last one is of
/// an image at its preferred address.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let bracket = memchr::memmem::find(line, b"[0x")?;
    let mut cursor = Cursor::at_byte(line, bracket + 1);
    let address = cursor.hexadecimal()?;
    cursor.take(b"]")?;
    let before = line.get(..bracket)?.trim_ascii_end().strip_suffix(b")")?;
    let open = memchr::memrchr(b'(', before)?;
    let path = path(&before[..open])?;
    let inside = &before[open + 1..];
    let plus = memchr::memrchr(b'+', inside);
    let image = match plus {
        None if inside.is_empty() => ImageReference::Loaded { path, load_address: 0, id: None },
        None => return None,
        Some(plus) => {
            let mut number = Cursor::at_byte(inside, plus + 1);
            let distance = number.hexadecimal().filter(|_| number.rest().is_empty())?;
            match plus {
                0 => ImageReference::Loaded { path, load_address: address.checked_sub(distance)?, id: None },
                _ => {
                    let (function, start) = (&inside[..plus], address.checked_sub(distance)?);
                    ImageReference::Function { path, function, start }
                }
            }
        }
    };
    // All addresses are return addresses: the innermost function called `backtrace`.
    Some(FrameLine::of_address(line, None, address, AddressKind::ReturnAddress, image))
}

/// Returns the path at the end of `text`. A log can have a prefix before it.
fn path(text: &[u8]) -> Option<&[u8]> {
    let begins = |start: &[u8]| memchr::memmem::find(text, start).map(|at| at + 1);
    let start = match text.first()? {
        b'/' | b'.' => 0,
        _ => begins(b" /")
            .or_else(|| begins(b" ./"))
            .unwrap_or_else(|| memchr::memrchr(b' ', text).map_or(0, |space| space + 1)),
    };
    text.get(start..).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_state_the_load_address_or_the_distance_from_a_function() {
        let read = |line: &'static str| {
            let frame = frame(line.as_bytes())?;
            let (path, load_address) = match frame.image {
                ImageReference::Loaded { path, load_address, .. } => (path, Some(load_address)),
                ImageReference::Function { path, .. } => (path, None),
                ImageReference::Address | ImageReference::Name(_) => return None,
            };
            Some((std::str::from_utf8(path).expect("text"), frame.address, load_address))
        };
        assert_eq!(read("./a b(+0x12) [0x5012]"), Some(("./a b", 0x5012, Some(0x5000))));
        assert_eq!(read("/lib/libc.so.6(abort+0x12b)[0x7f12]"), Some(("/lib/libc.so.6", 0x7f12, None)));
        assert_eq!(
            read("12:01 [warn] /opt/app(_Z1fv+0x1) [0x7f12] f (a.c:1)"),
            Some(("/opt/app", 0x7f12, None))
        );
        assert_eq!(read("E: app() [0x401136]"), Some(("app", 0x40_1136, Some(0))));
        for line in
            ["app(+0x12)", "app(+12) [0x5]", "app(f) [0x5]", "(+0x1) [0x5]", "app(+0x12) [0x1]", "app [0x5]"]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
