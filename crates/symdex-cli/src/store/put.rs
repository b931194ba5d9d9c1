//! `symdex store put`.

use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_pipeline::{in_order, pool};
use symdex_store::{OnConflict, PublishOutcome, PutOptions, ReaderOptions, SharedStore, Store};

use super::target::{self, UrlArgument};
use crate::failure::{CommandError, CommandResult, Failure};
use crate::open::{self, AccessOption};
use crate::output::Output;
use crate::put_args::PutArgs;
use crate::verify::indexes_of;

/// Put index files into a store
///
/// Each index is checked first. If the store has a different index of the same image, --on-conflict decides which one
/// stays. By default, the better one stays, whatever the order. `symdex build --store URL` does the same with a new
/// index.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A store: a path or a URL; - stands for the one in SYMDEX_STORE or symdex.toml
    #[arg(value_name = "URL", value_parser = target::argument)]
    url: UrlArgument,
    /// Index files, or folders of indexes
    #[arg(required = true, value_name = "INDEX")]
    indexes: Vec<PathBuf>,
    #[command(flatten)]
    jobs: super::copy::Jobs,
    #[command(flatten)]
    writing: PutArgs,
    /// Which index stays if the store has a different one of the image: keep (the existing one), replace (the new
    /// one), more (the one with more functions). A damaged one is always replaced
    #[arg(long, value_name = "RULE", default_value_t)]
    on_conflict: OnConflict,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex store put s3://bucket/indexes 0c37c502aba03641a08f84c794684f36.symdex
  symdex store put redis://127.0.0.1:6379/0 indexes
  symdex store put /var/lib/symdex right.symdex --on-conflict replace

JSON:
  {\"store\", \"id\", \"location\", \"outcome\", \"size\", \"from\", \"conflict\"} for an index; from is its file
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that failed
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line
The outcome is written, unchanged, repaired (a damaged index was replaced), replaced or kept (a
different index was there). The sizes are those of the index files.

Exit codes:
  0  the store has every index, or another one of its image that stays
  4  an index is damaged
  6  an index was made by a newer symdex
  5  an index is missing
  1  the store cannot be written";

/// An index that was put.
struct PutIndex {
    path: PathBuf,
    id: ImageId,
    size: u64,
    outcome: PublishOutcome,
}

pub(super) fn run(args: &Args) -> CommandResult {
    // A store that cannot be reached is not asked again.
    let store = SharedStore::new(args.url.open_target(&args.writing)?, &ReaderOptions::of_one_run());
    let pool = pool(args.jobs.jobs.into())?;
    let options = PutOptions::new().on_conflict(args.on_conflict);
    let indexes = args.indexes.iter().flat_map(|path| indexes_of(path, None));
    let mut output = Output::new(args.json);
    in_order(
        &pool,
        pool.current_num_threads(),
        indexes,
        |found| put(&store, &found.map_err(|(_, failure)| failure)?, &options),
        |put| report(store.store(), put, &mut output),
    )?;
    output.finish()
}

/// Checks the index at `path` and puts it into `store`.
fn put(store: &SharedStore, path: &Path, options: &PutOptions) -> Result<PutIndex, Failure> {
    let index = open::index(path, None, AccessOption::default())?;
    index.verify().map_err(|error| Failure::index(path, &error))?;
    let index = Index::open(index.as_bytes()).map_err(|error| Failure::index(path, &error))?;
    let outcome = store.put(&index, options)?;
    let (id, size) = (index.id().clone(), index.as_bytes().len() as u64);
    Ok(PutIndex { path: path.to_owned(), id, size, outcome })
}

fn report(
    store: &dyn Store,
    put: Result<PutIndex, Failure>,
    output: &mut Output,
) -> Result<(), CommandError> {
    match put {
        Ok(PutIndex { path, id, size, outcome }) => {
            output.put(store, (&id, size, path.display().to_string()), &outcome, false)
        }
        Err(failure) => output.fail_in(store, None, &failure),
    }
}
