//! Splits names into phrases, phrases into tokens and tokens into words, so that names share these parts.
//!
//! The parts of a name always add up to the name, so no split is wrong. A good split finds what the mangling repeats.
//! A mangled name consists of identifiers with their length before them (`9allocator`) and the operators between them
//! (`IS2_EE`). Other names consist of words. A phrase has a few tokens. Most phrases occur many times, and are split
//! only once.

use std::ops::Range;

use crate::names::MAX_TERMINAL;

/// The most operators of a token. Longer tokens are shared by fewer names. Shorter tokens make more tokens for each
/// name.
const MAX_OPERATORS: usize = 12;

/// A phrase ends after operators only if it has more bytes than this.
const SHORT_PHRASE: usize = 8;

/// The kind of a token. It decides how the token is split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A decimal length and that many bytes.
    Identifier,
    /// The operators between two identifiers.
    Operators,
    /// A word, which is not split any further.
    Word,
}

/// Calls `phrase` with the range of each phrase of `name`. A phrase of a mangled name ends with operators. A name that
/// is not mangled is a single phrase.
pub(super) fn phrases(name: &[u8], mut phrase: impl FnMut(Range<usize>)) {
    let (mut start, mut end) = (0, name.len());
    if let Some(mangling) = Mangling::of(name) {
        mangled_tokens(name, mangling, 0..name.len(), |token, kind| {
            end = token.end;
            if kind == TokenKind::Operators && end - start > SHORT_PHRASE {
                phrase(start..end);
                start = end;
            }
        });
    }
    if start < end {
        phrase(start..end);
    }
}

/// Calls `token` with each token of one phrase of `name`. `phrase` is the range of that phrase. A token has at most
/// [`MAX_TERMINAL`] bytes.
pub(super) fn tokens<'n>(name: &'n [u8], phrase: Range<usize>, mut token: impl FnMut(&'n [u8], TokenKind)) {
    let text = |at: Range<usize>| name.get(at).unwrap_or_default();
    match Mangling::of(name) {
        Some(mangling) => mangled_tokens(name, mangling, phrase, |at, kind| token(text(at), kind)),
        None => plain_words(text(phrase), |word| token(word, TokenKind::Word)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mangling {
    /// Rust's v0 mangling.
    Rust,
    /// C++, Swift, and Rust's legacy mangling.
    Other,
}

impl Mangling {
    /// `None` for a name that is not mangled.
    fn of(name: &[u8]) -> Option<Self> {
        match name {
            [b'_', b'R', ..] => Some(Self::Rust),
            [b'_', b'Z' | b'T', ..] | [b'$', b's' | b'S', ..] | [b'_', b'$', b's', ..] => Some(Self::Other),
            _ => None,
        }
    }
}

#[inline]
fn mangled_tokens(
    name: &[u8],
    mangling: Mangling,
    phrase: Range<usize>,
    mut token: impl FnMut(Range<usize>, TokenKind),
) {
    let rust = mangling == Mangling::Rust;
    // `start` is the start of the operators that `token` was not called with yet. `at` is the end of what was read.
    let (mut start, mut at) = (phrase.start, phrase.start);
    loop {
        let operators = name.get(at..phrase.end.min(start + MAX_OPERATORS)).unwrap_or_default();
        let may_begin = |byte: &u8| byte.is_ascii_digit() || rust && matches!(byte, b'B' | b's');
        at += operators.iter().position(may_begin).unwrap_or(operators.len());
        if at >= phrase.end || at >= start + MAX_OPERATORS {
            if start < at {
                token(start..at, TokenKind::Operators);
            }
            if at >= phrase.end {
                return;
            }
            start = at;
            continue;
        }
        let (begins, text, end, kind) = if name.get(at).is_some_and(u8::is_ascii_digit) {
            match number(name, at, rust) {
                (text, Some(end)) => (at, text, end, TokenKind::Identifier),
                (end, None) => (at, at, end, TokenKind::Operators),
            }
        } else {
            let end = at + base62_number(name, at);
            let of_crate = end > at + 2 && at > start && name.get(at - 1..=at) == Some(b"Cs");
            if of_crate { (at - 1, end, end, TokenKind::Word) } else { (at, at, end, TokenKind::Operators) }
        };
        at = end;
        if kind == TokenKind::Operators {
            continue;
        }
        if start < begins {
            token(start..begins, TokenKind::Operators);
        }
        if end - begins > MAX_TERMINAL {
            token(begins..text, TokenKind::Word);
            let mut from = text;
            plain_words(name.get(text..end).unwrap_or_default(), |word| {
                token(from..from + word.len(), TokenKind::Word);
                from += word.len();
            });
        } else {
            token(begins..end, kind);
        }
        start = end;
    }
}

/// Returns the end of the digits at `at`, and the end of the identifier whose length they state. The latter is `None`
/// if the digits are not a length.
#[inline]
fn number(name: &[u8], at: usize, rust: bool) -> (usize, Option<usize>) {
    let (mut text, mut len) = (at, 0);
    while let Some(digit @ b'0'..=b'9') = name.get(text).filter(|_| text < at + MAX_OPERATORS) {
        (text, len) = (text + 1, 10 * len + usize::from(digit - b'0'));
    }
    let before = |back: usize| at.checked_sub(back).and_then(|at| name.get(at)).copied();
    // Some numbers are not lengths: those in the back references `S1_` and `T1_`, and in literals such as `Lj32E`.
    let refers = || matches!(before(1), Some(b'S' | b'T'));
    let literal = || before(2) == Some(b'L') && name.get(text) == Some(&b'E');
    let is_length =
        name.get(at) != Some(&b'0') && text + len <= name.len() && (rust || !refers() && !literal());
    (text, is_length.then_some(text + len))
}

/// How many bytes the tag and the base-62 number at `at` of a Rust name take, such as `B19_` and `s4Zlz1fUqNwX_`. Their
/// digits are not lengths. Returns 1 if there is no such number.
fn base62_number(name: &[u8], at: usize) -> usize {
    let at_most = match name.get(at) {
        Some(b'B') => 3,
        Some(b's') => 14,
        _ => return 1,
    };
    let rest = name.get(at + 1..).unwrap_or_default();
    let mut digits = 0;
    while rest.get(digits).is_some_and(u8::is_ascii_alphanumeric) && digits < at_most {
        digits += 1;
    }
    if rest.get(digits) == Some(&b'_') { digits + 2 } else { 1 }
}

/// Calls `word` with each word of a token.
pub(super) fn words<'n>(token: &'n [u8], kind: TokenKind, mut word: impl FnMut(&'n [u8])) {
    match kind {
        TokenKind::Word => word(token),
        TokenKind::Identifier => {
            let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, text) = token.split_at_checked(digits).unwrap_or((token, &[]));
            word(digits);
            plain_words(text, word);
        }
        TokenKind::Operators => {
            let mut rest = token;
            while let Some(first) = rest.first() {
                let ends =
                    |(&before, &byte): (&u8, &u8)| before == b'_' || (before == b'E') != (byte == b'E');
                let at_most = if *first == b'E' { rest.len() } else { rest.len().min(4) };
                let len = rest
                    .iter()
                    .zip(rest.iter().skip(1))
                    .position(ends)
                    .map_or(at_most, |at| at + 1)
                    .min(at_most);
                let (piece, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
                word(piece);
                rest = after;
            }
        }
    }
}

/// Calls `word` with each word of `text`. A word of letters and digits begins where the case changes, and a `_` ends
/// it. Any other byte is a word by itself.
fn plain_words<'n>(text: &'n [u8], mut word: impl FnMut(&'n [u8])) {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || !byte.is_ascii();
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let mut len = 1;
        if small(first) || first.is_ascii_uppercase() {
            let at = |at: usize| rest.get(at).copied().unwrap_or_default();
            // The words of `HTMLParser` are `HTML` and `Parser`.
            let goes_on = |len: usize| {
                let capital = |at_: usize| at(at_).is_ascii_uppercase();
                small(at(len)) && len < rest.len()
                    || capital(len) && capital(len - 1) && !at(len + 1).is_ascii_lowercase()
            };
            while len < MAX_TERMINAL && goes_on(len) {
                len += 1;
            }
            if len < MAX_TERMINAL && at(len) == b'_' {
                len += 1;
            }
        }
        let (piece, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        word(piece);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(name: &str) -> Vec<String> {
        let mut out = Vec::new();
        tokens(name.as_bytes(), 0..name.len(), |token, kind| {
            let mut spelled = Vec::new();
            words(token, kind, |word| spelled.push(String::from_utf8_lossy(word).into_owned()));
            assert_eq!(spelled.concat().as_bytes(), token);
            out.push(spelled.join("."));
        });
        out
    }

    #[test]
    fn names_are_cut_where_their_mangling_joins_them() {
        let cpp = cut("_ZNSt3__16vectorIN2ns5ThingELj12EE9push_backERKS2_");
        assert_eq!(
            cpp,
            [
                "_.ZNSt",
                "3._._.1",
                "6.vector",
                "IN",
                "2.ns",
                "5.Thing",
                "E.Lj12.EE",
                "9.push_.back",
                "E.RKS2._"
            ]
        );
        assert_eq!(
            cut("_RNvNtCs4Zlz1fUqNwX_4core3fmtB3_3new"),
            ["_.RNvN.t", "Cs4Zlz1fUqNwX_", "4.core", "3.fmt", "B3_", "3.new"]
        );
        assert_eq!(
            cut("-[HTMLParser parseAll:]"),
            ["-", "[", "HTML", "Parser", " ", "parse", "All", ":", "]"]
        );
        assert_eq!(cut("sqlite3_vtab_in"), ["sqlite3_", "vtab_", "in"]);
        assert_eq!(cut(""), [""; 0]);
    }

    #[test]
    fn phrases_end_with_operators() {
        let cut = |name: &str| {
            let mut out = Vec::new();
            phrases(name.as_bytes(), |at| out.push(name[at].to_owned()));
            out
        };
        assert_eq!(cut("_ZN6duckdb5Thing3addERKS0_i"), ["_ZN6duckdb5Thing3addERKS0_i"]);
        assert_eq!(
            cut("_ZNSt3__16vectorIN2ns5ThingELj12EE9push_backERKS2_"),
            ["_ZNSt3__16vectorIN", "2ns5ThingELj12EE", "9push_backERKS2_"]
        );
        assert_eq!(cut("-[HTMLParser parseAll:]"), ["-[HTMLParser parseAll:]"]);
        assert_eq!(cut(""), [""; 0]);
    }

    #[test]
    fn no_piece_is_long_and_none_is_empty() {
        let mut random = symdex_testkit::images::Random::new(11);
        let alphabet: Vec<u8> = b"STLEBsCN_019aZ. \xff".to_vec();
        for prefix in ["", "_Z", "_R", "$s"] {
            for _ in 0..2000 {
                let mut name = prefix.as_bytes().to_vec();
                name.extend((0..random.below(300)).map(|_| random.pick(&alphabet)));
                let mut again = Vec::new();
                phrases(&name, |phrase| {
                    assert_eq!(phrase.start, again.len());
                    tokens(&name, phrase, |token, kind| {
                        assert!((1..=MAX_TERMINAL).contains(&token.len()));
                        words(token, kind, |word| {
                            assert!(!word.is_empty());
                            again.extend_from_slice(word);
                        });
                    });
                });
                assert_eq!(again, name);
            }
        }
    }
}
