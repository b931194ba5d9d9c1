//! The results of a run, in the form of the JSON report. Figures are in seconds, nanoseconds and bytes.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::answers::Agreement;
use crate::cost::{Cost, median};
use crate::tool::Tool;

/// The results of one run.
#[derive(Debug, Serialize)]
pub struct Report {
    pub date: String,
    pub machine: Vec<String>,
    pub runs: usize,
    /// The version of each tool, or why it is missing.
    pub tools: Vec<(Tool, Result<String, String>)>,
    pub inputs: Vec<InputFigures>,
}

/// The results for one debug file.
#[derive(Debug, Serialize)]
pub struct InputFigures {
    pub name: String,
    pub size: u64,
    pub functions: u64,
    pub ranges: u64,
    pub builds: Vec<BuildFigures>,
    pub lookups: Vec<(Tool, Result<LookupFigures, String>)>,
    /// Ten million ascending addresses, resolved into columns by a process.
    pub resolves: Vec<(Tool, Result<Cost, String>)>,
    pub batch: Result<BatchFigures, String>,
    /// How often each peer agrees with symdex.
    pub agreements: Vec<(Tool, Agreement)>,
}

/// The build of one tool.
#[derive(Debug, Serialize)]
pub struct BuildFigures {
    pub tool: Tool,
    pub cost: Option<Cost>,
    /// The size of the index in bytes, and its size after zstd -19, if that is measured.
    pub size: u64,
    pub compressed_size: Option<u64>,
    /// Why there are no figures.
    pub problem: Option<String>,
}

/// The lookups of one tool, in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LookupFigures {
    pub uniform: Percentiles,
    pub zipf: Percentiles,
    /// The mean for addresses that were never asked for, after all uniform questions. `None` if the image has no
    /// others.
    pub fresh: Option<f64>,
    /// The mean for ascending addresses, evenly spread over the code: ten million for symdex, which reads them in one
    /// batch; the tenth of these in the middle for the others, which read one by one. No reader caches answers.
    pub ascending: f64,
    /// The mean with two threads.
    pub uniform_two_threads: f64,
    /// The time to open the file and answer one address.
    pub cold_first: f64,
    /// The time to open the file and answer the frames of one crash report.
    pub cold_report: f64,
    /// Memory in bytes after all uniform questions. `None` if the system does not state it.
    pub held_anonymous: Option<u64>,
    pub held_rss: Option<u64>,
    /// The number of answers that changed while they were timed.
    pub wrong: u64,
}

/// Nanoseconds per lookup.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Percentiles {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
}

/// A process that answers many addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BatchFigures {
    /// Seconds of a process that answers one address.
    pub start: f64,
    /// The number of addresses of the large batch.
    pub addresses: u64,
    /// Nanoseconds for each further address.
    pub each: f64,
    pub peak_rss: u64,
}

/// The medians of several runs, for each figure separately, and the sum of wrong answers. `None` if there are no runs.
pub fn medians(runs: &[LookupFigures]) -> Option<LookupFigures> {
    let of = |figure: &dyn Fn(&LookupFigures) -> f64| median(runs.iter().map(figure));
    let percentiles = |figure: &dyn Fn(&LookupFigures) -> Percentiles| {
        Some(Percentiles {
            mean: of(&|run| figure(run).mean)?,
            p50: of(&|run| figure(run).p50)?,
            p99: of(&|run| figure(run).p99)?,
        })
    };
    Some(LookupFigures {
        uniform: percentiles(&|run| run.uniform)?,
        zipf: percentiles(&|run| run.zipf)?,
        fresh: median(runs.iter().map(|run| run.fresh))?,
        ascending: of(&|run| run.ascending)?,
        uniform_two_threads: of(&|run| run.uniform_two_threads)?,
        cold_first: of(&|run| run.cold_first)?,
        cold_report: of(&|run| run.cold_report)?,
        held_anonymous: median(runs.iter().map(|run| run.held_anonymous))?,
        held_rss: median(runs.iter().map(|run| run.held_rss))?,
        wrong: runs.iter().map(|run| run.wrong).sum(),
    })
}

/// Writes `NAME.md` with `text` and `NAME.json` with `report` to `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, name: &str, text: &str, report: &impl Serialize) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let file = |extension: &str| folder.join(format!("{name}.{extension}"));
    std::fs::write(file("md"), text)?;
    std::fs::write(file("json"), serde_json::to_string_pretty(report)? + "\n")?;
    eprintln!("wrote {} and its .json", file("md").display());
    Ok(())
}
