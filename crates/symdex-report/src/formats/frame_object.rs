//! Frames that are JSON objects: their symbols, and the members for their answers.

use std::borrow::Cow;

use crate::engine::function::Function;
use crate::engine::symbolicate::Resolution;
use crate::formats::existing::ExistingSymbol;
use crate::formats::json::{Descendant, Json, Value};
use crate::formats::json_edit::{Member, NewValue, with_objects_before};
use crate::formats::rules::is_nameless;
use crate::report::{AddressKind, Frame, Number, Report, Span, SymbolDetail};

/// The members of a frame's object in one format.
pub(crate) struct FrameObject {
    /// Reads the address of the frame.
    pub(crate) address: fn(Value<'_>) -> Option<u64>,
    /// The key of the function's name.
    pub(crate) function: &'static str,
    /// The key of the file.
    pub(crate) file: &'static str,
    /// The key of the line.
    pub(crate) line: &'static str,
    /// The key of the function's start address, as a hexadecimal string. `None` if the format has none.
    pub(crate) start: Option<&'static str>,
    /// The keys that the object of an inlined function copies from the frame.
    pub(crate) copied: &'static [&'static str],
}

/// The key that marks the object of an inlined function.
const INLINED: &str = "inlined";

impl FrameObject {
    /// Reads a frame. `None` if the object states no address.
    pub(crate) fn frame(&self, object: Value<'_>, kind: AddressKind, image: Option<usize>) -> Option<Frame> {
        let text =
            |key: &str| object.get(key).filter(|value| value.text().is_some_and(|text| !text.is_empty()));
        let function = text(self.function).filter(|name| !is_nameless(name.unescaped()));
        let detail = match function {
            Some(_) if text(self.file).is_some() => SymbolDetail::Line,
            Some(_) => SymbolDetail::Function,
            None => SymbolDetail::AddressOnly,
        };
        Some(Frame {
            address: (self.address)(object)?,
            image: image.map(Number::from),
            kind,
            site: object.span().into(),
            detail,
            function: function.map(Value::inner),
            inlined: object.get(INLINED).is_some_and(Value::is_true),
        })
    }

    /// Returns the symbol that the report has for each frame, by thread.
    pub(crate) fn existing_symbols(&self, report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
        let keys = [self.function, self.file, self.line, ""];
        report.map_frames(|frame| {
            let Ok(json) = Json::parse(report.text, frame.site.start()) else {
                return ExistingSymbol::default();
            };
            let symbol = ExistingSymbol::of_members(json.root(), keys);
            let start = self.start.and_then(|key| hexadecimal(json.root().get(key)?));
            let offset = start.filter(|_| symbol.function.is_some());
            let file = symbol.file.filter(|file| !file.is_empty());
            ExistingSymbol { offset, file, ..symbol }.with_start_as_offset(frame.address)
        })
    }

    /// The frame's object with its answer, after new objects for the functions inlined into it.
    pub(crate) fn replacement(
        &self,
        text: &[u8],
        site: &Span,
        resolution: &Resolution<'_>,
    ) -> Option<Vec<u8>> {
        let json = Json::parse(text, site.start).ok()?;
        let object = json.root();
        let (concrete, inlined) = resolution.frames.split_last()?;
        let copy = |key: &'static str| {
            Some((key, NewValue::Json(serde_json::from_slice(object.get(key)?.bytes()).ok()?)))
        };
        let before = inlined.iter().map(|resolved| {
            let copied = self.copied.iter().filter_map(|key| copy(key));
            copied.chain(self.answer(resolved, resolution)).chain([(INLINED, true.into())]).collect()
        });
        Some(with_objects_before(text, object, before, &self.answer(concrete, resolution)))
    }

    fn answer<'s>(&self, resolved: &'s Function, resolution: &Resolution<'_>) -> Vec<Member<'s>> {
        let start = || resolution.address.checked_sub(resolution.function_offset(resolved)?);
        let start = self.start.zip(resolved.readable().and_then(|_| start()));
        let members = [
            resolved.readable().map(|function| (self.function, function.into())),
            start.map(|(key, start)| (key, format!("{start:#x}").into())),
            resolved.line.map(|_| (self.file, resolved.file_path().into())),
            resolved.line.map(|line| (self.line, line.into())),
        ];
        members.into_iter().flatten().collect()
    }
}

/// The text of a member of the object that a frame is.
pub(crate) fn member<'t>(object: &'t [u8], key: &str) -> Option<Cow<'t, str>> {
    let json = Json::parse(object, 0).ok()?;
    Some(json.root().get(key)?.text()?.into_owned().into())
}

/// Reads a number: hexadecimal digits in a string, with or without `0x`, or a decimal number.
pub(crate) fn hexadecimal(value: Value<'_>) -> Option<u64> {
    match value.text() {
        Some(text) => u64::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16).ok(),
        None => value.number(),
    }
}

/// Returns every array that is a member `key` of an object in `root`, at any depth and in order, with its object.
/// Arrays in such an array are left out.
pub(crate) fn lists<'j>(root: Value<'j>, key: &str) -> impl Iterator<Item = (Value<'j>, Value<'j>)> {
    let mut values = root.descendants();
    std::iter::from_fn(move || {
        loop {
            let Descendant { parent, key: name, value } = values.next()?;
            let is_list = name.is_some_and(|name| name.unescaped() == key.as_bytes());
            if is_list && value.bytes().starts_with(b"[") {
                values.leave(value);
                return Some((parent, value));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_at_any_depth_in_order() {
        let text = br#"{"a":[{"s":[1],"n":0},{"x":{"s":[2,3,{"s":[5]}],"n":1}}],"s":{"s":[4]}}"#;
        let json = Json::parse(text, 0).expect("JSON");
        let found: Vec<_> = lists(json.root(), "s").map(|(_, list)| list.bytes()).collect();
        assert_eq!(found, [&b"[1]"[..], br#"[2,3,{"s":[5]}]"#, b"[4]"]);
        let owners: Vec<_> = lists(json.root(), "s").map(|(owner, _)| owner.get("n").is_some()).collect();
        assert_eq!(owners, [true, true, false]);
    }

    #[test]
    fn numbers_are_hexadecimal_in_strings() {
        let read = |text: &str| hexadecimal(Json::parse(text.as_bytes(), 0).expect("JSON").root());
        assert_eq!(
            (read("\"0x1f\""), read("\"1F\""), read("31"), read("null")),
            (Some(31), Some(31), Some(31), None)
        );
    }
}
