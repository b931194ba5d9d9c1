//! `symdex store copy`.

use symdex::ImageId;
use symdex_store::{Error, PublishOutcome, Store};

use super::selection::{Listed, Selection, for_each};
use super::target::{self, UrlArgument};
use crate::failure::{Cause, CommandError, CommandResult, Failure, complain};
use crate::output::Output;
use crate::put_args::PutArgs;

/// Copy indexes from one store to another
///
/// Indexes that the target already has are skipped, so the same command resumes an interrupted copy: the
/// digests that both stores state are compared, and nothing is read. Each index is checked before it is written. If the
/// target has a different index of an image, the better one stays. Redis keeps an index as values, which can be copied
/// to Redis only.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The store to copy from: a path or a URL; - stands for the one in SYMDEX_STORE or symdex.toml
    #[arg(value_name = "FROM", value_parser = target::argument)]
    from: UrlArgument,
    /// The store to copy to
    #[arg(value_name = "TO", value_parser = target::argument)]
    to: UrlArgument,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    writing: PutArgs,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

/// How many indexes are read or written at once.
#[derive(clap::Args)]
pub(super) struct Jobs {
    /// The number of indexes that are read or written at the same time
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: u16,
}

const EXAMPLES: &str = "\
Examples:
  symdex store copy /var/lib/symdex s3://bucket/indexes
  symdex store copy s3://bucket/indexes redis://127.0.0.1:6379/0 --jobs 32
  symdex store copy s3://old/indexes s3://new/indexes --id 0c37c502 --json

JSON:
  {\"store\", \"id\", \"location\", \"outcome\", \"size\", \"from\", \"conflict\"} for an index; store is the target
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that failed
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line
The outcome is written, unchanged (the same index is there), repaired (a damaged index was
replaced), replaced or kept (a different index was there). Without --json, unchanged indexes have
no line. The sizes are those in the store that is copied from.

Exit codes:
  0  the target has every index, or a better one of its image
  4  an index is damaged
  6  an index was made by a newer symdex
  5  the folder to copy from is missing
  1  a store cannot be read or written
  3  no index has an id that --id gives";

/// Why a copy ends early.
enum Stop {
    Command(CommandError),
    /// A store cannot be reached. The others would fail, too.
    Unavailable,
}

impl From<CommandError> for Stop {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

pub(super) fn run(args: &Args) -> CommandResult {
    let (from, to) = (args.from.open_existing()?, args.to.open_target(&args.writing)?);
    if from.url() == to.url() {
        let message = format!("{}: this is the store to copy from and the store to copy to", to.url());
        return Err(Failure::new(Cause::Usage, message).into());
    }
    let listed = args.selection.list(&*from)?;
    let mut output = Output::new(args.json);
    let copied = for_each(
        listed,
        &args.jobs,
        |listed| copy(&*from, &*to, &listed.id),
        |listed, copied| report(&*from, &*to, listed, copied, &mut output),
    );
    match copied {
        Ok(()) => {}
        Err(Stop::Command(error)) => return Err(error),
        Err(Stop::Unavailable) => complain("the copy has stopped; run the same command to go on"),
    }
    output.finish()
}

/// Copies one index, unless it is there. `None` if it was removed after it was listed.
fn copy(from: &dyn Store, to: &dyn Store, id: &ImageId) -> Result<Option<PublishOutcome>, Error> {
    if let Some(there) = to.stat(id)?
        && let Some(digest) = there.digest
        && from.stat(id)?.is_some_and(|entry| entry.digest == Some(digest))
    {
        return Ok(Some(PublishOutcome::Unchanged));
    }
    from.copy_to(id, to)
}

fn report(
    from: &dyn Store,
    to: &dyn Store,
    Listed { id, stored_size, .. }: &Listed,
    copied: Result<Option<PublishOutcome>, Error>,
    output: &mut Output,
) -> Result<(), Stop> {
    match copied {
        Ok(Some(outcome)) => Ok(output.put(to, (id, *stored_size, from.location(id)), &outcome, true)?),
        Ok(None) => Ok(()),
        Err(error) => {
            let is_unavailable = error.cause() == Cause::Unavailable;
            output.count(*stored_size);
            output.fail_in(to, Some(id), &Failure::from(error))?;
            if is_unavailable { Err(Stop::Unavailable) } else { Ok(()) }
        }
    }
}
