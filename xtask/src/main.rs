//! `cargo xtask <chore>`: runs a chore.
//!
//! This program has few dependencies, so that `demo`, usually the first chore of a fresh clone, starts soon. Chores
//! with more dependencies are in the program `xtask-chores`, which is compiled when one of them is run.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

mod bench;
mod demo;
mod dist;
mod installed;

const USAGE: &str = include_str!("usage.txt");
const BENCH_USAGE: &str = include_str!("../bench/src/usage.txt");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        // Help compiles nothing else.
        words if words.iter().any(|word| ["--help", "-h"].contains(word)) => {
            print!("{}", if words[0] == "bench" { BENCH_USAGE } else { USAGE });
            return ExitCode::SUCCESS;
        }
        ["bench", words @ ..] => bench::run(words),
        ["demo"] => demo::run(),
        ["dist", words @ ..] if let Some(arguments) = dist::Arguments::parse(words) => dist::run(&arguments),
        ["audit" | "corpus" | "instructions" | "testdata", ..] => match run_chore(&words) {
            // The chore has printed its error.
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Compiles `xtask-chores`, runs it with `words` and returns its exit code.
///
/// # Errors
/// Cargo cannot be run.
fn run_chore(words: &[&str]) -> Result<ExitCode> {
    // An optimised audit compares millions of addresses in a tenth of the time.
    let profile = if matches!(words.first(), Some(&("audit" | "instructions"))) { "release" } else { "dev" };
    let status = cargo()
        .args(["run", "--quiet", "--package", "xtask", "--features", "chores", "--bin", "xtask-chores"])
        .args(["--profile", profile, "--"])
        .args(words)
        .status()
        .context("cannot run cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The root folder of the workspace.
fn workspace() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")
}
