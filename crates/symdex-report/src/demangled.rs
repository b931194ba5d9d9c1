//! Demangled names, kept from one report to the next: most reports have the same functions, and a name costs more to
//! demangle than all else of its frame.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

/// How many bytes of names a thread keeps at most.
const CAPACITY: usize = 4 << 20;
/// What a name takes besides its bytes: two pointers with lengths, and its part of the table.
const ENTRY: usize = 64;

thread_local! {
    static NAMES: RefCell<DemangledNames> = RefCell::default();
}

/// The names that demangling changes, by linkage name. A full table is emptied.
#[derive(Default)]
struct DemangledNames {
    names: HashMap<Box<[u8]>, Box<str>>,
    /// The bytes of all names.
    size: usize,
}

/// Returns what [`symdex_demangle::demangle`] returns.
pub(crate) fn demangle(name: &[u8]) -> Cow<'_, str> {
    NAMES.with_borrow_mut(|names| names.demangle(name))
}

impl DemangledNames {
    fn demangle<'n>(&mut self, name: &'n [u8]) -> Cow<'n, str> {
        if let Some(known) = self.names.get(name) {
            return Cow::Owned(known.to_string());
        }
        let text = symdex_demangle::demangle(name);
        // A name that stays as it is costs less to demangle than to find.
        if let Cow::Owned(text) = &text {
            self.keep(name, text);
        }
        text
    }

    fn keep(&mut self, name: &[u8], text: &str) {
        let size = name.len() + text.len() + ENTRY;
        // One name never takes the place of most others.
        if size > CAPACITY / 64 {
            return;
        }
        if self.size + size > CAPACITY {
            *self = Self::default();
        }
        self.size += size;
        self.names.insert(name.into(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_demangler_however_often_the_table_is_emptied() {
        let mut names = DemangledNames::default();
        let mut most = 0;
        for number in (0..1500).chain(0..1500) {
            let text = format!("function{number:02000}");
            let mangled = format!("_ZN3app{}{text}Ev", text.len());
            assert_eq!(names.demangle(mangled.as_bytes()), format!("app::{text}()"));
            assert!(names.size <= CAPACITY);
            most = most.max(names.names.len());
        }
        assert!(names.names.len() < most, "the table was emptied");
        let before = names.names.len();
        assert_eq!(names.demangle(b"main"), "main");
        assert_eq!(names.demangle(b"\xff"), "\u{fffd}");
        assert!(names.names.len() <= before + 1);
    }

    #[test]
    fn a_long_name_is_not_kept() {
        let mut names = DemangledNames::default();
        let mangled = format!("_Z{}{}v", 100_000, "a".repeat(100_000));
        let expected = symdex_demangle::demangle(mangled.as_bytes()).into_owned();
        assert_eq!(names.demangle(mangled.as_bytes()), expected);
        assert_eq!((names.size, names.names.len()), (0, 0));
    }
}
