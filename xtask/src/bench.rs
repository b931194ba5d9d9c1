//! `cargo xtask bench`: the peers are compiled and run apart from the workspace, where nobody else has to.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// Runs the benchmarks with `words` as their arguments.
///
/// # Errors
/// Cargo's or theirs, printed before.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let status = crate::cargo()
        .args([
            "run",
            "--quiet",
            "--release",
            "--locked",
            "--manifest-path",
            "xtask/bench/Cargo.toml",
            "--target-dir",
        ])
        .arg(Path::new(&target).join("bench"))
        .arg("--")
        .args(words)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the benchmarks ended with {status}");
    Ok(())
}
