//! Cutting names into tokens and tokens into words, so that what names share comes out as the same pieces.
//!
//! Any cut is right, as the pieces of a name always make up the name; a good one finds what the mangling repeats. Mangled names
//! become identifiers with their length before them (`9allocator`) and the operators between them (`IS2_EE`), all others words.

/// The longest piece, in bytes.
pub(super) const MAX_PIECE: usize = 64;
/// The most operators in one token: more would be shared by fewer names, fewer would make more tokens.
const MAX_OPERATORS: usize = 12;

/// What a token is, which says how it is cut into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A decimal length and as many bytes.
    Identifier,
    /// What a mangling has between identifiers.
    Operators,
    /// A word, which is not cut any further.
    Word,
}

/// Calls `token` with each token of `name`, at most [`MAX_PIECE`] bytes each.
pub(super) fn tokens<'n>(name: &'n [u8], mut token: impl FnMut(&'n [u8], Kind)) {
    let rust = name.starts_with(b"_R");
    if !rust && ![b"_Z".as_slice(), b"$s", b"_$s", b"$S", b"_T"].iter().any(|prefix| name.starts_with(prefix))
    {
        return plain_words(name, |word| token(word, Kind::Word));
    }
    // Where the operators begin that are not given out yet, and how far they were read.
    let (mut start, mut at) = (0, 0);
    while let Some(&byte) = name.get(at) {
        let (begins, text, end, kind) = match byte {
            // No length begins in the midst of a number.
            b'1'..=b'9' if at == start || !digit_at(name, at - 1) => match length_digits(name, at, rust) {
                Some((text, end)) => (at, text, end, Kind::Identifier),
                None => (at, at, at + 1, Kind::Operators),
            },
            b'B' | b's' if rust => {
                let end = at + base62_number(name, at);
                let of_crate = end > at + 2 && at > start && name.get(at - 1..=at) == Some(b"Cs");
                if of_crate { (at - 1, end, end, Kind::Word) } else { (at, at, end, Kind::Operators) }
            }
            _ => (at, at, at + 1, Kind::Operators),
        };
        at = end;
        if kind == Kind::Operators {
            if at - start >= MAX_OPERATORS {
                give(name, start..at, kind, &mut token);
                start = at;
            }
            continue;
        }
        give(name, start..begins, Kind::Operators, &mut token);
        if end - begins > MAX_PIECE {
            give(name, begins..text, Kind::Word, &mut token);
            plain_words(name.get(text..end).unwrap_or_default(), |word| token(word, Kind::Word));
        } else {
            give(name, begins..end, kind, &mut token);
        }
        start = end;
    }
    give(name, start..at, Kind::Operators, &mut token);
}

fn give<'n>(
    name: &'n [u8],
    piece: std::ops::Range<usize>,
    kind: Kind,
    token: &mut impl FnMut(&'n [u8], Kind),
) {
    if let Some(piece) = name.get(piece).filter(|piece| !piece.is_empty()) {
        token(piece, kind);
    }
}

fn digit_at(name: &[u8], at: usize) -> bool {
    name.get(at).is_some_and(u8::is_ascii_digit)
}

/// Where the text of the identifier begins whose length stands at `at`, and where it ends; `None` where no identifier does.
fn length_digits(name: &[u8], at: usize, rust: bool) -> Option<(usize, usize)> {
    let rest = name.get(at..)?;
    let (mut digits, mut len) = (0, 0);
    while let Some(digit @ b'0'..=b'9') = rest.get(digits).filter(|_| digits < 3) {
        (digits, len) = (digits + 1, 10 * len + usize::from(digit - b'0'));
    }
    let before = |back: usize| at.checked_sub(back).and_then(|at| name.get(at)).copied();
    // Numbers that are no lengths: `S1_` and `T1_`, which refer back, and literals as `Lj32E`.
    let refers = matches!(before(1), Some(b'S' | b'T'));
    let literal = before(2) == Some(b'L') && rest.get(digits) == Some(&b'E');
    (digits + len <= rest.len() && (rust || !refers && !literal)).then_some((at + digits, at + digits + len))
}

/// How many bytes the number at `at` of a Rust name takes, as `B19_` and `s4Zlz1fUqNwX_` do, whose digits are no lengths; 1 where
/// there is none.
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
pub(super) fn words<'n>(token: &'n [u8], kind: Kind, mut word: impl FnMut(&'n [u8])) {
    match kind {
        Kind::Word => word(token),
        Kind::Identifier => {
            let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, text) = token.split_at_checked(digits).unwrap_or((token, &[]));
            word(digits);
            plain_words(text, word);
        }
        Kind::Operators => {
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
                let (piece, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
                word(piece);
                rest = behind;
            }
        }
    }
}

/// Calls `word` with each word of `text`: it begins where the case changes, and a `_` ends it. All else is a word of one byte.
fn plain_words<'n>(text: &'n [u8], mut word: impl FnMut(&'n [u8])) {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || !byte.is_ascii();
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let mut len = 1;
        if small(first) || first.is_ascii_uppercase() {
            let at = |at: usize| rest.get(at).copied().unwrap_or_default();
            // Of `HTMLParser` the words are `HTML` and `Parser`.
            let goes_on = |len: usize| {
                let capital = |at_: usize| at(at_).is_ascii_uppercase();
                small(at(len)) && len < rest.len()
                    || capital(len) && capital(len - 1) && !at(len + 1).is_ascii_lowercase()
            };
            while len < MAX_PIECE && goes_on(len) {
                len += 1;
            }
            if len < MAX_PIECE && at(len) == b'_' {
                len += 1;
            }
        }
        let (piece, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        word(piece);
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(name: &str) -> Vec<String> {
        let mut out = Vec::new();
        tokens(name.as_bytes(), |token, kind| {
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
    fn no_piece_is_long_and_none_is_empty() {
        let mut random = crate::generator::Random::new(11);
        let alphabet: Vec<u8> = b"STLEBsCN_019aZ. \xff".to_vec();
        for prefix in ["", "_Z", "_R", "$s"] {
            for _ in 0..2000 {
                let mut name = prefix.as_bytes().to_vec();
                name.extend((0..random.below(300)).map(|_| random.pick(&alphabet)));
                let mut again = Vec::new();
                tokens(&name, |token, kind| {
                    assert!((1..=MAX_PIECE).contains(&token.len()));
                    words(token, kind, |word| {
                        assert!(!word.is_empty());
                        again.extend_from_slice(word);
                    });
                });
                assert_eq!(again, name);
            }
        }
    }
}
