//! Backtraces that an `.ips` has as text (`asiBacktraces`): strings of lines as a `.crash` has them.

use crate::apple_text;
use crate::existing::ExistingSymbol;
use crate::json::Value;
use crate::report::{AddressKind, Frame, Span, Thread};
use crate::symbolicate::Resolution;

/// The stack in `string`. All of its frames hold return addresses: it is of an exception.
pub(super) fn stack(string: Value<'_>, number: usize) -> Thread {
    let start = string.span().start + 1;
    let frames = escaped_lines(string.unescaped()).filter_map(|span| {
        let site = start + span.start..start + span.end;
        let line = unescape(&string.unescaped()[span])?;
        let frame = apple_text::frame(line.as_bytes())?;
        // Where the name lies in the text with its escapes is not known, but neither is it asked for.
        let (address, detail, inlined) = (frame.address, frame.detail, frame.inlined);
        let (kind, function) = (AddressKind::ReturnAddress, None);
        Some(Frame { address, image: None, kind, site, detail, function, inlined })
    });
    Thread {
        name: format!("Application Specific Backtrace {number}"),
        frames: frames.collect(),
        ..Thread::default()
    }
}

/// The symbol in the line at `site`.
pub(super) fn existing_symbol(text: &[u8], site: &Span) -> Option<ExistingSymbol> {
    let line = unescape(text.get(site.clone())?)?;
    let frame = apple_text::frame(line.as_bytes())?;
    Some(ExistingSymbol::of_line(line.as_bytes(), &frame.function?, line.len(), frame.detail))
}

/// The line at `site` with its answer, in a string.
pub(super) fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let line = unescape(text.get(site.clone())?)?;
    let lines = apple_text::replacement(line.as_bytes(), &(0..line.len()), resolution)?;
    let quoted = serde_json::Value::from(String::from_utf8(lines).ok()?).to_string();
    Some(quoted.as_bytes()[1..quoted.len() - 1].to_vec())
}

/// The text that `line`, a part of a JSON string, stands for.
fn unescape(line: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", line, b"\""].concat()).ok()
}

/// Where the lines between `\n` lie in a string's escaped text.
fn escaped_lines(text: &[u8]) -> impl Iterator<Item = Span> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        (start < text.len()).then_some(())?;
        let mut from = start;
        loop {
            let Some(escape) = text.get(from..).and_then(|rest| memchr::memchr(b'\\', rest)) else {
                at = text.len();
                return Some(start..at);
            };
            let escape = from + escape;
            from = escape + 2;
            if text.get(escape + 1) == Some(&b'n') {
                at = from;
                return Some(start..escape);
            }
        }
    })
}
