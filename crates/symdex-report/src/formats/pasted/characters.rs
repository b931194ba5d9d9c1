//! What web pages, mail and terminals do to characters: no-break spaces, `&lt;`, `<br>`, colours; and the escapes of
//! strings in JSON.

use super::layer::{Kind, Layer};

/// What is written for a character, and the character.
const NAMES: [(&[u8], &[u8]); 11] = [
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b"\""),
    (b"&#34;", b"\""),
    (b"&#39;", b"'"),
    (b"&#x27;", b"'"),
    (b"&nbsp;", b" "),
    (b"&#160;", b" "),
    (b"&amp;", b"&"),
    // No-break spaces.
    ("\u{a0}".as_bytes(), b" "),
    ("\u{202f}".as_bytes(), b" "),
];

/// What stands for nothing: ends of lines of HTML, and characters of no width.
const NOTHING: [&str; 8] =
    ["<br>", "<br/>", "<br />", "\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}"];

/// The text without colours and without HTML's ends of lines. `None` if it has none.
pub(super) fn without_colours(text: &[u8]) -> Option<Layer> {
    memchr::memchr(0x1b, text).or_else(|| memchr::memmem::find(text, b"<br"))?;
    replace(text, Kind::Lines, |_| None)
}

/// The text with plain characters. `None` if it has no others.
pub(super) fn plain(text: &[u8]) -> Option<Layer> {
    let is_html = [&b"&lt;"[..], b"&gt;"].iter().any(|name| memchr::memmem::find(text, name).is_some());
    let name = |rest: &[u8]| NAMES.iter().find(|(name, _)| rest.starts_with(name)).copied();
    replace(text, if is_html { Kind::Html } else { Kind::Lines }, name)
}

/// The text without what stands for nothing, and with the characters whose names `name` returns.
fn replace(
    text: &[u8],
    kind: Kind,
    name: impl Fn(&[u8]) -> Option<(&'static [u8], &'static [u8])>,
) -> Option<Layer> {
    let mut layer = Layer::new(kind);
    let is_start = |byte: &u8| matches!(byte, b'&' | b'<' | 0x1b | 0xc2 | 0xe2 | 0xef);
    let (mut kept, mut at) = (0, 0);
    while let Some(next) = text[at..].iter().position(is_start) {
        at += next;
        let rest = &text[at..];
        let nothing = || NOTHING.iter().find(|name| rest.starts_with(name.as_bytes())).map(|name| name.len());
        let (len, character) = match name(rest) {
            Some((name, character)) => (name.len(), character),
            None => (colour(rest).or_else(nothing).unwrap_or_default(), &b""[..]),
        };
        if len != 0 {
            layer.keep(text, kept..at);
            layer.put(character, at..at + len);
            kept = at + len;
        }
        at += len.max(1);
    }
    layer.keep(text, kept..text.len());
    layer.finish(text)
}

/// The length of a control sequence of terminals, such as a colour: `ESC [ 3 1 m`.
fn colour(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"\x1b[")?;
    let len = rest.iter().take(32).take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b'?')).count();
    rest.get(len)?.is_ascii_alphabetic().then_some(2 + len + 1)
}

/// The text with ends of lines in place of `\n`. `None` if there are none.
pub(super) fn with_line_ends(text: &[u8]) -> Option<Layer> {
    memchr::memmem::find(text, b"\\n")?;
    let mut layer = Layer::new(Kind::Strings);
    layer.unescape(text, 0..text.len());
    layer.finish(text)
}
