//! Changes members of a JSON object and keeps its white space.

use serde_json::json;

use crate::json::Value;
use crate::report::Span;

/// The key and the value of a member to set.
pub(crate) type Member<'m> = (&'m str, serde_json::Value);

/// The separators of an object's members: the comma with its white space, and the colon with its white space.
struct Separators<'t> {
    comma: &'t [u8],
    colon: &'t [u8],
}

impl<'t> Separators<'t> {
    fn of(text: &'t [u8], object: Value<'_>) -> Self {
        let members: Vec<_> = object.members().take(2).map(|(k, v)| (k.span(), v.span())).collect();
        let between = |from: usize, to: usize| text.get(from..to);
        let colon = members.first().and_then(|(key, value)| between(key.end, value.start));
        let comma = match &members[..] {
            [(_, value), (key, _), ..] => between(value.end, key.start),
            _ => None,
        };
        Self { comma: comma.unwrap_or(b","), colon: colon.unwrap_or(b":") }
    }

    fn member(&self, (key, value): &Member<'_>) -> Vec<u8> {
        [json!(key).to_string().as_bytes(), self.colon, value.to_string().as_bytes()].concat()
    }
}

/// Returns the text of `object` with `members` set. A member that exists keeps its position; a new one is appended.
pub(crate) fn with_members(text: &[u8], object: Value<'_>, members: &[Member<'_>]) -> Vec<u8> {
    let separators = Separators::of(text, object);
    let mut changes: Vec<(Span, Vec<u8>)> = Vec::new();
    let last = object.members().last();
    let mut added = Vec::new();
    for member in members {
        match object.get(member.0) {
            Some(value) => changes.push((value.span(), member.1.to_string().into_bytes())),
            None => {
                let is_first = last.is_none() && added.is_empty();
                added.extend_from_slice(if is_first { b"" } else { separators.comma });
                added.extend(separators.member(member));
            }
        }
    }
    let end = last.map_or(object.span().start + 1, |(_, value)| value.span().end);
    changes.push((end..end, added));
    changes.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::new();
    let mut at = object.span().start;
    for (span, new) in changes {
        out.extend_from_slice(&text[at..span.start]);
        out.extend(new);
        at = span.end;
    }
    out.extend_from_slice(&text[at..object.span().end]);
    out
}

/// Returns `members` as text to insert after a member of `object`. A comma stands before each.
pub(crate) fn more_members(text: &[u8], object: Value<'_>, members: &[Member<'_>]) -> Vec<u8> {
    let separators = Separators::of(text, object);
    members.iter().flat_map(|member| [separators.comma, &separators.member(member)].concat()).collect()
}

/// Returns the text of a new object with `members`, with the white space of `like`.
pub(crate) fn object_like(text: &[u8], like: Value<'_>, members: &[Member<'_>]) -> Vec<u8> {
    let separators = Separators::of(text, like);
    let span = like.span();
    let first = like.members().next().map_or(span.end - 1, |(key, _)| key.span().start);
    let last = like.members().last().map_or(span.end - 1, |(_, value)| value.span().end);
    let members: Vec<_> = members.iter().map(|member| separators.member(member)).collect();
    [&text[span.start..first], &members.join(separators.comma), &text[last..span.end]].concat()
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
    let mut out = Vec::new();
    for new in before {
        out.extend(object_like(text, object, &new));
        out.push(b',');
        out.extend_from_slice(space);
    }
    out.extend(with_members(text, object, members));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn set(object: &str, members: &[Member<'_>]) -> String {
        let json = Json::parse(object.as_bytes(), 0).expect("JSON");
        String::from_utf8(with_members(object.as_bytes(), json.root(), members)).expect("text")
    }

    #[test]
    fn members_are_set_with_the_white_space_of_the_object() {
        let members = [("b", json!("é\n")), ("c", json!(3))];
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
        let new = object_like(like.as_bytes(), json.root(), &[("x", json!(true)), ("y", json!("w"))]);
        assert_eq!(String::from_utf8_lossy(&new), "{\n  \"x\" : true,\n  \"y\" : \"w\"\n}");
    }
}
