//! Lines, words and numbers of text reports.

use std::borrow::Cow;

use crate::formats::steps::count;
use crate::report::Span;

/// The lines of `text` with their spans, without the line endings.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (Span, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        count(len + 1);
        let line = &rest[..len];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let span = at..at + line.len();
        at += len + 1;
        Some((span, line))
    })
}

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits `text` after a byte order mark of UTF-8. Without one, the first part is empty.
pub(crate) fn split_mark(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(if text.starts_with(MARK) { MARK.len() } else { 0 })
}

/// Whether `text` begins with the byte order mark of UTF-16, in either byte order.
pub(crate) fn is_utf16(text: &[u8]) -> bool {
    text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff")
}

/// Whether `text` contains `part`.
pub(crate) fn has(text: &[u8], part: &str) -> bool {
    memchr::memmem::find(text, part.as_bytes()).is_some()
}

/// Whether `text` begins with a JSON object or array.
pub(crate) fn is_json(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Whether `text` begins with a JSON object.
pub(crate) fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

/// Returns the line ending at `end`: a line feed, or a carriage return and a line feed.
pub(crate) fn line_end(text: &[u8], end: usize) -> &'static [u8] {
    if text.get(end) == Some(&b'\r') { b"\r\n" } else { b"\n" }
}

/// A cursor in a line.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> Cursor<'l> {
    pub(crate) fn new(line: &'l [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// A cursor at byte `at` of the line.
    pub(crate) fn at_byte(line: &'l [u8], at: usize) -> Self {
        Self { line, at }
    }

    /// The position in the line in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The rest of the line.
    pub(crate) fn rest(&self) -> &'l [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Skips spaces and tabs. Returns whether there were any.
    pub(crate) fn space(&mut self) -> bool {
        let len = self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.at += len;
        len != 0
    }

    /// Skips `what` if the rest of the line begins with it.
    pub(crate) fn take(&mut self, what: &[u8]) -> Option<()> {
        self.rest().starts_with(what).then(|| self.at += what.len())
    }

    /// Reads a decimal number.
    pub(crate) fn decimal(&mut self) -> Option<u64> {
        self.digits(10)
    }

    /// Reads `0x` and a hexadecimal number.
    pub(crate) fn hexadecimal(&mut self) -> Option<u64> {
        let mut after = *self;
        after.take(b"0x")?;
        let number = after.hexadecimal_digits()?;
        *self = after;
        Some(number)
    }

    /// Reads a hexadecimal number without `0x`.
    pub(crate) fn hexadecimal_digits(&mut self) -> Option<u64> {
        self.digits(16)
    }

    /// Reads up to the next space or tab.
    pub(crate) fn word(&mut self) -> Option<&'l [u8]> {
        let rest = self.rest();
        let len = rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        self.at += len;
        (len != 0).then(|| &rest[..len])
    }

    /// Reads digits up to another character. `None` if there is no digit, or if the number is too large.
    fn digits(&mut self, radix: u32) -> Option<u64> {
        let digits = self.rest().iter().map_while(|byte| char::from(*byte).to_digit(radix));
        let (mut number, mut len) = (0_u64, 0);
        for digit in digits {
            number = number.checked_mul(radix.into())?.checked_add(digit.into())?;
            len += 1;
        }
        self.at += len;
        (len != 0).then_some(number)
    }
}

/// The parts of `text` before and after the first `mark`.
pub(crate) fn split_once<'l>(text: &'l [u8], mark: &[u8]) -> Option<(&'l [u8], &'l [u8])> {
    let at = memchr::memmem::find(text, mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Converts bytes to text. Invalid UTF-8 becomes U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    lossy_text(bytes).into_owned()
}

/// As [`lossy`], without a copy of valid UTF-8, which `from_utf8` checks faster than `from_utf8_lossy`.
pub(crate) fn lossy_text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The position of the last `needle` in `text`. `needle` has at least two bytes, of which the second should be rare.
/// For the short lines of reports, preparing the search of `memchr::memmem::rfind` costs more than this search.
pub(crate) fn rfind<const N: usize>(text: &[u8], needle: &[u8; N]) -> Option<usize> {
    let mut seconds = memchr::memrchr_iter(needle[1], text).filter_map(|second| second.checked_sub(1));
    seconds.find(|at| text[*at..].starts_with(needle))
}

/// The position of the first `needle` in `text`. See [`rfind`].
pub(crate) fn find<const N: usize>(text: &[u8], needle: &[u8; N]) -> Option<usize> {
    positions(text, needle).next()
}

/// The positions of `needle` in `text`, which may overlap. See [`rfind`].
pub(crate) fn positions<const N: usize>(text: &[u8], needle: &[u8; N]) -> impl Iterator<Item = usize> {
    let seconds = memchr::memchr_iter(needle[1], text).filter_map(|second| second.checked_sub(1));
    seconds.filter(move |at| text[*at..].starts_with(needle))
}

/// The offset of the bracket that the last byte of `text` closes. `None` if `text` does not end with `)`, or if nothing
/// opens it.
pub(crate) fn opening_bracket(text: &[u8]) -> Option<usize> {
    text.ends_with(b")").then_some(())?;
    let mut depth = 0_usize;
    text.iter().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_spans() {
        let text = b"a\r\n\nbc";
        let lines: Vec<_> = lines(text).collect();
        assert_eq!(lines, [(0..1, &b"a"[..]), (3..3, b""), (4..6, b"bc")]);
        assert_eq!(line_end(text, 1), b"\r\n");
        assert_eq!(line_end(text, 3), b"\n");
    }

    #[test]
    fn a_cursor_reads_a_match_or_stays() {
        let mut cursor = Cursor::new(b"12  0x1f end");
        assert_eq!((cursor.hexadecimal(), cursor.decimal()), (None, Some(12)));
        assert!(cursor.space());
        assert_eq!(cursor.hexadecimal(), Some(0x1f));
        assert_eq!((cursor.take(b"end"), cursor.space(), cursor.word()), (None, true, Some(&b"end"[..])));
        assert_eq!((cursor.word(), cursor.at()), (None, 12));
        assert_eq!(Cursor::new(b"99999999999999999999").decimal(), None);
        assert_eq!(Cursor::new(b"0x").hexadecimal(), None);
    }
}
