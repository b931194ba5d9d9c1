//! Writes the report as Markdown.

use std::fmt::{self, Write as _};

use crate::goals::{self, Goal};
use crate::report::{InputFigures, Report};
use crate::tool::Tool;

/// The description of the method in the report.
const METHOD: &str = "\
Builds: each is a process, measured from start to exit, with the index on disk at the end. The tools take turns. CPU is
the user and system time of all threads. RSS includes the mapped debug file. Anonymous memory does not include it; it is
read from RssAnon of /proc/PID/status every 2 ms, on Linux only.

Lookups: 100,000 addresses in one process. An answer has the whole inline chain, with names, paths and lines as strings.
Functions are drawn uniformly or by Zipf's law, then one of their bytes. All tools get the same addresses. While lookups
are timed, each answer is compared with the tool's first answer: the lines, and the length and the first and last eight
bytes of each string. Means are of passes without a clock between lookups. p50 and p99 are of a pass with a clock, and
include reading it. All these addresses are repeated, and symdex caches answers. `new address` is the mean
of as many uniform addresses that are not, after the uniform ones. An answer is cached for its whole range of
addresses, so some of these are cached, too: most in a small image, few in a large one. `ascending` is the mean of
addresses in ascending order, evenly spread over the code, without a cache of answers: ten million in one call for
symdex, and a million in the middle, one by one, for the others. `2 threads` is the time until both threads are done,
divided by all lookups, with a warm reader for each thread. `cold` opens the file anew, in the page cache. Before, all
indexes are written again in one piece, because the page faults depend on the pieces in which a file was written. A
report has 100 frames with 60 distinct addresses. `held` is the growth of the process after all uniform questions.
`ten million addresses as columns` is a process that opens its index, resolves
the addresses of `ascending` in batches of 32,768, and has each string of a batch once.
symdex answers under the `exact` line policy, the only one that the peers have, and otherwise with its defaults.

Differences: symcache and llvm-symbolizer take function names from the symbol table, which can have an alias or a suffix
(`.llvm.123`); the others take them from DWARF. docs/AUDIT.md explains every difference from addr2line and
llvm-symbolizer. A leading `_` does not count as a difference.
";

/// Returns the text of the report.
///
/// # Errors
/// Formatting fails. Formatting into a string does not fail.
pub fn render(report: &Report) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let runs = report.runs;
    writeln!(
        text,
        "# Benchmarks of {}\n\nMedians of {runs} runs, made by `cargo xtask bench`.\n",
        report.date
    )?;
    for line in &report.machine {
        writeln!(text, "* {line}")?;
    }
    for (tool, version) in &report.tools {
        match version {
            Ok(version) => writeln!(text, "* {}: {version}", tool.name())?,
            Err(problem) => writeln!(text, "* {}: missing: {problem}", tool.name())?,
        }
    }
    writeln!(text, "\n{METHOD}")?;
    for input in &report.inputs {
        let (functions, ranges) = (thousands(input.functions), thousands(input.ranges));
        writeln!(
            text,
            "## {}\n\n{}, {functions} functions, {ranges} ranges.\n",
            input.name,
            bytes(input.size)
        )?;
        builds(&mut text, input)?;
        if !input.lookups.is_empty() {
            lookups(&mut text, input)?;
            resolves(&mut text, input)?;
            goals(&mut text, input)?;
            agreements(&mut text, input)?;
        }
    }
    Ok(text)
}

fn builds(text: &mut String, input: &InputFigures) -> fmt::Result {
    writeln!(text, "| build | CPU | wall | peak RSS | peak anonymous | index | after zstd -19 |")?;
    writeln!(text, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for build in &input.builds {
        let name = build.tool.name();
        let Some(cost) = &build.cost else {
            writeln!(text, "| {name} | {} | | | | | |", build.problem.as_deref().unwrap_or("no figures"))?;
            continue;
        };
        let anonymous = cost.peak_anonymous.map_or_else(|| "not told".to_owned(), bytes);
        let compressed = build.compressed_size.map_or_else(String::new, bytes);
        let size = bytes(build.size);
        let (cpu, wall, rss) = (cost.cpu, cost.wall, bytes(cost.peak_rss));
        writeln!(
            text,
            "| {name} | {cpu:.2} s | {wall:.2} s | {rss} | {anonymous} | {size} | {compressed} |"
        )?;
    }
    writeln!(text)
}

fn lookups(text: &mut String, input: &InputFigures) -> fmt::Result {
    writeln!(
        text,
        "| lookups | repeated address (cached): uniform mean | p50 | p99 | Zipf mean | p50 | p99 | new address: uniform mean \
         | ascending | 2 threads | cold + first | cold report | held, anonymous | held | wrong |"
    )?;
    writeln!(text, "| --- |{}", " ---: |".repeat(14))?;
    for (tool, figures) in &input.lookups {
        let name = tool.name();
        let figures = match figures {
            Ok(figures) => figures,
            Err(problem) => {
                writeln!(text, "| {name} | {problem} |{}", " |".repeat(13))?;
                continue;
            }
        };
        let (uniform, zipf) = (figures.uniform, figures.zipf);
        let warm = [uniform.mean, uniform.p50, uniform.p99, zipf.mean, zipf.p50, zipf.p99].map(time);
        let fresh = figures.fresh.map_or_else(String::new, time);
        let others =
            [figures.ascending, figures.uniform_two_threads, figures.cold_first, figures.cold_report]
                .map(time);
        let times: Vec<String> = warm.into_iter().chain([fresh]).chain(others).collect();
        let held = |size: Option<u64>| size.map_or_else(|| "not told".to_owned(), bytes);
        let (anonymous, rss) = (held(figures.held_anonymous), held(figures.held_rss));
        writeln!(text, "| {name} | {} | {anonymous} | {rss} | {} |", times.join(" | "), figures.wrong)?;
    }
    match &input.batch {
        Ok(batch) => writeln!(
            text,
            "\n{}: {} for a process that answers one address, {} for each of {} more, {} of peak RSS.\n",
            Tool::LlvmSymbolizer.name(),
            time(batch.start * 1e9),
            time(batch.each),
            thousands(batch.addresses.saturating_sub(1)),
            bytes(batch.peak_rss)
        ),
        Err(problem) => writeln!(text, "\n{}: {problem}.\n", Tool::LlvmSymbolizer.name()),
    }
}

fn resolves(text: &mut String, input: &InputFigures) -> fmt::Result {
    writeln!(text, "| ten million addresses as columns | CPU | wall | peak RSS | peak anonymous |")?;
    writeln!(text, "| --- | ---: | ---: | ---: | ---: |")?;
    for (tool, cost) in &input.resolves {
        let name = tool.name();
        match cost {
            Ok(cost) => {
                let (cpu, wall, rss) = (time(cost.cpu * 1e9), time(cost.wall * 1e9), bytes(cost.peak_rss));
                let anonymous = cost.peak_anonymous.map_or_else(|| "not told".to_owned(), bytes);
                writeln!(text, "| {name} | {cpu} | {wall} | {rss} | {anonymous} |")?;
            }
            Err(problem) => writeln!(text, "| {name} | {problem} | | | |")?,
        }
    }
    writeln!(text)
}

/// Writes the goals of docs/bench/development.md beside the figures.
fn goals(text: &mut String, input: &InputFigures) -> fmt::Result {
    writeln!(text, "| goal | symdex | limit | reached |\n| --- | ---: | ---: | --- |")?;
    for Goal { what, figure, limit } in goals::of(input) {
        let reached = if figure <= limit { "yes" } else { "no" };
        writeln!(text, "| {what} | {} | {} | {reached} |", time(figure), time(limit))?;
    }
    writeln!(text)
}

fn agreements(text: &mut String, input: &InputFigures) -> fmt::Result {
    writeln!(text, "| agrees with symdex | answers | innermost name | innermost line | all names |")?;
    writeln!(text, "| --- | ---: | ---: | ---: | ---: |")?;
    for (tool, agreement) in &input.agreements {
        let percent = |part: u64| format!("{:.2} %", part as f64 * 100.0 / agreement.answers.max(1) as f64);
        let [name, line, chain] = [agreement.name, agreement.line, agreement.chain].map(percent);
        writeln!(text, "| {} | {} | {name} | {line} | {chain} |", tool.name(), thousands(agreement.answers))?;
    }
    writeln!(text)
}

/// Formats nanoseconds in a suitable unit.
pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e4 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// Formats a size in a suitable unit.
pub fn bytes(size: u64) -> String {
    let size = size as f64;
    match size {
        size if size < 1e5 => format!("{:.1} kB", size / 1e3),
        size if size < 1e8 => format!("{:.2} MB", size / 1e6),
        size => format!("{:.0} MB", size / 1e6),
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let first = (digits.len() + 2) % 3 + 1;
    let (head, tail) = digits.split_at(first.min(digits.len()));
    let groups = tail.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    std::iter::once(head.to_owned()).chain(groups).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let grouped = [0, 12, 123, 1_234, 123_456, 1_234_567].map(thousands);
        assert_eq!(grouped, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }
}
