//! Writes the report of the service as Markdown.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::{Load, Report, load, peer, soak};

const METHOD: &str = "\
The server is a process of its own on this machine, over a folder of indexes that are in the page cache. Caches are not
dropped, so that nothing is said about cold disks. The clients run on this machine too and share its CPUs: where the
machine is busy, the CPU time of the server is the better figure. Latencies are those of answers with status 200. Logs
go to a file.
";

pub fn render(report: &Report) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let Report { date, machine, oha, inputs, index_size, .. } = report;
    writeln!(text, "# The service, {date}\n")?;
    machine.iter().try_for_each(|line| writeln!(text, "* {line}"))?;
    writeln!(text, "* {oha}\n\n{METHOD}")?;
    writeln!(text, "The indexes of {}: {}.\n", inputs.join(", "), bytes(*index_size))?;
    report.loads.iter().try_for_each(|load| of_load(&mut text, load, report.runs))?;
    if let Some(figures) = &report.peer {
        of_peer(&mut text, figures)?;
    }
    if let Some(figures) = &report.soak {
        of_soak(&mut text, figures)?;
    }
    Ok(text)
}

fn of_load(text: &mut String, load: &Load, runs: usize) -> fmt::Result {
    let Load { request, path, request_size, answer_size, cold, warm } = load;
    let [request_size, answer_size] = [request_size, answer_size].map(|size| bytes(*size as u64));
    let [start, answer, second] = [cold.start, cold.answer, cold.second].map(time);
    writeln!(
        text,
        "## {request}: POST {path}\n\nA request has {request_size}, its answer {answer_size}. A new server listens \
         after {start}, answers its first request after {answer} and a second one after {second} (medians of {runs} \
         servers).\n"
    )?;
    writeln!(
        text,
        "| connections | answers a second | p50 | p99 | CPU time of the server | peak RSS | others |"
    )?;
    writeln!(text, "| ---: | ---: | ---: | ---: | ---: | ---: | --- |")?;
    for figures in warm {
        let load::Figures { connections, rate, p50, p99, cpu, peak_rss, others, .. } = figures;
        let [p50, p99, cpu] = [p50, p99, cpu].map(|seconds| time(*seconds));
        let (rss, others) = (bytes(*peak_rss), ends(others));
        writeln!(text, "| {connections} | {rate:.0} | {p50} | {p99} | {cpu} | {rss} | {others} |")?;
    }
    writeln!(text)
}

fn of_peer(text: &mut String, figures: &peer::Figures) -> fmt::Result {
    let peer::Figures { size, warm, build } = figures;
    writeln!(
        text,
        "## Whole symbol files\n\nMozilla's Eliot keeps symcaches on disk, and reads the whole symcache of each module \
         for each request. That work alone, without HTTP, JSON and Python, takes {} for the 100 frames, from files in \
         memory ({}). Making the symcaches takes {}, once.\n",
        time(*warm),
        bytes(*size),
        time(*build)
    )
}

fn of_soak(text: &mut String, figures: &soak::Figures) -> fmt::Result {
    let soak::Figures { before, after, seconds, cpu, failed } = figures;
    writeln!(text, "## A million lookups of 100 addresses\n\n| requests | RSS |\n| ---: | ---: |")?;
    writeln!(text, "| 0 | {} |", bytes(*before))?;
    for (step, rss) in after.iter().enumerate() {
        writeln!(text, "| {},000 | {} |", (step + 1) * 100, bytes(*rss))?;
    }
    let cpu = time(*cpu);
    writeln!(text, "\n{seconds:.0} s, {cpu} of CPU time of the server for each. {failed} failed.")
}

fn ends(ends: &BTreeMap<String, u64>) -> String {
    let ends: Vec<_> = ends.iter().map(|(end, count)| format!("{end}: {count}")).collect();
    ends.join(", ")
}

fn time(seconds: f64) -> String {
    match seconds {
        t if t.is_nan() => "-".to_owned(),
        t if t >= 1.0 => format!("{t:.2} s"),
        t if t >= 1e-3 => format!("{:.1} ms", t * 1e3),
        t => format!("{:.0} us", t * 1e6),
    }
}

fn bytes(size: u64) -> String {
    match size {
        s if s >= 1_000_000 => format!("{:.1} MB", s as f64 / 1e6),
        s => format!("{:.1} kB", s as f64 / 1e3),
    }
}
