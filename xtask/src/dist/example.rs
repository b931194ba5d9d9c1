//! The example of the README, with the command of a release.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::{output, source};

/// A location in the demo app's crash, once the report is symbolicated.
pub(crate) const LOCATION: &str = "rle.c:16";

/// Makes `folder`, and copies what the example reads into it.
///
/// # Errors
/// A file cannot be copied.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("testdata"))?;
    output(Command::new("cp").arg("-R").arg(source("testdata/demo")?).arg(folder.join("testdata")))?;
    Ok(())
}

/// Runs the commands of the example, checks what they print, and returns how long the first one took. `symdex` returns
/// the command symdex, to be run in the prepared folder.
///
/// # Errors
/// A command fails, or its output is not that of the README.
pub(crate) fn check(symdex: impl Fn() -> Result<Command>) -> Result<Duration> {
    let run = |arguments: &str| {
        let printed = output(symdex()?.args(arguments.split(' ')))?;
        String::from_utf8(printed).with_context(|| format!("symdex {arguments} does not print UTF-8"))
    };
    let begun = Instant::now();
    run("build testdata/demo -o indexes")?;
    let first = begun.elapsed();
    let report = run("symbolicate testdata/demo/demo.crash --index indexes")?;
    ensure!(report.contains(LOCATION), "symdex symbolicate printed:\n{report}");

    let readme = fs::read_to_string(source("README.md")?)?;
    let (_, rest) = readme.split_once("\n    $ symdex atos ").context("the README has no example of atos")?;
    let mut lines = rest.lines();
    let arguments = lines.next().unwrap_or_default();
    let expected: Vec<&str> = lines.map_while(|line| line.strip_prefix("    ")).collect();
    // A blank line ends the answer for an address.
    let atos = run(&format!("atos {arguments}"))?;
    let atos = atos.trim_end();
    ensure!(
        !expected.is_empty() && atos.lines().eq(expected.iter().copied()),
        "symdex atos printed:\n{atos}"
    );
    Ok(first)
}
