//! Lists of addresses: lines of the form `image address load_address`, with both numbers as `0x` and hexadecimal
//! digits.
//!
//! Use it for stacks that have no format of their own. The image is an id, or a name with the id in a later column. An
//! id is needed on one line only of each name and load address. A load address is a multiple of 4096. Consecutive lines
//! are a stack, innermost frame first.
//! Answers are appended to the lines. All other lines stay unchanged.

use symdex::ImageId;

use super::{Dialect, FrameLine, ImageReference, has_frame, parse};
use crate::engine::symbolicate::Resolution;
use crate::formats::apple_text::{self, is_of_exception, stack_name};
use crate::formats::format::{Edits, Format};
use crate::report::{AddressKind, Span};
use crate::text::{Cursor, line_end};

/// The format of address lists.
pub(crate) const FORMAT: Format = Format {
    name: "address-list",
    description: "Lists of `image address load_address`, for stacks without a format of their own",
    example: "App 0x104a343d0 0x104a34000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0",
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    edits: Edits::Frames(replacement),
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect {
    frame,
    title: |line| Some((stack_name(line)?, false)),
    // All addresses of an exception are return addresses.
    begins_with_instruction: |title| !is_of_exception(title),
    ..Dialect::PLAIN
};

/// The suffix of lines of inlined functions.
pub(super) const INLINED: &[u8] = b" [inlined]";

/// The fewest bytes of an id. Shorter hexadecimal words can be ordinary words, such as `added`.
const MIN_ID: usize = 8;

/// Reads `App 0x104a343d0 0x104a34000`, with the id of the image in its place or in a later column.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    // Three addresses in parentheses are the stack of an exception. Texts of panics have a name with a colon, and two
    // numbers.
    let is_name = |path: &&[u8]| {
        !path.ends_with(b":") && ![&b"#"[..], b"0x", b"(0x"].iter().any(|start| path.starts_with(start))
    };
    let path = cursor.word().filter(is_name)?;
    let mut number = || {
        cursor.space();
        let number = cursor.hexadecimal()?;
        matches!(cursor.rest().first(), None | Some(b' ' | b'\t')).then_some(number)
    };
    let (address, load_address) = (number()?, number()?);
    is_load_address(load_address, address).then_some(())?;
    let is_id = |word: &&[u8]| self::id(word).is_some();
    let mut id = Some(path).filter(is_id);
    while id.is_none() && cursor.space() {
        id = cursor.word().filter(is_id);
    }
    let image = ImageReference::Loaded { path, load_address, id };
    Some(FrameLine::of_address(line, None, address, AddressKind::ReturnAddress, image))
}

/// Whether an image with a function at `address` can be loaded at `load_address`: images begin with a page.
pub(super) fn is_load_address(load_address: u64, address: u64) -> bool {
    load_address <= address && load_address.is_multiple_of(0x1000)
}

/// Parses a word as an id, with or without angle brackets.
pub(crate) fn id(word: &[u8]) -> Option<ImageId> {
    let word = word.strip_prefix(b"<").and_then(|word| word.strip_suffix(b">")).unwrap_or(word);
    let id: ImageId = std::str::from_utf8(word).ok()?.parse().ok()?;
    (id.as_bytes().len() >= MIN_ID).then_some(id)
}

/// Whether a line ends with a file and a line number, as an answer does.
pub(super) fn has_line(line: &[u8]) -> bool {
    let line = line.strip_suffix(INLINED).unwrap_or(line);
    let Some(line) = line.strip_suffix(b")") else { return false };
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits != 0 && line[..line.len() - digits].ends_with(b":")
}

/// The line with an answer appended, once for each function. An answer without a line from an earlier run is replaced.
pub(super) fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let line = text.get(site.clone())?;
    let earlier = resolution.frames.last().map(|concrete| {
        let mut without_line = concrete.clone();
        without_line.line = None;
        format!(" {}", apple_text::answer(&without_line, b"", resolution))
    });
    let line = earlier.and_then(|earlier| line.strip_suffix(earlier.as_bytes())).unwrap_or(line);
    let answer = |resolved| [line, b" ", apple_text::answer(resolved, b"", resolution).as_bytes()].concat();
    let lines: Vec<_> = resolution.frames.iter().map(answer).collect();
    Some(lines.join(line_end(text, site.end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Frame;
    use crate::text::lossy;

    #[test]
    fn lines_with_an_image_and_two_numbers_are_addresses() {
        let uuid = "6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0";
        let parsed = |line: &str| {
            let line = frame(line.as_bytes())?;
            let ImageReference::Loaded { path, load_address, id } = line.image else { return None };
            Some((lossy(path), line.address, load_address, id.is_some()))
        };
        let app = |has_id| Some(("App".to_owned(), 0x1234, 0x1000, has_id));
        assert_eq!(parsed("App 0x1234 0x1000"), app(false));
        assert_eq!(parsed(&format!("  App\t0x1234  0x1000  main thread <{uuid}>")), app(true));
        assert_eq!(parsed(&format!("App 0x1234 0x1000 {uuid} added deadbeef")), app(true));
        assert_eq!(parsed("App 0x1234 0x1000 added deadbeef"), app(false));
        assert_eq!(parsed(&format!("{uuid} 0x1234 0x1000")), Some((uuid.to_owned(), 0x1234, 0x1000, true)));
        for line in [
            "",
            "# 0x1 0x1",
            "App 0x1",
            "App 0x1 0x",
            "App 0x1 0x1g",
            "App 1 0x1",
            "0x1 0x1 0x1",
            "App 0x1 0x11112222333344445",
            "  Calendar: 0x60000004 0x00030000",
            "App 0x1234 0x1001",
            "App 0x1234 0x2000",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    /// The first 8 bytes of the names make one factor of the product in `FxBuildHasher` 0.
    #[test]
    fn images_with_names_made_to_collide_keep_their_order() {
        let first = 0x243f_6a88_85a3_08d3_u64.to_le_bytes();
        let name = |number: usize| [&first[..], format!("{number:08x}").as_bytes()].concat();
        let mut list = Vec::new();
        for number in 0..3000 {
            list.extend([&name(number % 1000)[..], b" 0x1234 0x1000\n"].concat());
        }
        let parsed = parse(&list, &DIALECT);
        let names = parsed.images.iter().map(|image| image.name.clone());
        assert!(names.eq((0..1000).map(|number| lossy(&name(number)))));
        let images = parsed.threads.iter().flat_map(|thread| &thread.frames).map(Frame::image);
        assert!(images.eq((0..3000).map(|number| Some(number % 1000))));
    }
}
