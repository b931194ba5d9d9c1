//! Backtraces that an `.ips` has as strings (`asiBacktraces`), with lines as in a `.crash`.

use std::borrow::Cow;

use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Resolution;
use crate::formats::apple_text;
use crate::formats::existing::ExistingSymbol;
use crate::formats::json::Value;
use crate::report::{AddressKind, Frame, Span, Thread};
use crate::text::lossy;

/// Reads the stack in `string`. It belongs to an exception, so all addresses are return addresses.
pub(super) fn stack(string: Value<'_>, number: usize, limit: &ReadLimit) -> Thread {
    // A value finds the end of a string each time it is asked.
    let (start, escaped) = (string.span().start + 1, string.unescaped());
    let frames = escaped_lines(escaped).filter_map(|span| {
        let site = start + span.start..start + span.end;
        let line = unescape(&escaped[span])?;
        let frame = apple_text::frame(line.as_bytes(), 0).filter(|frame| frame.number.is_some())?;
        // The span of the name in the escaped text is unknown. Nothing reads it.
        let (address, detail, inlined) = (frame.address, frame.detail, frame.inlined);
        let (kind, function) = (AddressKind::ReturnAddress, None);
        Some(Frame { address, image: None, kind, site: site.into(), detail, function, inlined })
    });
    Thread {
        name: format!("Application Specific Backtrace {number}"),
        frames: limit.stack(frames),
        ..Thread::default()
    }
}

/// Returns the image that a line names. `None` for a frame that is an object.
pub(super) fn stated_image(line: &[u8]) -> Option<Cow<'_, str>> {
    let line = unescape(line).filter(|_| !line.starts_with(b"{"))?;
    Some(lossy(apple_text::frame(line.as_bytes(), 0)?.image).into())
}

/// Returns the symbol in the line at `site`.
pub(super) fn existing_symbol(text: &[u8], site: &Span) -> Option<ExistingSymbol> {
    let line = unescape(text.get(site.clone())?)?;
    let frame = apple_text::frame(line.as_bytes(), 0)?;
    Some(ExistingSymbol::of_line(line.as_bytes(), &frame.function?, line.len(), frame.detail))
}

/// Returns the line at `site` with its answer, escaped for a JSON string.
pub(super) fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let line = unescape(text.get(site.clone())?)?;
    let lines = apple_text::replacement(line.as_bytes(), &(0..line.len()), resolution)?;
    let quoted = serde_json::Value::from(String::from_utf8(lines).ok()?).to_string();
    Some(quoted.as_bytes()[1..quoted.len() - 1].to_vec())
}

/// Unescapes `line`, which is a part of a JSON string.
fn unescape(line: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", line, b"\""].concat()).ok()
}

/// The spans of the lines in the escaped text of a string. An escaped line feed ends a line.
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
