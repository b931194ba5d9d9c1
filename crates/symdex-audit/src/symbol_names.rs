//! Which of several symbols at the entry of a function names it, by the rules.

/// If there are more symbols, none does.
const MAX_NAMES: usize = 256;

/// The symbol of `names`, the best first, that names a function with this plain name: the best, if all are alike, or
/// the best of those that end with the plain name, if these are alike.
pub(crate) fn chosen<'d>(names: &[&'d [u8]], plain: &[u8]) -> Option<&'d [u8]> {
    let best_of = |names: &[&'d [u8]]| {
        let (best, others) = names.split_first()?;
        let form = form(best);
        others.iter().all(|other| self::form(other) == form).then_some(*best)
    };
    let ending: Vec<_> = names.iter().copied().filter(|name| is_of(name, plain)).collect();
    let few = Some(names).filter(|names| names.len() <= MAX_NAMES)?;
    best_of(few).or_else(|| best_of(&ending))
}

/// The name with all digits of constructors and destructors, if its last part is one, made alike.
fn form(name: &[u8]) -> Vec<u8> {
    let mut form = name.to_vec();
    if let Some(Part { structor: Some(letter), .. }) = last_part(name) {
        form[letter + 1] = b'*';
    }
    form
}

/// Whether `symbol` is the plain name, or a C++ name whose last part it is.
fn is_of(symbol: &[u8], plain: &[u8]) -> bool {
    if symbol == plain {
        return true;
    }
    let Some(Part { name, structor }) = last_part(symbol) else { return false };
    let bare = &plain[..plain.iter().position(|byte| *byte == b'<').unwrap_or(plain.len())];
    match structor.map(|letter| symbol[letter]) {
        Some(b'D') => bare.first() == Some(&b'~') && &bare[1..] == name,
        _ => bare == name,
    }
}

/// The last source name in the name of a function, and the place of the `C` or `D` after it.
struct Part<'n> {
    name: &'n [u8],
    structor: Option<usize>,
}

/// Reads `_ZN…E`, or a function in no scope. In the arguments of templates, brackets are counted only.
fn last_part(symbol: &[u8]) -> Option<Part<'_>> {
    let encoding = symbol.strip_prefix(b"_Z")?;
    let Some(mut rest) = encoding.strip_prefix(b"N") else {
        let unscoped = encoding.strip_prefix(b"St").or(encoding.strip_prefix(b"L")).unwrap_or(encoding);
        let (name, _) = source_name(unscoped)?;
        return Some(Part { name, structor: None });
    };
    let mut part: Option<Part<'_>> = None;
    loop {
        rest = match rest {
            [b'E', ..] => return part,
            [b'0'..=b'9', ..] => {
                let (name, rest) = source_name(rest)?;
                part = Some(Part { name, structor: None });
                rest
            }
            [b'C' | b'D', b'0'..=b'5', after @ ..] => {
                part.as_mut()?.structor = Some(symbol.len() - rest.len());
                after
            }
            [b'I', after @ ..] => after_arguments(after)?,
            [b'S' | b'T', ..] => after_reference(rest)?,
            [b'L', b'0'..=b'9', ..] => &rest[1..],
            [b'B', after @ ..] => source_name(after)?.1,
            [b'r' | b'V' | b'K' | b'R' | b'O', after @ ..] if part.is_none() => after,
            _ => return None,
        };
    }
}

/// A source name, which its length precedes, and what follows it.
fn source_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes);
    rest.split_at_checked(std::str::from_utf8(length).ok()?.parse().ok()?)
}

fn number(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len()))
}

/// What follows a substitution (`St`, `S_`, `S1A_`) or a template parameter (`T_`, `T0_`).
fn after_reference(bytes: &[u8]) -> Option<&[u8]> {
    let is_abbreviation = match bytes {
        [b'S', next, ..] => !(next.is_ascii_digit() || next.is_ascii_uppercase() || *next == b'_'),
        [_, next, ..] => !(next.is_ascii_digit() || *next == b'_'),
        _ => return None,
    };
    let size = if is_abbreviation { 2 } else { 2 + bytes[1..].iter().position(|byte| *byte == b'_')? };
    bytes.get(size..).filter(|_| !is_abbreviation || bytes[0] == b'S')
}

/// What follows the `E` of the template arguments that `bytes` begin with.
fn after_arguments(mut bytes: &[u8]) -> Option<&[u8]> {
    let mut brackets = vec![b'I'];
    // Whether the token before opens a literal. Then a number is the length of the name of its type.
    let mut opens_literal = false;
    while let Some(bracket) = brackets.last() {
        let in_value = *bracket == b'L' && !opens_literal;
        opens_literal = false;
        bytes = match bytes {
            [b'0'..=b'9', ..] if in_value => number(bytes).1,
            [b'0'..=b'9', ..] => source_name(bytes)?.1,
            [b'E', rest @ ..] => {
                brackets.pop();
                rest
            }
            [b'L', b'_', b'Z', rest @ ..] => {
                brackets.push(b'Z');
                rest
            }
            [b'D', b'T' | b't', rest @ ..] => {
                brackets.push(b'D');
                rest
            }
            [letter @ (b'F' | b'I' | b'J' | b'L' | b'N' | b'X'), rest @ ..] => {
                brackets.push(*letter);
                opens_literal = *letter == b'L';
                rest
            }
            [b'A', b'0'..=b'9', ..] => number(&bytes[1..]).1,
            [b'S', ..] | [b'T', b'0'..=b'9' | b'_', ..] => after_reference(bytes)?,
            [_, rest @ ..] => rest,
            [] => return None,
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_symbols_those_that_are_alike_or_end_with_the_plain_name_count() {
        let chosen = |names: &[&'static str], plain: &str| {
            let names: Vec<_> = names.iter().map(|name| name.as_bytes()).collect();
            chosen(&names, plain.as_bytes()).map(|name| str::from_utf8(name).expect("text"))
        };
        let (c1, c2) = ("_ZN1nIJLi4E4VEC2LN1eE3EEE3FooC1Ev", "_ZN1nIJLi4E4VEC2LN1eE3EEE3FooC2Ev");
        assert_eq!(chosen(&[c1, c2], "Foo"), Some(c1));
        assert_eq!(chosen(&[c2], "anything"), Some(c2));
        assert_eq!(chosen(&["_ZN1a3getEv", c1, "_ZN1b3putEv", c2], "Foo"), Some(c1));
        assert_eq!(chosen(&["_ZN1a3getEv", c1, "_ZN1b3putEv", c2], "put<int>"), Some("_ZN1b3putEv"));
        assert_eq!(chosen(&["_ZN1a3getEv", "_ZN1b3getEv"], "get"), None);
        assert_eq!(chosen(&["__read", "read"], "read"), Some("read"));
        assert_eq!(chosen(&["_ZN1aD2Ev", "_ZN1aC2Ev"], "~a"), Some("_ZN1aD2Ev"));
        assert_eq!(chosen(&["_ZN1a5getC1Ev", "_ZN1a5getC2Ev"], "get"), None);
        assert_eq!(chosen(&[c1; 257], "Foo"), None);
    }
}
