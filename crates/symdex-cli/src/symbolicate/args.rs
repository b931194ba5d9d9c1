//! Options that commands which answer reports have in common.

use std::path::PathBuf;

use symdex::LinePolicy;
use symdex_answer::{Assumption, SymbolicatorOptions};
use symdex_report::Options;
use symdex_store::{ReaderOptions, StoreUrl};

use super::events;
use crate::debug_sources::DebugSourceArgs;
use crate::failure::Failure;
use crate::open::AccessOption;
use crate::put_args::PutArgs;
use crate::stores::{StoreArgs, user_cache};

/// The sources of answers.
#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// An index, or a folder of indexes, which is searched recursively. May be repeated
    #[arg(long, value_name = "DIR")]
    pub(super) index: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) access: AccessOption,
    /// Debug files for images without an index: a dSYM bundle, a folder of bundles, an .xcarchive, a library, or an
    /// archive of these, such as appDsyms.zip. May be repeated
    #[arg(short, long, value_name = "PATH")]
    pub(super) dsym: Vec<PathBuf>,
    /// A folder to search for files to which a debug file refers, such as /usr/lib/debug. May be repeated
    #[arg(long, value_name = "DIR")]
    pub(super) debug_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) stores: StoreArgs,
    #[command(flatten)]
    pub(super) debug_sources: DebugSourceArgs,
    #[command(flatten)]
    pub(super) writing: PutArgs,
    /// Answer an image without an id from the only index or debug file of its name and architecture
    #[arg(long)]
    pub(super) match_by_name: bool,
    /// Answer the image NAME from this index or debug file, or from the image with this id or these first digits of an
    /// id. The id in the report is ignored. May be repeated
    #[arg(long, value_name = "NAME=FILE|ID")]
    pub(super) assume: Vec<Assumption>,
}

/// What is printed on standard error.
#[derive(clap::Args)]
pub(crate) struct QuietOption {
    /// Print only failures and warnings on standard error, no summary and no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// How functions are named, and which line they have.
#[derive(clap::Args)]
pub(crate) struct NameArgs {
    /// Write one frame for each address, as atos does: the concrete function, with the line at which it calls the
    /// inlined function
    #[arg(long)]
    no_inlines: bool,
    /// Write mangled names, as they are in the symbol table
    #[arg(long)]
    no_demangle: bool,
    /// Which rows of the line table answer for code with line 0, which the compiler generated or merged
    #[arg(long, value_enum, value_name = "POLICY", default_value = "statement")]
    lines: LinePolicy,
}

impl SourceArgs {
    /// The sources of answers.
    pub(super) fn options(&self) -> Result<SymbolicatorOptions, Failure> {
        let stores = self.stores.urls()?;
        let mut sources =
            SymbolicatorOptions::new().always_store(!stores.is_empty()).match_by_name(self.match_by_name);
        for path in &self.index {
            sources = sources.index(path);
        }
        for folder in &self.debug_dir {
            sources = sources.debug_dir(folder);
        }
        for assumption in &self.assume {
            sources = sources.assume(assumption.clone());
        }
        let is_private = stores.is_empty();
        let local = user_cache().filter(|_| stores.is_empty()).map(StoreUrl::from);
        sources = stores.into_iter().chain(local).fold(sources, SymbolicatorOptions::store);
        Ok(sources
            .private_store(is_private)
            .on_refill(events::report_refill)
            .reader_options(ReaderOptions::of_one_run())
            .store_options(self.writing.add_to(self.stores.options(self.access))))
    }
}

impl NameArgs {
    /// The options of the answers.
    pub(crate) fn options(&self) -> Options {
        Options::new().lines(self.lines).inlines(!self.no_inlines).demangle(!self.no_demangle)
    }
}
