//! `cargo xtask names`: compares the texts of mangled names with those of other demanglers.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, Seek as _, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use symdex_demangle::{Language, demangle, language};

use crate::tools::Tools;

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
    show(&rust.different);
    let cpp = compare_cpp(&names)?;
    println!(
        "C++: {} names as llvm-cxxfilt, {} cut at a limit, {} read by no demangler; of those that llvm-cxxfilt does \
         not read: {} as c++filt but for spaces and parentheses, {} otherwise, {} read by symdex alone; {} differences",
        cpp.as_llvm,
        cpp.cut,
        cpp.unread,
        cpp.as_gnu,
        cpp.not_as_gnu,
        cpp.only_ours,
        cpp.different.len()
    );
    show(&cpp.different);
    ensure!(rust.different.is_empty() && cpp.different.is_empty(), "names differ");
    Ok(())
}

/// Prints names, the expected texts and those of symdex.
fn show(different: &[(&str, String)]) {
    for (name, expected) in different.iter().take(MAX_SHOWN) {
        let ours = demangle(name.as_bytes());
        println!("{name:.MAX_SHOWN_TEXT$}\n  {expected:.MAX_SHOWN_TEXT$}\n  symdex: {ours:.MAX_SHOWN_TEXT$}");
    }
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

#[derive(Default)]
struct Cpp<'a> {
    as_llvm: usize,
    cut: usize,
    unread: usize,
    as_gnu: usize,
    not_as_gnu: usize,
    only_ours: usize,
    /// Names that another demangler reads and symdex does not, or that llvm-cxxfilt reads otherwise, and its text.
    different: Vec<(&'a str, String)>,
}

/// Compares C++ names with llvm-cxxfilt. Names that it does not read are compared with c++filt.
fn compare_cpp(names: &BTreeSet<String>) -> Result<Cpp<'_>> {
    let is_cpp = |name: &&str| language(name.as_bytes()) == Some(Language::Cpp);
    let names: Vec<&str> = names.iter().map(String::as_str).filter(is_cpp).collect();
    let scratch = tempfile::tempdir()?;
    let llvm = Tools::find(scratch.path(), &["llvm-cxxfilt"])?.command("llvm-cxxfilt", scratch.path());
    let (llvm, gnu) = (filtered(llvm, &names)?, filtered(Command::new("c++filt"), &names)?);
    let mut cpp = Cpp::default();
    for ((name, llvm), gnu) in names.into_iter().zip(llvm).zip(gnu) {
        let ours = demangle(name.as_bytes());
        let (llvm_reads, gnu_reads) = (llvm != name, gnu != name);
        let count = match ours.strip_suffix('…') {
            _ if llvm_reads && ours == llvm => &mut cpp.as_llvm,
            Some(text) if llvm_reads && llvm.starts_with(text) => &mut cpp.cut,
            _ if llvm_reads => {
                cpp.different.push((name, llvm));
                continue;
            }
            _ if gnu_reads && ours == name => {
                cpp.different.push((name, gnu));
                continue;
            }
            _ if gnu_reads && letters(&ours) == letters(&gnu) => &mut cpp.as_gnu,
            _ if gnu_reads => &mut cpp.not_as_gnu,
            _ if ours == name => &mut cpp.unread,
            _ => &mut cpp.only_ours,
        };
        *count += 1;
    }
    Ok(cpp)
}

/// `text` without what GNU's and LLVM's demanglers write differently: spaces, parentheses, the word for a clone, and
/// `std::nullptr_t`.
fn letters(text: &str) -> String {
    let text = text.replace("[clone ", "(").replace("decltype(nullptr)", "std::nullptr_t");
    let suffix_end = if text.contains("(.") { "]" } else { "" };
    text.strip_suffix(suffix_end).unwrap_or(&text).replace([' ', '(', ')'], "")
}

/// The lines that the filter `command` makes of `names`.
fn filtered(mut command: Command, names: &[&str]) -> Result<Vec<String>> {
    let mut input: File = tempfile::tempfile()?;
    input.write_all((names.join("\n") + "\n").as_bytes())?;
    input.rewind()?;
    let output =
        command.stdin(Stdio::from(input)).output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    ensure!(
        lines.len() == names.len(),
        "{command:?} printed {} lines for {} names",
        lines.len(),
        names.len()
    );
    Ok(lines)
}
