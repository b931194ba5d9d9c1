//! Changes members of a JSON object and keeps its white space.

use std::borrow::Cow;

use serde::Serialize;

use crate::formats::json::Value;
use crate::report::Span;

/// The key and the value of a member to set.
pub(crate) type Member<'m> = (&'m str, NewValue<'m>);

/// The value of a member to set.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum NewValue<'m> {
    Bool(bool),
    Number(u64),
    Text(Cow<'m, str>),
    Json(serde_json::Value),
}

impl NewValue<'_> {
    /// Appends the JSON of the value.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => append_text(text, out),
            // Writing to memory does not fail, and all of these values have a JSON form.
            other => _ = serde_json::to_writer(out, other),
        }
    }
}

/// Appends `text` as a JSON string.
fn append_text(text: &str, out: &mut Vec<u8>) {
    // Without an early end, the compiler compares many bytes at once. Few texts have an escape.
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |found, byte| found | is_escaped(byte)) {
        _ = serde_json::to_writer(out, text);
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

impl From<bool> for NewValue<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for NewValue<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for NewValue<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl<'m> From<&'m str> for NewValue<'m> {
    fn from(text: &'m str) -> Self {
        Self::Text(text.into())
    }
}

impl<'m> From<Cow<'m, str>> for NewValue<'m> {
    fn from(text: Cow<'m, str>) -> Self {
        Self::Text(text)
    }
}

impl From<String> for NewValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// The white space of an object, and the separators of its members.
struct Layout<'t> {
    /// The object up to its first key.
    open: &'t [u8],
    /// The comma and the colon, with their white space.
    comma: &'t [u8],
    colon: &'t [u8],
    /// The object after its last value.
    close: &'t [u8],
}

impl<'t> Layout<'t> {
    fn of(text: &'t [u8], object: Value<'_>) -> Self {
        let object_span = object.span();
        let mut members = object.members().map(|(key, value)| (key.span(), value.span()));
        let (first, second) = (members.next(), members.next());
        let last = members.last().or(second.clone()).or(first.clone());
        let between = |from: usize, to: usize| text.get(from..to);
        let colon = first.as_ref().and_then(|(key, value)| between(key.end, value.start));
        let comma =
            first.as_ref().zip(second).and_then(|((_, value), (key, _))| between(value.end, key.start));
        let start = first.map_or(object_span.end - 1, |(key, _)| key.start);
        let end = last.map_or(object_span.end - 1, |(_, value)| value.end);
        Self {
            open: &text[object_span.start..start],
            comma: comma.unwrap_or(b","),
            colon: colon.unwrap_or(b":"),
            close: &text[end..object_span.end],
        }
    }

    fn append_member(&self, (key, value): &Member<'_>, out: &mut Vec<u8>) {
        append_text(key, out);
        out.extend_from_slice(self.colon);
        value.append_to(out);
    }

    /// Appends a new object with `members`.
    fn append_object(&self, members: &[Member<'_>], out: &mut Vec<u8>) {
        out.extend_from_slice(self.open);
        for (at, member) in members.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"" } else { self.comma });
            self.append_member(member, out);
        }
        out.extend_from_slice(self.close);
    }

    /// Appends `object`, which has this layout, with `members` set.
    fn append_with_members(&self, text: &[u8], object: Value<'_>, members: &[Member<'_>], out: &mut Vec<u8>) {
        let mut values = vec![None; members.len()];
        object.find_each(members.iter().map(|(key, _)| *key), |at, value| values[at] = Some(value.span()));
        let all = || values.iter().zip(members);
        let mut changed: Vec<(&Span, &Member<'_>)> =
            all().filter_map(|(span, member)| Some((span.as_ref()?, member))).collect();
        changed.sort_by_key(|(span, _)| span.start);
        let span = object.span();
        let mut at = span.start;
        for (value, (_, new)) in changed {
            out.extend_from_slice(&text[at..value.start]);
            new.append_to(out);
            at = value.end;
        }
        let has_members = object.members().next().is_some();
        // New members follow the last value, or the bracket of an empty object.
        let end = if has_members { span.end - self.close.len() } else { span.start + 1 };
        out.extend_from_slice(&text[at..end]);
        let added = all().filter(|(value, _)| value.is_none());
        for (number, (_, member)) in added.enumerate() {
            out.extend_from_slice(if has_members || number != 0 { self.comma } else { b"" });
            self.append_member(member, out);
        }
        out.extend_from_slice(&text[end..span.end]);
    }
}

/// Returns the text of `object` with `members` set. A member that exists keeps its position; a new one is appended.
pub(crate) fn with_members(text: &[u8], object: Value<'_>, members: &[Member<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    Layout::of(text, object).append_with_members(text, object, members, &mut out);
    out
}

/// Returns `members` as text to insert after a member of `object`. A comma stands before each.
pub(crate) fn more_members(text: &[u8], object: Value<'_>, members: &[Member<'_>]) -> Vec<u8> {
    let layout = Layout::of(text, object);
    let mut out = Vec::new();
    for member in members {
        out.extend_from_slice(layout.comma);
        layout.append_member(member, &mut out);
    }
    out
}

/// Returns the text of a new object with `members`, with the white space of `like`.
pub(crate) fn object_like(text: &[u8], like: Value<'_>, members: &[Member<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    Layout::of(text, like).append_object(members, &mut out);
    out
}

/// Returns the text of `object` with `members` set. A new object for each element of `before` stands before it, with
/// the white space of `object`.
pub(crate) fn with_objects_before<'m>(
    text: &[u8],
    object: Value<'_>,
    before: impl Iterator<Item = Vec<Member<'m>>>,
    members: &[Member<'_>],
) -> Vec<u8> {
    let ahead = text.get(..object.span().start).unwrap_or_default();
    let space = ahead.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    let space = &ahead[ahead.len() - space..];
    let layout = Layout::of(text, object);
    let mut out = Vec::new();
    for new in before {
        layout.append_object(&new, &mut out);
        out.push(b',');
        out.extend_from_slice(space);
    }
    layout.append_with_members(text, object, members, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::json::Json;

    fn set(object: &str, members: &[Member<'_>]) -> String {
        let json = Json::parse(object.as_bytes(), 0).expect("JSON");
        String::from_utf8(with_members(object.as_bytes(), json.root(), members)).expect("text")
    }

    #[test]
    fn members_are_set_with_the_white_space_of_the_object() {
        let members = [("b", "é\n".into()), ("c", 3_u32.into())];
        assert_eq!(set(r#"{"a":1,"b":2.0}"#, &members), r#"{"a":1,"b":"é\n","c":3}"#);
        assert_eq!(
            set("{\n  \"a\" : 1,\n  \"z\" : 0\n}", &members[1..]),
            "{\n  \"a\" : 1,\n  \"z\" : 0,\n  \"c\" : 3\n}"
        );
        assert_eq!(set("{ }", &members), r#"{"b":"é\n","c":3 }"#);
        assert_eq!(set(r#"{"b": 1}"#, &members), r#"{"b": "é\n","c": 3}"#);
    }

    #[test]
    fn a_new_object_has_the_white_space_of_the_other() {
        let like = "{\n  \"a\" : 1,\n  \"z\" : 0\n}";
        let json = Json::parse(like.as_bytes(), 0).expect("JSON");
        let new = object_like(like.as_bytes(), json.root(), &[("x", true.into()), ("y", "w".into())]);
        assert_eq!(String::from_utf8_lossy(&new), "{\n  \"x\" : true,\n  \"y\" : \"w\"\n}");
    }
}
