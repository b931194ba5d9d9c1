//! `symdex store`: lists, checks, copies and removes the indexes of stores.

mod copy;
mod gc;
mod get;
mod line;
mod list;
mod put;
mod remove;
mod selection;
mod stat;
mod target;
mod times;
mod verify;

use clap::Subcommand;
use symdex_store::StoreUrl;

use crate::failure;

/// List, check, copy and remove the indexes in stores
///
/// A store is a folder, an object store or Redis. `symdex build` and the commands that answer addresses use stores by
/// their option --store. These commands manage a store.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The URLs of all kinds of stores, and examples.
fn after_help() -> String {
    let configured = ("-", "the stores in SYMDEX_STORE, or else in symdex.toml");
    let urls = StoreUrl::kinds().chain([configured]);
    let urls: String = urls.map(|(expected, store)| format!("  {expected:37}  {store}\n")).collect();
    format!("A URL is one of these:\n{urls}{EXAMPLES}")
}

const EXAMPLES: &str = "\
Credentials are read from the environment. A URL with a password or a query is refused on the
command line. Put it into SYMDEX_STORE, and write - instead.

Examples:
  symdex store ls s3://bucket/indexes --id 0c37c502
  symdex store verify /var/lib/symdex
  symdex store copy /var/lib/symdex s3://bucket/indexes
  symdex store gc /var/lib/symdex --older-than 45d --dry-run";

#[derive(Subcommand)]
enum Command {
    Ls(list::Args),
    Stat(stat::Args),
    Get(get::Args),
    Put(put::Args),
    Rm(remove::Args),
    Gc(gc::Args),
    Verify(verify::Args),
    Copy(copy::Args),
}

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    match &args.command {
        Command::Ls(args) => list::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Get(args) => get::run(args),
        Command::Put(args) => put::run(args),
        Command::Rm(args) => remove::run(args),
        Command::Gc(args) => gc::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Copy(args) => copy::run(args),
    }
}
