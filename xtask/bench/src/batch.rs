//! Measures llvm-symbolizer: a process that reads the debug file and answers the addresses on its standard input.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::answers::Summary;
use crate::cost::{Cost, Streams, measure, medians};
use crate::input::Input;
use crate::questions::Questions;
use crate::report::BatchFigures;
use crate::tool::llvm;

/// The number of addresses of the large batch.
const BATCH: usize = 20_000;

/// Asks for one address and for many, `runs` times. Returns the figures and the answers to the first uniform questions.
///
/// # Errors
/// The program is missing or fails.
pub fn measure_all(
    input: &Input,
    questions: &Questions,
    folder: &Path,
    runs: usize,
) -> Result<(BatchFigures, Vec<Summary>)> {
    let batch = &questions.uniform[..BATCH.min(questions.uniform.len())];
    let mut costs = (Vec::new(), Vec::new());
    for _ in 0..runs {
        costs.0.push(ask(input, questions.base, &batch[..1], folder)?);
        costs.1.push(ask(input, questions.base, batch, folder)?);
    }
    let one = medians(&costs.0).context("it was not run")?;
    let all = medians(&costs.1).context("it was not run")?;
    let each = (all.wall - one.wall) / batch.len().saturating_sub(1).max(1) as f64;
    let figures = BatchFigures {
        start: one.wall,
        addresses: batch.len() as u64,
        each: each * 1e9,
        peak_rss: all.peak_rss,
    };
    let answers = summaries(&std::fs::read_to_string(folder.join("llvm-answers"))?);
    ensure!(answers.len() == batch.len(), "{} answers to {} questions", answers.len(), batch.len());
    Ok((figures, answers))
}

fn ask(input: &Input, base: u64, offsets: &[u64], folder: &Path) -> Result<Cost> {
    let (questions, answers) = (folder.join("llvm-questions"), folder.join("llvm-answers"));
    let mut text = String::new();
    for offset in offsets {
        writeln!(text, "{:#x}", base + offset)?;
    }
    std::fs::write(&questions, text)?;
    let mut command = vec![llvm("llvm-symbolizer")?];
    command.extend(["--no-demangle", "--functions=linkage", "--no-debuginfod", "--obj"].map(str::to_owned));
    command.push(input.file.to_str().context("a path that is not UTF-8")?.to_owned());
    measure(&Streams { stdin: Some(questions), stdout: Some(answers) }, &command)
}

/// Parses the output: for each frame a line with its name and a line with its source location, and an empty line at the
/// end.
fn summaries(text: &str) -> Vec<Summary> {
    let mut summaries = Vec::new();
    let mut summary = Summary::default();
    let mut lines = text.lines();
    while let Some(name) = lines.next() {
        if name.is_empty() {
            summaries.push(std::mem::take(&mut summary));
            continue;
        }
        let location = lines.next().unwrap_or_default();
        if name == "??" && location.starts_with("??") {
            continue;
        }
        if summary.names.is_empty() {
            summary.line = location.rsplit(':').nth(1).and_then(|line| line.parse().ok()).unwrap_or(0);
        }
        summary.names.push(name.to_owned());
    }
    summaries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_an_empty_line_and_can_be_empty() {
        let text = "leaf\n/a:b.c:5:3\nouter\n/a.c:8:0\n\n??\n??:0:0\n\nlast\n??:0:0\n\n";
        let summary =
            |names: &[&str], line| Summary { names: names.iter().map(|n| (*n).into()).collect(), line };
        assert_eq!(summaries(text), [summary(&["leaf", "outer"], 5), summary(&[], 0), summary(&["last"], 0)]);
    }
}
