//! C++ names of the Itanium ABI as LLVM's demangler prints them, which Apple's atos uses.
//!
//! A name is [parsed](parse) into a [tree](nodes), which is then [printed](print). Both steps have limits by
//! construction, see [`crate::limits`].

mod nodes;
mod operators;
mod parse;
mod print;
#[cfg(test)]
mod tests;

use crate::mark_as_cut;

/// The text of the mangled `name`. Returns `None` if it is not a mangled C++ name.
pub(super) fn demangled(name: &str) -> Option<String> {
    let (arena, root) = parse::parse(name)?;
    let mut printed = print::print(&arena, root);
    if printed.is_cut {
        // The limits can be reached before the first character.
        if printed.text.is_empty() {
            return None;
        }
        mark_as_cut(&mut printed.text);
    }
    Some(printed.text)
}
