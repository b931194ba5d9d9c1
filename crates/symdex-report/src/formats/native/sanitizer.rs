//! Frames of the sanitizers of LLVM and GCC: `#1 0x55d0c0de1234 in main (/opt/app+0x1234) (BuildId: 0123abcd...)`.

use symdex::Arch;

use super::frame::{FrameLine, Writer, log_prefix};
use crate::engine::symbolicate::Resolution;
use crate::formats::frame_lines::gdb;
use crate::report::{Span, SymbolDetail};
use crate::text::{Cursor, line_end, opening_bracket};

/// Reads a frame. The cursor is after its number.
pub(super) fn frame(mut cursor: Cursor<'_>, head: usize, number: u64) -> Option<FrameLine<'_>> {
    let address = cursor.hexadecimal()?;
    let at = cursor.at();
    if gdb::Symbol::of(cursor.rest()).is_some() {
        return None;
    }
    cursor.space().then_some(())?;
    let (start, rest) = (cursor.at(), cursor.rest());
    let reference = ImageReference::of(rest);
    let name_text = reference.as_ref().map_or(rest, |reference| &rest[..reference.start]);
    let name = name_text.trim_ascii_end().strip_prefix(b"in ");
    let (detail, len) = match (name, &reference) {
        (None, Some(_)) => (SymbolDetail::AddressOnly, None),
        (Some(name), Some(_)) => (SymbolDetail::Function, Some(name.len())),
        // Without an image there is nothing to look up. The function alone makes the line a frame.
        (Some(name), None) => (SymbolDetail::Line, Some(name_len(name))),
        (None, None) => return None,
    };
    let function = len.map(|len| start + 3..start + 3 + len);
    let writer = Writer::Sanitizer { at };
    let no_reference = ImageReference { start: 0, path: b"", arch: None, offset: address, id: None };
    let path = reference.as_ref().map(|reference| reference.path);
    let ImageReference { arch, offset, id, .. } = reference.unwrap_or(no_reference);
    let (address, found_by) = (offset, None);
    Some(FrameLine {
        head,
        number: Some(number),
        address,
        path,
        offset: None,
        id,
        arch,
        found_by,
        detail,
        function,
        writer,
    })
}

/// The image and the offset at the end of a line: `(/opt/app+0x1234) (BuildId: 0123abcd...)`.
struct ImageReference<'l> {
    /// The start of the first parenthesis.
    start: usize,
    path: &'l [u8],
    arch: Option<Arch>,
    /// The address in the image's file.
    offset: u64,
    id: Option<&'l [u8]>,
}

/// The text before a build id.
const BUILD_ID: &[u8] = b" (BuildId: ";

/// The digits of a UUID. On Apple's systems other digits follow it, which are not part of the id.
const UUID_DIGITS: usize = 32;

impl<'l> ImageReference<'l> {
    fn of(rest: &'l [u8]) -> Option<Self> {
        let (rest, id) = match memchr::memmem::rfind(rest, BUILD_ID) {
            Some(open) => {
                let id = &rest[open + BUILD_ID.len()..];
                (&rest[..open], Some(id.trim_ascii_end().strip_suffix(b")").unwrap_or_default()))
            }
            None => (rest, None),
        };
        let rest = rest.trim_ascii_end();
        let start = opening_bracket(rest)?;
        let inside = &rest[start + 1..rest.len() - 1];
        let plus = memchr::memmem::rfind(inside, b"+0x")?;
        let mut number = Cursor::at_byte(inside, plus + 1);
        let offset = number.hexadecimal().filter(|_| number.rest().is_empty())?;
        let (path, arch) = path_and_arch(&inside[..plus]);
        let id = id.map(|id| id.get(..UUID_DIGITS).filter(|_| arch.is_some()).unwrap_or(id));
        Some(ImageReference { start, path, arch, offset, id })
    }
}

/// Splits `/opt/app:arm64`. Reports of Apple's systems have the architecture.
fn path_and_arch(image: &[u8]) -> (&[u8], Option<Arch>) {
    let split = memchr::memrchr(b':', image).map(|colon| (&image[..colon], &image[colon + 1..]));
    let arch = split.and_then(|(path, name)| Some((path, Arch::from_name(std::str::from_utf8(name).ok()?)?)));
    arch.map_or((image, None), |(path, arch)| (path, Some(arch)))
}

/// The length of the function's name in `f(int) /src/app.c:12:3`.
fn name_len(text: &[u8]) -> usize {
    let path = memchr::memmem::find(text, b" /").or_else(|| memchr::memrchr(b' ', text));
    path.unwrap_or(text.len())
}

/// A line for each function. Each has the number and the address of the original line.
pub(super) fn replacement(
    text: &[u8],
    site: &Span,
    frame: &FrameLine<'_>,
    resolution: &Resolution<'_>,
) -> Option<Vec<u8>> {
    let line = text.get(site.clone())?;
    let Writer::Sanitizer { at } = frame.writer else { return None };
    let (number_and_address, image) = (line.get(frame.head..at)?, line.get(at..)?);
    let begin = frame.function.as_ref().map_or(at, |function| function.end);
    let image = line.get(begin..).unwrap_or(image).trim_ascii_start();
    let mut out = line.get(..frame.head)?.to_vec();
    for (depth, resolved) in resolution.frames.iter().enumerate() {
        if depth != 0 {
            out.extend([line_end(text, site.end), log_prefix(line, frame.head)].concat());
        }
        let function = resolved.printable(resolved.readable().unwrap_or("<unknown>"));
        out.extend([number_and_address, b" in ", function.as_bytes(), b" "].concat());
        match resolved.line {
            Some(line) => {
                let file = resolved.printable(resolved.file_path());
                out.extend(format!("{file}:{line}").bytes());
            }
            None => out.extend(image),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use crate::report::SymbolDetail;

    #[test]
    fn frames_have_image_offset_id_and_function() {
        let uuid = "f0e1d2c3b4a5968778695a4b3c2d1e0f";
        let mach = format!(
            "    #2 0x1000012d4 in main+0x68 (app:arm64+0x12d4) (BuildId: {uuid}32000000200000000100000000000d00)"
        );
        let cases = [
            ("    #0 0x55d1  (/x/(1)/a b+c+0x12d4)", ("/x/(1)/a b+c", None, None)),
            ("#1 0x55d1 (lib.so+0x12d4) (BuildId: 0a1b2c)", ("lib.so", Some("0a1b2c"), None)),
            ("#1 0x55d1 in f(int) (lib.so+0x12d4) (BuildId: 0a1b", ("lib.so", Some(""), Some("f(int)"))),
            (
                "#1 0x55d1 in (anonymous namespace)::f() (lib.so+0x12d4)",
                ("lib.so", None, Some("(anonymous namespace)::f()")),
            ),
            (&mach, ("app", Some(uuid), Some("main+0x68"))),
        ];
        for (line, (path, id, function)) in cases {
            let frame = frame::frame(line.as_bytes()).unwrap_or_else(|| panic!("no frame: {line}"));
            assert_eq!(
                (frame.address, frame.path, frame.id),
                (0x12d4, Some(path.as_bytes()), id.map(str::as_bytes)),
                "{line}"
            );
            assert_eq!(frame.function.map(|span| &line[span]), function, "{line}");
            assert_eq!(frame.arch.is_some(), path == "app");
        }
    }

    #[test]
    fn frames_with_a_line_need_no_image() {
        let line = "    #1 0x55d1 in f(int, char) /src dir/t.c:5:3";
        let frame = frame::frame(line.as_bytes()).expect("a frame");
        assert_eq!((frame.address, frame.path, frame.detail), (0x55d1, None, SymbolDetail::Line));
        assert_eq!(&line[frame.function.expect("a function")], "f(int, char)");
        for line in [
            "#1 0x55d1",
            "#1 0x55d1 x",
            "#1 0x (a+0x1)",
            "#1 0x55d1 (a+0x)",
            "#1 0x55d1 (a+0x1g)",
            "#1 0x55d1 a+0x1)",
        ] {
            assert!(frame::frame(line.as_bytes()).is_none(), "{line}");
        }
    }
}
