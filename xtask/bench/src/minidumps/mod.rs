//! `cargo xtask bench --minidumps`: `symdex minidump` beside minidump-stackwalk. Both are whole processes that begin
//! with files on disk: indexes with unwind rows, and the symbol files that dump_syms makes of the same debug files.

mod compare;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::cost::{Cost, Streams, measure, median, medians};
use crate::service::binary;
use compare::{Comparison, Walk};

/// The programs, and what they read.
struct Bench {
    symdex: String,
    indexes: String,
    symbols: String,
}

/// Compares the programs on the minidumps in each of `folders`, `runs` times, and prints a table for each folder.
///
/// # Errors
/// A program is missing or fails, or a folder has no minidumps.
pub fn run(folders: &[PathBuf], runs: usize) -> Result<()> {
    let symdex = text(&binary()?)?;
    for folder in folders {
        let scratch = tempfile::tempdir()?;
        let below = |name: &str| text(&scratch.path().join(name));
        let bench = Bench { symdex: symdex.clone(), indexes: below("indexes")?, symbols: below("symbols")? };
        let dumps = minidumps(folder)?;
        bench.make_symbols(&dumps)?;
        let (mut costs, mut comparison) = ([const { Vec::new() }; 2], Comparison::default());
        for dump in &dumps {
            let (of_dump, walks) = bench.of_dump(dump, scratch.path(), runs)?;
            for (costs, cost) in costs.iter_mut().zip(of_dump) {
                costs.push(cost);
            }
            comparison.add(&walks);
        }
        println!("## {}: {} minidumps, {runs} runs\n", folder.display(), dumps.len());
        print_costs(&bench, &costs)?;
        println!("\n{comparison}");
    }
    Ok(())
}

/// The minidumps in `folder`, in the order of their names.
fn minidumps(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "dmp"));
    paths.sort();
    ensure!(!paths.is_empty(), "{}: no files whose names end with .dmp", folder.display());
    paths.iter().map(|path| text(path)).collect()
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).context("a path that is not UTF-8")
}

impl Bench {
    /// Makes an index and a symbol file of each module that is a file of this machine.
    fn make_symbols(&self, dumps: &[String]) -> Result<()> {
        let mut modules = BTreeSet::new();
        for dump in dumps {
            let listed =
                Command::new(&self.symdex).args(["--no-config", "minidump", dump, "--json"]).output()?;
            let listed: Value = serde_json::from_slice(&listed.stdout).with_context(|| dump.clone())?;
            let images = listed["images"].as_array().into_iter().flatten();
            modules.extend(images.filter_map(|image| image["path"].as_str()).map(str::to_owned));
        }
        modules.retain(|path| Path::new(path).is_file());
        for module in &modules {
            let build = ["--no-config", "build", "--quiet", "--unwind", "-o", &self.indexes, module];
            let built = Command::new(&self.symdex).args(build).status()?;
            ensure!(built.success(), "{module}: symdex build ended with {built}");
            let dumped =
                Command::new("dump_syms").args(["--inlines", "--store", &self.symbols, module]).status();
            let dumped = dumped.context("dump_syms is not on the PATH: `cargo install dump_syms`")?;
            ensure!(dumped.success(), "{module}: dump_syms ended with {dumped}");
        }
        Ok(())
    }

    /// The median costs of symdex and of minidump-stackwalk for a minidump, and the stacks that each has found. The
    /// programs take turns.
    fn of_dump(&self, dump: &str, scratch: &Path, runs: usize) -> Result<([Cost; 2], [Walk; 2])> {
        let symdex =
            ["--no-config", "minidump", dump, "--index", &self.indexes, "--format", "stackwalk-json"];
        let peer = ["--json", "--symbols-path", &self.symbols, dump];
        let commands = [(&*self.symdex, &symdex[..]), ("minidump-stackwalk", &peer[..])];
        let outputs = ["symdex.json", "minidump-stackwalk.json"].map(|name| scratch.join(name));
        let mut costs = [const { Vec::new() }; 2];
        for _ in 0..runs {
            for (((program, arguments), output), costs) in commands.iter().zip(&outputs).zip(&mut costs) {
                // A frame without a function is no failure here.
                let streams =
                    Streams { stdout: Some(output.clone()), accepted: vec![3], ..Streams::default() };
                let command: Vec<_> =
                    [program].into_iter().chain(*arguments).map(|word| (*word).to_owned()).collect();
                costs.push(measure(&streams, &command)?);
            }
        }
        let [Some(own), Some(peer)] = costs.map(|costs| medians(&costs)) else { anyhow::bail!("no runs") };
        let [first, second] = outputs;
        Ok(([own, peer], [Walk::read(&first)?, Walk::read(&second)?]))
    }
}

/// Prints the size of what each program reads, and the medians over all minidumps.
fn print_costs(bench: &Bench, costs: &[Vec<Cost>; 2]) -> Result<()> {
    println!("| | symdex | minidump-stackwalk |\n|---|---:|---:|");
    let sizes = [size(Path::new(&bench.indexes))?, size(Path::new(&bench.symbols))?];
    print_row("symbols, kB", sizes.map(|size| (size / 1000).to_string()));
    let of = |value: fn(&Cost) -> f64| {
        costs.each_ref().map(|costs| median(costs.iter().map(value)).unwrap_or_default())
    };
    print_row("CPU, ms", of(|cost| cost.cpu * 1e3).map(|time| format!("{time:.1}")));
    print_row("wall, ms", of(|cost| cost.wall * 1e3).map(|time| format!("{time:.1}")));
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    print_row("peak memory, MB", of(|cost| cost.peak_rss as f64 / 1e6).map(|size| format!("{size:.1}")));
    Ok(())
}

fn print_row(what: &str, [own, peer]: [String; 2]) {
    println!("| {what} | {own} | {peer} |");
}

/// The bytes of all files in `path`.
fn size(path: &Path) -> Result<u64> {
    let metadata = path.metadata().with_context(|| path.display().to_string())?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    std::fs::read_dir(path)?.map(|entry| size(&entry?.path())).sum()
}
