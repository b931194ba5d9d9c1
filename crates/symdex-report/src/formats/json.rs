//! A JSON parser that keeps the position of every value, so that a report can be edited in place.
//!
//! A document becomes one flat list of nodes, without recursion. Only brackets, quotes and separators are checked;
//! numbers and words are parsed when they are read. Most values are short keys, numbers and words, so their nodes
//! have only the start; the end is found again when it is needed. A report that consists of frames of two members then
//! takes less memory for its nodes than for its text.

#[cfg(test)]
mod tests;

mod parser;

use std::borrow::Cow;

use self::parser::Parser;
use crate::error::Error;
use crate::formats::steps::count;
use crate::report::{Site, Span, to_u32};

/// A parsed document. It borrows its text.
pub(crate) struct Json<'t> {
    text: &'t [u8],
    nodes: Vec<u32>,
    /// The end of the document in the text.
    end: usize,
}

/// The words of an object's or array's node: the start and the end in the text, and the position of the first node
/// after the value and all that it contains. The nodes of an object's members are key, value, key, value. The node of
/// any other value has one word, its start.
const CONTAINER: usize = 3;

/// Whether an object or array begins at `start`.
fn is_container(text: &[u8], start: u32) -> bool {
    matches!(text.get(start as usize), Some(b'{' | b'['))
}

/// The end of the string at `start`. `None` if it has no end.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut from = start + 1;
    loop {
        let rest = text.get(from..)?;
        let found = memchr::memchr2(b'"', b'\\', rest)?;
        count(found + 1);
        from += found + 1;
        if rest[found] == b'"' {
            return Some(from);
        }
        // Skip the escaped character, which may be a quote.
        from += 1;
    }
}

/// The end of the number or word at `start`.
fn scalar_end(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let len = rest.iter().take_while(|byte| is_scalar(**byte)).count();
    count(len);
    start + len
}

/// Whether `byte` belongs to a number or a word.
fn is_scalar(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'a'..=b'z' | b'A'..=b'Z')
}

/// The number at the start of `text`. `None` unless it has only digits and surely fits.
fn short_number(text: &[u8]) -> Option<u64> {
    let len = text.iter().take(MAX_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = text.get(len).is_none_or(|byte| !is_scalar(*byte));
    ((1..=MAX_DIGITS).contains(&len) && is_whole).then_some(())?;
    count(len);
    Some(text[..len].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// Every number with this many digits fits 64 bits.
const MAX_DIGITS: usize = 19;

/// 2^53. This integer and larger ones may have been rounded when they were written with a fraction or an exponent.
const EXACT: u64 = 1 << 53;

/// A value in a document.
#[derive(Clone, Copy)]
pub(crate) struct Value<'j> {
    json: &'j Json<'j>,
    node: usize,
}

impl<'t> Json<'t> {
    /// Parses the document at `start`. White space may come first. The text after the document is not read.
    pub(crate) fn parse(text: &'t [u8], start: usize) -> Result<Self, Error> {
        let (nodes, end) = Parser::parse(text, start)?;
        Ok(Self { text, nodes, end })
    }

    /// How much of the document at `start` is whole, if it is cut: an end in the text, and the brackets that close what
    /// is open there.
    pub(crate) fn repair(text: &[u8], start: usize) -> Option<(usize, Vec<u8>)> {
        Parser::repair(text, start)
    }

    /// The end of the document, in bytes from the start of the text.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The number of bytes after the document, from the first that is neither white space nor zero.
    pub(crate) fn rest(&self) -> u64 {
        let rest = self.text.get(self.end..).unwrap_or_default();
        let padding = rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0).count();
        (rest.len() - padding) as u64
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value { json: self, node: 0 }
    }
}

impl<'j> Value<'j> {
    /// The span of the value in the text.
    pub(crate) fn span(self) -> Span {
        let Json { text, nodes, .. } = self.json;
        let start = nodes[self.node] as usize;
        let end = match text.get(start) {
            Some(b'{' | b'[') => nodes[self.node + 1] as usize,
            Some(b'"') => string_end(text, start).unwrap_or(text.len()),
            _ => scalar_end(text, start),
        };
        start..end
    }

    /// The position of the first node after the value.
    fn next(self) -> usize {
        let Json { text, nodes, .. } = self.json;
        let is_container = is_container(text, nodes[self.node]);
        if is_container { nodes[self.node + 2] as usize } else { self.node + 1 }
    }

    /// The site of the text between the quotes of a string.
    pub(crate) fn inner(self) -> Site {
        let span = self.span();
        (span.start + 1..span.end.saturating_sub(1)).into()
    }

    /// The bytes of the value.
    pub(crate) fn bytes(self) -> &'j [u8] {
        self.json.text.get(self.span()).unwrap_or_default()
    }

    /// The members of an object, in order. Any other value has none.
    pub(crate) fn members(self) -> impl Iterator<Item = (Value<'j>, Value<'j>)> + use<'j> {
        let mut children = self.children(b'{');
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// The elements of an array. Any other value has none.
    pub(crate) fn elements(self) -> impl Iterator<Item = Value<'j>> + use<'j> {
        self.children(b'[')
    }

    /// The elements of an array, by position. Any other value has none.
    pub(crate) fn list(self) -> List<'j> {
        let mut nodes = Vec::with_capacity(self.elements().count());
        nodes.extend(self.elements().map(|element| to_u32(element.node)));
        List { json: self.json, nodes }
    }

    /// All values in an object or array, at any depth, each before the values in it.
    pub(crate) fn descendants(self) -> Descendants<'j> {
        let is_container = is_container(self.json.text, self.json.nodes[self.node]);
        let open = if is_container { vec![to_u32(self.node)] } else { Vec::new() };
        Descendants { json: self.json, at: self.node + CONTAINER, open, key: None }
    }

    /// Returns the value of the last member with this key. Keys that contain escapes are not found.
    pub(crate) fn get(self, key: &str) -> Option<Value<'j>> {
        let is_it = |name: &Value<'_>| name.is_string(key);
        self.members().filter(|(name, _)| is_it(name)).last().map(|(_, value)| value)
    }

    /// As [`get`](Self::get), for several keys, which are distinct. The members are visited once.
    pub(crate) fn get_each<const N: usize>(self, keys: [&str; N]) -> [Option<Value<'j>>; N] {
        let mut found = [None; N];
        self.find_each(keys.iter().copied(), |at, value| found[at] = Some(value));
        found
    }

    /// Calls `each` with each member that has one of `keys`, which are distinct: the position of the key, and the
    /// value.
    pub(crate) fn find_each<'k>(
        self,
        keys: impl Iterator<Item = &'k str> + Clone,
        mut each: impl FnMut(usize, Value<'j>),
    ) {
        for (name, value) in self.members() {
            if let Some(at) = keys.clone().position(|key| name.is_string(key)) {
                each(at, value);
            }
        }
    }

    /// Whether it is the string `text`, which has no quote and no backslash, written without escapes.
    pub(crate) fn is_string(self, text: &str) -> bool {
        let Json { text: all, nodes, .. } = self.json;
        let written = all.get(nodes[self.node] as usize + 1..).unwrap_or_default();
        // The closing quote is compared first, because it is elsewhere in most strings.
        written.get(text.len()) == Some(&b'"') && written.starts_with(text.as_bytes())
    }

    /// Returns the text of a string. `None` for any other value and for an invalid string.
    pub(crate) fn text(self) -> Option<Cow<'j, str>> {
        if self.bytes().first() != Some(&b'"') {
            return None;
        }
        let inner = self.unescaped();
        match std::str::from_utf8(inner) {
            Ok(text) if memchr::memchr(b'\\', inner).is_none() => Some(Cow::Borrowed(text)),
            _ => serde_json::from_slice(self.bytes()).ok().map(Cow::Owned),
        }
    }

    /// Returns a non-negative integer: `16`, and as other tools write it after a round trip: `16.0`, `1.6e1`, `"16"`,
    /// `"0x10"`. `None` for any other value, also for one of 2^53 or more with a fraction or an exponent: it may be
    /// inexact.
    pub(crate) fn number(self) -> Option<u64> {
        let Json { text, nodes, .. } = self.json;
        let plain = text.get(nodes[self.node] as usize..).and_then(short_number);
        if plain.is_some() {
            return plain;
        }
        let bytes = self.bytes();
        let text = bytes.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(bytes);
        let text = std::str::from_utf8(text).ok()?;
        if let Some(digits) = text.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok();
        }
        // Without the first test, `inf` and `.5` would be numbers.
        text.starts_with(|first: char| first.is_ascii_digit()).then_some(())?;
        let number: Option<u64> = match text.split_once('.') {
            // A float would lose the last digits of the fraction.
            Some((whole, fraction)) if !fraction.contains(['e', 'E']) => {
                whole.parse().ok().filter(|_| fraction.bytes().all(|digit| digit == b'0'))
            }
            _ => {
                let float: f64 = text.parse().ok()?;
                if float.fract() == 0.0 { format!("{float:.0}").parse().ok() } else { None }
            }
        };
        number.filter(|number| *number < EXACT)
    }

    pub(crate) fn is_true(self) -> bool {
        self.bytes() == b"true"
    }

    /// The bytes between a string's quotes, with escapes as they are.
    pub(crate) fn unescaped(self) -> &'j [u8] {
        let bytes = self.bytes();
        bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default()
    }

    fn children(self, opening: u8) -> impl Iterator<Item = Value<'j>> + use<'j> {
        let Value { json, node } = self;
        let is_right = json.text.get(json.nodes[node] as usize) == Some(&opening);
        let mut at = node + CONTAINER;
        let end = if is_right { self.next() } else { at };
        std::iter::from_fn(move || {
            let child = (at < end).then_some(Value { json, node: at })?;
            count(1);
            at = child.next();
            Some(child)
        })
    }
}

/// The elements of an array, in little memory: a profile has millions.
pub(crate) struct List<'j> {
    json: &'j Json<'j>,
    nodes: Vec<u32>,
}

impl<'j> List<'j> {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn get(&self, position: usize) -> Option<Value<'j>> {
        self.nodes.get(position).map(|node| Value { json: self.json, node: *node as usize })
    }

    /// The elements, from the last to the first.
    pub(crate) fn reversed(self) -> impl Iterator<Item = Value<'j>> {
        (0..self.len()).rev().filter_map(move |position| self.get(position))
    }
}

/// A value in an object or array.
pub(crate) struct Descendant<'j> {
    /// The object or array that contains it.
    pub(crate) parent: Value<'j>,
    /// The key, if it is a member of an object.
    pub(crate) key: Option<Value<'j>>,
    pub(crate) value: Value<'j>,
}

/// The values in an object or array. See [`Value::descendants`].
pub(crate) struct Descendants<'j> {
    json: &'j Json<'j>,
    /// The next node.
    at: usize,
    /// The nodes of the objects and arrays that contain it.
    open: Vec<u32>,
    key: Option<Value<'j>>,
}

impl<'j> Descendants<'j> {
    /// Leaves out the values in `value`, which was the last.
    pub(crate) fn leave(&mut self, value: Value<'j>) {
        self.at = value.next();
    }
}

impl<'j> Iterator for Descendants<'j> {
    type Item = Descendant<'j>;

    fn next(&mut self) -> Option<Self::Item> {
        let json = self.json;
        let is_object = |value: &Value<'_>| json.text.get(json.nodes[value.node] as usize) == Some(&b'{');
        loop {
            count(1);
            let parent = Value { json, node: *self.open.last()? as usize };
            if self.at >= parent.next() {
                self.open.pop();
                continue;
            }
            let value = Value { json, node: self.at };
            if is_object(&parent) && self.key.is_none() {
                self.key = Some(value);
                self.at += 1;
                continue;
            }
            self.at += 1;
            if is_container(json.text, json.nodes[value.node]) {
                self.open.push(to_u32(value.node));
                self.at = value.node + CONTAINER;
            }
            return Some(Descendant { parent, key: self.key.take(), value });
        }
    }
}
