//! The elements of LLVM's symbolizer markup in a line of text.
//!
//! The format is <https://llvm.org/docs/SymbolizerMarkupFormat.html>. An element is `{{{tag:field:field}}}`. Lines are
//! bytes of any kind.

use crate::drop_in::request;
use crate::failure::complain;
use crate::text;

/// Why an element cannot be replaced.
pub(super) type Problem = String;

const BEGIN: &[u8] = b"{{{";
const END: &[u8] = b"}}}";

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node<'l> {
    Text(&'l [u8]),
    Style(StyleChange),
    Element(Element<'l>),
}

/// What a control sequence of a terminal changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StyleChange {
    Reset,
    Bold,
    /// The number of the color, 0 to 7.
    Color(u8),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element<'l> {
    /// The whole element.
    pub(super) text: &'l [u8],
    /// Not empty.
    pub(super) tag: &'l [u8],
    pub(super) fields: Vec<&'l [u8]>,
}

impl<'l> Element<'l> {
    /// The first fields.
    pub(super) fn at_least<const N: usize>(&self) -> Result<[&'l [u8]; N], Problem> {
        let fields = self.fields.first_chunk().copied();
        fields.ok_or_else(|| format!("it needs {N} fields, and has {}", self.fields.len()))
    }

    /// The fields. Says so if there are more.
    pub(super) fn exactly<const N: usize>(&self) -> Result<[&'l [u8]; N], Problem> {
        let fields = self.at_least()?;
        self.at_most(N);
        Ok(fields)
    }

    /// Says so if there are more fields.
    pub(super) fn at_most(&self, most: usize) {
        if self.fields.len() > most {
            let message = format!("warning: it can have {most} fields, and has {}", self.fields.len());
            complain(&format!("{}: {message}", text::lossy(self.text)));
        }
    }
}

/// The address in a field: hexadecimal after `0x`, or zeros.
pub(super) fn address(field: &[u8]) -> Result<u64, Problem> {
    let text = text::lossy(field);
    let is_zero = !text.is_empty() && text.bytes().all(|digit| digit == b'0');
    let address = if is_zero { Some(0) } else { request::number(&text).filter(|_| text.starts_with("0x")) };
    address.ok_or_else(|| format!("expected an address such as 0x1000, found {text:?}"))
}

/// The number in a field, which `what` names.
pub(super) fn number(field: &[u8], what: &str) -> Result<u64, Problem> {
    let text = text::lossy(field);
    request::number(&text).ok_or_else(|| format!("expected {what}, found {text:?}"))
}

/// The parts of a line, in order.
pub(super) fn nodes(line: &[u8]) -> Vec<Node<'_>> {
    let (mut nodes, mut rest) = (Vec::new(), line);
    while let Some((before, element, after)) = next_element(rest) {
        push_text(before, &mut nodes);
        nodes.push(Node::Element(element));
        rest = after;
    }
    push_text(rest, &mut nodes);
    nodes
}

/// The first element, and what is before and after it. Braces without a tag are text.
fn next_element(line: &[u8]) -> Option<(&[u8], Element<'_>, &[u8])> {
    let mut from = 0;
    loop {
        let begin = from + find(&line[from..], BEGIN)?;
        let content = begin + BEGIN.len();
        let end = content + find(&line[content..], END)?;
        let mut fields: Vec<_> = line[content..end].split(|byte| *byte == b':').collect();
        from = end + END.len();
        let tag = fields.remove(0);
        if !tag.is_empty() {
            return Some((&line[..begin], Element { text: &line[begin..from], tag, fields }, &line[from..]));
        }
    }
}

fn push_text<'l>(text: &'l [u8], nodes: &mut Vec<Node<'l>>) {
    let (mut begin, mut at) = (0, 0);
    while at < text.len() {
        let Some((change, size)) = style_change(&text[at..]) else {
            at += 1;
            continue;
        };
        if begin < at {
            nodes.push(Node::Text(&text[begin..at]));
        }
        nodes.push(Node::Style(change));
        at += size;
        begin = at;
    }
    if begin < text.len() {
        nodes.push(Node::Text(&text[begin..]));
    }
}

/// The control sequence at the beginning of `text`, and its size.
fn style_change(text: &[u8]) -> Option<(StyleChange, usize)> {
    match text.strip_prefix(b"\x1b[")? {
        [b'0', b'm', ..] => Some((StyleChange::Reset, 4)),
        [b'1', b'm', ..] => Some((StyleChange::Bold, 4)),
        [b'3', color @ b'0'..=b'7', b'm', ..] => Some((StyleChange::Color(color - b'0'), 5)),
        _ => None,
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element<'l>(text: &'l str, tag: &'l str, fields: &[&'l str]) -> Node<'l> {
        let fields = fields.iter().map(|field| field.as_bytes()).collect();
        Node::Element(Element { text: text.as_bytes(), tag: tag.as_bytes(), fields })
    }

    #[test]
    fn a_line_is_text_and_elements() {
        let whole = "a {{{bt:0:0x1:pc}}}{{{reset}}} b\n";
        let expected = [
            Node::Text(b"a "),
            element("{{{bt:0:0x1:pc}}}", "bt", &["0", "0x1", "pc"]),
            element("{{{reset}}}", "reset", &[]),
            Node::Text(b" b\n"),
        ];
        assert_eq!(nodes(whole.as_bytes()), expected);
        assert_eq!(nodes(b"{{{pc:}}}"), [element("{{{pc:}}}", "pc", &[""])]);
        assert_eq!(nodes(b"{{{pc::}}}"), [element("{{{pc::}}}", "pc", &["", ""])]);
        assert_eq!(nodes(b"{{{{pc}}}}"), [element("{{{{pc}}}", "{pc", &[]), Node::Text(b"}")]);
    }

    #[test]
    fn braces_that_are_no_element_are_text() {
        for text in ["", "x", "{{{", "{{{pc", "}}}", "{{{}}}", "{{{:a}}} {{{pc", "{{ {pc}}}"] {
            let expected = if text.is_empty() { Vec::new() } else { vec![Node::Text(text.as_bytes())] };
            assert_eq!(nodes(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(nodes(b"{{{}}}{{{pc}}}"), [Node::Text(b"{{{}}}"), element("{{{pc}}}", "pc", &[])]);
    }

    #[test]
    fn control_sequences_of_colors_are_no_text() {
        let expected = [
            Node::Style(StyleChange::Color(1)),
            Node::Text(b"a"),
            Node::Style(StyleChange::Bold),
            Node::Style(StyleChange::Reset),
            Node::Text(b"\x1b[38m\x1b["),
        ];
        assert_eq!(nodes(b"\x1b[31ma\x1b[1m\x1b[0m\x1b[38m\x1b["), expected);
    }
}
