//! MetricKit's diagnostics as strings in other JSON, as some SDKs send them: `{"callStack": "{\"callStacks\": ...}"}`.
//!
//! The strings are edited in place. Their other characters keep their escapes.

use super::{ImageTable, stack_edits, stacks};
use crate::error::Error;
use crate::existing::ExistingSymbol;
use crate::format::{Edit, Edits, Format};
use crate::ips::SYMBOL_KEYS;
use crate::json::{Json, Value};
use crate::limits::FrameLimit;
use crate::render::write_crash;
use crate::report::{MAX_IMAGES, Number, Parsed, Report, to_u32};
use crate::symbolicate::Symbolicated;

/// The format of MetricKit's diagnostics in strings.
pub(crate) const FORMAT: Format = Format {
    name: "metrickit-string",
    description: "MetricKit's diagnostics as strings in the JSON of other SDKs",
    example: concat!(
        r#"[{"callStack":"{\"callStacks\":[{\"callStackRootFrames\":["#,
        r#"{\"binaryUUID\":\"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0\",\"offsetIntoBinaryTextSegment\":976,"#,
        r#"\"address\":4372775888}]}]}"}]"#,
    ),
    marks: &[r#"\"callStackTree\""#, r#"\"callStacks\""#, r#"\"callStackRootFrames\""#],
    recognises,
    parse,
    existing_symbols,
    stated_image: |_| None,
    edits,
    write_text: write_crash,
};

/// The key of the frames, in a string.
const ROOTS: &[u8] = br#"\"callStackRootFrames\""#;

fn recognises(text: &[u8]) -> bool {
    let is_json = matches!(text.trim_ascii_start().first(), Some(b'{' | b'['));
    is_json && memchr::memmem::find(text, ROOTS).is_some()
}

/// The payloads in the strings of a document. A string that is not JSON has none.
fn payloads(root: Value<'_>) -> Vec<Payload<'_>> {
    let mut payloads = Vec::new();
    let mut open = vec![root];
    let mut inner = Vec::new();
    while let Some(value) = open.pop() {
        let is_payload =
            value.bytes().starts_with(b"\"") && memchr::memmem::find(value.bytes(), ROOTS).is_some();
        let text = value.text().filter(|_| is_payload);
        if let Some(text) = text.filter(|text| Json::parse(text.as_bytes(), 0).is_ok()) {
            payloads.push(Payload { string: value, text: text.into_owned() });
        }
        inner.extend(value.elements());
        inner.extend(value.members().map(|(_, member)| member));
        open.extend(inner.drain(..).rev());
    }
    payloads
}

/// A payload in a string.
struct Payload<'j> {
    string: Value<'j>,
    /// The text without escapes.
    text: String,
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, 0)?;
    let limit = FrameLimit::of(text.len());
    let mut parsed = Parsed::default();
    for payload in payloads(json.root()) {
        let inner = Json::parse(payload.text.as_bytes(), 0)?;
        let mut images = ImageTable::default();
        let before = parsed.images.len();
        for stack in stacks(inner.root()) {
            let mut thread = stack.thread(&mut images, &limit);
            for frame in &mut thread.frames {
                frame.image = frame.image().map(|number| Number::from(before + number as usize));
                // The spans are those of the payload.
                frame.site = payload.string.span().into();
                frame.function = None;
            }
            parsed.threads.push(thread);
        }
        parsed.images.extend(images.images);
        parsed.images.truncate(MAX_IMAGES);
    }
    parsed.unread = limit.unread(json.rest());
    Ok(parsed)
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(report.text, 0) else { return Vec::new() };
    let mut symbols = Vec::new();
    for payload in payloads(json.root()) {
        let Ok(inner) = Json::parse(payload.text.as_bytes(), 0) else { continue };
        symbols.extend(stacks(inner.root()).map(|stack| {
            let symbol = |node: &super::Node<'_>| ExistingSymbol::of_members(node.object, SYMBOL_KEYS);
            stack.innermost_first().map(symbol).collect::<Vec<_>>()
        }));
    }
    symbols
}

fn edits(symbolicated: &Symbolicated<'_, '_>) -> Edits {
    let text = symbolicated.report.text;
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(text, 0) else { return Edits::default() };
    let mut edits = Vec::new();
    let mut thread = 0;
    for payload in payloads(json.root()) {
        let Ok(inner) = Json::parse(payload.text.as_bytes(), 0) else { continue };
        let positions = positions(payload.string.unescaped(), payload.string.span().start + 1);
        let outside = |edit: Edit| {
            let position = |at: usize| positions.get(at).map(|position| *position as usize);
            let span = position(edit.span.start)?..position(edit.span.end)?;
            let quoted = serde_json::Value::from(String::from_utf8(edit.text).ok()?).to_string();
            Some(Edit { span, text: quoted.as_bytes()[1..quoted.len() - 1].to_vec() })
        };
        for stack in stacks(inner.root()) {
            let of_stack = stack_edits(payload.text.as_bytes(), &stack, symbolicated, thread);
            edits.extend(of_stack.into_iter().filter_map(outside));
            thread += 1;
        }
    }
    edits.into()
}

/// Returns the position in the report of each byte of a string without escapes, and of its end. `escaped` is the text
/// between the quotes, and `start` its position.
fn positions(escaped: &[u8], start: usize) -> Vec<u32> {
    let mut positions = Vec::with_capacity(escaped.len() + 1);
    let mut at = 0;
    while at < escaped.len() {
        let (escape, bytes) = match escaped.get(at..at + 2) {
            Some(b"\\u") => unicode_escape(&escaped[at..]),
            Some([b'\\', _]) => (2, 1),
            _ => (1, 1),
        };
        positions.extend(std::iter::repeat_n(to_u32(start + at), bytes));
        at += escape;
    }
    positions.push(to_u32(start + escaped.len()));
    positions
}

/// The length of the escape that `text` begins with, and of its character in UTF-8. Two escapes are one character if
/// the first is a surrogate.
fn unicode_escape(text: &[u8]) -> (usize, usize) {
    let digits = text.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok());
    match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(0xd800..=0xdfff) => (12, 4),
        Some(0..=0x7f) => (6, 1),
        Some(0x80..=0x7ff) => (6, 2),
        _ => (6, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_string_has_the_position_of_its_escape() {
        let escaped = r#"a\n\u00e4\ud83d\ude00\"/é."#;
        let text: String = serde_json::from_str(&format!("\"{escaped}\"")).expect("a string");
        let positions = positions(escaped.as_bytes(), 100);
        assert_eq!(positions.len(), text.len() + 1);
        for part in ["a", "\n", "ä", "😀", "\"", "/", "é", "."] {
            let at = positions[text.find(part).expect(part)] as usize - 100;
            let quoted = serde_json::to_string(part).expect("a string");
            let (raw, quoted) = (&escaped[at..], &quoted[1..quoted.len() - 1]);
            assert!(raw.starts_with(quoted) || raw.starts_with("\\u"), "{part}: {raw}");
        }
        assert_eq!(positions.last().copied(), Some(to_u32(100 + escaped.len())));
    }
}
