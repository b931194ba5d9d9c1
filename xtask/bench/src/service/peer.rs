//! The work of a service that reads the whole symbol file of a module for each request.
//!
//! Mozilla's Eliot does so: it keeps symcaches on disk, and for a request reads and parses that of each module. When it
//! has none, it makes one from the Breakpad symbol file. Eliot itself is no package that could be installed here. What
//! is measured is only that work, in this process, without HTTP, JSON or Python.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use symbolic_symcache::SymCache;

use crate::builds;
use crate::cost::median;
use crate::input::Input;
use crate::tool::Tool;

use super::requests::Asked;

/// The figures for all images together. Times are in seconds.
#[derive(Serialize)]
pub struct Figures {
    /// The symcaches, in bytes.
    pub size: u64,
    /// Reading the symcaches from files in memory, and answering 100 frames.
    pub warm: f64,
    /// Making the symcaches from the debug files, which happens once for each image.
    pub build: f64,
}

/// Answers the frames of one report from the symcaches of `inputs`, `runs` times. The symcaches are written to
/// `scratch`.
///
/// # Errors
/// A symcache cannot be made.
pub fn measure(inputs: &[Input], asked: &[Asked], scratch: &Path, runs: usize) -> Result<Figures> {
    let mut build = 0.0;
    let mut files = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let file = scratch.join(format!("symcache {number}"));
        build += builds::build(Tool::Symcache, input, &file)?.wall;
        files.push(file);
    }
    let sizes = files.iter().map(|file| Ok(file.metadata()?.len())).collect::<Result<Vec<_>>>()?;
    let mut times = Vec::new();
    // The first run brings the files into memory.
    for _ in 0..=runs {
        let begun = Instant::now();
        for (number, file) in files.iter().enumerate() {
            let bytes = std::fs::read(file)?;
            let cache = SymCache::parse(&bytes)?;
            let report = asked[number].questions.report.iter().skip(number).step_by(files.len());
            let names = report.flat_map(|offset| cache.lookup(*offset)).map(|found| {
                let file = found.file().map_or(0, |file| file.full_path().len());
                found.function().name().len() + file
            });
            ensure!(names.sum::<usize>() > 0, "the symcache has no answer");
        }
        times.push(begun.elapsed().as_secs_f64());
    }
    let warm = median(times.into_iter().skip(1)).context("no runs")?;
    Ok(Figures { size: sizes.iter().sum(), warm, build })
}
