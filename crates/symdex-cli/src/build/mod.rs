//! `symdex build`: indexes from debug files.

mod args;
mod common;
mod embed;
mod input_args;
mod required;
mod run;
mod shard;
mod summary;
mod totals;

use std::collections::BTreeSet;

use symdex_pipeline::Pipeline;
use symdex_store::{ReaderOptions, StoreReader};

pub(crate) use self::args::Args;
#[cfg(feature = "stores")]
pub(crate) use self::args::{BuildArgs, RequiredArgs};
#[cfg(any(feature = "serve", feature = "symbol-files"))]
pub(crate) use self::common::UnwindOption;
#[cfg(feature = "symbol-files")]
pub(crate) use self::common::{BuildLimits, Destination, Reporting};
#[cfg(feature = "stores")]
pub(crate) use self::required::Required;
#[cfg(feature = "stores")]
pub(crate) use self::run::report_batch;
pub(crate) use self::run::{BuildHost, build};
#[cfg(feature = "symbol-files")]
pub(crate) use self::summary::publish;
pub(crate) use self::summary::sentence;
pub(crate) use self::totals::BuildOutput;
use crate::failure;
use crate::interrupt;
use crate::progress::Progress;

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let reporting = &args.build.reporting;
    let output = BuildOutput::new(reporting);
    let mut options = args.build.pipeline_options(args.destination.output.as_deref())?;
    let embed = args.embed.wanted();
    options.embed = embed.is_some();
    let pipeline = Pipeline::new(options)?;
    let inputs = args.build.inputs.list()?;
    if inputs.is_empty() {
        reporting.warn("there is nothing to build: no input is listed, or none is in this shard");
    }
    let stores = match embed {
        Some(_) => StoreReader::new(Vec::new(), &ReaderOptions::of_one_run()),
        None => args.destination.open()?,
    };
    let progress = Progress::unless(reporting.is_quiet());
    interrupt::delete_temporary_folders();
    let host = BuildHost::new(&args.build, &stores, args.destination.put_options(), &progress);
    let host = host.building_all(args.builds_all()).embedding(embed);
    let (output, are_many) = build(&pipeline, &inputs, &host, output, |_| Ok(BTreeSet::new()))?;
    progress.suspend(|| output.finish(are_many))
}
