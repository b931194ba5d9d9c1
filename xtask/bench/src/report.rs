//! What a run measures, as the JSON report has it. Seconds, nanoseconds and bytes.

use serde::{Deserialize, Serialize};

use crate::answers::Agreement;
use crate::cost::{Cost, median};
use crate::tool::Tool;

/// Everything one run measured.
#[derive(Debug, Serialize)]
pub struct Report {
    pub date: String,
    pub machine: Vec<String>,
    pub runs: usize,
    /// Every tool's version, or why it is missing.
    pub tools: Vec<(Tool, Result<String, String>)>,
    pub inputs: Vec<InputFigures>,
}

/// What was measured on one debug file.
#[derive(Debug, Serialize)]
pub struct InputFigures {
    pub name: String,
    pub size: u64,
    pub functions: u64,
    pub ranges: u64,
    pub builds: Vec<BuildFigures>,
    pub lookups: Vec<(Tool, Result<LookupFigures, String>)>,
    pub batch: Result<BatchFigures, String>,
    /// How often each peer agrees with symdex.
    pub agreements: Vec<(Tool, Agreement)>,
}

/// One tool's build.
#[derive(Debug, Serialize)]
pub struct BuildFigures {
    pub tool: Tool,
    pub cost: Option<Cost>,
    /// Bytes of the index, and of the index after zstd -19 where that was asked for.
    pub size: u64,
    pub compressed_size: Option<u64>,
    /// Why there are no figures.
    pub problem: Option<String>,
}

/// One tool's lookups, in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LookupFigures {
    pub uniform: Percentiles,
    pub zipf: Percentiles,
    /// The mean for addresses never asked for before, after all uniform questions; `None` where there are no others.
    pub fresh: Option<f64>,
    /// The mean with two threads at work.
    pub uniform_two_threads: f64,
    /// Open and answer one address.
    pub cold_first: f64,
    /// Open and answer the frames of one crash report.
    pub cold_report: f64,
    /// Bytes held after all uniform questions; `None` where the system does not tell.
    pub held_anonymous: Option<u64>,
    pub held_rss: Option<u64>,
    /// Answers while timed that were not those from before.
    pub wrong: u64,
}

/// Nanoseconds of a lookup.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Percentiles {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
}

/// One process that answers many addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BatchFigures {
    /// Seconds for a process that answers one address.
    pub start: f64,
    /// Addresses of the large batch.
    pub addresses: u64,
    /// Nanoseconds of each address more.
    pub each: f64,
    pub peak_rss: u64,
}

/// The medians of several runs, each figure by itself, and all wrong answers; `None` for no run.
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
        uniform_two_threads: of(&|run| run.uniform_two_threads)?,
        cold_first: of(&|run| run.cold_first)?,
        cold_report: of(&|run| run.cold_report)?,
        held_anonymous: median(runs.iter().map(|run| run.held_anonymous))?,
        held_rss: median(runs.iter().map(|run| run.held_rss))?,
        wrong: runs.iter().map(|run| run.wrong).sum(),
    })
}
