//! Writes the report of the service as Markdown.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::{Load, Report, load};
use crate::markdown::{bytes, time as nanoseconds};

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

fn ends(ends: &BTreeMap<String, u64>) -> String {
    let ends: Vec<_> = ends.iter().map(|(end, count)| format!("{end}: {count}")).collect();
    ends.join(", ")
}

fn time(seconds: f64) -> String {
    if seconds.is_nan() { "-".to_owned() } else { nanoseconds(seconds * 1e9) }
}
