//! `cargo xtask testdata`: makes the committed debug files and the demo from `testdata/src`.
//!
//! The same sources and the same LLVM give the same bytes, wherever the repository lies: paths are mapped,
//! times are 0, the UUIDs are hashes. Everything is made in a scratch folder first, so what is committed is
//! replaced as a whole or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::tools::Tools;
use image::Builder;

mod backtrace;
mod demo;
mod disassembly;
mod image;
mod macho;
mod recipes;
mod report;
mod tinylink;

/// What is made below `testdata`; the rest of that folder is written by hand.
const MADE: [&str; 3] = [TOOLS, "dsyms", "demo"];

/// Tools used, in the order in which a missing one is reported.
const NEEDED: [&str; 7] =
    ["clang", "clang++", "ld64.lld", "dsymutil", "llvm-lipo", "llvm-objdump", "llvm-symbolizer"];

/// The file that says which LLVM made the others.
const TOOLS: &str = "TOOLS";

/// Makes everything and puts it in place of what is there.
///
/// # Errors
/// A missing tool, a failing one, or a path of this machine in what was made.
pub(crate) fn make() -> Result<()> {
    let testdata = folder()?;
    let scratch = tempfile::tempdir()?;
    let made = build(&testdata.join("src"), scratch.path())?;
    for name in MADE {
        let (from, to) = (made.join(name), testdata.join(name));
        if to.is_dir() {
            std::fs::remove_dir_all(&to)?;
        }
        copy(&from, &to)?;
    }
    let files = files(&made)?;
    let bytes: usize = files.values().map(Vec::len).sum();
    println!("{} files, {} kB", files.len(), bytes.div_ceil(1000));
    Ok(())
}

/// Makes everything elsewhere and compares it with what is committed.
///
/// # Errors
/// The files that differ, are missing or are too many. Another LLVM than the one that made them is told
/// as that: its own version is among the bytes.
pub(crate) fn check() -> Result<()> {
    let testdata = folder()?;
    let scratch = tempfile::tempdir()?;
    let made = files(&build(&testdata.join("src"), scratch.path())?)?;
    let mut committed = BTreeMap::new();
    for name in MADE {
        let path = testdata.join(name);
        ensure!(path.exists(), "{} is missing: run `cargo xtask testdata`", path.display());
        collect(&testdata, &path, &mut committed)?;
    }
    if let (Some(here), Some(there)) = (made.get(Path::new(TOOLS)), committed.get(Path::new(TOOLS))) {
        let [here, there] = [here, there].map(|text| String::from_utf8_lossy(text));
        ensure!(here == there, "cannot compare: testdata was made with\n{there}and here are\n{here}");
    }
    let mut complaints = Vec::new();
    for (path, bytes) in &made {
        match committed.remove(path) {
            None => complaints.push(format!("{} is not committed", path.display())),
            Some(other) if other != *bytes => complaints.push(format!("{} differs", path.display())),
            Some(_) => {}
        }
    }
    complaints.extend(committed.keys().map(|path| format!("{} is not made any more", path.display())));
    if complaints.is_empty() {
        println!("{} files are as committed", made.len());
        return Ok(());
    }
    let list = complaints.join("\n  ");
    bail!("testdata is not what its sources make; run `cargo xtask testdata` and commit:\n  {list}")
}

/// Makes [`MADE`] in a new folder below `scratch` and returns that folder.
fn build(sources: &Path, scratch: &Path) -> Result<PathBuf> {
    let (work, made) = (scratch.join("work"), scratch.join("made"));
    let tools = Tools::find(scratch, &NEEDED)?;
    // dsymutil runs it from there to put fat files together.
    tools.put_on_path("llvm-lipo", "lipo")?;
    let builder = Builder { tools: &tools, sources, work: &work };
    let dsyms = made.join("dsyms");
    std::fs::create_dir_all(&dsyms)?;
    for recipe in recipes::RECIPES {
        println!("{}", recipe.name);
        builder.link(recipe)?;
        builder.debug_file(recipe, &dsyms)?;
    }
    println!("demo");
    demo::build(&builder, &made.join("demo"))?;
    std::fs::write(made.join(TOOLS), tools.versions()?)?;
    refuse_private_paths(&made, sources, &tools)?;
    Ok(made)
}

/// Fails when a path of this machine got into a file: it would differ elsewhere, and tells too much.
fn refuse_private_paths(made: &Path, sources: &Path, tools: &Tools) -> Result<()> {
    let mut private = tools.private_folders();
    private.push(sources.display().to_string());
    private.extend(["/tmp/", "/root/", "/home/", "/usr/lib/llvm"].map(str::to_owned));
    private.extend(std::env::var("HOME").ok().filter(|home| home.len() > 1));
    for (path, bytes) in files(made)? {
        for folder in &private {
            let found = bytes.windows(folder.len()).any(|window| window == folder.as_bytes());
            ensure!(!found, "{} holds the path {folder}", path.display());
        }
    }
    Ok(())
}

/// `testdata` of the repository that this program was built from.
fn folder() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in no folder")?;
    Ok(root.join("testdata"))
}

/// Every file below `root`, by its path from there.
fn files(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    collect(root, root, &mut found)?;
    Ok(found)
}

fn collect(root: &Path, path: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    if !path.is_dir() {
        found.insert(path.strip_prefix(root)?.to_path_buf(), std::fs::read(path)?);
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        collect(root, &entry?.path(), found)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        std::fs::copy(from, to).with_context(|| format!("cannot write {}", to.display()))?;
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
