//! `cargo xtask instructions`: counts the instructions of a build and of lookups with valgrind, and compares them with
//! the committed counts. Unlike times, counts are the same on a busy machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use symdex::Index;

/// The committed counts.
const COMMITTED: &str = "docs/bench/instructions.json";

/// How many percent a count may be above the committed one.
const MORE: u64 = 10;

/// How often an index is opened, so that the start of the process does not matter.
const OPENS: u64 = 200;

/// How many addresses are looked up.
const LOOKUPS: u64 = 20_000;

/// The arguments of the command.
pub(crate) struct Arguments {
    /// Write the counts instead of comparing them.
    update: bool,
    debug_files: Vec<PathBuf>,
}

impl Arguments {
    /// Parses the arguments of `instructions`; `None` if they are invalid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let (update, words) = match words {
            ["--update", words @ ..] => (true, words),
            words => (false, words),
        };
        let is_file = |word: &&str| !word.starts_with('-');
        let is_valid = !words.is_empty() && words.iter().all(is_file);
        is_valid.then(|| Self { update, debug_files: words.iter().map(PathBuf::from).collect() })
    }
}

/// Counts the instructions for each debug file. Prints a table, and compares the counts or commits them.
///
/// # Errors
/// valgrind cannot be run, a debug file cannot be read, or a count is more than [`MORE`] percent above the committed
/// one.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut committed: Value = match std::fs::read(COMMITTED) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("cannot read {COMMITTED}"))?,
        Err(_) => json!({}),
    };
    let compiler = compiler()?;
    let is_comparable = committed["compiler"] == json!(compiler);
    if !is_comparable {
        println!("The committed counts are of {}, these are of {compiler}.", committed["compiler"]);
    }
    let (program, mut more) = (program()?, Vec::new());
    for file in &arguments.debug_files {
        let (name, counts) = counts(&program, file)?;
        println!("\n| {name} | instructions | committed |\n| --- | ---: | ---: |");
        for (row, count) in &counts {
            let before = committed["counts"][&name][row].as_u64();
            println!("| {row} | {count} | {} |", before.map_or_else(|| "-".to_owned(), |n| n.to_string()));
            if before.is_some_and(|before| *count > before + before * MORE / 100) {
                more.push(format!("{name}, {row}"));
            }
        }
        if arguments.update {
            committed["compiler"] = json!(compiler);
            committed["counts"][&name] = json!(counts);
        }
    }
    if arguments.update {
        std::fs::write(COMMITTED, format!("{committed:#}\n"))?;
    } else if is_comparable && !more.is_empty() {
        bail!(
            "over {MORE} % more instructions than committed in {COMMITTED}: {}. Find out why, or commit the new \
             counts with `cargo xtask instructions --update FILE...`, and say why",
            more.join("; ")
        );
    }
    Ok(())
}

/// The compiler and the target. Counts of others differ.
fn compiler() -> Result<String> {
    let version = Command::new("rustc").arg("--version").output().context("cannot run rustc")?;
    let version = String::from_utf8(version.stdout)?;
    Ok(format!("{} on {} {}", version.trim(), std::env::consts::ARCH, std::env::consts::OS))
}

/// The name of the debug file `file` with its id, and the instructions of each row.
fn counts(program: &Path, file: &Path) -> Result<(String, BTreeMap<&'static str, u64>)> {
    let folder = tempfile::tempdir()?;
    let index = folder.path().join("index");
    let [file, index] = [file, &index].map(|path| path.to_str().context("a path that is not UTF-8"));
    let (file, index) = (file?, index?);
    let built = count(program, &["build", file, index])?;
    let metadata = Index::open(std::fs::read(index)?)?.metadata().clone();
    let name = format!("{} {}", metadata.image_name, metadata.id);
    // A process that opens the index once stands for the start of every process.
    let opened = count(program, &["open", "1", index])?;
    let opened_often = count(program, &["open", &(1 + OPENS).to_string(), index])?;
    let addresses = LOOKUPS.to_string();
    let uncached = count(program, &["lookup-uncached", &addresses, index])?;
    let [once, twice] = ["1", "2"].map(|rounds| count(program, &["lookup", &addresses, rounds, index]));
    let (once, twice) = (once?, twice?);
    let each = |more: u64, less: u64, times: u64| more.saturating_sub(less) / times;
    let counts = [
        ("build", each(built, opened, 1)),
        ("open", each(opened_often, opened, OPENS)),
        ("lookup without cache", each(uncached, opened, LOOKUPS)),
        ("lookup, new address", each(once, opened, LOOKUPS)),
        ("lookup, repeated address", each(twice, once, LOOKUPS)),
    ];
    Ok((name, counts.into()))
}

/// Compiles the program `counted` beside this one, and returns its path.
fn program() -> Result<PathBuf> {
    let arguments = ["build", "--quiet", "--release", "--package", "xtask", "--features", "chores"];
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(arguments).args(["--bin", "counted"]).status()?;
    ensure!(status.success(), "compiling the counted program ended with {status}");
    Ok(std::env::current_exe()?.with_file_name("counted"))
}

/// The instructions of a process of `program` with these arguments.
fn count(program: &Path, words: &[&str]) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(words)
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .context("cannot run valgrind (Debian: `apt-get install valgrind`)")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind {words:?}: {text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, collected) = collected.with_context(|| format!("valgrind printed no count: {text}"))?;
    Ok(collected.trim().parse()?)
}
