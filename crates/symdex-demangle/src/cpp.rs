//! C++ names as atos and llvm-symbolizer print them, from what cpp_demangle prints.
//!
//! atos prints what LLVM's demangler prints; cpp_demangle follows the GNU one. The two say the same in other words, of which the
//! common ones are replaced here: `> >`, lambdas, casts of numbers, thunks. (Compared over 338,000 names; what is left are
//! mostly expressions in template arguments.)

use std::fmt::Write as _;

use super::Bounded;

/// How deep cpp_demangle may recurse, to read a name and to print it. What needs more is no longer readable.
const PARSE_DEPTH: u32 = 160;
const PRINT_DEPTH: u32 = 192;

/// How LLVM writes numbers of some types.
const SUFFIXES: &[(&str, &str)] = &[
    ("(unsigned long long)", "ull"),
    ("(unsigned long)", "ul"),
    ("(unsigned int)", "u"),
    ("(long long)", "ll"),
    ("(long)", "l"),
];

/// What a name that no function or variable has begins with, and what LLVM writes instead. The name proper follows and a `)}`.
const SPECIAL_NAMES: &[(&str, &str)] = &[("{vtable(", "vtable for "), ("{vtt(", "VTT for ")];

pub(super) fn demangled(name: &str) -> Option<String> {
    let options = cpp_demangle::ParseOptions::default().recursion_limit(PARSE_DEPTH);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &options).ok()?;
    let mut text = Bounded::default();
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(PRINT_DEPTH);
    let written = symbol.structured_demangle(&mut text, &options);
    Some(as_llvm_prints(&text.finish(written)?))
}

fn as_llvm_prints(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = special_name(text, &mut out);
    // Where in `out` the numbers of lambdas go that are not read to their ends, innermost last.
    let mut lambdas = Vec::new();
    while let Some(next) = rest.chars().next() {
        if next == ' ' && out.ends_with('>') && rest.starts_with(" >") {
            rest = rest.trim_start();
        } else if let Some(after) = rest.strip_prefix("{lambda(") {
            out.push_str("'lambda");
            lambdas.push(out.len());
            out.push_str("'(");
            rest = after;
        } else if let Some(((number, after), at)) =
            numbered(rest, ")#").and_then(|end| Some((end, lambdas.pop()?)))
        {
            out.insert_str(at, &number);
            out.push(')');
            rest = after;
        } else if let Some((number, after)) = numbered(rest, "{unnamed type#") {
            _ = write!(out, "'unnamed{number}'");
            rest = after;
        } else if let Some((number, suffix, after)) = suffixed(rest) {
            _ = write!(out, "{number}{suffix}");
            rest = after;
        } else if let Some((after, at)) =
            rest.strip_prefix(")...").and_then(|after| Some((after, pack_start(&out)?)))
        {
            out.remove(at);
            rest = after;
        } else if let Some(clone) = rest.strip_prefix(" [clone ").and_then(|clone| clone.strip_suffix(']')) {
            _ = write!(out, " ({clone})");
            rest = "";
        } else {
            out.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

/// Writes what kind of special name `text` is, if it is one, and gives the name proper.
fn special_name<'a>(text: &'a str, out: &mut String) -> &'a str {
    for (gnu, llvm) in SPECIAL_NAMES {
        if let Some(name) = text.strip_prefix(gnu).and_then(|name| name.strip_suffix(")}")) {
            out.push_str(llvm);
            return name;
        }
    }
    thunk(text).map_or(text, |(kind, function)| {
        out.push_str(kind);
        function
    })
}

/// What kind of thunk, and to what: `{virtual override thunk({virtual offset(0, -24)}, f())}`. With a covariant result, there
/// are two offsets.
fn thunk(text: &str) -> Option<(&'static str, &str)> {
    let inner = text.strip_prefix("{virtual override thunk(")?.strip_suffix(")}")?;
    let (kinds, inner) = match inner.strip_prefix("{virtual offset(") {
        Some(inner) => (["virtual thunk to ", "covariant return thunk to "], inner),
        None => (["non-virtual thunk to ", "covariant return thunk to "], inner.strip_prefix("{offset(")?),
    };
    let [plain, covariant] = kinds;
    let (_, rest) = inner.split_once(")}, ")?;
    match rest.strip_prefix("{virtual offset(").or_else(|| rest.strip_prefix("{offset(")) {
        Some(second) => Some((covariant, second.split_once(")}, ")?.1)),
        None => Some((plain, rest)),
    }
}

/// After `prefix` a number and `}`: the number as LLVM counts, which is none, 0, 1, ... for 1, 2, 3, ...
fn numbered<'a>(text: &'a str, prefix: &str) -> Option<(String, &'a str)> {
    let text = text.strip_prefix(prefix)?;
    let after = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let digits = text.strip_suffix(after)?;
    let number = digits.parse::<u64>().ok()?.checked_sub(1)?;
    let after = after.strip_prefix('}')?;
    Some((number.checked_sub(1).map_or_else(String::new, |number| number.to_string()), after))
}

/// A cast of a number to one of the types that LLVM has a suffix for: the number and the suffix.
fn suffixed(text: &str) -> Option<(&str, &str, &str)> {
    let (cast, suffix) = SUFFIXES.iter().find(|(cast, _)| text.starts_with(cast))?;
    let text = text.strip_prefix(cast)?;
    let after = text.trim_start_matches('-').trim_start_matches(|digit: char| digit.is_ascii_digit());
    let number = text.strip_suffix(after)?;
    number.ends_with(|digit: char| digit.is_ascii_digit()).then_some((number, *suffix, after))
}

/// Where the list begins that ends where `out` does, if it is a template's argument pack of numbers and names: `(1, 2)...`. LLVM
/// writes it without the parentheses.
fn pack_start(out: &str) -> Option<usize> {
    let at = out.rfind(['(', ')'])?;
    let before = out.get(..at)?;
    (out.get(at..)?.starts_with('(') && before.ends_with([' ', '<'])).then_some(at)
}
