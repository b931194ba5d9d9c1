//! `cargo xtask instructions`: counts the instructions of a build and of lookups with valgrind, and compares them with
//! the committed counts. Unlike times, counts are the same on a busy machine.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::{Companions, Image};

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

/// What a counted process does: `xtask-chores counted TASK FILE`.
#[derive(Clone, Copy)]
enum Task {
    /// Build the index of the first slice of a debug file.
    Build,
    /// Open an index this often.
    Open(u64),
    /// Look up addresses in this many rounds, with an answer cache or without.
    Lookup { rounds: u64, cache: bool },
}

/// The task of a word on the command line of a counted process.
const TASKS: [(&str, Task); 6] = [
    ("build", Task::Build),
    ("open-once", Task::Open(1)),
    ("open-often", Task::Open(1 + OPENS)),
    ("lookup-uncached", Task::Lookup { rounds: 1, cache: false }),
    ("lookup", Task::Lookup { rounds: 1, cache: true }),
    ("lookup-twice", Task::Lookup { rounds: 2, cache: true }),
];

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
    let mut more = Vec::new();
    for file in &arguments.debug_files {
        let (name, counts) = counts(file)?;
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
fn counts(file: &Path) -> Result<(String, BTreeMap<&'static str, u64>)> {
    let folder = tempfile::tempdir()?;
    let index_path = folder.path().join("index");
    let bytes = build(file)?;
    let name = {
        let index = Index::open(bytes.as_slice())?;
        format!("{} {}", index.metadata().image_name, index.metadata().id)
    };
    std::fs::write(&index_path, bytes)?;
    let opened = count("open-once", &index_path)?;
    let mut counts = BTreeMap::new();
    // A process that opens the index once stands for the start of every process.
    counts.insert("build", count("build", file)?.saturating_sub(opened));
    counts.insert("open", count("open-often", &index_path)?.saturating_sub(opened) / OPENS);
    let uncached = count("lookup-uncached", &index_path)?;
    counts.insert("lookup without cache", uncached.saturating_sub(opened) / LOOKUPS);
    let first = count("lookup", &index_path)?;
    counts.insert("lookup never asked before", first.saturating_sub(opened) / LOOKUPS);
    let twice = count("lookup-twice", &index_path)?;
    counts.insert("lookup asked before", twice.saturating_sub(first) / LOOKUPS);
    Ok((name, counts))
}

/// The instructions of a process that does `task` with `file`.
fn count(task: &str, file: &Path) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["counted", task])
        .arg(file)
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .context("cannot run valgrind (Debian: `apt-get install valgrind`)")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind {task} {}: {text}", file.display());
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, collected) = collected.with_context(|| format!("valgrind printed no count: {text}"))?;
    Ok(collected.trim().parse()?)
}

/// The work of a counted process.
///
/// # Errors
/// There is no such task, or the file cannot be read.
pub(crate) fn counted(task: &str, file: &Path) -> Result<()> {
    let (_, task) = TASKS.iter().find(|(name, _)| *name == task).context("no such task")?;
    match *task {
        Task::Build => {
            black_box(build(file)?);
        }
        Task::Open(times) => {
            let bytes = std::fs::read(file)?;
            for _ in 0..times {
                black_box(Index::open(bytes.as_slice())?);
            }
        }
        Task::Lookup { rounds, cache } => {
            let index = Index::open(std::fs::read(file)?)?;
            let mut scratch = if cache { Scratch::default() } else { Scratch::with_capacity(0) };
            let executable = &index.metadata().executable;
            let (start, end) = executable.first().zip(executable.last()).context("the index has no code")?;
            let size = end.1 - start.0;
            for _ in 0..rounds {
                for number in 0..LOOKUPS {
                    // Spread over the code by Fibonacci hashing.
                    let offset = ImageOffset(start.0 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size);
                    black_box(index.lookup(offset, LinePolicy::Statement, &mut scratch)?);
                }
            }
        }
    }
    Ok(())
}

/// The index of the first slice of the debug file `file`.
fn build(file: &Path) -> Result<Vec<u8>> {
    let file = symdex_build::find(file).into_iter().next().context("no debug file")??;
    let bytes = std::fs::read(&file)?;
    let slices = symdex_build::slices(&bytes)?;
    let slice = slices.first().context("no slice")?;
    let companions = Companions::default();
    let image = Image::load(slice, &file, &companions)?;
    Ok(symdex_build::build(&image)?.bytes)
}
