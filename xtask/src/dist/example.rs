//! The example of the README, with the command of a release.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::target::Target;
use super::{output, source};
use crate::workspace;

/// Runs the example of the README and checks what its last command prints.
///
/// # Errors
/// A command fails, or its output is not that of the README.
pub(crate) fn check(target: &Target, symdex: &Path) -> Result<()> {
    let indexes = symdex.with_file_name("example-indexes");
    let begun = Instant::now();
    let mut build = target.command(symdex)?;
    output(build.args(["build", "testdata/demo", "-o"]).arg(&indexes).current_dir(workspace()?))?;
    let first = begun.elapsed();

    let mut symbolicate = target.command(symdex)?;
    symbolicate.args(["symbolicate", "testdata/demo/demo.crash", "--index"]).arg(&indexes);
    let report = String::from_utf8(output(symbolicate.current_dir(workspace()?))?).context("the report")?;

    let readme = std::fs::read_to_string(source("README.md")?)?;
    let (_, rest) = readme.split_once("\n    $ symdex atos ").context("the README has no example of atos")?;
    let mut lines = rest.lines();
    let words = lines.next().unwrap_or_default().split(' ');
    let expected: Vec<&str> = lines.map_while(|line| line.strip_prefix("    ")).collect();
    let atos = output(target.command(symdex)?.arg("atos").args(words).current_dir(workspace()?))?;
    let atos = String::from_utf8(atos).context("the answer")?;
    ensure!(
        !expected.is_empty() && atos.lines().eq(expected.iter().copied()),
        "symdex atos printed:\n{atos}"
    );
    ensure!(report.contains("rle.c:16"), "symdex symbolicate printed:\n{report}");
    println!("the example of the README is answered; its first command took {:.2} s", first.as_secs_f64());
    std::fs::remove_dir_all(indexes)?;
    Ok(())
}
