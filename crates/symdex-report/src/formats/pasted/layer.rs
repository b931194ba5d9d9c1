//! A text made of another one, by leaving out what stands around its parts.

use crate::report::{Span, to_u32};

/// The text of a report, made of an outer text: parts of it in their order, without what people, logs and web pages
/// put around them. Edits of the text become edits of the outer text, which keeps all other bytes.
pub(crate) struct Layer {
    pub(crate) text: Vec<u8>,
    kind: Kind,
    /// The parts of the outer text. Each begins where the one before ends.
    parts: Vec<Part>,
    /// How many bytes of the outer text are parts of a report that is cut there. 0 if the report is whole.
    pub(crate) cut: usize,
}

/// How an answer is written in the outer text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As it is. What stands around a line stands around each line of an answer.
    Lines,
    /// As [`Lines`](Self::Lines), with HTML's names of characters, such as `&lt;`.
    Html,
    /// As it is, in a document.
    Document,
    /// With the escapes of strings in JSON.
    Strings,
}

/// Where a part of the text is in the outer text.
struct Part {
    /// Its first byte.
    start: u32,
    /// The byte of the outer text that it stands for.
    outer: u32,
    size: Size,
}

/// How many bytes of the outer text a part stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// So many for each of its bytes: 0 if the outer text lacks them, and more than 1 for a character with a name.
    Times(u8),
    /// As many as the characters have with the escapes of JSON. Positions are found by reading from the start of the
    /// part, because a part for each escape would take more memory than the text.
    Escaped,
}

/// How many bytes a part with escapes has.
const ESCAPED: usize = 64;

/// How many bytes of the outer text a part needs, on average, so that parts take at most twice its memory.
const MIN_PART: usize = 6;

impl Layer {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { text: Vec::new(), kind, parts: Vec::new(), cut: 0 }
    }

    /// Appends the bytes of `outer` at `span`.
    pub(crate) fn keep(&mut self, outer: &[u8], span: Span) {
        self.push(outer.get(span.clone()).unwrap_or_default(), span.start, Size::Times(1));
    }

    /// Appends `character`, which has a name in the outer text, at `span`.
    pub(crate) fn put(&mut self, character: &[u8], span: Span) {
        let times = span.len() / character.len().max(1);
        self.push(character, span.start, Size::Times(u8::try_from(times).unwrap_or_default()));
    }

    /// Appends `bytes`, which the outer text lacks at `at`.
    pub(crate) fn insert(&mut self, bytes: &[u8], at: usize) {
        self.push(bytes, at, Size::Times(0));
    }

    /// Appends the text at `span` of `outer` with characters in place of its escapes.
    pub(crate) fn unescape(&mut self, outer: &[u8], span: Span) {
        let mut at = span.start;
        while at < span.end {
            let start = self.text.len();
            self.parts.push(Part { start: to_u32(start), outer: to_u32(at), size: Size::Escaped });
            while at < span.end && self.text.len() < start + ESCAPED {
                let (escape, character) = character(&outer[at..span.end]);
                self.text.extend_from_slice(character.bytes());
                at += escape;
            }
        }
    }

    fn push(&mut self, bytes: &[u8], outer: usize, size: Size) {
        let part = Part { start: to_u32(self.text.len()), outer: to_u32(outer), size };
        let is_next = |last: &Part| last.size == size && last.outer(&[], self.text.len()) == outer;
        if !bytes.is_empty() && !self.parts.last().is_some_and(is_next) {
            self.parts.push(part);
        }
        self.text.extend_from_slice(bytes);
    }

    /// The layer, unless its text is that of `outer` or blank, or it would take too much memory.
    pub(crate) fn finish(self, outer: &[u8]) -> Option<Self> {
        let is_small = self.parts.len() <= 64 + outer.len() / MIN_PART;
        (is_small && self.text != outer && !self.text.trim_ascii().is_empty()).then_some(self)
    }

    /// The layer, and what is left of `room` bytes of memory. `None` if it takes more.
    pub(crate) fn fit(self, room: usize) -> Option<(Self, usize)> {
        let size = self.text.len() + self.parts.len() * size_of::<Part>();
        room.checked_sub(size).map(|rest| (self, rest))
    }

    /// The part with the byte `at`.
    fn part(&self, at: usize) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.start as usize <= at);
        self.parts.get(after.checked_sub(1)?)
    }

    /// What is left out of the outer text before the byte `at`.
    fn gap(&self, outer: &[u8], at: usize) -> Span {
        let end = self.part(at).map_or(0, |part| part.outer(outer, at));
        let start = match at.checked_sub(1).and_then(|before| self.part(before)) {
            Some(part) => part.outer(outer, at),
            None if matches!(self.kind, Kind::Lines | Kind::Html) => 0,
            None => end,
        };
        start..end.max(start)
    }

    /// The edit of the outer text that replaces `span` by `new`: a span there, and its new text. It leaves as many
    /// bytes alone as it can.
    pub(crate) fn edit(&self, outer: &[u8], span: Span, new: &[u8]) -> (Span, Vec<u8>) {
        let old = self.text.get(span.clone()).unwrap_or_default();
        let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[same..], &new[same..]);
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let (span, new) = (span.start + same..span.end - tail, &new[..new.len() - tail]);
        let before = self.gap(outer, span.start);
        // A text that is added at the end of a line stands before what is left out there.
        let is_line_end = matches!(self.text.get(span.start), None | Some(b'\r' | b'\n')) && span.is_empty();
        let start = if is_line_end && span.start != 0 { before.start } else { before.end };
        let end = self.gap(outer, span.end).start.max(start);
        let mut out = Vec::with_capacity(new.len());
        let (prefix, suffix) =
            if new.contains(&b'\n') { self.around_line(outer, &span) } else { Default::default() };
        for line in new.split_inclusive(|byte| *byte == b'\n') {
            let content = line.strip_suffix(b"\n").unwrap_or(line);
            let (content, carriage) = match content.strip_suffix(b"\r") {
                Some(content) if content.len() + 2 == line.len() => (content, &b"\r"[..]),
                _ => (content, &b""[..]),
            };
            self.escape(content, &mut out);
            if line.ends_with(b"\n") {
                out.extend_from_slice(suffix);
                self.escape(&[carriage, b"\n"].concat(), &mut out);
                out.extend_from_slice(prefix);
            }
        }
        (start..end, out)
    }

    /// What is left out before and after the line that has the start of `span`.
    fn around_line<'o>(&self, outer: &'o [u8], span: &Span) -> (&'o [u8], &'o [u8]) {
        let start = memchr::memrchr(b'\n', &self.text[..span.start]).map_or(0, |end| end + 1);
        let rest = &self.text[span.start..];
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let end = span.start + rest[..len].strip_suffix(b"\r").map_or(len, <[u8]>::len);
        let (prefix, mut suffix) = (self.gap(outer, start), self.gap(outer, end));
        if end == self.text.len() {
            let rest = outer.get(suffix.start..).unwrap_or_default();
            suffix.end = suffix.start + memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        }
        let is_repeated = matches!(self.kind, Kind::Lines | Kind::Html);
        let text = |span: Span| outer.get(span).filter(|_| is_repeated).unwrap_or_default();
        (text(prefix), text(suffix))
    }

    /// Appends `text` as the outer text writes it.
    fn escape(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.kind {
            Kind::Lines | Kind::Document => out.extend_from_slice(text),
            Kind::Html => text.iter().for_each(|byte| match byte {
                b'<' => out.extend_from_slice(b"&lt;"),
                b'>' => out.extend_from_slice(b"&gt;"),
                b'&' => out.extend_from_slice(b"&amp;"),
                byte => out.push(*byte),
            }),
            Kind::Strings => {
                let quoted = serde_json::Value::from(String::from_utf8_lossy(text)).to_string();
                out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
            }
        }
    }
}

impl Part {
    /// The position in `outer` of the byte `at` of the text, which is in the part or follows it.
    fn outer(&self, outer: &[u8], at: usize) -> usize {
        let (start, len) = (self.outer as usize, at - self.start as usize);
        match self.size {
            Size::Times(times) => start + len * usize::from(times),
            Size::Escaped => {
                let (mut plain, mut at) = (0, start);
                while plain < len && at < outer.len() {
                    let (escape, character) = character(&outer[at..]);
                    (plain, at) = (plain + character.bytes().len(), at + escape);
                }
                at
            }
        }
    }
}

/// A character of a string, or a byte of it.
struct Character {
    bytes: [u8; 4],
    len: usize,
}

impl Character {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The length of the escape or byte that `text` begins with, and what it stands for. A backslash before anything else
/// stands for itself.
fn character(text: &[u8]) -> (usize, Character) {
    let byte = |len, byte: u8| (len, Character { bytes: [byte, 0, 0, 0], len: 1 });
    match text.get(..2) {
        Some(b"\\n") => byte(2, b'\n'),
        Some(b"\\t") => byte(2, b'\t'),
        Some(b"\\r") => byte(2, b'\r'),
        Some(b"\\b") => byte(2, 8),
        Some(b"\\f") => byte(2, 12),
        Some([b'\\', escaped @ (b'"' | b'\\' | b'/')]) => byte(2, *escaped),
        Some(b"\\u") => match unicode(text) {
            Some((len, character)) => {
                let mut bytes = [0; 4];
                let len_utf8 = character.encode_utf8(&mut bytes).len();
                (len, Character { bytes, len: len_utf8 })
            }
            None => byte(1, b'\\'),
        },
        _ => byte(1, text.first().copied().unwrap_or_default()),
    }
}

/// The length of the escape `\u00e9`, and its character. Two escapes are one character if the first is a surrogate.
fn unicode(text: &[u8]) -> Option<(usize, char)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let units = [unit(0)?, unit(6).unwrap_or_default()];
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((6 * character.len_utf16(), character))
}
