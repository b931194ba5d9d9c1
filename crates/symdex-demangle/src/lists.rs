//! The Swift compiler's lists of names and their demangled texts, simplified and in full.
//!
//! The full form is never printed; it shows more of what was read from a name, mainly types.

use std::collections::BTreeMap;

use symbolic_demangle::DemangleOptions;

use super::{demangle, swift};

/// Names whose text differs from the list of simplified names.
const NOT_AS_SIMPLIFIED: &[(&str, &str)] =
    &[("_TF3fooap3barSi", "the demangler forgot pinning addressors, which no compiler writes since Swift 4")];

/// Reasons why texts differ from the lists of full names, with their counts.
const NOT_AS_IN_FULL: &[(&str, usize)] =
    &[(ARGUMENTS, 17), (CONFORMANCES, 1), (NOT_READ, 9), (SUFFIX, 2), (UNLABELLED, 1), (UNSUGARED, 34)];
const ARGUMENTS: &str = "the arguments of an old specialization are left out";
const CONFORMANCES: &str = "the conformances of an old specialization are left out";
const NOT_READ: &str = "the name is made up and not read";
const SUFFIX: &str = "what follows an old name is left out";
const UNLABELLED: &str = "an old name's unlabelled parameter beside a labelled one has a label of its own";
const UNSUGARED: &str = "symbolic-demangle writes Optional, Array and Dictionary by their names";

/// Why `printed` is not `expected`, if the reason is known.
fn reason(name: &str, expected: &str, printed: &str) -> Option<&'static str> {
    let is_unsugared =
        |text: &str| ["Optional<", "Array<", "Dictionary<"].iter().any(|sugar| text.contains(sugar));
    match printed {
        _ if printed == name => Some(NOT_READ),
        _ if name.starts_with("_TTS") && expected.contains("function signature") => Some(ARGUMENTS),
        _ if name.starts_with("_TTSg") && expected.contains(" with ") => Some(CONFORMANCES),
        _ if expected.contains(" with unmangled suffix ") => Some(SUFFIX),
        _ if printed.replace("(_: ", "(") == expected => Some(UNLABELLED),
        _ if is_unsugared(printed) && !is_unsugared(expected) => Some(UNSUGARED),
        _ => None,
    }
}

/// The lists, which are in the corpora and not in the repository.
fn lists() -> BTreeMap<String, Vec<(String, String)>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let corpus = symdex_testkit::corpus("swift-manglings", folder.path());
    let lists = corpus.join("SwiftDemangle/Tests/SwiftDemangleTests/Resources");
    let list = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).expect("a list");
        let pairs = text.lines().filter_map(|line| line.split_once("--->"));
        let pairs =
            pairs.map(|(name, expected)| (name.trim().to_owned(), without_flags(expected.trim()).to_owned()));
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
    let names: Vec<_> = different.iter().map(|(name, _)| name.as_str()).collect();
    let known: Vec<_> = NOT_AS_SIMPLIFIED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known);
}

#[test]
#[ignore = "needs the corpora; .ci/run runs it where they are"]
fn full_names_are_those_of_the_swift_compilers_lists() {
    let mut lists = lists();
    lists.remove("simplified-manglings.txt");
    let list: Vec<_> = lists.into_values().flatten().collect();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, expected) in &list {
        let printed =
            swift::modern(name).and_then(|modern| swift::printed(&modern, DemangleOptions::complete()));
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
