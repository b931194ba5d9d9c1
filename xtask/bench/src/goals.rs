//! The goals of docs/bench/development.md, as far as one run tells whether they are reached.

use crate::report::{InputFigures, LookupFigures};
use crate::tool::{READERS, Tool};

/// A goal: the figure must not be above the limit. Both are nanoseconds.
pub struct Goal {
    pub what: &'static str,
    pub figure: f64,
    pub limit: f64,
}

/// The peers that read an index of their own.
const INDEXES: [Tool; 2] = [Tool::Symcache, Tool::Gsym];

/// The goals that can be told from these figures: those whose peers were measured.
pub fn of(input: &InputFigures) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut goal = |what, share: f64, peers: &[Tool], figure: &dyn Fn(&LookupFigures) -> Option<f64>| {
        let of = |tool: Tool| lookups(input, tool).and_then(figure);
        let fastest = peers.iter().filter_map(|peer| of(*peer)).reduce(f64::min);
        if let (Some(figure), Some(fastest)) = (of(Tool::Symdex), fastest) {
            goals.push(Goal { what, figure, limit: fastest * share });
        }
    };
    goal("new address: half of the faster of symcache and GSYM", 0.5, &INDEXES, &|lookups| lookups.fresh);
    goal("open and first answer: not slower than GSYM", 1.0, &[Tool::Gsym], &|lookups| {
        Some(lookups.cold_first)
    });
    goal("cold report: not slower than symcache and GSYM", 1.0, &INDEXES, &|lookups| {
        Some(lookups.cold_report)
    });
    let peers: Vec<Tool> = READERS.into_iter().filter(|tool| *tool != Tool::Symdex).collect();
    goal("repeated address (Zipf): a fifth of the fastest peer", 0.2, &peers, &|lookups| {
        Some(lookups.zipf.mean)
    });
    if let Some(lookups) = lookups(input, Tool::Symdex) {
        let what = "ascending: ten million addresses in one second";
        goals.push(Goal { what, figure: lookups.ascending, limit: 100.0 });
    }
    if let Some((_, Ok(cost))) = input.resolves.iter().find(|(tool, _)| *tool == Tool::Symdex) {
        let what = "ten million addresses as columns: 1.5 s of CPU";
        goals.push(Goal { what, figure: cost.cpu * 1e9, limit: 1.5e9 });
    }
    let cpu = |tool: Tool| {
        let build = input.builds.iter().find(|build| build.tool == tool)?;
        build.cost.as_ref().map(|cost| cost.cpu * 1e9)
    };
    let fastest = INDEXES.into_iter().filter_map(cpu).reduce(f64::min);
    if let (Some(figure), Some(fastest)) = (cpu(Tool::SymdexOneThread), fastest) {
        let what = "build, CPU on one thread: half of the faster of symcache and GSYM";
        goals.push(Goal { what, figure, limit: fastest * 0.5 });
    }
    goals
}

fn lookups(input: &InputFigures, tool: Tool) -> Option<&LookupFigures> {
    let (_, figures) = input.lookups.iter().find(|(other, _)| *other == tool)?;
    figures.as_ref().ok()
}
