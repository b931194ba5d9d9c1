//! docs/DEBUG-INFO.md names tests that exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The file and the name of a test, if `line` is an item of a list of tests: "* `file: test`".
fn named_test(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("* `")?.strip_suffix('`')?.split_once(": ")
}

#[test]
fn every_test_that_the_document_names_exists() {
    let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("docs/DEBUG-INFO.md")).expect("readable");
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, test) in document.lines().filter_map(named_test) {
        tests.entry(file).or_default().push(test);
    }
    let mut missing = Vec::new();
    for (file, tests) in &tests {
        let folders = ["", "crates/symdex-build/tests", "crates/symdex-audit/tests"];
        let paths = folders.map(|folder| root.join(folder).join(file));
        let source = paths.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        // Programs that list their tests have them without the attribute.
        let before = ["#[test]\n", "#[test]\n    ", "\n", "\npub(crate) "];
        let has = |test: &str| before.iter().any(|before| source.contains(&format!("{before}fn {test}()")));
        missing.extend(tests.iter().filter(|test| !has(test)).map(|test| format!("{file}: {test}")));
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(tests.values().map(Vec::len).sum::<usize>() > 150, "the lists of tests are recognised");
}
