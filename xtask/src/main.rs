//! `cargo xtask <chore>`: runs the chore.
//!
//! This program depends on little, so that the first chore of a fresh clone, `demo`, does not wait for code that only others need.
//! The chores with more dependencies are in the program `xtask-chores`, which is compiled when one of them is run.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

mod bench;
mod demo;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["bench", words @ ..] => bench::run(words),
        ["demo"] => demo::run(),
        ["audit" | "corpus" | "testdata", ..] => match run_chore(&words) {
            // The chore has printed what is wrong.
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        _ => {
            eprint!("{}", include_str!("usage.txt"));
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
    let status = cargo()
        .args(["run", "--quiet", "--package", "xtask", "--features", "chores", "--bin", "xtask-chores", "--"])
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

/// The folder of the workspace.
fn workspace() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace's folder")
}
