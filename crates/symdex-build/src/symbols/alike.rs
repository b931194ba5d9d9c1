//! Which of several symbols at one address name the same function.
//!
//! Names are compared as they are mangled, because demangling costs time and changes with versions. Of C++ names
//! (Itanium) only the last part of the function's name is read: a source name, or a constructor or destructor after
//! one.

/// Whether both names are equal, or those of one constructor or destructor: compilers make several functions of it
/// (`C1`, `C2`), whose names read alike, and mostly one has the code of all.
pub(super) fn are_alike(a: &[u8], b: &[u8]) -> bool {
    let same_but_at = |digit: usize| {
        a.len() == b.len()
            && b[digit].is_ascii_digit()
            && a[..digit] == b[..digit]
            && a[digit + 1..] == b[digit + 1..]
    };
    a == b || last_part(a).and_then(|last| last.digit).is_some_and(same_but_at)
}

/// Whether the last part of the name of a symbol is the plain name of a function, which may have template arguments.
pub(super) fn ends_with(symbol: &[u8], plain: &[u8]) -> bool {
    let is_last = |last: LastPart<'_>| {
        let is_destructor = last.digit.is_some_and(|digit| symbol[digit - 1] == b'D');
        let name = if is_destructor { plain.strip_prefix(b"~") } else { Some(plain) };
        name.is_some_and(|name| name.split(|byte| *byte == b'<').next() == Some(last.source))
    };
    symbol == plain || last_part(symbol).is_some_and(is_last)
}

/// The last part of the name of a function.
struct LastPart<'s> {
    source: &'s [u8],
    /// For a constructor or destructor, the place of its digit in the symbol.
    digit: Option<usize>,
}

/// The last part of a mangled name of C++. `None` for operators, lambdas, functions in functions, and other names.
fn last_part(symbol: &[u8]) -> Option<LastPart<'_>> {
    let (is_nested, mut at) = match symbol.strip_prefix(b"_Z")? {
        [b'N', ..] => (true, 3),
        [b'S', b't', ..] => (false, 4),
        [b'L', ..] => (false, 3),
        _ => (false, 2),
    };
    // The brackets around the current place, by the letters that open them. All are closed by an `E`.
    let (mut open, mut last) = (Vec::new(), None);
    loop {
        let rest = symbol.get(at..)?;
        at += match (rest, open.last()) {
            // A number is the value of a literal, if its type comes before it, or the length of a source name.
            ([b'0'..=b'9', ..], Some(b'L')) if symbol[at - 1] != b'L' => digits(rest),
            ([b'0'..=b'9', ..], around) => {
                let digits = digits(rest);
                let size: usize = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
                let source = rest[digits..].get(..size)?;
                if around.is_none() {
                    last = Some(LastPart { source, digit: None });
                    if !is_nested {
                        return last;
                    }
                }
                digits + size
            }
            _ if !is_nested => return None,
            // Substitutions and template parameters.
            ([b'S', b'0'..=b'9' | b'A'..=b'Z' | b'_', ..] | [b'T', b'0'..=b'9' | b'_', ..], _) => {
                2 + rest[1..].iter().position(|byte| *byte == b'_')?
            }
            ([b'S', ..], _) => 2,
            ([b'C' | b'D', b'0'..=b'5', ..], None) => {
                last.as_mut()?.digit = Some(at + 1);
                2
            }
            ([b'E', ..], None) => return last,
            ([b'E', ..], Some(_)) => {
                open.pop();
                1
            }
            // Before the first part, qualifiers of the function. An internal name, and a tag of the ABI.
            ([b'r' | b'V' | b'K' | b'R' | b'O', ..], None) if last.is_none() => 1,
            ([b'L', b'0'..=b'9', ..], None) => 1,
            ([b'B', rest @ ..], None) => {
                let digits = digits(rest);
                1 + digits + str::from_utf8(&rest[..digits]).ok()?.parse::<u16>().map(usize::from).ok()?
            }
            ([b'I', ..], None) => {
                open.push(b'I');
                1
            }
            // An operator, a lambda, or another part without a source name.
            (_, None) => return None,
            ([b'L', b'_', b'Z', ..], _) => {
                open.push(b'Z');
                3
            }
            ([b'D', b'T' | b't', ..], _) => {
                open.push(b'D');
                2
            }
            ([letter @ (b'F' | b'I' | b'J' | b'L' | b'N' | b'X'), ..], _) => {
                open.push(*letter);
                1
            }
            ([b'A', b'0'..=b'9', ..], _) => 1 + digits(&rest[1..]),
            _ => 1,
        };
    }
}

/// How many digits `bytes` begin with.
fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(a: &str, b: &str) -> bool {
        are_alike(a.as_bytes(), b.as_bytes())
    }

    fn last(symbol: &str) -> Option<&str> {
        last_part(symbol.as_bytes()).map(|last| str::from_utf8(last.source).expect("text"))
    }

    #[test]
    fn names_of_one_constructor_are_alike_and_no_others() {
        assert!(alike("_ZN2ns3FooC1Ev", "_ZN2ns3FooC2Ev"));
        assert!(alike("_ZN2v86ObjectD0Ev", "_ZN2v86ObjectD2Ev"));
        assert!(alike(
            "_ZN3FooILi13ELN1a1bE5E4VEC2S0_A10_cEC1IiEET_",
            "_ZN3FooILi13ELN1a1bE5E4VEC2S0_A10_cEC2IiEET_"
        ));
        assert!(alike("f", "f"));
        for (a, b) in [
            ("_ZN2ns3FooC1Ev", "_ZN2ns3FooD1Ev"),
            ("_ZN2ns3FooC1Ev", "_ZN2ns3BarC1Ev"),
            ("_ZN2ns3FooC1Ei", "_ZN2ns3FooC1Ev"),
            ("_ZN2ns3FooC1Ev", "_ZN2ns3FooCXEv"),
            ("_ZN2ns5fooC1Ev", "_ZN2ns5fooC2Ev"),
            ("_ZN2ns3fooI4VEC2EEvv", "_ZN2ns3fooI4VEC3EEvv"),
            ("_ZN2ns3fooILi1EEEvv", "_ZN2ns3fooILi2EEEvv"),
            ("C1", "C2"),
        ] {
            assert!(!alike(a, b), "{a} {b}");
        }
    }

    #[test]
    fn the_last_part_is_that_of_the_functions_name() {
        let name = "_ZNKSt3mapIN1a1bEPFvvESaIS1_ELb1EXadL_ZN1c1dEvEEDTfp_EE4findB5cxx11ERKS2_";
        assert_eq!(last(name), Some("find"));
        assert_eq!(last("_Z4mainiPPc"), Some("main"));
        assert_eq!(last("_ZL4mainv"), Some("main"));
        assert_eq!(last("_ZSt4sorti"), Some("sort"));
        assert_eq!(last("_ZN2nsL4mainEv"), Some("main"));
        let others = [
            "_ZN1aplERKS_",
            "_ZZ1fvEN1gEv",
            "_ZN1aUlvE_clEv",
            "_Zpli",
            "f",
            "_ZN9",
            "_Z99a",
            "_ZNC1Ev",
            "_Z",
        ];
        assert!(others.iter().all(|name| last(name).is_none()));
    }

    #[test]
    fn a_symbol_ends_with_the_plain_name_of_its_function() {
        let ends = |symbol: &str, plain: &str| ends_with(symbol.as_bytes(), plain.as_bytes());
        assert!(ends("read", "read") && ends("-[A b]", "-[A b]"));
        assert!(ends("_ZN1A3getEv", "get") && ends("_ZN1A3getIiEEvv", "get<int>"));
        assert!(ends("_ZN1A1AC2Ev", "A") && ends("_ZN1A1AD2Ev", "~A"));
        assert!(!ends("__read", "read") && !ends("_ZN1A3getEN1B3barE", "bar") && !ends("_ZN1A1AD2Ev", "A"));
    }

    #[test]
    fn cut_and_changed_names_are_read_to_their_end() {
        let name = b"_ZNKSt3mapIN1a1bEPFvvESaIS1_ELb1EXadL_ZN1c1dEvEEDTfp_EEC1B5cxx11ERKS2_";
        for at in 0..name.len() {
            for byte in [b'9', b'E', b'L', b'S', b'B', 0xff] {
                let mut other = *name;
                other[at] = byte;
                let (cut, changed) = (&name[..at], &other[..]);
                let _ = [cut, changed].map(|other| (last_part(other), are_alike(other, name)));
            }
        }
    }
}
