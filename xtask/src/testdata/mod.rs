//! `cargo xtask testdata`: makes committed debug files, those of the demo too, from `testdata/src`.
//!
//! The same sources, the same LLVM and the same GCC yield the same bytes on every machine: paths are mapped, times are
//! 0, UUIDs are hashes. Everything is built in a scratch folder first, so that a failure leaves the committed files
//! unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::host;
use crate::tools::Tools;
use image::Builder;

mod elf;
mod image;
mod recipes;

/// The folders of `testdata` with generated entries. They have other files, too.
const FOLDERS: [&str; 3] = ["dsyms", "elf", "demo"];

/// The LLVM programs, in the order in which missing ones are reported.
const NEEDED: [&str; 5] = ["clang", "clang++", "ld64.lld", "dsymutil", "llvm-lipo"];

/// The file that states the versions of the tools.
const TOOLS: &str = "TOOLS";

/// Makes everything and replaces the committed files.
///
/// # Errors
/// A tool is missing or fails, or a new file contains a path of this machine.
pub(crate) fn make() -> Result<()> {
    let testdata = folder()?;
    let scratch = tempfile::tempdir()?;
    let made = build(&testdata.join("src"), scratch.path())?;
    for entry in entries(&made)? {
        let (from, to) = (made.join(&entry), testdata.join(&entry));
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

/// Makes everything in a scratch folder and compares it with the committed files.
///
/// # Errors
/// Files differ, are missing or are superfluous. The error lists them. If this LLVM or this GCC is not the version that
/// made the committed files, the error says so instead.
pub(crate) fn check() -> Result<()> {
    let testdata = folder()?;
    let scratch = tempfile::tempdir()?;
    let made = build(&testdata.join("src"), scratch.path())?;
    let mut committed = BTreeMap::new();
    for entry in entries(&made)? {
        let path = testdata.join(entry);
        ensure!(path.exists(), "{} is missing: run `cargo xtask testdata`", path.display());
        collect(&testdata, &path, &mut committed)?;
    }
    let made = files(&made)?;
    if let (Some(here), Some(there)) = (made.get(Path::new(TOOLS)), committed.get(Path::new(TOOLS))) {
        let [here, there] = [here, there].map(|text| String::from_utf8_lossy(text));
        ensure!(
            here == there,
            "cannot compare: testdata was made with\n{there}but the tools here are\n{here}"
        );
    }
    let mut complaints = Vec::new();
    for (path, bytes) in &made {
        match committed.remove(path) {
            None => complaints.push(format!("{} is not committed", path.display())),
            Some(other) if other != *bytes => complaints.push(format!("{} differs", path.display())),
            Some(_) => {}
        }
    }
    complaints.extend(committed.keys().map(|path| format!("{} is no longer generated", path.display())));
    if complaints.is_empty() {
        println!("{} files are as committed", made.len());
        return Ok(());
    }
    let list = complaints.join("\n  ");
    bail!("testdata does not match its sources; run `cargo xtask testdata` and commit:\n  {list}")
}

/// The generated files and bundles in `made`, by their relative paths.
fn entries(made: &Path) -> Result<Vec<PathBuf>> {
    let mut entries = vec![PathBuf::from(TOOLS)];
    for folder in FOLDERS {
        for entry in std::fs::read_dir(made.join(folder))? {
            entries.push(Path::new(folder).join(entry?.file_name()));
        }
    }
    Ok(entries)
}

/// Makes everything in a new folder in `scratch` and returns that folder.
fn build(sources: &Path, scratch: &Path) -> Result<PathBuf> {
    let (work, made) = (scratch.join("work"), scratch.join("made"));
    let tools = Tools::find(scratch, &NEEDED)?;
    host::need(&elf::HOST)?;
    // dsymutil runs `lipo` from the PATH to join slices.
    tools.put_on_path("llvm-lipo", "lipo")?;
    let builder = Builder { tools: &tools, sources, work: &work };
    let (dsyms, demo) = (made.join("dsyms"), made.join("demo"));
    std::fs::create_dir_all(&dsyms)?;
    std::fs::create_dir_all(&demo)?;
    for recipe in recipes::RECIPES {
        println!("{}", recipe.name);
        builder.link(recipe)?;
        builder.debug_file(recipe, &dsyms)?;
    }
    println!("elf");
    elf::build(sources, &work, &made.join("elf"))?;
    println!("demo");
    for recipe in &recipes::DEMO {
        let image = builder.link(recipe)?;
        match recipe.bundle {
            Some(_) => builder.debug_file(recipe, &demo).map(drop)?,
            None => copy(&image, &demo.join(recipe.name))?,
        }
    }
    std::fs::write(made.join(TOOLS), tools.versions()? + &elf::versions(&work)?)?;
    refuse_private_paths(&made, sources, &tools)?;
    Ok(made)
}

/// Fails if a file contains a path of this machine. Such a file would differ on another machine and disclose names.
fn refuse_private_paths(made: &Path, sources: &Path, tools: &Tools) -> Result<()> {
    let mut private = tools.private_folders();
    private.push(sources.display().to_string());
    private.extend(["tmp", "root", "home"].map(|folder| format!("/{folder}/")));
    // Wherever LLVM is installed.
    private.push("/lib/llvm".to_owned());
    private.extend(std::env::var("HOME").ok().filter(|home| home.len() > 1));
    for (path, bytes) in files(made)? {
        for folder in &private {
            let found = bytes.windows(folder.len()).any(|window| window == folder.as_bytes());
            ensure!(!found, "{} contains the path {folder}", path.display());
        }
    }
    Ok(())
}

/// The folder `testdata` of the repository that this program was built from.
fn folder() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    Ok(root.join("testdata"))
}

/// All files in `root`, by their relative paths.
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
