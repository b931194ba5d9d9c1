//! `symdex build`: indexes from debug files.

mod args;
mod common;
mod input_args;
mod required;
mod run;
mod shard;
mod summary;
mod totals;

use std::sync::atomic::AtomicBool;

use symdex_pipeline::Pipeline;

pub(crate) use self::args::Args;
#[cfg(any(feature = "serve", feature = "symbol-files"))]
pub(crate) use self::common::UnwindOption;
#[cfg(feature = "symbol-files")]
pub(crate) use self::common::{BuildLimits, Destination, Reporting};
use self::run::{Build, BuildHost};
#[cfg(feature = "symbol-files")]
pub(crate) use self::summary::publish;
pub(crate) use self::summary::sentence;
pub(crate) use self::totals::BuildOutput;
use crate::failure;
use crate::interrupt;
use crate::progress::Progress;

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let output = BuildOutput::new(&args.reporting);
    let pipeline = Pipeline::new(args.pipeline_options()?)?;
    let inputs = args.inputs.list()?;
    if inputs.is_empty() {
        args.reporting.warn("there is nothing to build: no input is listed, or none is in this shard");
    }
    let stores = args.destination.open()?;
    let progress = Progress::unless(args.reporting.is_quiet());
    interrupt::delete_temporary_folders();
    let mut intake = args.inputs.intake(&inputs);
    let host = BuildHost { args, stores: &stores, progress: &progress, is_told: AtomicBool::new(false) };
    let mut build = Build::new(&pipeline, &host, output);
    while let Some(batch) = intake.next_batch(&progress)? {
        build.batch(&batch)?;
    }
    build.finish()
}
