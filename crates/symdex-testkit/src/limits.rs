//! The table of limits in docs/SECURITY.md.

/// Checks that docs/SECURITY.md has each of `limits`, with its value, and that these are all constants that `source`
/// declares for its crate.
///
/// # Panics
/// If the document lacks a limit or has another value, or if `source` declares more constants.
pub fn are_documented(limits: &[(&str, u64)], source: &str) {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SECURITY.md");
    let document = std::fs::read_to_string(document).expect("docs/SECURITY.md");
    for (name, value) in limits {
        assert!(document.contains(&format!("| `{name}` | {value} |")), "{name} is {value}");
    }
    let constants = source.matches("\npub(crate) const ").count();
    assert_eq!(constants, limits.len(), "the document has every limit");
}
