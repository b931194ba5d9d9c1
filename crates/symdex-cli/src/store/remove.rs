//! `symdex store rm`.

use symdex_store::{IdPrefix, StoreEntry};

use super::line::IndexLine;
use super::target::{self, UrlArgument};
use crate::failure::{Cause, CommandResult, Failure};
use crate::output::Output;
use crate::stores::id_of;
use crate::text;

/// Remove indexes from a store, by whole ids
///
/// The first digits of an id are not enough. A reader that has opened an index can still use it. The local cache of an
/// object store keeps an index for up to ten minutes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A store: a path or a URL; - stands for the one in SYMDEX_STORE or symdex.toml
    #[arg(value_name = "URL", value_parser = target::argument)]
    url: UrlArgument,
    /// Whole ids of images, with or without dashes
    #[arg(required = true, value_name = "ID")]
    ids: Vec<IdPrefix>,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex store rm /var/lib/symdex 0c37c502-aba0-3641-a08f-84c794684f36

JSON:
  {\"store\", \"id\", \"location\", \"outcome\": \"removed\", \"size\"} for an index that was removed
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that was not
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line

Exit codes:
  0  every index was removed
  5  the folder of the store is missing
  1  the store cannot be changed
  2  an id is not complete
  3  the store has no index of this id";

pub(super) fn run(args: &Args) -> CommandResult {
    let store = args.url.open_existing()?;
    let url = store.url().to_string();
    Output::new(args.json).of_ids(&*store, &args.ids, |output, prefix| {
        let missing = || {
            let message = format!("{url}: no index of {prefix}; `symdex store ls` prints the ids");
            Failure::new(Cause::NotFound, message)
        };
        let whole = prefix.to_id().map(|id| store.stat(&id)).transpose().map_err(Failure::from)?.flatten();
        let Some(entry) = whole else {
            // Only a whole id says for certain which index is meant.
            let meant = id_of([&*store], prefix, &mut [None])?.ok_or_else(missing)?;
            let message =
                format!("{url}: {prefix} is not a whole id; to remove {meant}, give all of its digits");
            return Err(Failure::new(Cause::Usage, message).into());
        };
        let id = entry.id.clone();
        if !store.remove(&id).map_err(Failure::from)? {
            return Err(missing().into());
        }
        let StoreEntry { location, stored_size: size, .. } = entry;
        let place = text::printable(location.as_str().into()).into_owned();
        let text = format!("removed  {id}  {}  {place}", text::size(size));
        let line =
            IndexLine { store: &url, id: id.to_string(), location, outcome: "removed", size, more: () };
        output.index(&line, || text)
    })
}
