//! `cargo xtask names`: compares the texts of mangled names with those of other demanglers.

use std::collections::BTreeSet;
use std::io::BufRead as _;

use anyhow::{Result, ensure};
use symdex_demangle::{Language, demangle, language};

/// How many differences are printed, and how much of each text.
const MAX_SHOWN: usize = 20;
const MAX_SHOWN_TEXT: usize = 400;

/// Compares the names in standard input, one a line, and prints the number of names and of differences.
///
/// # Errors
/// Standard input cannot be read, or a text differs.
pub(crate) fn run() -> Result<()> {
    let names = names()?;
    let rust = compare_rust(&names);
    println!(
        "Rust: {} legacy and {} v0 names, {} cut at a limit, {} differences",
        rust.legacy,
        rust.v0,
        rust.cut,
        rust.different.len()
    );
    for (name, expected) in rust.different.iter().take(MAX_SHOWN) {
        let ours = demangle(name.as_bytes());
        println!(
            "{name:.MAX_SHOWN_TEXT$}\n  rustc-demangle: {expected:.MAX_SHOWN_TEXT$}\n  symdex: {ours:.MAX_SHOWN_TEXT$}"
        );
    }
    ensure!(rust.different.is_empty(), "names differ");
    Ok(())
}

/// The distinct names in standard input. `nm` writes the version of a dynamic symbol after `@`.
fn names() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line?;
        let name = line.split(|byte| *byte == b'@').next().unwrap_or_default();
        names.insert(String::from_utf8_lossy(name).into_owned());
    }
    Ok(names)
}

#[derive(Default)]
struct Rust<'a> {
    legacy: usize,
    v0: usize,
    /// The texts that a limit of symdex cuts, and that are equal up to there.
    cut: usize,
    /// Names and the texts of rustc-demangle.
    different: Vec<(&'a str, String)>,
}

/// Compares Rust names with rustc-demangle. A name is Rust's if rustc-demangle finds a hash in it or reads it as v0, or
/// if symdex takes it for one.
fn compare_rust(names: &BTreeSet<String>) -> Rust<'_> {
    let mut rust = Rust::default();
    for name in names {
        let demangled = rustc_demangle::demangle(name);
        let expected = format!("{demangled:#}");
        let ours = demangle(name.as_bytes());
        let is_v0 = ["_R", "__R"].iter().any(|prefix| name.starts_with(prefix)) && expected != *name;
        let has_hash = format!("{demangled}") != expected;
        if !(is_v0 || has_hash || (language(name.as_bytes()) == Some(Language::Rust) && ours != *name)) {
            continue;
        }
        *(if is_v0 { &mut rust.v0 } else { &mut rust.legacy }) += 1;
        match ours.strip_suffix('…') {
            _ if ours == expected => {}
            Some(text) if expected.starts_with(text) => rust.cut += 1,
            _ => rust.different.push((name, expected)),
        }
    }
    rust
}
