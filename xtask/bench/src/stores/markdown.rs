//! Writes the report of stores as Markdown.

use std::fmt::{self, Write as _};

use super::proxy::Traffic;
use super::{Figures, Home, InputFigures, Question, Report};

const METHOD: &str = "\
All servers run on this machine, so that the times have no network in them: redis-server, and moto as the S3 server. moto
is written in Python and takes milliseconds for a request, so that round trips and bytes say more than its times. Each
measurement is a new process. `Cold`: nothing is open and nothing is connected. `Warm`: the image is open, and other
addresses are asked. A report has 100 frames with 60 distinct addresses. A round trip is an answer of the server; requests
that run at the same time count each. Bytes are those that the server has sent. Both are counted by a proxy in a
run of its own, and include the connection. The symcache is read whole, by one request without a signature.
";

pub fn render(report: &Report) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let (date, runs) = (&report.date, report.runs);
    writeln!(text, "# Stores, {date}\n\nMedians of {runs} runs, made by `cargo xtask bench --stores`.\n")?;
    report.machine.iter().try_for_each(|line| writeln!(text, "* {line}"))?;
    writeln!(text, "\n{METHOD}")?;
    report.inputs.iter().try_for_each(|input| of_input(&mut text, input))?;
    Ok(text)
}

fn of_input(text: &mut String, input: &InputFigures) -> fmt::Result {
    let InputFigures { name, debug_size, index_size, object_size, symcache_size, compared, .. } = input;
    let [debug_size, index_size, object_size, symcache_size] =
        [debug_size, index_size, object_size, symcache_size].map(|size| bytes(*size));
    writeln!(
        text,
        "## {name}\n\nDebug file {debug_size}, index {index_size}, object in S3 {object_size}, symcache \
         {symcache_size}. {compared} addresses have the same answers in all stores, byte for byte, under both line \
         policies.\n"
    )?;
    for (question, title) in [(Question::Lookup, "one address"), (Question::Report, "report of 100 frames")] {
        writeln!(text, "| {title} | cold | round trips | bytes | warm | round trips | bytes |")?;
        writeln!(text, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
        for figures in input.figures.iter().filter(|figures| figures.question == question) {
            let Figures { home, cold, warm, cold_traffic, warm_traffic, .. } = figures;
            let Traffic { round_trips: cold_trips, received: cold_bytes, .. } = cold_traffic;
            let Traffic { round_trips: warm_trips, received: warm_bytes, .. } = warm_traffic;
            writeln!(
                text,
                "| {} | {} | {cold_trips} | {} | {} | {warm_trips} | {} |",
                name_of(*home),
                time(*cold),
                bytes(*cold_bytes),
                time(*warm),
                bytes(*warm_bytes)
            )?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn name_of(home: Home) -> &'static str {
    match home {
        Home::Folder => "folder",
        Home::Redis => "Redis",
        Home::S3 => "S3, empty cache",
        Home::S3Cached => "S3, index in the cache",
        Home::Symcache => "symcache in S3, read whole",
    }
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        t if t >= 1e6 => format!("{:.1} ms", t / 1e6),
        t => format!("{:.0} us", t / 1e3),
    }
}

fn bytes(size: u64) -> String {
    match size {
        0 => "0".to_owned(),
        s if s >= 1_000_000 => format!("{:.2} MB", s as f64 / 1e6),
        s => format!("{:.1} kB", s as f64 / 1e3),
    }
}
