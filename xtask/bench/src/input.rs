//! The debug files of a benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// A debug file with one image.
pub struct Input {
    /// The name in the report.
    pub name: String,
    /// The file, or its first slice as a separate file, because some peers do not read universal files.
    pub file: PathBuf,
    /// The size in bytes.
    pub size: u64,
}

/// Finds the debug files for `argument`: a file, a bundle, a folder of these, or the name of one in the folder
/// `SYMDEX_CORPORA` (default: `target/corpora`). Slices of universal files are written to `scratch`.
///
/// # Errors
/// There is no such file, or a file cannot be read.
pub fn inputs(argument: &str, scratch: &Path) -> Result<Vec<Input>> {
    let path = locate(argument)?;
    let files = symdex_build::find(&path).into_iter().collect::<Result<Vec<_>, _>>()?;
    let name = path.file_stem().map_or_else(|| argument.into(), |name| name.to_string_lossy());
    let several = files.len() > 1;
    let input = |file: PathBuf| {
        let own = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = if several { format!("{name}/{own}") } else { name.clone().into_owned() };
        let file = first_slice(file, scratch)?;
        let size = file.metadata()?.len();
        Ok(Input { name, file, size })
    };
    files.into_iter().map(input).collect()
}

/// What is measured if the command line names nothing: the debug files of docs/BENCHMARKS.md that are there, or else a
/// program that is compiled now.
///
/// # Errors
/// The program cannot be compiled.
pub fn default_corpora() -> Result<Vec<String>> {
    let named = ["cbundle", "ripgrep", "duckdb"].map(str::to_owned);
    let found: Vec<_> = named.into_iter().filter(|name| locate(name).is_ok()).collect();
    if found.is_empty() { Ok(vec![compiled_corpus()?]) } else { Ok(found) }
}

/// The path of the program in `corpus`, or of its dSYM.
fn compiled_corpus() -> Result<String> {
    let manifest = Path::new("xtask/bench/corpus/Cargo.toml");
    let target = corpora_folder().join("compiled");
    eprintln!("compiling Binaryen, a program in C++, to measure: about ten minutes on two cores, once");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
    if cfg!(target_vendor = "apple") {
        cargo.env("CARGO_PROFILE_RELEASE_SPLIT_DEBUGINFO", "packed");
    }
    let status = cargo.arg("--target-dir").arg(&target).status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo build of {} ended with {status}", manifest.display());
    let name = if cfg!(target_vendor = "apple") { "binaryen.dSYM" } else { "binaryen" };
    Ok(target.join("release").join(name).display().to_string())
}

fn corpora_folder() -> PathBuf {
    std::env::var_os("SYMDEX_CORPORA").unwrap_or_else(|| "target/corpora".into()).into()
}

fn locate(argument: &str) -> Result<PathBuf> {
    let corpora = corpora_folder();
    let candidates = [argument.into(), corpora.join(argument), corpora.join(format!("{argument}.dSYM"))];
    if let Some(path) = candidates.iter().find(|path| path.exists()) {
        return Ok(path.clone());
    }
    bail!("{argument} is neither a file nor a corpus in {} (SYMDEX_CORPORA)", corpora.display())
}

fn first_slice(file: PathBuf, scratch: &Path) -> Result<PathBuf> {
    let bytes = symdex::map_file(&file)?;
    let slices = symdex_build::slices(&bytes).with_context(|| file.display().to_string())?;
    let slice = slices.first().with_context(|| format!("{} has no slice", file.display()))?.bytes()?;
    if slice.len() == bytes.len() {
        return Ok(file.canonicalize()?);
    }
    let folder = tempfile::tempdir_in(scratch)?.keep();
    let thin = folder.join(file.file_name().unwrap_or_default());
    std::fs::write(&thin, slice)?;
    Ok(thin)
}
