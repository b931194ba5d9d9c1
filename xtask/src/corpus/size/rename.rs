//! Renames the identifiers of a copy. A new name has the length of the original and other letters.

use std::ops::Range;

/// How many copies two letters distinguish.
pub(super) const MOST_COPIES: u32 = 26 * 26;

const SMALL: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
const CAPITAL: &[u8; 26] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Renames all strings of a section of zero-terminated strings.
pub(super) fn rename_all(strings: &mut [u8], copy: u32) {
    strings.split_mut(|&byte| byte == 0).for_each(|string| rename(string, copy));
}

/// Renames `name` for copy number `copy`. The second and the third letter move forward in the alphabet. In a mangled
/// name these are letters of its first identifier, so that it still demangles. Copy 0 keeps the original names. Names
/// without letters stay.
///
/// A symbol with Mach-O's leading underscore and its linkage name get the same letters.
pub(super) fn rename(name: &mut [u8], copy: u32) {
    let copy = copy as usize;
    let range = renamed_range(name);
    let mut letters = name[range].iter_mut().filter(|byte| byte.is_ascii_alphabetic());
    let first = letters.next();
    for (letter, by) in letters.chain(first).zip([copy % 26, copy / 26 % 26]) {
        let alphabet = if letter.is_ascii_lowercase() { SMALL } else { CAPITAL };
        *letter = alphabet[(usize::from(*letter - alphabet[0]) + by) % 26];
    }
}

/// The range of `name` whose letters may change.
fn renamed_range(name: &[u8]) -> Range<usize> {
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    let is_mangled = |prefix: &[u8]| name[underscores..].starts_with(prefix);
    if underscores > 0
        && is_mangled(b"ZT")
        && !is_mangled(b"ZTV")
        && !is_mangled(b"ZTS")
        && !is_mangled(b"ZTI")
    {
        // A thunk has numbers before the name.
        let nested = name.iter().position(|&byte| byte == b'N').unwrap_or(name.len());
        return identifier(name, nested);
    }
    if underscores > 0
        && is_mangled(b"R")
        && name[underscores + 1..].first().is_some_and(u8::is_ascii_uppercase)
    {
        // Base-62 numbers contain digits too, and end with an underscore. C names such as _RD4 are not mangled.
        let pairs = name.windows(2).skip(underscores);
        let mut pairs = pairs.zip(underscores + 1..);
        let crate_name = pairs.find(|(pair, _)| pair[0] == b'_' && pair[1].is_ascii_digit());
        if let Some((_, at)) = crate_name {
            return identifier(name, at);
        }
    }
    let is_swift = ["$s", "$S"].iter().any(|prefix| is_mangled(prefix.as_bytes()));
    if is_swift || underscores > 0 && is_mangled(b"Z") {
        return identifier(name, underscores);
    }
    // Compilers use angle brackets for names that are no files: <compiler-generated>.
    if name.starts_with(b"<") { 0..0 } else { 0..name.len() }
}

/// The first identifier after `start` that has a length before it and letters that may change. Empty if there is none.
fn identifier(name: &[u8], start: usize) -> Range<usize> {
    let mut at = start;
    while let Some(digits) = name[at..].iter().position(u8::is_ascii_digit).map(|digit| at + digit) {
        let count = name[digits..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length =
            std::str::from_utf8(&name[digits..digits + count]).ok().and_then(|text| text.parse().ok());
        let range = digits + count..(digits + count).saturating_add(length.unwrap_or(0));
        let is_length = !is_other_number(name, digits) && range.end <= name.len();
        at = if is_length { range.end } else { range.start };
        if is_length && may_change(&name[range.clone()]) {
            return range;
        }
    }
    name.len()..name.len()
}

/// Whether the number at `digits` belongs to a substitution, a template parameter or a literal.
fn is_other_number(name: &[u8], digits: usize) -> bool {
    let before = |distance: usize| digits.checked_sub(distance).map(|at| name[at]);
    name[digits] == b'0' || matches!(before(1), Some(b'S' | b'T')) || before(2) == Some(b'L')
}

/// Whether an identifier may change. Demanglers recognise anonymous namespaces, and Rust's hashes and escaped
/// characters.
fn may_change(identifier: &[u8]) -> bool {
    let is_hash = identifier.len() == 17 && identifier[0] == b'h';
    let is_anonymous = identifier.starts_with(b"_GLOBAL__");
    identifier.iter().any(u8::is_ascii_alphabetic) && !is_hash && !is_anonymous && !identifier.contains(&b'$')
}

#[cfg(test)]
mod tests {
    use super::rename;

    #[test]
    fn mangled_names_change_in_an_identifier_and_other_names_at_their_start() {
        for (name, renamed) in [
            ("main", "mbjn"),
            ("_main", "_mbjn"),
            ("/src/a.c", "/ssd/a.c"),
            ("-[Kit load]", "-[Kju load]"),
            ("_ZN6duckdb5ValueEv", "_ZN6dvdkdb5ValueEv"),
            ("__ZNSt3__16vectorIiE", "__ZNSt3__16vfdtorIiE"),
            ("_ZThn16_N3Foo3barEv", "_ZThn16_N3Fpp3barEv"),
            ("_ZN12_GLOBAL__N_11fEv", "_ZN12_GLOBAL__N_11gEv"),
            ("_ZN1fILi3EE", "_ZN1gILi3EE"),
            ("_ZN4core3fmt17h0123456789abcdefE", "_ZN4cpse3fmt17h0123456789abcdefE"),
            ("__RNvCs4Zlz1fUqNwX_4core3fmt", "__RNvCs4Zlz1fUqNwX_4cpse3fmt"),
            ("_RD4_NEON", "_RE4_OEON"),
            ("_$s4main3FooV", "_$s4mbjn3FooV"),
            ("<compiler-generated>", "<compiler-generated>"),
            ("_ZdlPv", "_ZdlPv"),
            ("123", "123"),
            ("_ZN99x", "_ZN99x"),
        ] {
            let mut bytes = name.as_bytes().to_vec();
            // Both letters move by one.
            rename(&mut bytes, 27);
            assert_eq!(String::from_utf8(bytes).expect("letters stay letters"), renamed);
        }
    }
}
