//! JSON among other text, JSON that is cut, and reports in the strings of other JSON.

use super::layer::{Kind, Layer};
use super::prefix::{has_address, without_prefix_of};
use crate::formats::format::{Format, FormatKind};
use crate::formats::json::{Descendant, Json, Value};
use crate::formats::json_images::images;
use crate::report::{ReportImage, Span};
use crate::text::lines;

/// How many positions are tried at which a document can begin.
const STARTS: usize = 16;
/// How many strings are searched for reports, and how many keys of strings with reports there may be.
const STRINGS: usize = 1 << 20;
const KEYS: usize = 8;
/// The shortest line with a frame, in bytes.
const SHORTEST: usize = 11;

/// The documents in `text`: without the text around them, without the prefixes of their lines, whole if they are cut,
/// and what their strings have.
pub(super) fn documents(text: &[u8], formats: &[Format]) -> Vec<Layer> {
    let Some(start) = start_of_document(text) else { return Vec::new() };
    if let Some(layer) = without_prefix_of(text, start) {
        return vec![layer];
    }
    let mut found = Vec::new();
    let mut end = start;
    let mut documents: Vec<Json<'_>> = Vec::new();
    let mut cut = None;
    while let Some(next) = text[end..].iter().position(|byte| !byte.is_ascii_whitespace()) {
        match Json::parse(text, end + next) {
            Ok(json) if json.root().span().len() > 2 => {
                end = json.end();
                documents.push(json);
            }
            Ok(_) => break,
            Err(_) => {
                cut = Json::repair(text, end + next);
                break;
            }
        }
    }
    if let Some((whole, closing)) = cut {
        let mut layer = Layer::new(Kind::Document);
        layer.keep(text, start..whole);
        layer.insert(&closing, whole);
        layer.cut = (text.len() - whole).max(1);
        found.extend(layer.finish(text));
    }
    // A list goes on after its first whole element.
    if text[end..].trim_ascii_start().starts_with(b",") {
        for opening in formats.iter().flat_map(|format| format.openings) {
            let mut layer = Layer::new(Kind::Document);
            layer.insert(opening.as_bytes(), start);
            layer.keep(text, start..text.len());
            layer.cut = start.max(1);
            found.extend(layer.finish(text));
        }
    }
    let around = [&text[..start], &text[end..]].concat();
    if !documents.is_empty() && !around.trim_ascii().is_empty() {
        let mut layer = Layer::new(Kind::Document);
        layer.keep(text, start..end);
        found.extend(layer.finish(text));
    }
    for json in &documents {
        found.extend(header_and_payload(text, json.root()));
    }
    found.extend(strings(text, &documents, formats));
    found
}

/// Whether `text` is a document and nothing else.
pub(super) fn is_document(text: &[u8]) -> bool {
    start_of_document(text).is_some_and(|start| text[..start].trim_ascii().is_empty())
        && Json::parse(text, 0).is_ok_and(|json| json.rest() == 0)
}

/// Where the first object or list begins. Its first value, or nothing, follows on the line.
fn start_of_document(text: &[u8]) -> Option<usize> {
    let starts = memchr::memchr2_iter(b'{', b'[', text);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'"';
    let is_start = |at: &usize| at.checked_sub(1).is_none_or(|before| !is_part(text[before]));
    let mut starts = starts.filter(is_start).take(STARTS);
    starts.find(|at| {
        let rest = text[at + 1..].trim_ascii_start();
        let (_, line) = lines(&text[at + 1..]).next().unwrap_or_default();
        line.trim_ascii().is_empty()
            || rest.starts_with(b"\"")
            || (text[*at] == b'[' && rest.starts_with(b"{"))
    })
}

/// The header and the report of an object with both: `{"header": {}, "payload": {}}`.
fn header_and_payload(text: &[u8], root: Value<'_>) -> Option<Layer> {
    let [header, payload] = root.get_each(["header", "payload"]);
    let (header, payload) = (header?.span(), payload?.span());
    let mut layer = Layer::new(Kind::Document);
    layer.keep(text, header);
    layer.insert(b"\n", payload.start);
    layer.keep(text, payload);
    layer.finish(text)
}

/// The reports in the strings of `documents`: all texts as one text, and all JSON as one list.
fn strings(text: &[u8], documents: &[Json<'_>], formats: &[Format]) -> Vec<Layer> {
    let all = || {
        let values = documents.iter().flat_map(|json| json.root().descendants());
        let strings = values.filter(|Descendant { value, .. }| value.bytes().first() == Some(&b'"'));
        strings
            .take(STRINGS)
            .map(|Descendant { key, value, .. }| (key.map(Value::bytes), value.inner().span()))
    };
    let has_report = |span: &Span, kind: FormatKind| {
        let string = &text[span.clone()];
        let may_be = match kind {
            FormatKind::Json => memchr::memmem::find(string, b"\\\"").is_some(),
            _ => string.len() >= SHORTEST && has_address(string),
        };
        may_be && {
            let mut plain = Layer::new(Kind::Strings);
            plain.unescape(text, span.clone());
            let is_nested =
                kind == FormatKind::Json && start_of_document(&plain.text) == Some(0) && has_address(string);
            is_nested || formats.iter().any(|format| format.kind() == kind && format.recognises(&plain.text))
        }
    };
    let mut reports = Layer::new(Kind::Strings);
    let spans: Vec<_> =
        all().map(|(_, span)| span).filter(|span| has_report(span, FormatKind::Json)).collect();
    for (number, span) in spans.iter().enumerate() {
        let open: &[u8] = if number == 0 { b"[" } else { b"," };
        reports.insert(if spans.len() == 1 { b"" } else { open }, span.start);
        reports.unescape(text, span.clone());
    }
    reports.insert(if spans.len() > 1 { b"]" } else { b"" }, text.len());
    // A string can have one line of a report. All strings with the same key belong to it.
    let mut keys: Vec<_> = Vec::new();
    for (key, span) in all() {
        if keys.len() < KEYS && !keys.contains(&key) && has_report(&span, FormatKind::Text) {
            keys.push(key);
        }
    }
    let mut lines = Layer::new(Kind::Strings);
    for (_, span) in all().filter(|(key, _)| keys.contains(key)) {
        if !lines.text.is_empty() && !lines.text.ends_with(b"\n") {
            lines.insert(b"\n", span.start);
        }
        lines.unescape(text, span);
    }
    let images: Vec<_> = documents.iter().flat_map(|json| images(json.root())).collect();
    if !images.is_empty() {
        let listed: String = images.iter().map(image_line).collect();
        lines.insert(format!("\n\nBinary Images:\n{listed}").as_bytes(), text.len());
    }
    [reports, lines].into_iter().filter_map(|layer| layer.finish(text)).collect()
}

/// The line of an image in the list of Apple's text reports.
fn image_line(image: &ReportImage) -> String {
    let ReportImage { name, load_address, .. } = image;
    let last = image.size.map(|size| load_address.saturating_add(size.saturating_sub(1)));
    let last = last.map_or_else(|| "???".to_owned(), |last| format!("{last:#x}"));
    let arch = image.arch.as_ref().map(|arch| format!(" {}", arch.name)).unwrap_or_default();
    let id = image.id.as_ref().map_or_else(|| "???".to_owned(), ToString::to_string);
    let path = if image.path.is_empty() { name } else { &image.path };
    format!("{load_address:#x} - {last} {name}{arch} <{id}> {path}\n")
}
