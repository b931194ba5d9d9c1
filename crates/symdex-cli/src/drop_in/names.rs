//! The names of functions, as options ask for them.

use symdex::Table;
use symdex_build::DataSymbol;
use symdex_demangle::{Language, language};
use symdex_report::source_file_name;

use super::modules::Frame;
use crate::text;

/// Which name of a function is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Functions {
    /// No name
    None,
    /// The name without scopes and parameters
    Short,
    /// The linkage name, demangled unless --no-demangle is given
    #[default]
    Linkage,
}

/// Whether names are demangled, and whose text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demangling {
    None,
    /// As the other verbs print names. C++ names are as LLVM prints them.
    Llvm,
    /// C++ names are as GNU's tools print them.
    Gnu,
}

/// How names and paths are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    pub(super) functions: Functions,
    pub(super) demangling: Demangling,
    pub(super) basenames: bool,
}

impl Naming {
    /// The name of the function; `None` if it is unknown. The names in symbol tables are linkage names, and
    /// llvm-symbolizer has no short names for them.
    pub(super) fn function(self, frame: &Frame) -> Option<String> {
        let name = frame.name.as_deref()?;
        match (self.functions, frame.table) {
            (Functions::Short, Table::SymbolTable) => None,
            (Functions::Short, _) => Some(short_of(name)),
            _ => Some(self.readable(name)),
        }
    }

    /// The name of a data symbol.
    pub(super) fn data(self, symbol: &DataSymbol) -> String {
        self.readable(&symbol.name)
    }

    fn readable(self, name: &[u8]) -> String {
        match self.demangling {
            Demangling::None => text::lossy(name).into_owned(),
            Demangling::Gnu if language(name) == Some(Language::Cpp) => in_gnu_style(&text::demangled(name)),
            _ => text::demangled(name).into_owned(),
        }
    }

    /// The path of the source file; `None` if it is unknown.
    pub(super) fn file(self, frame: &Frame) -> Option<String> {
        let file = text::lossy(frame.file.as_deref()?);
        Some(if self.basenames { source_file_name(&file).to_owned() } else { file.into_owned() })
    }
}

/// The name of a function without scopes, return type and parameters, demangled.
fn short_of(name: &[u8]) -> String {
    let readable = text::demangled(name);
    match language(name) {
        // C has no scopes, and those of Go are part of its names.
        None if !readable.contains("::") => readable.into_owned(),
        // Debug information of Rust has no `::` before type arguments.
        _ => short(&readable).replacen("::<", "<", 1),
    }
}

/// A demangled name of C++ or Rust without scopes, return type and parameters: `draw` of `ns::Widget::draw(int) const`.
/// Template arguments stay, as compilers put them into the names of functions.
fn short(name: &str) -> &str {
    let bytes = name.as_bytes();
    // Objective-C methods are whole names.
    if matches!(bytes, [b'-' | b'+', b'[', ..]) {
        return name;
    }
    // The parameters begin at the last parenthesis that is outside of all brackets, if one ends there.
    let (mut depth, mut end) = (0usize, name.len());
    for (at, byte) in bytes.iter().enumerate().rev() {
        match byte {
            b')' | b'>' | b']' | b'}' => depth += 1,
            b'(' | b'<' | b'[' | b'{' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && *byte == b'(' && at != 0 && !name[..at].ends_with("::") {
                    end = at;
                    break;
                }
            }
            _ => {}
        }
    }
    let is_before_arguments = |before: &str, after: &str| {
        !before.trim_end_matches(':').is_empty() && after.trim_start_matches(':').starts_with('<')
    };
    let (mut start, mut is_operator) = (0, false);
    depth = 0;
    for (at, byte) in bytes[..end].iter().enumerate() {
        let before = &name[start..at];
        let of_operator =
            before.strip_prefix("operator").map(|symbol| symbol.trim_matches(['<', '=', '>', '-']));
        match byte {
            // The name of an operator, and no bracket.
            b'<' | b'>' if of_operator == Some("") => {}
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth = depth.saturating_sub(1),
            // The name of an operator can have brackets and a type. A scope that is an operator ends as functions do.
            b':' | b' ' if is_operator && !(before.ends_with("):") || before.ends_with("const:")) => {}
            // Type arguments of a function in Rust.
            b':' if is_before_arguments(before, &name[at..end]) => {}
            b':' | b' ' if depth == 0 => (start, is_operator) = (at + 1, false),
            _ => {}
        }
        is_operator |= name[start..].starts_with("operator");
    }
    &name[start..end]
}

/// A C++ name as GNU's demangler prints it, from the text of LLVM's: brackets that close lists of template arguments
/// are apart, and the suffixes of copies of a function are clones: `f(int) [clone .part.0]` for `f(int) (.part.0)`.
fn in_gnu_style(text: &str) -> String {
    let (text, suffixes) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (.")) {
        Some((text, suffixes)) => (text, suffixes),
        None => (text, ""),
    };
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        let before = &text[..at];
        // The name of an operator keeps its brackets.
        let is_operator = ["operator>", "operator-"].iter().any(|operator| before.ends_with(operator));
        if c == '>' && before.ends_with('>') && !is_operator {
            out.push(' ');
        }
        out.push(c);
    }
    // A clone is a word, and the numbers after it.
    for part in suffixes.split('.').filter(|part| !part.is_empty()) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) && out.ends_with(']') {
            out.pop();
            out += &format!(".{part}]");
        } else {
            out += &format!(" [clone .{part}]");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnu_puts_brackets_apart_and_names_clones() {
        for (llvm, gnu) in [
            ("f(int)", "f(int)"),
            ("A<B<C<int>>>::f(A<int>)", "A<B<C<int> > >::f(A<int>)"),
            ("operator>>(A<B<int>>&)", "operator>>(A<B<int> >&)"),
            ("A::operator->() const", "A::operator->() const"),
            ("f(int) (.isra.0.cold)", "f(int) [clone .isra.0] [clone .cold]"),
            ("f(int) (.actor)", "f(int) [clone .actor]"),
        ] {
            assert_eq!(in_gnu_style(llvm), gnu);
        }
    }

    #[test]
    fn short_names_have_no_scopes_and_no_parameters() {
        for (name, expected) in [
            ("main", "main"),
            ("ns::Widget::draw(int) const", "draw"),
            ("void ns::fill<int, (E)0>(int*, unsigned long)", "fill<int, (E)0>"),
            ("(anonymous namespace)::scale(int)", "scale"),
            ("A::operator()(int) const", "operator()"),
            ("A::operator bool() const", "operator bool"),
            ("A::operator std::string() const", "operator std::string"),
            ("operator<<(std::ostream&, A)", "operator<<"),
            ("A::operator()(int, B const&) const::'lambda'()::operator()() const", "operator()"),
            ("A::operator<(int)::f()::g()", "g"),
            ("std::vector<int, std::allocator<int>>::size() const", "size"),
            ("core::fmt::write", "write"),
            ("<a::B<c::D> as e::F>::g", "g"),
            ("a::b::<c::D, &mut <e::F>::g>", "b::<c::D, &mut <e::F>::g>"),
            ("a::b::<c::D>::{closure#0}", "{closure#0}"),
            ("-[Widget draw:]", "-[Widget draw:]"),
        ] {
            assert_eq!(short(name), expected, "{name}");
        }
        for (name, expected) in [
            ("runtime.(*mspan).free", "runtime.(*mspan).free"),
            ("ns::f", "f"),
            ("_ZN2ns1fEi", "f"),
            ("_RINvC1a1bmE", "b<u32>"),
        ] {
            assert_eq!(short_of(name.as_bytes()), expected, "{name}");
        }
    }
}
