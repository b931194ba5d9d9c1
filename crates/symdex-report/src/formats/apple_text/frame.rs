//! The line of a frame: `0   MyApp   0x0000000104a3c7d8 0x104a34000 + 34776`.

use symdex::ImageId;

use crate::engine::images::without_signature;
use crate::formats::rules::{is_nameless, missing_uuid, uuid};
use crate::report::{Span, SymbolDetail};
use crate::text::{Cursor, find, opening_bracket, positions, rfind};

/// A frame: `0   MyApp   0x0000000104a3c7d8 0x104a34000 + 34776`. Spans count from the start of the report.
pub(crate) struct FrameLine<'l> {
    /// The number of the frame in its stack. `None` if the line has none, and may be of another kind.
    pub(crate) number: Option<u64>,
    /// The column of a line of a tree. The lines of the functions that it calls have larger ones.
    pub(crate) column: Option<usize>,
    /// The image's name in the report.
    pub(crate) image: &'l [u8],
    pub(crate) address: u64,
    /// The load address of the image, if the line states it.
    pub(crate) load_address: Option<u64>,
    /// The id of the image, if the line states it. If the load address is 0, the address is an offset in it.
    pub(crate) id: Option<ImageId>,
    /// The text that an answer replaces. It follows the address. The text after it stays.
    pub(crate) answer: Span,
    pub(crate) detail: SymbolDetail,
    pub(crate) function: Option<Span>,
    pub(crate) inlined: bool,
}

/// Reads the frame in `line`, which starts at byte `start` of the report. `None` for another kind of line.
pub(crate) fn frame(line: &[u8], start: usize) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let _ = cursor.take(b"*");
    let column = cursor.at();
    let mut after = cursor;
    let number = after.decimal().filter(|_| after.space());
    let from = if number.is_some() { after.at() } else { column };
    let flat = Head::of(line, from);
    let column = flat.is_none().then_some(column);
    let Head { image, address, load_address, end } = flat.or_else(|| Head::of_tree(line, from))?;
    let mut cursor = Cursor::at_byte(line, end);
    cursor.space();
    let text = cursor.rest();
    let from = start + if text.is_empty() { end } else { cursor.at() };
    let text = FrameText::of(text, image, address);
    // Lines without a number are read if they have an offset, which few lines of other kinds have.
    let has_offset = rfind(cursor.rest(), b" + ").is_some() || text.detail == SymbolDetail::Line;
    (number.is_some() || column.is_none() && has_offset).then_some(())?;
    Some(FrameLine {
        number,
        column,
        image,
        address,
        load_address: load_address.or(text.load_address),
        id: text.id,
        answer: from..from + text.len,
        detail: text.detail,
        function: text.function_len.map(|len| from..from + len),
        inlined: text.inlined,
    })
}

/// The part of a line up to its address.
struct Head<'l> {
    image: &'l [u8],
    address: u64,
    load_address: Option<u64>,
    /// The end of the address in the line.
    end: usize,
}

/// The end of the first page, which no program maps: an address below it is a number of another kind.
const FIRST_PAGE: u64 = 0x1000;

/// The longest name of an image, in bytes: a path of macOS.
const LONGEST_NAME: usize = 1024;

impl<'l> Head<'l> {
    /// Reads `MyApp   0x0000000104a3c7d8` from byte `from` of `line`. A name may have spaces, and words that look like
    /// an address. The address is the number after a tab, which Apple writes; or else the one with all 16 digits; or
    /// the one after several spaces; or else the first. The name may be empty if the load address follows.
    fn of(line: &'l [u8], from: usize) -> Option<Self> {
        let numbers = positions(line.get(from..)?, b"0x").take_while(|at| *at <= LONGEST_NAME);
        let of_number = |at: usize| {
            let mut cursor = Cursor::at_byte(line, from + at);
            let (before, address) = (&line[from..from + at], cursor.hexadecimal()?);
            let end = cursor.at();
            let text = cursor.rest().trim_ascii_start();
            let is_word = text.is_empty() || cursor.space();
            // The load address stands before an offset: `... load address 0x1000 + 0xd68`. Names of class methods begin
            // with `+[`.
            if !is_word || text.starts_with(b"+ ") {
                return None;
            }
            let rank = match before {
                [] if load_address_and_offset(text).is_some() => 0,
                [.., b'\t'] => 0,
                [.., b' '] if end - from - at == "0x0000000000000000".len() => 1,
                [.., b' ', b' '] => 2,
                [.., b' '] => 3,
                _ => return None,
            };
            let image = before.trim_ascii_end();
            // A number before two spaces is that of a line, and the number of the frame follows.
            let is_one_name = match find(image, b"  ") {
                None => true,
                Some(len) => rank < 2 && !image[..len].iter().all(u8::is_ascii_digit),
            };
            let is_name = is_one_name && is_name(image);
            let is_address = !text.is_empty() || rank < 3 && address >= FIRST_PAGE;
            (is_name && is_address).then_some((rank, Self { image, address, load_address: None, end }))
        };
        numbers.filter_map(of_number).min_by_key(|(rank, _)| *rank).map(|(_, head)| head)
    }

    /// Reads a line of the trees in reports of iOS 7 to 9: `MyApp 0x104a34000 + 34776 [0x104a3c7d8]`, or `???
    /// [0x16fd7fab0]` in no image.
    fn of_tree(line: &'l [u8], from: usize) -> Option<Self> {
        let rest = line.get(from..)?;
        let open = find(rest, b" [0x")?;
        let mut cursor = Cursor::at_byte(rest, open + b" [".len());
        let address = cursor.hexadecimal()?;
        cursor.take(b"]")?;
        let (image, load_address) = match &rest[..open] {
            b"???" => (&b"???"[..], None),
            head => {
                let at = rfind(head, b" 0x")?;
                let (load_address, len) = load_address_and_offset(&head[at + 1..])?;
                (at + 1 + len == head.len()).then_some((head[..at].trim_ascii_end(), Some(load_address)))?
            }
        };
        Some(Self { image, address, load_address, end: from + cursor.at() })
    }
}

/// Whether `image` can be the name of an image. Registers (`x0:`), ranges (`0x1000 - `) and sums have other words before
/// a number, and Swift's runtime marks return addresses.
fn is_name(image: &[u8]) -> bool {
    !matches!(image.last(), Some(b':' | b'-' | b'+' | b'='))
        && !image.starts_with(b"[ra]")
        && !image.contains(&b'\t')
}

/// The contents of the text after a frame's address.
#[derive(Default)]
struct FrameText {
    /// The length of the text that an answer replaces.
    len: usize,
    detail: SymbolDetail,
    load_address: Option<u64>,
    id: Option<ImageId>,
    /// The length of the function's name, which the text begins with.
    function_len: Option<usize>,
    inlined: bool,
}

impl FrameText {
    fn of(text: &[u8], image: &[u8], address: u64) -> Self {
        if let Some((load_address, len)) = load_address_and_offset(text) {
            let is_answered = is_location(without_side(text[len..].trim_ascii_end()));
            let detail = if is_answered { SymbolDetail::Line } else { SymbolDetail::AddressOnly };
            // An unknown load address is 0.
            let load_address = Some(load_address).filter(|load_address| *load_address != 0);
            return Self { len, detail, load_address, ..Self::default() };
        }
        let text = without_side(text.trim_ascii_end());
        let of_image = Self { len: text.len(), ..Self::default() };
        if let Some(offset) = text.strip_prefix(image).and_then(offset_alone) {
            return Self { load_address: without_signature(address).checked_sub(offset), ..of_image };
        }
        if let Some((id, offset)) = rfind(text, b" + ").map(|plus| text.split_at(plus))
            && let (id @ Some(_), Some(offset)) = (uuid(id), offset_alone(offset))
        {
            return Self { load_address: without_signature(address).checked_sub(offset), id, ..of_image };
        }
        // The address is an offset.
        if let Some(id) = missing_uuid(text) {
            return Self { load_address: Some(0), id: Some(id), ..of_image };
        }
        // An address in no image: `0 + 1234`.
        if text.strip_prefix(b"0").and_then(offset_alone).is_some() {
            return of_image;
        }
        let (answer, inlined) = match text.strip_suffix(b" [inlined]") {
            Some(answer) => (answer, true),
            None => (text, false),
        };
        let function_len = function_len(answer);
        let detail = match &answer[..function_len] {
            // The name of the image alone, without a distance, is no function.
            name if is_nameless(name) || answer == image => SymbolDetail::AddressOnly,
            _ if has_line(answer) => SymbolDetail::Line,
            _ => SymbolDetail::Function,
        };
        let function_len = (detail != SymbolDetail::AddressOnly).then_some(function_len);
        Self { detail, function_len, inlined, ..of_image }
    }
}

/// Reads `0x104a34000 + 34776`. Returns the load address, and the length of the text up to the end of the offset. Any
/// text may follow after a space.
fn load_address_and_offset(text: &[u8]) -> Option<(u64, usize)> {
    let mut cursor = Cursor::new(text);
    let load_address = cursor.hexadecimal()?;
    cursor.take(b" + ")?;
    cursor.hexadecimal().or_else(|| cursor.decimal())?;
    matches!(cursor.rest().first(), None | Some(b' ' | b'\t')).then_some((load_address, cursor.at()))
}

/// Reads ` + 34776`. `None` if text follows.
fn offset_alone(text: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(text);
    cursor.take(b" + ")?;
    cursor.decimal().filter(|_| cursor.rest().is_empty())
}

/// Removes the text after an answer. Either it follows a file and a line, or it is a second symbol in parentheses, such
/// as ` (-[A b] + 24)`. KSCrash writes one if it prints addresses and names side by side.
fn without_side(text: &[u8]) -> &[u8] {
    let closed = memchr::memchr_iter(b')', text).find(|close| {
        let digits = text[..*close].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        digits != 0
            && text[..close - digits].ends_with(b":")
            && matches!(text.get(close + 1), Some(b' ' | b'\t'))
            && text[close + 1..] != *b" [inlined]"
    });
    if let Some(close) = closed.filter(|close| has_line(&text[..=*close])) {
        return &text[..=close];
    }
    let side = || {
        let inner = text.strip_suffix(b")")?;
        let plus = rfind(inner, b" + ")?;
        let is_distance = !inner[plus + 3..].is_empty() && inner[plus + 3..].iter().all(u8::is_ascii_digit);
        let open = opening_bracket(text)?;
        let before = text[..open].strip_suffix(b" ")?;
        is_distance.then(|| before.trim_ascii_end())
    };
    side().unwrap_or(text)
}

/// The length of the function's name in `main + 36 (main.m:42)` or `main (in App) (main.m:42)`.
fn function_len(answer: &[u8]) -> usize {
    let plus = rfind(answer, b" + ");
    let is_distance = |at: &usize| answer.get(at + 3).is_some_and(u8::is_ascii_digit);
    let in_image = || rfind(answer, b" (in ");
    let location = || rfind(answer, b" (").filter(|_| has_line(answer));
    plus.filter(is_distance).or_else(in_image).or_else(location).unwrap_or(answer.len())
}

/// Whether the text ends with file and line: `(main.m:42)`, or `  main.m:42` as `leaks` writes it.
fn has_line(answer: &[u8]) -> bool {
    let (answer, is_closed) = match answer.strip_suffix(b")") {
        Some(answer) => (answer, true),
        None => (answer, false),
    };
    let digits = answer.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &answer[..answer.len() - digits];
    let separator = if is_closed { b" (" } else { b"  " };
    digits != 0 && before.ends_with(b":") && rfind(before, separator).is_some()
}

/// Whether `text` is ` (main.m:42)`, with or without ` [inlined]`.
fn is_location(text: &[u8]) -> bool {
    let text = text.strip_suffix(b" [inlined]").unwrap_or(text);
    text.starts_with(b" (") && has_line(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_text(line: &str) -> (SymbolDetail, Option<&str>, Option<u64>, bool) {
        let frame = frame(line.as_bytes(), 0).unwrap_or_else(|| panic!("no frame: {line}"));
        (frame.detail, frame.function.map(|span| &line[span]), frame.load_address, frame.inlined)
    }

    #[test]
    fn frames_have_the_detail_of_their_symbol() {
        let head = "12  My App  \t0x0000000104a3c7d8 ";
        let cases = [
            ("0x104a34000 + 34776", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            ("My App + 34776", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            ("<redacted> + 12", (SymbolDetail::AddressOnly, None, None, false)),
            ("-[A b:] + 24", (SymbolDetail::Function, Some("-[A b:]"), None, false)),
            ("-[A b:] + 24 (A.m:42)", (SymbolDetail::Line, Some("-[A b:]"), None, false)),
            ("+[A b:] + 24", (SymbolDetail::Function, Some("+[A b:]"), None, false)),
            ("-[A b:] (in My App) (A.m:42)", (SymbolDetail::Line, Some("-[A b:]"), None, false)),
            ("-[A b:] (A.m:42) [inlined]", (SymbolDetail::Line, Some("-[A b:]"), None, true)),
            ("f(int) + 24 [inlined]", (SymbolDetail::Function, Some("f(int)"), None, true)),
            ("main + 36  main.m:42", (SymbolDetail::Line, Some("main"), None, false)),
            ("static A.+ infix(_:) + 8", (SymbolDetail::Function, Some("static A.+ infix(_:)"), None, false)),
            ("start", (SymbolDetail::Function, Some("start"), None, false)),
            ("0x104a34000 + 34776 ", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            ("0x104a34000 + 0x87d8", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            (
                "0x104a34000 + 34776 (<redacted> + 24)",
                (SymbolDetail::AddressOnly, None, Some(0x104a34000), false),
            ),
            ("0x104a34000 + 34776 (A.m:42)", (SymbolDetail::Line, None, Some(0x104a34000), false)),
            ("-[A b:] + 24 (A.m:42) (f(int) + 24) ", (SymbolDetail::Line, Some("-[A b:]"), None, false)),
            ("My App + 34776 (<redacted> + 24)", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            ("0 + 4372811736", (SymbolDetail::AddressOnly, None, None, false)),
            ("<unknown> + 4", (SymbolDetail::AddressOnly, None, None, false)),
            (
                "(Missing UUID 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0)",
                (SymbolDetail::AddressOnly, None, Some(0), false),
            ),
        ];
        for (tail, expected) in cases {
            assert_eq!(frame_text(&format!("{head}{tail}")), expected, "{tail}");
        }
        let line = format!("{head}start");
        let frame = frame(line.as_bytes(), 100).expect("a frame");
        assert_eq!((frame.number, frame.image, frame.address), (Some(12), &b"My App"[..], 0x1_04a3_c7d8));
        assert_eq!(frame.answer, 100 + head.len()..100 + line.len());
    }

    #[test]
    fn an_answer_replaces_the_offset_and_keeps_the_text_after_it() {
        for (tail, replaced) in [
            ("0x104a34000 + 34776  (<redacted> + 24) ", "0x104a34000 + 34776"),
            ("0x104a34000 + 34776\t// -[A b]", "0x104a34000 + 34776"),
            ("<redacted> + 24 (-[A b] + 24)", "<redacted> + 24"),
            ("f(int) + 24 ", "f(int) + 24"),
            ("f(int) + 24 ((anonymous namespace)::f(int) + 24)", "f(int) + 24"),
        ] {
            let line = format!("0   0x0000000104a3c7d8 {tail}").replacen("0x", "App 0x", 1);
            let frame = frame(line.as_bytes(), 0).expect("a frame");
            assert_eq!(&line[frame.answer], replaced, "{line}");
        }
    }

    #[test]
    fn names_have_spaces_and_numbers_and_text_may_be_missing() {
        let read = |line: &'static str| {
            let frame = frame(line.as_bytes(), 0)?;
            let name = std::str::from_utf8(frame.image).expect("text");
            Some((frame.number, name, frame.address, &line[frame.answer]))
        };
        let address = 0x1_04a3_c7d8;
        for (line, name, answer) in [
            ("0   My  App   \t0x0000000104a3c7d8 0x104a34000 + 34776", "My  App", "0x104a34000 + 34776"),
            ("0   My 0xED App \t0x0000000104a3c7d8 f + 4", "My 0xED App", "f + 4"),
            ("0   0xED            0x0000000104a3c7d8 f + 4", "0xED", "f + 4"),
            ("0   My  0xED   0x0000000104a3c7d8 f + 4", "My  0xED", "f + 4"),
            ("0\tApp\t0x104a3c7d8\t0x104a34000 + 34776", "App", "0x104a34000 + 34776"),
            ("0   App 0x104a3c7d8 f(0x0)  0x1 + 3", "App", "f(0x0)  0x1 + 3"),
            ("0   App           \t0x0000000104a3c7d8", "App", ""),
            ("0  libc.so.6 0x0000000104a3c7d8 ", "libc.so.6", ""),
            ("0  App             0x104a3c7d8", "App", ""),
        ] {
            assert_eq!(read(line), Some((Some(0), name, address, answer)), "{line}");
        }
        let umeng = read("\tApp                   0x104a3c7d8 App + 34776");
        assert_eq!(umeng, Some((None, "App", address, "App + 34776")));
        let tree = "     *1 App 0x104a34000 + 34776 [0x104a3c7d8]";
        assert_eq!(read(tree), Some((Some(1), "App", address, "")));
        let frame = frame(tree.as_bytes(), 0).expect("a frame");
        assert_eq!((frame.column, frame.load_address), (Some(6), Some(0x1_04a3_4000)));
    }

    #[test]
    fn an_image_without_a_name_has_a_load_address() {
        let line = b"0   \t0x0000000104a3c7d8 0x104a34000 + 34776";
        let frame = frame(line, 0).expect("a frame");
        assert_eq!((frame.image, frame.load_address), (&b""[..], Some(0x104a34000)));
    }

    #[test]
    fn other_lines_are_no_frames() {
        for line in [
            "",
            "0",
            "0   MyApp",
            "0   MyApp  0x10",
            "0   MyApp  0x10 ",
            "0   0x10 main + 4",
            "  rip: 0x00000001003dade1  rfl: 0x0000000000010206",
            "2761 ???  (in App)  load address 0x101671000 + 0xd68  [0x101671d68]",
            "1 (32 bytes) ROOT LEAK: <LeakySwiftObject 0x600001431a40> [32]",
            "0x102bc4000 - 0x102bcbfff iOSCrashingTest arm64  <ecc0>",
            "15  0x102bc4000 - 0x102bcbfff +iOSCrashingTest arm64  <ecc0>",
            "12  x0: 0x000000000000ecdb    x1: 0x000000000000ceeb",
            "7  0   App           \t0x0000000104a3c7d8 0x104a34000 + 34776",
            "12  x0: 0x000000000000ecdb",
            "12  pc = 0x000000000000ecdb",
            " 3  kernel32.dll + 0x000000000000ecdb",
            "3  some words 0x102bc4000",
            "App  0x102bc4000",
            "App  0x102bc4000 f",
            "9  ??? (App + 16) [0x1010]",
        ] {
            assert!(frame(line.as_bytes(), 0).is_none(), "{line}");
        }
    }
}
