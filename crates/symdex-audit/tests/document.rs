//! docs/AUDIT.md describes the classes that the code marks as described.

use std::fs;
use std::path::Path;

/// The names of the classes in the Rust source `text` that may explain more than 1 % of a file.
fn described(text: &str) -> Vec<&str> {
    let marked = text.split("::new(").skip(1).filter(|class| class.contains(".described()"));
    marked.filter_map(|class| class.split('"').nth(1)).collect()
}

#[test]
fn the_document_has_a_row_for_each_class_that_may_be_frequent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("readable");
    let document = read("docs/AUDIT.md");
    let mut classes = 0;
    for source in ["crates/symdex-audit/src/classes.rs", "xtask/src/audit/llvm/classes.rs"] {
        let source = read(source);
        let names = described(&source);
        classes += names.len();
        let missing: Vec<_> =
            names.iter().filter(|name| !document.contains(&format!("| {name} * |"))).collect();
        assert!(missing.is_empty(), "without a row with a star: {missing:?}");
    }
    let rows = document.lines().filter(|line| line.starts_with("| ") && line.contains(" * | ")).count();
    assert_eq!(classes, rows, "rows with a star");
}
