//! `cargo xtask demo`: the main job from end to end, on the demo app's debug files and its crash.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

const INDEXES: &str = "target/demo";

/// Builds the indexes of the demo's debug files and answers every frame of its crash from them.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    step("cargo build --release --package symdex-cli");
    checked(Command::new(cargo).args(["build", "--quiet", "--release", "--package", "symdex-cli"]))?;
    let symdex = Path::new("target/release").join(format!("symdex{}", std::env::consts::EXE_SUFFIX));

    step(&format!("symdex build testdata/demo -o {INDEXES}"));
    checked(Command::new(&symdex).args(["build", "testdata/demo", "-o", INDEXES]))?;

    // The store is no one else's: indexes that the user has do not make up for one that is missing here.
    step(&format!("symdex symbolicate testdata/demo/demo.crash --store {INDEXES}"));
    // Fails where a frame of the demo app is not resolved.
    checked(Command::new(&symdex).args(["symbolicate", "testdata/demo/demo.crash", "--store", INDEXES]))
}

fn step(command: &str) {
    println!("$ {command}");
}

/// Runs a command whose output the user sees.
fn checked(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?} failed: {status}") }
}
