//! `symdex store rm`.

use serde::Serialize;
use symdex::ImageId;
use symdex_store::{IdPrefix, Store};

use super::output::Output;
use super::target::{self, UrlArgument};
use crate::failure::{CommandResult, Failure, FailureKind};
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
  {\"store\", \"id\", \"location\", \"stored_size\", \"outcome\": \"removed\"} for an index that was removed
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that was not
  {\"totals\": {\"indexes\", \"stored_size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line

Exit codes:
  0  every index was removed
  5  the folder of the store is missing
  1  the store cannot be changed
  3  the store has no index of exactly this id";

/// An index that was removed, as a line of JSON.
#[derive(Serialize)]
pub(super) struct RemovedLine<'a> {
    pub(super) store: &'a str,
    pub(super) id: String,
    pub(super) location: &'a str,
    pub(super) stored_size: u64,
    pub(super) outcome: &'static str,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let store = args.url.open_existing()?;
    let url = store.url().to_string();
    let mut output = Output::new(args.json);
    for prefix in &args.ids {
        match remove(&*store, prefix) {
            Ok((id, location, stored_size)) => {
                output.count_outcome("removed", stored_size);
                let line = RemovedLine {
                    store: &url,
                    id: id.to_string(),
                    location: &location,
                    stored_size,
                    outcome: "removed",
                };
                output.line(&line, || {
                    let size = text::size(stored_size);
                    format!("removed  {id}  {size}  {}", text::printable(location.as_str().into()))
                })?;
            }
            Err(failure) => output.fail(&url, prefix.to_id().as_ref(), &failure)?,
        }
    }
    output.finish_quietly()
}

/// Removes the index of exactly this id. Returns the id, where the index was, and its size in the store.
fn remove(store: &dyn Store, prefix: &IdPrefix) -> Result<(ImageId, String, u64), Failure> {
    let missing = || {
        let message = format!(
            "{}: no index of {prefix}; give whole ids, as `symdex store ls` prints them",
            store.url()
        );
        Failure::new(FailureKind::NotFound, message)
    };
    let id = prefix.to_id().ok_or_else(missing)?;
    let entry = store.stat(&id)?.ok_or_else(missing)?;
    match store.remove(&id)? {
        true => Ok((id, entry.location, entry.stored_size)),
        false => Err(missing()),
    }
}
