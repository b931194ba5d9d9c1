//! `cargo xtask bench`: compiles and runs the benchmarks. Their crate is outside the workspace, so that other builds do
//! not compile the peers.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// Runs the benchmarks with `words` as their arguments.
///
/// # Errors
/// Cargo cannot be run, or the benchmarks failed and have printed their error.
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
