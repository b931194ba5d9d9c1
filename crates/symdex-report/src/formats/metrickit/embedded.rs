//! MetricKit's diagnostics as strings in other JSON, as some SDKs send them: `{"callStack": "{\"callStacks\": ...}"}`.
//!
//! The strings are edited in place. Their other characters keep their escapes.

use std::borrow::Cow;

use super::{ImageTable, stack_edits, stacks};
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Symbolicated;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edit, Edits, Format};
use crate::formats::json::{Descendant, Json, Value};
use crate::report::{Number, Parsed, Report, Span, to_u32};
use crate::text::is_json;

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
    existing_symbols: Some(existing_symbols),
    edits: Edits::All(edits),
    ..Format::JSON
};

/// The key of the frames, in a string.
const ROOTS: &[u8] = br#"\"callStackRootFrames\""#;

fn recognises(text: &[u8]) -> bool {
    is_json(text) && memchr::memmem::find(text, ROOTS).is_some()
}

/// A payload in a string.
struct Payload<'j> {
    string: Value<'j>,
    /// The text without escapes.
    text: Cow<'j, str>,
}

impl Payload<'_> {
    /// The payload as JSON. `None` if the string is not JSON.
    fn json(&self) -> Option<Json<'_>> {
        Json::parse(self.text.as_bytes(), 0).ok()
    }
}

/// The strings of a document that can be payloads.
fn payloads(root: Value<'_>) -> impl Iterator<Item = Payload<'_>> {
    root.descendants().filter_map(|Descendant { value, .. }| {
        let is_string = value.bytes().starts_with(b"\"");
        let is_payload = is_string && memchr::memmem::find(value.bytes(), ROOTS).is_some();
        Some(Payload { string: value, text: value.text().filter(|_| is_payload)? })
    })
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, 0)?;
    let limit = ReadLimit::of(text.len());
    let mut parsed = Parsed::default();
    for payload in payloads(json.root()) {
        let Some(inner) = payload.json() else { continue };
        let (mut images, positions) = (ImageTable::default(), Positions::of(payload.string));
        let before = parsed.images.len();
        for stack in stacks(inner.root()).take_while(|_| limit.has_room()) {
            let mut thread = stack.thread(&mut images, &limit);
            for frame in &mut thread.frames {
                frame.image = frame.image().map(|number| Number::from(before + number as usize));
                // The spans are those of the payload.
                frame.site = positions.span(frame.site.span()).unwrap_or_default().into();
                frame.function = None;
            }
            parsed.threads.push(thread);
        }
        parsed.images.extend(images.finish());
    }
    parsed.extent = limit.extent(json.rest());
    Ok(parsed)
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(report.text, 0) else { return Vec::new() };
    let (mut symbols, mut threads) = (Vec::new(), report.threads.iter());
    for payload in payloads(json.root()) {
        let Some(inner) = payload.json() else { continue };
        // `zip` would take a thread after the last stack.
        let of_threads =
            stacks(inner.root()).map_while(|stack| Some(stack.existing_symbols(threads.next()?)));
        symbols.extend(of_threads);
    }
    symbols
}

fn edits(symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
    let text = symbolicated.report.text;
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(text, 0) else { return Vec::new() };
    let mut edits = Vec::new();
    let mut thread = 0;
    for payload in payloads(json.root()) {
        let Some(inner) = payload.json() else { continue };
        let positions = Positions::of(payload.string);
        let outside = |edit: Edit| {
            let span = positions.span(edit.span)?;
            let quoted = serde_json::Value::from(String::from_utf8(edit.text).ok()?).to_string();
            Some(Edit { span, text: quoted.as_bytes()[1..quoted.len() - 1].to_vec() })
        };
        let left = symbolicated.report.threads.len() - thread;
        for stack in stacks(inner.root()).take(left) {
            let of_stack = stack_edits(payload.text.as_bytes(), &stack, symbolicated, thread);
            edits.extend(of_stack.into_iter().filter_map(outside));
            thread += 1;
        }
    }
    edits
}

/// Converts positions in a string without escapes to positions in the report.
struct Positions<'e> {
    /// The text between the quotes.
    escaped: &'e [u8],
    /// The position of `escaped` in the report.
    start: usize,
    /// A character about every [`MARKED`] bytes: its positions without and with escapes. A position for each byte would
    /// take four times the string.
    marks: Vec<[u32; 2]>,
}

/// How many bytes a mark stands for.
const MARKED: usize = 64;

impl<'e> Positions<'e> {
    /// The positions in `string`, a value of a report.
    fn of(string: Value<'e>) -> Self {
        let mut positions =
            Self { escaped: string.unescaped(), start: string.span().start + 1, marks: Vec::new() };
        let (mut plain, mut at) = (0, 0);
        while at < positions.escaped.len() {
            if plain >= positions.marks.len() * MARKED {
                positions.marks.push([to_u32(plain), to_u32(at)]);
            }
            let (escape, bytes) = character(&positions.escaped[at..]);
            (plain, at) = (plain + bytes, at + escape);
        }
        positions
    }

    /// The position of the character with this byte, or of the end of the string. `None` if the byte is after the end.
    fn position(&self, byte: usize) -> Option<usize> {
        let after = self.marks.partition_point(|[plain, _]| *plain as usize <= byte);
        let [mut plain, mut at] =
            self.marks.get(after.wrapping_sub(1)).map_or([0; 2], |mark| mark.map(|at| at as usize));
        while at < self.escaped.len() {
            let (escape, bytes) = character(&self.escaped[at..]);
            if byte < plain + bytes {
                return Some(self.start + at);
            }
            (plain, at) = (plain + bytes, at + escape);
        }
        (byte == plain).then_some(self.start + self.escaped.len())
    }

    fn span(&self, span: Span) -> Option<Span> {
        Some(self.position(span.start)?..self.position(span.end)?)
    }
}

/// The length of the character or byte that `text` begins with, with escapes and without them.
fn character(text: &[u8]) -> (usize, usize) {
    match text.get(..2) {
        Some(b"\\u") => unicode_escape(text),
        Some([b'\\', _]) => (2, 1),
        _ => (1, 1),
    }
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
        // Longer than what a mark stands for.
        let escaped = r#"a\n\u00e4\ud83d\ude00\"/é."#.repeat(20);
        let string = format!("    \"{escaped}\"");
        let text: String = serde_json::from_str(&string).expect("a string");
        let json = Json::parse(string.as_bytes(), 0).expect("JSON");
        let positions = Positions::of(json.root());
        let mut after = 5;
        for (byte, part) in text.char_indices() {
            let at = positions.position(byte).expect("a character");
            assert_eq!(at, after, "{byte}");
            let raw = &string[at..];
            let quoted = serde_json::to_string(&part).expect("a string");
            let quoted = &quoted[1..quoted.len() - 1];
            assert!(raw.starts_with(quoted) || raw.starts_with("\\u"), "{part}: {raw}");
            let is_pair = part.len_utf8() == 4;
            let escape = if is_pair { 12 } else { 6 };
            after += if raw.starts_with("\\u") { escape } else { quoted.len() };
            assert_eq!(
                positions.position(byte + part.len_utf8() - 1),
                Some(if raw.starts_with('\\') { at } else { after - 1 })
            );
        }
        assert_eq!(positions.position(text.len()), Some(string.len() - 1));
        assert_eq!(positions.position(text.len() + 1), None);
    }
}
