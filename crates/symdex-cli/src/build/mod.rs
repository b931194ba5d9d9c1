//! `symdex build`: indexes from debug files.

mod args;
mod inputs;
mod required;
mod run;
mod shard;
mod summary;
mod totals;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use symdex_pipeline::Pipeline;
use symdex_store::{Error, IndexFolder, ReaderOptions, Store, StoreReader};

pub(crate) use self::args::Args;
use self::run::{Build, BuildHost};
pub(crate) use self::summary::outcome_words;
use crate::failure::{self, Failure, complain};
use crate::interrupt;
use crate::open::AccessOption;
use crate::progress::Progress;

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let begun = Instant::now();
    let pipeline = Pipeline::new(args.pipeline_options()?)?;
    let inputs = args.inputs.list()?;
    if inputs.is_empty() {
        args.warn("there is nothing to build: no input is listed, or none is in this shard");
    }
    let stores = StoreReader::new(stores(args)?, &ReaderOptions::of_one_run());
    check(&stores)?;
    let progress = if args.quiet { Progress::hidden() } else { Progress::new(0) };
    interrupt::delete_temporary_folders();
    let mut intake = args.inputs.intake(&inputs);
    let host = BuildHost { args, stores: &stores, progress: &progress, is_told: AtomicBool::new(false) };
    let mut build = Build::new(&pipeline, &host);
    while let Some(batch) = intake.next_batch(&progress)? {
        build.batch(&batch)?;
    }
    build.finish(begun)
}

/// The output folder and the stores that the command line names. Without any, the stores of the environment or the
/// current folder.
fn stores(args: &Args) -> Result<Vec<Box<dyn Store>>, Failure> {
    let folder = |path: &Path| Box::new(IndexFolder::new(path)) as Box<dyn Store>;
    let mut stores: Vec<_> = args.output.iter().map(|path| folder(path)).collect();
    if stores.is_empty() || args.stores.are_given() {
        let options = args.writing.add_to(args.stores.options(AccessOption::default()));
        stores.extend(args.stores.open_with(&options)?);
    }
    if stores.is_empty() {
        stores.push(folder(Path::new(".")));
    }
    Ok(stores)
}

/// Asks the stores before anything is unpacked or built. A store that cannot be reached is not asked again.
///
/// # Errors
///
/// A failure if no index could be put into any of the stores.
fn check(stores: &StoreReader) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for store in stores.stores() {
        let checked = match store.store().is_read_only() {
            true => Err(Error::read_only(store.url(), "write")),
            false => store.check(),
        };
        failures.extend(checked.err().map(Failure::from));
    }
    let last = if failures.len() == stores.stores().len() { failures.pop() } else { None };
    failures.iter().for_each(|failure| complain(&failure.message));
    last.map_or(Ok(()), Err)
}
