//! Frames of Android: `#01 pc 00000000000a1b2c  /data/app/x/base.apk!libfoo.so (offset 0x1000) (do_action+764)
//! (BuildId: 0123abcd...)`, and of HarmonyOS: `#01 pc 00000000000a1b2c /data/x/libfoo.so(do_action+764)(0123abcd...)`.

use std::ops::Range;

use symdex::Arch;

use super::frame::{FrameLine, LOCATION_INDENT, Writer, log_prefix};
use super::header;
use crate::engine::function::Function;
use crate::engine::symbolicate::Resolution;
use crate::formats::rules::is_nameless;
use crate::report::{FoundBy, Span, SymbolDetail};
use crate::text::{Cursor, line_end};

/// The fewest digits of a build id without the word `BuildId`.
const BARE_ID: usize = 16;

/// Reads the part of a frame that follows its number. The cursor is after the number.
pub(super) fn frame(mut cursor: Cursor<'_>, head: usize, number: Option<u64>) -> Option<FrameLine<'_>> {
    cursor.take(b"pc")?;
    cursor.space().then_some(())?;
    let address = cursor.hexadecimal().or_else(|| cursor.hexadecimal_digits())?;
    // Older versions of HarmonyOS add the runtime address: `pc 000000000000332c(000000000042d32c)`.
    if cursor.take(b"(").is_some() {
        cursor.hexadecimal_digits()?;
        cursor.take(b")")?;
    }
    cursor.space().then_some(())?;
    let (start, rest) = (cursor.at(), cursor.rest());
    let (rest, stated) = arch_and_id(rest).map_or((rest, None), |(rest, arch, id)| (rest, Some((arch, id))));
    let path = rest[..memchr::memchr(b'(', rest).unwrap_or(rest.len())].trim_ascii_end();
    (!path.is_empty()).then_some(())?;
    let at = start + path.len();
    let mut frame_text =
        FrameText { insert: at..at, is_spaced: true, offset: None, function: None, id: None, found_by: None };
    frame_text.read(rest, path.len(), start);
    let old = frame_text.insert;
    Some(FrameLine {
        head,
        number,
        address,
        path: Some(path),
        offset: frame_text.offset,
        id: frame_text.id.or(stated.as_ref().map(|(_, id)| *id)),
        arch: stated.and_then(|(arch, _)| arch),
        found_by: frame_text.found_by,
        detail: SymbolDetail::of(frame_text.function.is_some(), false),
        function: frame_text.function,
        writer: if frame_text.is_spaced {
            Writer::Android { at: old.start, until: old.end }
        } else {
            Writer::HarmonyOs { at: old.start, until: old.end }
        },
    })
}

/// Splits ` [arm64-v8a::0a1b2c]`, Bugly's architecture and build id, from the end of a line.
fn arch_and_id(rest: &[u8]) -> Option<(&[u8], Option<Arch>, &[u8])> {
    let inside = rest.trim_ascii_end().strip_suffix(b"]")?;
    let open = memchr::memrchr(b'[', inside)?;
    let (before, inside) = (inside[..open].trim_ascii_end(), &inside[open + 1..]);
    let colons = memchr::memmem::find(inside, b"::")?;
    let id = &inside[colons + 2..];
    let is_id = !id.is_empty() && id.iter().all(u8::is_ascii_hexdigit);
    is_id.then(|| (before, header::arch(&inside[..colons]), id))
}

/// The contents of the parentheses after a path.
struct FrameText<'l> {
    /// The text that a missing function replaces: nothing, or a placeholder with its parentheses.
    insert: Range<usize>,
    /// Whether spaces stand before the parentheses.
    is_spaced: bool,
    /// The position of the image's file in the archive that contains it.
    offset: Option<u64>,
    function: Option<Range<usize>>,
    id: Option<&'l [u8]>,
    found_by: Option<FoundBy>,
}

impl<'l> FrameText<'l> {
    /// Reads the parentheses in `rest` from `from` on. `rest` begins at `start` of the line.
    fn read(&mut self, rest: &'l [u8], mut from: usize, start: usize) {
        while let Some((inside, is_spaced)) = parentheses(rest, from) {
            let text = &rest[inside.clone()];
            let before = start + from;
            from = inside.end + 1;
            self.is_spaced = is_spaced;
            if let Some(digits) = text.strip_prefix(b"BuildId: ") {
                self.id = Some(digits);
                return;
            }
            if text.len() >= BARE_ID && text.iter().all(u8::is_ascii_hexdigit) {
                self.id = Some(text);
                return;
            }
            // symdex adds it to the frames that it has found.
            if let Some(way) = text.strip_prefix(b"found by ") {
                self.found_by = Some(FoundBy::from_name(&String::from_utf8_lossy(way)));
                continue;
            }
            let offset = text.strip_prefix(b"offset ").and_then(offset);
            if offset.is_some() || text == b"deleted" {
                self.offset = offset.or(self.offset);
                self.insert = start + from..start + from;
            } else if self.function.is_none() && is_nameless(&text[..name_len(text)]) {
                self.insert = before..start + from;
            } else if self.function.is_none() {
                let begin = start + inside.start;
                self.function = Some(begin..begin + name_len(text));
            } else {
                return;
            }
        }
    }
}

/// Parses a hexadecimal number. Android's runtime writes it without `0x`.
fn offset(digits: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(digits);
    let offset = cursor.hexadecimal().or_else(|| cursor.hexadecimal_digits())?;
    cursor.rest().is_empty().then_some(offset)
}

/// Returns the range between the parentheses that begin at `from`, after any spaces, and whether there are spaces.
fn parentheses(rest: &[u8], from: usize) -> Option<(Range<usize>, bool)> {
    let after = rest.get(from..)?;
    let spaces = after.iter().take_while(|byte| **byte == b' ').count();
    after[spaces..].starts_with(b"(").then_some(())?;
    let open = from + spaces;
    let mut depth = 0_usize;
    let len = rest[open..].iter().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some((open + 1..open + len, spaces != 0))
}

/// The length of the name in `abort+57`.
fn name_len(text: &[u8]) -> usize {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let name = text[..text.len() - digits].strip_suffix(b"+").filter(|_| digits != 0);
    name.unwrap_or(text).len()
}

/// The frame's line with the concrete function, and a line for each function that has a file and a line.
pub(super) fn replacement(
    text: &[u8],
    site: &Span,
    frame: &FrameLine<'_>,
    resolution: &Resolution<'_>,
) -> Option<Vec<u8>> {
    let line = text.get(site.clone())?;
    let (at, until, space) = match frame.writer {
        Writer::Android { at, until } => (at, until, " "),
        Writer::HarmonyOs { at, until } => (at, until, ""),
        Writer::Sanitizer { .. } => return None,
    };
    let function = resolution.frames.last().filter(|_| frame.function.is_none());
    let function = function.and_then(|resolved| name_and_distance(resolved, resolution));
    let mut out = match function {
        Some(function) => {
            [line.get(..at)?, format!("{space}({function})").as_bytes(), line.get(until..)?].concat()
        }
        None => line.to_vec(),
    };
    for location in resolution.frames.iter().filter_map(location) {
        let prefix = log_prefix(line, frame.head);
        out.extend(
            [line_end(text, site.end), prefix, LOCATION_INDENT.as_bytes(), location.as_bytes()].concat(),
        );
    }
    Some(out)
}

/// The function and the distance as `abort+57`.
fn name_and_distance(resolved: &Function, resolution: &Resolution<'_>) -> Option<String> {
    let function = resolved.printable(resolved.readable()?);
    let distance = resolution.function_offset(resolved).filter(|distance| *distance != 0);
    Some(distance.map_or_else(|| function.to_string(), |distance| format!("{function}+{distance}")))
}

/// The source location and the function as `src/file.c:12 (func)`.
fn location(resolved: &Function) -> Option<String> {
    let function = resolved.readable().unwrap_or("??");
    let location = format!("{}:{} ({function})", resolved.file_path(), resolved.line?);
    Some(symdex_demangle::printable(location.into()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::frame::{self, Writer};
    use crate::report::SymbolDetail;

    /// The image, its id, the function, and the text after the position at which a function is inserted.
    fn frame_text(line: &str) -> (&str, Option<&str>, Option<&str>, &str) {
        let frame = frame::frame(line.as_bytes()).unwrap_or_else(|| panic!("no frame: {line}"));
        let text = |bytes| std::str::from_utf8(bytes).expect("text");
        assert_eq!(
            (frame.address, frame.detail == SymbolDetail::Function),
            (0xa1b2c, frame.function.is_some()),
            "{line}"
        );
        let (at, is_spaced) = match frame.writer {
            Writer::Android { until, .. } => (until, true),
            Writer::HarmonyOs { until, .. } => (until, false),
            Writer::Sanitizer { .. } => panic!("not a sanitizer's: {line}"),
        };
        assert_eq!(is_spaced, line[at..].is_empty() || line[at..].starts_with(' '), "{line}");
        let path = frame.path.map(text).expect("an image");
        (path, frame.id.map(text), frame.function.map(|span| &line[span]), &line[at..])
    }

    #[test]
    fn frames_of_android_are_read() {
        let cases = [
            ("#01 pc 000a1b2c  /x/libf.so", ("/x/libf.so", None, None, "")),
            ("F/DEBUG ( 12):  #1 pc 0x000a1b2c  libf.so", ("libf.so", None, None, "")),
            ("#01  pc 000a1b2c  /x/b.apk!libf.so (offset 0x1000)", ("/x/b.apk!libf.so", None, None, "")),
            (
                "#01 pc 000a1b2c  /x/f (deleted) (f(int (*)(char), g::(anonymous namespace)::h)+764) (BuildId: 0a1b2c)",
                (
                    "/x/f",
                    Some("0a1b2c"),
                    Some("f(int (*)(char), g::(anonymous namespace)::h)"),
                    " (f(int (*)(char), g::(anonymous namespace)::h)+764) (BuildId: 0a1b2c)",
                ),
            ),
            ("#01 pc 000a1b2c  /x/f (BuildId: 0a)", ("/x/f", Some("0a"), None, " (BuildId: 0a)")),
            (
                "#01 pc 000a1b2c  /x/f (operator+) (BuildId: ",
                ("/x/f", None, Some("operator+"), " (operator+) (BuildId: "),
            ),
            ("#01 pc 000a1b2c  [vdso] (f+12", ("[vdso]", None, None, " (f+12")),
            ("#01 pc 000a1b2c  /x/b.apk (offset 90000)", ("/x/b.apk", None, None, "")),
            (
                "#01    pc 000a1b2c   libf.so [arm64-v8a::0a1b2c]",
                ("libf.so", Some("0a1b2c"), None, " [arm64-v8a::0a1b2c]"),
            ),
            (
                "12 #01 pc 000a1b2c /x/libf.so (f+4) [armeabi-v7a::0a1b2c]",
                ("/x/libf.so", Some("0a1b2c"), Some("f"), " (f+4) [armeabi-v7a::0a1b2c]"),
            ),
            ("#01 pc 000a1b2c  [anon:a::0a]x", ("[anon:a::0a]x", None, None, "")),
            (
                "#01 pc 000a1b2c  /x/b.apk (offset 9f000) (???) (BuildId: 0a)",
                ("/x/b.apk", Some("0a"), None, " (BuildId: 0a)"),
            ),
            ("  native: pc 000a1b2c  /x/libf.so", ("/x/libf.so", None, None, "")),
            ("pc 000a1b2c  /x/libf.so (f+4)", ("/x/libf.so", None, Some("f"), " (f+4)")),
            ("#01 pc 000a1b2c  /x/f (<unknown>+4)", ("/x/f", None, None, "")),
            (
                "#01 pc 000a1b2c  /x/b.apk (offset 9f000) (f+4) (BuildId: 0a)",
                ("/x/b.apk", Some("0a"), Some("f"), " (f+4) (BuildId: 0a)"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(frame_text(line), expected, "{line}");
        }
    }

    #[test]
    fn frames_of_harmony_os_are_read() {
        let id = "42521ecd5a913b6984e2ff754dc45cf0";
        let cases = [
            (format!("#01 pc 000a1b2c /x/libf.so(f(int)+32)({id})"), Some(id), Some("f(int)")),
            (format!("#01 pc 000a1b2c /x/libf.so({id}) // ours"), Some(id), None),
            ("#01 pc 000a1b2c(004ab32c) /x/libf.so(f+15)".to_owned(), None, Some("f")),
        ];
        for (line, id, function) in cases {
            let after = &line[line.find("so(").expect("a parenthesis") + 2..];
            assert_eq!(frame_text(&line), ("/x/libf.so", id, function, after), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_frames() {
        let lines = [
            "#01 pc",
            "#01 pc ",
            "#01 pc x",
            "#01 pc 0  ",
            "# pc 0 a",
            "pc 0 a",
            "epc 0 /a",
            "    ip 7f  sp 7f  lr 7f  pc 000a1b2c  pst 60000000",
            "#01 at f (a.ets:3)",
            "#1 pc 0(1 a",
        ];
        for line in lines {
            assert!(frame::frame(line.as_bytes()).is_none(), "{line}");
        }
    }
}
