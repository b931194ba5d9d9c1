//! The Swift compiler's lists of names and their demangled texts, simplified and in full.
//!
//! The full form is never printed; it shows more of what was read from a name, mainly types.

use std::collections::BTreeMap;

use symbolic_demangle::DemangleOptions;

use super::{demangle, swift};

/// Reasons why texts differ from the lists of full names, with their counts.
const NOT_AS_IN_FULL: &[(&str, usize)] = &[(NOT_READ, 1), (UNSUGARED, 21)];
const NOT_READ: &str = "the name is made up and not read";
const UNSUGARED: &str = "symbolic-demangle writes Optional, Array and Dictionary by their names";

/// Why `printed` is not `expected`, if the reason is known.
fn reason(name: &str, expected: &str, printed: &str) -> Option<&'static str> {
    let is_unsugared =
        |text: &str| ["Optional<", "Array<", "Dictionary<"].iter().any(|sugar| text.contains(sugar));
    match printed {
        _ if printed == name => Some(NOT_READ),
        _ if is_unsugared(printed) && !is_unsugared(expected) => Some(UNSUGARED),
        _ => None,
    }
}

/// The lists, which are in the corpora and not in the repository, without the names of before Swift 4.
fn lists() -> BTreeMap<String, Vec<(String, String)>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let corpus = symdex_testkit::corpus("swift-manglings", folder.path());
    let lists = corpus.join("SwiftDemangle/Tests/SwiftDemangleTests/Resources");
    let list = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).expect("a list");
        let pairs = text.lines().filter_map(|line| line.split_once("--->"));
        let pairs =
            pairs.map(|(name, expected)| (name.trim().to_owned(), without_flags(expected.trim()).to_owned()));
        let pairs = pairs.filter(|(name, _)| !name.starts_with("_T") || name.starts_with("_T0"));
        (entry.file_name().to_string_lossy().into_owned(), pairs.collect())
    };
    std::fs::read_dir(lists).expect("lists").map(|entry| list(entry.expect("an entry"))).collect()
}

/// `{T:_T0...,C} text`: the form of a thunk in the compiler's own tests.
fn without_flags(expected: &str) -> &str {
    let flagged = expected.strip_prefix('{').and_then(|flags| flags.split_once("} "));
    flagged.map_or(expected, |(_, text)| text)
}

#[test]
#[ignore = "needs the corpora; .ci/run runs it where they are"]
fn simplified_names_are_those_of_the_swift_compilers_list() {
    let lists = lists();
    let list = &lists["simplified-manglings.txt"];
    let different: Vec<_> =
        list.iter().filter(|(name, expected)| demangle(name.as_bytes()) != **expected).collect();
    println!("{} of {} simplified names are equal", list.len() - different.len(), list.len());
    assert!(different.is_empty(), "{different:?}");
}

#[test]
#[ignore = "needs the corpora; .ci/run runs it where they are"]
fn full_names_are_those_of_the_swift_compilers_lists() {
    let mut lists = lists();
    lists.remove("simplified-manglings.txt");
    let list: Vec<_> = lists.into_values().flatten().collect();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, expected) in &list {
        let is_cheap = swift::is_cheap(name);
        let printed = is_cheap.then(|| swift::printed(name, DemangleOptions::complete())).flatten();
        let printed = printed.unwrap_or_else(|| name.clone());
        if printed != *expected {
            let reason = reason(name, expected, &printed);
            *reasons
                .entry(reason.unwrap_or_else(|| panic!("{name}\n  {expected}\n  {printed}")))
                .or_default() += 1;
        }
    }
    println!("{} of {} full names are equal", list.len() - reasons.values().sum::<usize>(), list.len());
    let known: BTreeMap<_, _> = NOT_AS_IN_FULL.iter().copied().collect();
    assert_eq!(reasons, known);
}
