//! What stands before the content of each line: marks of quotes and lists, times and levels of logs, line numbers.
//!
//! A line with a frame is a report by itself, so it tells where the content begins. What stands before it has a shape,
//! such as two numbers, a word and a colon. Every line that begins with this shape loses it.

use super::layer::{Kind, Layer};
use crate::formats::format::{Format, FormatKind};
use crate::report::Span;
use crate::text::lines;

/// How many lines are searched for a frame, and how many of them with one tell the prefix.
const LINES: usize = 32;
const FRAMES: usize = 2;
/// How many prefixes that most lines have are tried.
const COMMON: usize = 8;
/// The longest prefix, in bytes, and how many ends of it are tried.
const LONGEST: usize = 256;
/// How much of a line is searched for a frame, in bytes.
const LONGEST_FRAME: usize = 512;
const ENDS: usize = 24;

/// The prefixes that all lines, or the first lines with frames or titles, may have.
pub(super) fn shapes<'t>(text: &'t [u8], formats: &[Format]) -> Vec<Shape<'t>> {
    let may_be = |line: &[u8]| has_address(line) || line.trim_ascii_end().ends_with(b":");
    let searched = lines(text).map(|(_, line)| line).filter(|line| may_be(line)).take(LINES);
    let is_report = |rest: &[u8]| {
        formats.iter().any(|format| format.kind() == FormatKind::Text && format.recognises(rest))
    };
    let found = searched.map(|line| shapes_of(line, is_report).collect::<Vec<_>>());
    let mut shapes: Vec<Shape<'_>> = common_shapes(text);
    for shape in found.filter(|shapes| !shapes.is_empty()).take(FRAMES).flatten() {
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    shapes.retain(|shape| shape.is_no_content(text));
    shapes
}

/// The text without the indentation that all lines have, or without the mark of a quote, a list or a table that all
/// begin with.
pub(super) fn without_marks(text: &[u8]) -> Option<Layer> {
    let indented = lines(text).map(|(_, line)| line).filter(|line| !line.trim_ascii().is_empty());
    let indentation =
        indented.map(space).try_fold(usize::MAX, |least, space| (space != 0).then(|| least.min(space)));
    if let Some(indentation) = indentation.filter(|indentation| *indentation != usize::MAX) {
        return strip(text, |line| Some(indentation.min(space(line))..line.len()));
    }
    let mut content = lines(text).map(|(_, line)| line.trim_ascii()).filter(|line| !line.is_empty());
    let mark = *content.next()?.first().filter(|first| MARKS.contains(first))?;
    let is_marked = |line: &[u8]| line[0] == mark && line.get(1).is_none_or(u8::is_ascii_whitespace);
    content.all(is_marked).then_some(())?;
    Shape { tokens: vec![Token::Space, Token::Mark(mark)] }.strip(text)
}

/// The marks of quotes, lists and tables in Markdown.
const MARKS: &[u8] = b">-*+|";

/// The text without the prefix that the line before `start` has, if the next line has it, too: a document of several
/// lines begins there.
pub(super) fn without_prefix_of(text: &[u8], start: usize) -> Option<Layer> {
    let line_start = memchr::memrchr(b'\n', text.get(..start)?).map_or(0, |end| end + 1);
    let shape = Shape::of(&text[line_start..start])?;
    let (_, next) = lines(&text[start..]).nth(1)?;
    shape.len(next).is_some().then(|| shape.strip(text))?
}

/// The layer that keeps of each line what `content` returns, without its end. A line of which it returns nothing stays.
fn strip(text: &[u8], content: impl Fn(&[u8]) -> Option<Span>) -> Option<Layer> {
    let mut layer = Layer::new(Kind::Lines);
    let mut end = 0;
    for (span, line) in lines(text) {
        layer.keep(text, end..span.start);
        let kept = content(line).unwrap_or(0..line.len());
        layer.keep(text, span.start + kept.start..span.start + kept.end);
        end = span.end;
    }
    layer.keep(text, end..text.len());
    layer.finish(text)
}

/// The number that `prefix` begins with, perhaps after a `#`.
fn number(prefix: &[u8]) -> Option<u32> {
    let prefix = prefix.trim_ascii();
    let number = prefix.strip_prefix(b"#").unwrap_or(prefix).split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// How many spaces and tabs `line` begins with.
fn space(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Whether a line can have a frame: most have an address, as a number of at least five hexadecimal digits.
pub(super) fn has_address(line: &[u8]) -> bool {
    line.split(|byte| !byte.is_ascii_hexdigit()).any(|digits| digits.len() >= 5)
        || memchr::memmem::find(line, b"0x").is_some()
}

/// The longest shapes that most of the first lines begin with.
fn common_shapes(text: &[u8]) -> Vec<Shape<'_>> {
    let first: Vec<_> =
        lines(text).map(|(_, line)| line).filter(|line| !line.is_empty()).take(LINES).collect();
    let mut shapes: Vec<_> = first.first().into_iter().flat_map(|line| shapes_of(line, |_| true)).collect();
    shapes
        .retain(|shape| 8 * first.iter().filter(|line| shape.len(line).is_some()).count() > 7 * first.len());
    shapes.reverse();
    shapes.truncate(if first.len() < 3 { 0 } else { COMMON });
    shapes
}

/// The shapes of the texts that `line` may begin with, from the shortest, if the rest of it is right.
fn shapes_of<'t>(line: &'t [u8], is_right: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = Shape<'t>> {
    let is_end = |end: &usize| {
        let (before, next) = (line[end - 1], line[*end]);
        !next.is_ascii_whitespace() && !before.is_ascii_alphanumeric()
    };
    let ends = (1..line.len().min(LONGEST)).filter(is_end).take(ENDS);
    ends.filter(move |end| is_right(&line[*end..line.len().min(end + LONGEST_FRAME)]))
        .filter_map(|end| Shape::of(&line[..end]))
}

/// The shape of a prefix, without the white space at its end.
#[derive(PartialEq, Eq)]
pub(super) struct Shape<'t> {
    tokens: Vec<Token<'t>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    /// Any white space, or none: numbers can be filled up with spaces.
    Space,
    /// A word or number with a digit.
    Number,
    /// A word. If a number stands before it, such as a time, any word is meant: levels and processes of a log differ.
    Word(&'t [u8]),
    /// Any other byte.
    Mark(u8),
}

impl<'t> Shape<'t> {
    /// The shape of `prefix`. `None` if it is white space.
    fn of(prefix: &'t [u8]) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = prefix.trim_ascii_end();
        while !rest.is_empty() {
            let (token, len) = Token::first(rest);
            tokens.push(token);
            rest = &rest[len..];
        }
        (!tokens.is_empty()).then_some(Self { tokens })
    }

    /// Whether it can stand before a report: it has a mark or a word, or is the number of the line. Numbers alone can be
    /// a column of a table, and `#0`, `#1` are the numbers of frames.
    fn is_no_content(&self, text: &[u8]) -> bool {
        let prefixes = lines(text).filter_map(|(_, line)| line.get(..self.len(line)?));
        let numbers: Vec<_> = prefixes.map(number).take(LINES).collect();
        let mut pairs = numbers.windows(2).map(|pair| (pair[0], pair[1]));
        match &self.tokens[..] {
            [Token::Mark(b'#'), Token::Number, ..] => {
                numbers.len() > 1 && pairs.all(|(one, next)| one == next)
            }
            tokens if tokens.iter().any(|token| matches!(token, Token::Mark(_) | Token::Word(_))) => true,
            _ => {
                numbers.len() > 1
                    && pairs
                        .all(|(one, next)| one.is_some() && next == one.and_then(|one| one.checked_add(1)))
            }
        }
    }

    /// The length of the prefix of this shape that `line` begins with.
    fn len(&self, line: &[u8]) -> Option<usize> {
        let (mut at, mut is_after_number) = (0, false);
        for token in &self.tokens {
            let rest = &line[at..];
            let (found, len) = if rest.is_empty() { (Token::Space, 0) } else { Token::first(rest) };
            at += match (token, found) {
                (Token::Space, Token::Space) => len,
                (Token::Space, _) => 0,
                (Token::Word(_), Token::Word(_)) if is_after_number => len,
                (token, found) if *token == found => len,
                _ => return None,
            };
            is_after_number |= *token == Token::Number;
        }
        Some(at)
    }

    /// The text without the prefixes of this shape, the white space that follows all of them, and, in tables and code,
    /// the same mark at the end of the line.
    pub(super) fn strip(&self, text: &[u8]) -> Option<Layer> {
        let mark = match self.tokens.last() {
            Some(Token::Mark(mark @ (b'|' | b'`' | b'"'))) => Some(*mark),
            _ => None,
        };
        // What is between the prefix and the mark.
        let content = |line: &[u8]| {
            let start = self.len(line)?;
            let rest = line.get(start..)?;
            let closed = rest.trim_ascii_end().split_last().filter(|(last, _)| Some(**last) == mark);
            Some((start..start + closed.map_or(rest.len(), |(_, rest)| rest.len()), closed.is_some()))
        };
        let (mut before, mut after) = (usize::MAX, usize::MAX);
        for (_, line) in lines(text) {
            let Some((span, is_closed)) = content(line) else { continue };
            let rest = &line[span];
            if !rest.trim_ascii().is_empty() {
                before = before.min(space(rest));
                after = after.min(if is_closed { rest.len() - rest.trim_ascii_end().len() } else { 0 });
            }
        }
        strip(text, |line| {
            let (Span { start, end }, is_closed) = content(line)?;
            let start = start.saturating_add(before).min(end);
            Some(start..end - if is_closed { after.min(end - start) } else { 0 })
        })
    }
}

impl<'t> Token<'t> {
    /// The first token of `text`, which is not empty, and its length.
    fn first(text: &'t [u8]) -> (Self, usize) {
        let len = |is_part: fn(&u8) -> bool| text.iter().take_while(|byte| is_part(byte)).count();
        match text[0] {
            b' ' | b'\t' => (Self::Space, space(text)),
            byte if byte.is_ascii_alphanumeric() => {
                let len = len(u8::is_ascii_alphanumeric);
                let word = &text[..len];
                let has_digit = word.iter().any(u8::is_ascii_digit);
                (if has_digit { Self::Number } else { Self::Word(word) }, len)
            }
            mark => (Self::Mark(mark), 1),
        }
    }
}
