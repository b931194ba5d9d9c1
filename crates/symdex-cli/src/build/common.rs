//! The options that `symdex build`, `symdex import` and `symdex serve` share: where indexes go, limits, unwind rows,
//! output.

use std::path::{Path, PathBuf};

use symdex_pipeline::{MAX_THREADS, PipelineOptions};
use symdex_store::{Error, IndexFolder, OnConflict, PutOptions, ReaderOptions, Store, StoreReader};

use crate::failure::{Failure, complain};
use crate::number;
use crate::open::AccessOption;
use crate::put_args::PutArgs;
use crate::stores::StoreArgs;

/// Where new indexes are put.
#[derive(clap::Args)]
pub(crate) struct Destination {
    /// The folder for the indexes. It is created if it does not exist. The default is the current folder, unless
    /// --store is given
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    stores: StoreArgs,
    #[command(flatten)]
    writing: PutArgs,
    /// Which index to keep if there is a different one with the same id: keep (the existing one), replace (the new
    /// one), more (the one with more functions). A damaged one is always replaced
    #[arg(long, value_name = "RULE", default_value_t)]
    pub(crate) on_conflict: OnConflict,
}

/// The threads, the memory and the time that a build may take.
#[derive(clap::Args)]
pub(crate) struct BuildLimits {
    /// The number of threads. The default is one per core. The number does not affect the indexes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_THREADS)))]
    jobs: Option<u16>,
    /// The memory limit of all builds together, at least 32MB, not counting the input files, which are mapped. Compile
    /// units that wait for others go to a temporary file; an image that needs more fails, and the others continue. The
    /// limit does not affect the indexes
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = number::parse_size)]
    max_memory: usize,
    /// The time limit for building the index of one image, in seconds. An image that takes longer fails, and the others
    /// continue
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: Option<u64>,
    /// Store the readable form of each mangled name in the index, too, for readers without a demangler: those in Go, in
    /// JavaScript, or in C without C++. An index gets about a third larger, and its build takes twice the time. An
    /// index that exists already without readable names is built again
    #[arg(long)]
    readable_names: bool,
    /// Publish an empty index for an image that has code and no functions, neither in debug information nor in symbols
    /// nor in unwind information, such as a stripped program of Go. The default is a failure of its file
    #[arg(long)]
    allow_empty: bool,
}

/// Whether indexes get unwind rows.
#[derive(clap::Args)]
pub(crate) struct UnwindOption {
    /// Store unwind rows in the index, too: for each address of the code, where the frame has the return address and
    /// the saved registers. They turn registers and stack memory into a stack, without frame pointers
    ///
    /// The rows come from .eh_frame, .debug_frame, .ARM.exidx and Apple's compact unwind information, or from records
    /// STACK CFI of a symbol file of Breakpad. A dSYM has none of these: give its binary, too. `symdex lookup
    /// --unwind-rows` prints the row of an address. An index that exists already without unwind rows is built again.
    #[arg(long, overrides_with = "no_unwind")]
    unwind: bool,
    /// Store no unwind rows, which is the default
    #[arg(long, overrides_with = "unwind")]
    no_unwind: bool,
}

/// What is printed.
#[derive(clap::Args)]
pub(crate) struct Reporting {
    /// Print JSON, one object per line: each image, each input that failed, and the totals
    #[arg(long)]
    pub(crate) json: bool,
    /// Print everything that could not be read in each image, not only what other files could provide
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// Print only failures and, with --json, the JSON, but no images, warnings, totals or progress
    #[arg(short, long)]
    quiet: bool,
}

/// How much is printed beside failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

impl Destination {
    /// The stores, after each was asked whether it can be reached.
    ///
    /// # Errors
    ///
    /// A failure if no index could be put into any of the stores.
    pub(crate) fn open(&self) -> Result<StoreReader, Failure> {
        let stores = StoreReader::new(self.stores()?, &ReaderOptions::of_one_run());
        check(&stores)?;
        Ok(stores)
    }

    pub(crate) fn put_options(&self) -> PutOptions {
        PutOptions::new().on_conflict(self.on_conflict)
    }

    /// The output folder and the stores that the command line names. Without any, the stores of the environment or the
    /// current folder.
    fn stores(&self) -> Result<Vec<Box<dyn Store>>, Failure> {
        let folder = |path: &Path| Box::new(IndexFolder::new(path)) as Box<dyn Store>;
        let mut stores: Vec<_> = self.output.iter().map(|path| folder(path)).collect();
        if stores.is_empty() || self.stores.are_given() {
            let options = self.writing.add_to(self.stores.options(AccessOption::default()));
            stores.extend(self.stores.open_with(&options)?);
        }
        if stores.is_empty() {
            stores.push(folder(Path::new(".")));
        }
        Ok(stores)
    }
}

/// Asks the stores before anything is unpacked or built. A store that cannot be reached is not asked again.
fn check(stores: &StoreReader) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for store in stores.stores() {
        let read_only = store.store().is_read_only().then(|| Error::read_only(store.url(), "write"));
        failures.extend(read_only.or_else(|| store.check().err()).map(Failure::from));
    }
    let last = if failures.len() == stores.stores().len() { failures.pop() } else { None };
    failures.iter().for_each(|failure| complain(&failure.message));
    last.map_or(Ok(()), Err)
}

impl BuildLimits {
    /// `options` with these limits.
    pub(crate) fn add_to(&self, mut options: PipelineOptions) -> PipelineOptions {
        options.threads = self.jobs.map_or(0, usize::from);
        options.max_memory = self.max_memory;
        options.max_seconds = self.max_seconds;
        options.readable_names = self.readable_names;
        options.allow_empty = self.allow_empty;
        options
    }
}

impl UnwindOption {
    pub(crate) fn is_wanted(&self) -> bool {
        self.unwind && !self.no_unwind
    }
}

impl Reporting {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a warning, unless --quiet is given.
    pub(crate) fn warn(&self, warning: &str) {
        if !self.quiet {
            complain(&format!("warning: {warning}"));
        }
    }
}
