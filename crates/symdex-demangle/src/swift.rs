//! Swift names as Apple's atos prints them, from the output of symbolic-demangle.
//!
//! atos prints the Swift demangler's simplified form, which names a function's parameters by their labels:
//! `install(_:)`, `closure #1 in open(path:)`. The demangler in symbolic-demangle is modified. It prints either the
//! types of the parameters or no parameters: `install(Int)`, `install`. The two texts differ only in the parameter
//! lists. So a list begins where the texts differ. Only its labels are kept.

use symbolic_common::{Language, Name, NameMangling};
use symbolic_demangle::{Demangle, DemangleOptions};

use super::CUT;
use super::swift_cost::{Estimate, estimate};
use crate::limits::{MAX_OPAQUE_NAME, MAX_SWIFT_NAME, MAX_SWIFT_NODES, SWIFT_STACK};
use crate::stack::with_stack;

/// The simplified form of `name`. `None` if it is not a Swift name.
pub(super) fn simplified(name: &str) -> Option<String> {
    if name.len() > MAX_SWIFT_NAME || !is_cheap(name) {
        return None;
    }
    let simple = DemangleOptions::name_only();
    // The text of a function type without its parameters is empty.
    let bare = printed(name, simple).unwrap_or_default();
    match printed(name, simple.parameters(true)) {
        Some(typed) => Some(with_labels(&bare, &typed).unwrap_or(typed)),
        None if bare.is_empty() => None,
        // With the types only, the text is too long for symbolic-demangle.
        None => Some(bare + CUT),
    }
}

/// Whether the name costs the demangler no more than the limits.
pub(super) fn is_cheap(name: &str) -> bool {
    let Estimate { nodes, has_opaque_type } = estimate(name, MAX_SWIFT_NODES);
    nodes <= MAX_SWIFT_NODES && !(has_opaque_type && name.len() > MAX_OPAQUE_NAME)
}

/// The text of symbolic-demangle for `name`. `None` if it does not read the name or returns it unchanged.
pub(super) fn printed(name: &str, options: DemangleOptions) -> Option<String> {
    let symbol = Name::new(name, NameMangling::Mangled, Language::Swift);
    with_stack(SWIFT_STACK, || symbol.demangle(options)).filter(|text| text != name)
}

/// `typed` with labels instead of types. `bare` is the text without parameters. `None` if the texts differ elsewhere.
fn with_labels(bare: &str, typed: &str) -> Option<String> {
    let (mut bare, mut typed) = (bare, typed);
    let mut out = String::with_capacity(typed.len());
    loop {
        // The signature of a closure is omitted: `closure #1 (Int) in` is `closure #1 in`.
        if bare.starts_with(" in ") && typed.starts_with(' ') {
            typed = outside_brackets(typed).find(|rest| rest.starts_with(" in "))?;
        }
        match (bare.chars().next(), typed.chars().next()) {
            (None, None) => return Some(out),
            (Some(next), Some(same)) if next == same => {
                out.push(next);
                bare = bare.get(next.len_utf8()..)?;
                typed = typed.get(next.len_utf8()..)?;
            }
            (_, Some('(')) => {
                let (list, rest) = parameter_list(typed)?;
                push_labels(list, &mut out);
                typed = rest;
            }
            _ => return None,
        }
    }
}

/// The parameter list at the start of `typed`, without its parentheses, and the text after it.
fn parameter_list(typed: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, character) in typed.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 1 => return Some((typed.get(1..at)?, typed.get(at + 1..)?)),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Writes `(label:_:)` for the parameters `list`, which are `label: type` or `type`, with commas between.
fn push_labels(list: &str, out: &mut String) {
    out.push('(');
    let commas = outside_brackets(list).filter_map(|rest| rest.strip_prefix(", "));
    for parameter in (!list.is_empty()).then_some(list).into_iter().chain(commas) {
        let label = parameter.split_once(": ").map_or("", |(label, _)| label);
        let is_label = !label.is_empty() && !label.contains([' ', ',', '(', '[', '<']);
        out.push_str(if is_label { label } else { "_" });
        out.push(':');
    }
    out.push(')');
}

/// Each suffix of `text` that begins outside of brackets.
fn outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut before) = (0_usize, ' ');
    text.char_indices().filter_map(move |(at, character)| {
        let outside = depth == 0;
        match character {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = character;
        if outside { text.get(at..) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_without_end_overflows_no_stack_of_256_kb() {
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(nested_names).expect("a thread");
        thread.join().expect("no overflow");
    }

    /// symbolic-demangle 13.9.0 ends the process: the requirements are in no generic signature.
    #[test]
    fn requirements_without_a_signature_do_not_end_the_process() {
        for name in ["$sSiRvs", "$sSSRvsRvs"] {
            assert_eq!(simplified(name), None, "{name}");
        }
    }

    /// The demangler mangles the declaration of an opaque type again: 4 KiB of nested types took 147 ms.
    #[test]
    fn long_names_with_opaque_types_stay_raw() {
        let name = format!("$s4Demo1fQrSi{}F", "Sg".repeat(MAX_OPAQUE_NAME / 2));
        assert_eq!(simplified(&name), None);
        assert_eq!(simplified("$s4Demo1fQryF").as_deref(), Some("f()"));
    }

    fn nested_names() {
        for depth in [4000, MAX_SWIFT_NAME - 20, 60_000] {
            let name = format!("$s$SsxSSSSSS{}imxhhx", "m".repeat(depth));
            let simple = simplified(&name);
            assert_eq!(simple.is_some(), name.len() <= MAX_SWIFT_NAME, "{depth}: {simple:?}");
        }
    }
}
