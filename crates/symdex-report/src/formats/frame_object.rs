//! Frames that are JSON objects: their symbols, and the members for their answers.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memmem;
use serde_json::json;

use crate::engine::function::Function;
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Resolution;
use crate::formats::existing::ExistingSymbol;
use crate::formats::json::{Descendant, Json, Value};
use crate::formats::json_edit::{Member, NewValue, object_like, with_members, with_objects_before};
use crate::formats::rules::is_nameless;
use crate::registers::{Register, in_order};
use crate::report::{AddressKind, Frame, Report, Span, SymbolDetail};

/// The members of a frame's object in one format.
pub(crate) struct FrameObject {
    /// The keys of the frame's address. The first that is a number counts.
    pub(crate) address: &'static [&'static str],
    /// The keys of the members by what they state, in the order in which answers add them.
    pub(crate) members: &'static [(&'static [&'static str], Part)],
    /// Where the functions inlined into a frame are written.
    pub(crate) inlined: InlinedObjects,
}

/// What a member of a frame's object states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the object of an inlined function copies from the frame.
    Copied,
    /// That the object is an inlined function.
    Inlined,
    /// The name of the function, demangled.
    Function,
    /// The linkage name of the function.
    LinkageName,
    /// The name of the file. Answers with a line have it, as the path.
    FileName,
    /// The path of the file.
    FilePath,
    /// The path of the file. Answers without a line have it, too.
    File,
    Line,
    /// The line. Answers do not have that of code which the compiler generated, 0.
    LineOfSource,
    /// An object with the path of the file and the line.
    Location,
    /// The address of the function.
    Start,
    /// The same as a hexadecimal string.
    StartText,
    /// The same. Answers leave it alone.
    OldStart,
    /// The distance from the start of the function to the frame's address.
    Offset,
    /// The same as a hexadecimal string.
    OffsetText,
}

/// Where the functions inlined into a frame are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InlinedObjects {
    /// In objects before that of the frame: the innermost frame is the first.
    Before,
    /// In objects after that of the frame: the innermost frame is the last.
    After,
    /// Nowhere: the report names frames by their positions.
    None,
}

/// What a frame's object states of the frame's symbol.
#[derive(Default)]
struct Symbol<'j> {
    function: Option<Value<'j>>,
    file: Option<Value<'j>>,
    line: Option<Value<'j>>,
    start: Option<Value<'j>>,
    offset: Option<Value<'j>>,
    is_inlined: bool,
}

impl FrameObject {
    fn symbol<'j>(&self, object: Value<'j>) -> Symbol<'j> {
        let mut symbol = Symbol::default();
        let name = |value: Value<'j>| {
            Some(value).filter(|value| value.text().is_some_and(|text| !is_nameless(text.as_bytes())))
        };
        // Bugsnag's client for Android writes the library there, and a number in place of the line.
        let is_library = |text: &[u8]| text.ends_with(b".so") || memmem::find(text, b".apk").is_some();
        let file = |value| name(value).filter(|file| !is_library(file.unescaped()));
        for (key, value) in object.members() {
            let has_key = |(keys, _): &&(&[&str], Part)| keys.iter().any(|name| key.is_string(name));
            match self.members.iter().find(has_key).map_or(Part::Copied, |(_, part)| *part) {
                Part::Copied => {}
                Part::Inlined => symbol.is_inlined = value.is_true(),
                Part::Function => symbol.function = name(value).or(symbol.function),
                Part::LinkageName => symbol.function = symbol.function.or_else(|| name(value)),
                Part::FileName | Part::FilePath => symbol.file = file(value).or(symbol.file),
                Part::File => symbol.file = symbol.file.or_else(|| file(value)),
                Part::Line | Part::LineOfSource => symbol.line = Some(value),
                Part::Location => [symbol.file, symbol.line] = value.get_each(["file", "line"]),
                Part::Start | Part::StartText | Part::OldStart => symbol.start = Some(value),
                Part::Offset | Part::OffsetText => symbol.offset = Some(value),
            }
        }
        symbol
    }

    /// Reads the frames of a stack, each with its number in `frames`.
    pub(crate) fn stack<'j>(
        &self,
        frames: Value<'j>,
        limit: &ReadLimit,
        kind: impl Fn(usize, Value<'j>) -> AddressKind,
        mut image: impl FnMut(Value<'j>) -> Option<usize>,
    ) -> Vec<Frame> {
        let read = |(number, object)| {
            let frame = self.frame(object, kind(number, object), image(object));
            // Frames of other languages state no addresses.
            limit.read(frame, self.address.iter().any(|key| object.get(key).is_some()))
        };
        limit.stack(frames.elements().enumerate().filter_map(read))
    }

    /// Reads a frame. `None` if the object states no address.
    fn frame(&self, object: Value<'_>, kind: AddressKind, image: Option<usize>) -> Option<Frame> {
        Some(Frame { kind, ..self.frame_at(self.address(object)?, object, image) })
    }

    /// The address in a frame's object.
    pub(crate) fn address(&self, object: Value<'_>) -> Option<u64> {
        self.address.iter().find_map(|key| hexadecimal(object.get(key)?))
    }

    /// The frame at `address` with the symbol in `object`, as the address of an instruction.
    pub(crate) fn frame_at(&self, address: u64, object: Value<'_>, image: Option<usize>) -> Frame {
        let Symbol { function, file, is_inlined, .. } = self.symbol(object);
        Frame {
            site: object.span().into(),
            detail: SymbolDetail::of(function.is_some(), file.is_some()),
            function: function.map(Value::inner),
            inlined: is_inlined,
            ..Frame::new(address, image)
        }
    }

    /// The symbol that the object of a frame at `address` has.
    pub(crate) fn existing_symbol(&self, object: Value<'_>, address: u64) -> ExistingSymbol {
        let Symbol { function, file, line, start, offset, .. } = self.symbol(object);
        let text = |value: Option<Value<'_>>| value.and_then(Value::text).map(Cow::into_owned);
        let start = start.and_then(Value::number);
        let offset = offset.and_then(Value::number).or_else(|| address.checked_sub(start?));
        ExistingSymbol {
            function: text(function),
            file: text(file),
            line: line.and_then(Value::number).and_then(|line| u32::try_from(line).ok()),
            // The distance from a placeholder means nothing.
            offset: offset.filter(|_| function.is_some()),
        }
    }

    /// The symbols that the report has for the frames, by thread.
    pub(crate) fn existing_symbols(&self, report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
        report.map_frames(|frame| {
            let json = Json::parse(report.text(), frame.site.start()).ok();
            json.map(|json| self.existing_symbol(json.root(), frame.address)).unwrap_or_default()
        })
    }

    /// The frame's object with its answer, and new objects for the functions inlined into it.
    pub(crate) fn replacement(
        &self,
        text: &[u8],
        site: &Span,
        resolution: &Resolution<'_>,
    ) -> Option<Vec<u8>> {
        let json = Json::parse(text, site.start).ok()?;
        let object = json.root();
        let (concrete, inlined) = resolution.frames.split_last()?;
        let answer = |resolved| self.answer(resolved, object, resolution);
        if self.inlined == InlinedObjects::Before {
            return Some(with_objects_before(text, object, inlined.iter().map(answer), &answer(concrete)));
        }
        let mut out = with_members(text, object, &answer(concrete));
        for resolved in inlined.iter().rev().filter(|_| self.inlined == InlinedObjects::After) {
            out.push(b',');
            out.extend(object_like(text, object, &answer(resolved)));
        }
        Some(out)
    }

    /// The members for a function at the frame `object`: all those of a new object if it is inlined, and otherwise
    /// those to set.
    pub(crate) fn answer<'s>(
        &self,
        resolved: &'s Function,
        object: Value<'_>,
        resolution: &Resolution<'_>,
    ) -> Vec<Member<'s>> {
        let line = resolved.line;
        let offset = || resolution.function_offset(resolved);
        let start = || resolved.readable().and_then(|_| resolution.address.checked_sub(offset()?));
        // Some formats have all numbers as strings.
        let is_text = |key: &str| object.get(key).is_some_and(|old| old.text().is_some());
        let number =
            |key: &str, number: u64| if is_text(key) { number.to_string().into() } else { number.into() };
        let value = |key: &str, part| -> Option<NewValue<'s>> {
            Some(match part {
                Part::Copied | Part::Inlined if !resolved.inlined => return None,
                Part::Copied => NewValue::Json(serde_json::from_slice(object.get(key)?.bytes()).ok()?),
                Part::Inlined => true.into(),
                Part::Function => resolved.readable()?.into(),
                Part::LinkageName => resolved.name()?.into(),
                Part::FileName => line.map(|_| resolved.file_name())?.into(),
                Part::FilePath => line.map(|_| resolved.file_path())?.into(),
                Part::File => resolved.file()?.into(),
                Part::Line => number(key, line?.into()),
                Part::LineOfSource => number(key, line.filter(|line| *line != 0)?.into()),
                Part::Location => {
                    NewValue::Json(json!({"file": resolved.file_path(), "line": line?, "column": 0}))
                }
                Part::Start => number(key, start()?),
                Part::StartText => format!("{:#x}", start()?).into(),
                Part::OldStart => return None,
                Part::Offset => number(key, offset()?),
                Part::OffsetText => format!("{:#010x}", offset()?).into(),
            })
        };
        let members = self.members.iter().flat_map(|(keys, part)| keys.iter().map(move |key| (*key, *part)));
        members.filter_map(|(key, part)| Some((key, value(key, part)?))).collect()
    }
}

/// The text of a member of the object that a frame is.
pub(crate) fn member<'t>(object: &'t [u8], key: &str) -> Option<Cow<'t, str>> {
    let json = Json::parse(object, 0).ok()?;
    Some(json.root().get(key)?.text()?.into_owned().into())
}

/// Reads the registers of a thread: members with a number.
pub(crate) fn registers(object: Option<Value<'_>>, limit: &ReadLimit) -> Vec<Register> {
    let members = object.into_iter().flat_map(Value::members).take_while(|_| limit.take_entry());
    in_order(members.filter_map(|(name, value)| Some(Register::new(name.text()?, hexadecimal(value)?))))
}

/// Reads a number: hexadecimal digits in a string, with or without `0x`, or a decimal number.
pub(crate) fn hexadecimal(value: Value<'_>) -> Option<u64> {
    match value.text() {
        Some(text) => u64::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16).ok(),
        None => value.number(),
    }
}

/// Returns every array that is a member `key` of an object in `root`, at any depth and in order, with its object.
/// Arrays in such an array are left out, and further ones in the same object: the object's other members belong to one.
pub(crate) fn lists<'j>(root: Value<'j>, key: &str) -> impl Iterator<Item = (Value<'j>, Value<'j>)> {
    let mut values = root.descendants();
    let mut owners = HashSet::new();
    std::iter::from_fn(move || {
        loop {
            let Descendant { parent, key: name, value } = values.next()?;
            let is_list = name.is_some_and(|name| name.unescaped() == key.as_bytes());
            if is_list && value.bytes().starts_with(b"[") {
                values.leave(value);
                if owners.insert(parent.span().start) {
                    return Some((parent, value));
                }
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
