//! Demangled names, kept from one report to the next: most reports have the same functions, and a name costs more to
//! demangle than all else of its frame.

use std::array;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// How many bytes of names are kept at most.
const CAPACITY: usize = 4 << 20;
/// What a name takes besides its bytes: two pointers with lengths, and its part of the table.
const ENTRY: usize = 64;
/// The number of tables, so that threads seldom wait for each other.
const TABLES: usize = 16;

/// The names of all threads. The length of a name says which table it is in.
static NAMES: LazyLock<[Mutex<DemangledNames>; TABLES]> =
    LazyLock::new(|| array::from_fn(|_| Mutex::default()));

/// The names that demangling changes, by linkage name. A full table is emptied.
#[derive(Default)]
struct DemangledNames {
    names: HashMap<Box<[u8]>, Box<str>>,
    /// The bytes of all names.
    size: usize,
}

/// Returns what [`symdex_demangle::demangle`] returns.
pub(crate) fn demangle(name: &[u8]) -> Cow<'_, str> {
    demangle_with(&NAMES[name.len() % TABLES], name)
}

fn demangle_with<'n>(names: &Mutex<DemangledNames>, name: &'n [u8]) -> Cow<'n, str> {
    if let Some(known) = lock(names).names.get(name) {
        return Cow::Owned(known.to_string());
    }
    let text = symdex_demangle::demangle(name);
    // A name that stays as it is costs less to demangle than to find.
    if let Cow::Owned(text) = &text {
        lock(names).keep(name, text);
    }
    text
}

fn lock(names: &Mutex<DemangledNames>) -> MutexGuard<'_, DemangledNames> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DemangledNames {
    fn keep(&mut self, name: &[u8], text: &str) {
        let size = name.len() + text.len() + ENTRY;
        // One name never takes the place of most others.
        if size > CAPACITY / TABLES / 8 {
            return;
        }
        if self.size + size > CAPACITY / TABLES {
            *self = Self::default();
        }
        // Another thread may have added it meanwhile.
        if self.names.insert(name.into(), text.into()).is_none() {
            self.size += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_demangler_however_often_the_table_is_emptied() {
        let names = Mutex::default();
        let mut most = 0;
        for number in (0..200).chain(0..200) {
            let text = format!("function{number:01500}");
            let mangled = format!("_ZN3app{}{text}Ev", text.len());
            assert_eq!(demangle_with(&names, mangled.as_bytes()), format!("app::{text}()"));
            assert!(lock(&names).size <= CAPACITY / TABLES);
            most = most.max(lock(&names).names.len());
        }
        let before = lock(&names).names.len();
        assert!(before < most, "the table was emptied");
        assert_eq!(demangle_with(&names, b"main"), "main");
        assert_eq!(demangle_with(&names, b"\xff"), "\u{fffd}");
        assert!(lock(&names).names.len() <= before + 1);
    }

    #[test]
    fn a_long_name_is_not_kept() {
        let names = Mutex::default();
        let mangled = format!("_Z{}{}v", 100_000, "a".repeat(100_000));
        let expected = symdex_demangle::demangle(mangled.as_bytes()).into_owned();
        assert_eq!(demangle_with(&names, mangled.as_bytes()), expected);
        assert_eq!(lock(&names).size, 0);
    }
}
