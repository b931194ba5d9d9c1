//! Lists of addresses: lines of the form `image address load_address`, with both numbers as `0x` and hexadecimal
//! digits.
//!
//! Use it for stacks that have no format of their own. The image is an id, or a name with the id in a later column. An
//! id is needed on one line only of each name and load address. Consecutive lines are a stack, innermost frame first.
//! Answers are appended to the lines. All other lines stay unchanged.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use symdex::ImageId;

use crate::apple_text::{self, is_of_exception, stack_name};
use crate::error::Error;
use crate::format::{Edits, Format};
use crate::limits::ReadLimit;
use crate::report::{AddressKind, Frame, Image, Number, Parsed, Span, SymbolDetail, Thread};
use crate::symbolicate::{Resolution, ResolvedFrame};
use crate::text::{Cursor, line_end, lines, lossy};

/// The format of address lists.
pub(crate) const FORMAT: Format = Format {
    name: "address-list",
    description: "Lists of `image address load_address`, for stacks without a format of their own",
    example: "App 0x104a343d0 0x104a34000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0",
    marks: &[],
    recognises,
    parse,
    existing_symbols: None,
    stated_image: |_| None,
    edits: Edits::Frames(replacement),
    write_text: None,
};

fn recognises(text: &[u8]) -> bool {
    lines(text).any(|(_, line)| AddressLine::of(line).is_some())
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let mut parsed = Parsed::default();
    let limit = ReadLimit::of(text.len());
    let mut images = HashMap::new();
    let mut follows = false;
    let mut title = None;
    for (span, line) in lines(text) {
        let address_line = AddressLine::of(line);
        if let Some(line) = &address_line {
            if !limit.take() {
                continue;
            }
            let mut is_instruction = false;
            if !follows {
                if let Some(thread) = parsed.threads.last_mut() {
                    thread.frames.shrink_to_fit();
                }
                limit.take_stack();
                let name: String = title.take().unwrap_or_default();
                is_instruction = !is_of_exception(&name);
                parsed.threads.push(Thread { name, ..Thread::default() });
            }
            let image = image(line, &mut images, &mut parsed.images, &limit);
            if let Some(thread) = parsed.threads.last_mut() {
                thread.frames.push(frame(line, image, span, is_instruction));
            }
        } else {
            title = stack_name(line).or(title);
        }
        follows = address_line.is_some();
    }
    parsed.extent = limit.extent(0);
    Ok(parsed)
}

/// A line with an address.
struct AddressLine<'l> {
    image: &'l [u8],
    address: u64,
    load_address: u64,
    id: Option<ImageId>,
    detail: SymbolDetail,
    inlined: bool,
}

/// The suffix of lines of inlined functions.
pub(crate) const INLINED: &[u8] = b" [inlined]";

/// The fewest bytes of an id. Shorter hexadecimal words can be ordinary words, such as `added`.
const MIN_ID: usize = 8;

impl<'l> AddressLine<'l> {
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(line);
        cursor.space();
        // Three addresses in parentheses are the stack of an exception.
        let is_name =
            |image: &&[u8]| ![&b"#"[..], b"0x", b"(0x"].iter().any(|start| image.starts_with(start));
        let image = cursor.word().filter(is_name)?;
        let mut number = || {
            cursor.space();
            let number = cursor.hexadecimal()?;
            matches!(cursor.rest().first(), None | Some(b' ' | b'\t')).then_some(number)
        };
        let (address, load_address) = (number()?, number()?);
        let mut id = id(image);
        while id.is_none() && cursor.space() {
            id = cursor.word().and_then(self::id);
        }
        let detail = if has_line(line) { SymbolDetail::Line } else { SymbolDetail::AddressOnly };
        let inlined = line.ends_with(INLINED);
        Some(AddressLine { image, address, load_address, id, detail, inlined })
    }
}

/// Parses a word as an id, with or without angle brackets.
fn id(word: &[u8]) -> Option<ImageId> {
    let word = word.strip_prefix(b"<").and_then(|word| word.strip_suffix(b">")).unwrap_or(word);
    let id: ImageId = std::str::from_utf8(word).ok()?.parse().ok()?;
    (id.as_bytes().len() >= MIN_ID).then_some(id)
}

/// Whether a line ends with a file and a line number, as an answer does.
pub(crate) fn has_line(line: &[u8]) -> bool {
    let line = line.strip_suffix(INLINED).unwrap_or(line);
    let Some(line) = line.strip_suffix(b")") else { return false };
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits != 0 && line[..line.len() - digits].ends_with(b":")
}

/// Returns the position of the image of `line` and adds the image if it is new. `known` maps names and load addresses
/// to positions.
fn image<'t>(
    line: &AddressLine<'t>,
    known: &mut HashMap<(&'t [u8], u64), usize>,
    images: &mut Vec<Image>,
    limit: &ReadLimit,
) -> Option<usize> {
    let number = match known.entry((line.image, line.load_address)) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(new) => {
            limit.take_image_of_frame().then_some(())?;
            let (name, load_address) = (lossy(line.image), line.load_address);
            new.insert(images.len());
            images.push(Image { path: name.clone(), name, load_address, ..Image::default() });
            images.len() - 1
        }
    };
    let image = images.get_mut(number)?;
    image.id = image.id.take().or_else(|| line.id.clone());
    Some(number)
}

fn frame(line: &AddressLine<'_>, image: Option<usize>, site: Span, is_instruction: bool) -> Frame {
    Frame {
        address: line.address,
        image: image.map(Number::from),
        kind: if is_instruction { AddressKind::ProgramCounter } else { AddressKind::ReturnAddress },
        site: site.into(),
        detail: line.detail,
        function: None,
        inlined: line.inlined,
    }
}

/// The line with an answer appended, once for each function. An answer without a line from an earlier run is replaced.
pub(crate) fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let line = text.get(site.clone())?;
    let earlier = resolution.frames.last().map(|concrete| {
        let without_line = ResolvedFrame { line: None, ..concrete.clone() };
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

    #[test]
    fn lines_with_an_image_and_two_numbers_are_addresses() {
        let uuid = "6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0";
        let parsed = |line: &str| {
            AddressLine::of(line.as_bytes())
                .map(|line| (lossy(line.image), line.address, line.load_address, line.id.is_some()))
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
        let parsed = parse(&list).expect("a list");
        let names = parsed.images.iter().map(|image| image.name.clone());
        assert!(names.eq((0..1000).map(|number| lossy(&name(number)))));
        let images = parsed.threads.iter().flat_map(|thread| &thread.frames).map(Frame::image);
        assert!(images.eq((0..3000).map(|number| Some(number % 1000))));
    }
}
