//! What Swift's runtime prints when a program crashes (`swift-backtrace`): frames with their number, `[ra]` for a
//! return address, and the address; and a list of images with their ids.

use symdex::ImageId;

use super::{APPENDED, Dialect, FrameLine, ImageReference, images_in_lines, parse};
use crate::formats::format::Format;
use crate::report::{AddressKind, ReportImage, SymbolDetail};
use crate::text::{Cursor, lines, lossy, lossy_text};

/// The format of Swift's backtraces.
pub(crate) const FORMAT: Format = Format {
    name: "swift-backtrace",
    description: "Backtraces of Swift's runtime, with their list of images",
    example: "1 [ra] 0x0000000104a343d0 in App",
    marks: &["Program crashed", "Images ("],
    recognises: |text| lines(text).any(|(_, line)| is_marked(line) && frame(line).is_some()),
    parse: |text| Ok(parse(text, &DIALECT)),
    stated_image: |line| Some(lossy_text(&line[memchr::memmem::rfind(line, b" in ")? + 4..])),
    image_list: "the `Images` of the report",
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect =
    Dialect { frame, images: |text, limit| images_in_lines(text, limit, image), title, ..Dialect::PLAIN };

/// The mark of a return address.
const RETURN_ADDRESS: &[u8] = b"[ra]";

/// Whether a line has the mark of a return address after its number, which no other format has.
fn is_marked(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    cursor.space();
    cursor.decimal().is_some() && cursor.space() && cursor.take(RETURN_ADDRESS).is_some()
}

/// Reads `1 [ra] 0x0000000104a343d0 f() + 12 in App at /src/main.swift:8:3`.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let number = cursor.decimal()?;
    cursor.space().then_some(())?;
    let mut kind = AddressKind::ProgramCounter;
    while cursor.rest().starts_with(b"[") {
        let mark = cursor.word()?;
        if mark == RETURN_ADDRESS {
            kind = AddressKind::ReturnAddress;
        }
        cursor.space();
    }
    let address = cursor.hexadecimal()?;
    let is_followed = cursor.space() || cursor.rest().is_empty();
    let rest = cursor.rest();
    let mut frame = FrameLine::of_address(line, Some(number), address, kind, ImageReference::Address);
    if memchr::memmem::find(rest, b" at ").is_some_and(|at| rest[at..].contains(&b':')) {
        frame.detail = SymbolDetail::Line;
    }
    is_followed.then_some(frame)
}

/// Reads `0x0000000104a34000–0x0000000104a38000 6dcd4e9d...  App  /opt/App`.
fn image(line: &[u8]) -> Option<ReportImage> {
    let mut cursor = Cursor::new(line);
    let number = |cursor: &mut Cursor<'_>| cursor.hexadecimal().or_else(|| cursor.hexadecimal_digits());
    let start = number(&mut cursor)?;
    cursor.take("–".as_bytes()).or_else(|| cursor.take(b"-"))?;
    let end = number(&mut cursor)?;
    cursor.space().then_some(())?;
    let id: Option<ImageId> = lossy(cursor.word()?).parse().ok();
    cursor.space();
    let rest = cursor.rest();
    let slash = memchr::memmem::find(rest, b" /");
    let (name, path) = rest.split_at(slash.unwrap_or(rest.len()));
    Some(ReportImage {
        name: lossy(name.trim_ascii()),
        path: lossy(path.trim_ascii()),
        id,
        load_address: start,
        size: end.checked_sub(start),
        ..ReportImage::default()
    })
}

/// Reads `Thread 0 crashed:` or `Thread 1 "worker":`.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let name = line.strip_prefix(b"Thread ")?.strip_suffix(b":")?;
    Some((format!("Thread {}", lossy(name)), name.ends_with(b"crashed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_return_addresses_if_they_are_marked() {
        let read = |line: &str| {
            frame(line.as_bytes()).map(|frame| (frame.number, frame.address, frame.kind, frame.detail))
        };
        let (instruction, call) = (AddressKind::ProgramCounter, AddressKind::ReturnAddress);
        let bare = SymbolDetail::AddressOnly;
        assert_eq!(
            read("0               0x0000000104a343d0 in App"),
            Some((Some(0), 0x1_04a3_43d0, instruction, bare))
        );
        assert_eq!(read("12 [ra] [system] 0x10"), Some((Some(12), 0x10, call, bare)));
        let line = "1 [ra] 0x10 f() + 12 in App at /src/a.swift:8:3";
        assert_eq!(read(line), Some((Some(1), 0x10, call, SymbolDetail::Line)));
        assert_eq!((read("0x10 in App"), read("1 [ra] App")), (None, None));
    }

    #[test]
    fn images_have_a_range_and_an_id() {
        let id = "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0";
        for dash in ["–", "-"] {
            let image =
                image(format!("0x1000{dash}0x3000 {id} My App /opt/My App").as_bytes()).expect("an image");
            assert_eq!((image.load_address, image.size), (0x1000, Some(0x2000)));
            assert_eq!((image.name.as_str(), image.path.as_str()), ("My App", "/opt/My App"));
            assert_eq!(image.id.map(|id| id.to_string()).as_deref(), Some(id));
        }
        assert!(image(b"0x1000 0x3000 x").is_none());
    }
}
