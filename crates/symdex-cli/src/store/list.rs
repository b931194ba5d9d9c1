//! `symdex store ls`.

use std::ops::ControlFlow;

use serde::Serialize;
use symdex::Grade;
use symdex_store::{Store, StoreEntry};

use super::selection::Selection;
use super::target::{self, UrlArgument};
use super::times::distance;
use crate::failure::{CommandError, CommandResult};
use crate::output::Output;
use crate::text;

/// List the indexes in stores: size, age, last use, expiry, layout, grade, id and the name of the image
///
/// Indexes are listed in the order of the store. For an index in a folder, only the metadata is read; an
/// object store is asked for the metadata of each object. Totals are printed on standard error.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Stores: paths or URLs; - stands for those in SYMDEX_STORE or symdex.toml
    #[arg(required = true, value_name = "URL", value_parser = target::argument)]
    urls: Vec<UrlArgument>,
    #[command(flatten)]
    selection: Selection,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

/// How many images are named at one time.
const AT_A_TIME: usize = 64;

const EXAMPLES: &str = "\
Examples:
  symdex store ls /var/lib/symdex
  symdex store ls s3://bucket/indexes --id 0c37c502 --id 1f2e
  symdex store ls redis://127.0.0.1:6379/0 --json | jq -r 'select(.id) | [.id, .expires] | @tsv'

Columns:
  STORED   the bytes in the store, compressed or not
  INDEX    the size of the index; - if the list does not state it (`symdex store stat` does)
  WRITTEN  how long ago the index was written
  USED     how long ago it was used last. A folder records one use a day, an object store none
  EXPIRES  when the store removes it by itself. Only Redis does
  LAYOUT   whole: one file or object. values: parts, of which a reader fetches those that it needs
  GRADE    the most that the index answers: lines, names (no lines), bounds (no names) or nothing
  IMAGE    the name of the image. The grade and the name are - if the store does not state them, as of objects of
           older versions

JSON:
  {\"store\", \"id\", \"name\", \"grade\", \"location\", \"stored_size\", \"index_size\",
   \"written\", \"last_use\", \"expires\", \"layout\", \"provenance\"} for an index
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for a store that cannot be listed; the id is null
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line
Times are in UTC. What is not stated is null. `symdex store stat` states the provenance:
who has uploaded the index to `symdex serve`, or that it was fetched from a symbol server, as
{\"received\", \"token\", \"client\", \"sha256\", \"is_fetched\", \"is_index\"}. `is_index` says that the index
itself was sent, and was not built by the server.

Exit codes:
  0  every store was listed
  5  a folder is missing
  1  a store cannot be listed
  3  no index has an id that --id gives";

/// What a store states of an index, as a line of JSON.
#[derive(Serialize)]
pub(super) struct EntryLine<'a> {
    pub(super) store: &'a str,
    #[serde(flatten)]
    pub(super) entry: &'a StoreEntry,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let stores = target::open_all(&args.urls)?;
    let mut output = Output::new(args.json);
    output.text(&row(
        ["STORED", "INDEX", "WRITTEN", "USED", "EXPIRES", "LAYOUT", "GRADE"].map(str::to_owned),
        "ID  IMAGE",
    ))?;
    for store in &stores {
        list(&**store, args, stores.len() > 1, &mut output)?;
    }
    output.finish()
}

/// Lists one store. If there are several, each line has the place of the index.
fn list(store: &dyn Store, args: &Args, are_many: bool, output: &mut Output) -> Result<(), CommandError> {
    let url = store.url().to_string();
    let mut printed = Ok(());
    let (mut is_empty, mut some) = (true, Vec::new());
    let mut print = |some: &mut Vec<StoreEntry>| {
        name(store, some);
        some.drain(..).try_for_each(|entry| {
            output.count(entry.stored_size);
            output.line(&EntryLine { store: &url, entry: &entry }, || text_of(&entry, are_many))
        })
    };
    let listed = args.selection.visit(store, &mut |entry| {
        is_empty = false;
        some.push(entry);
        if some.len() == AT_A_TIME {
            printed = print(&mut some);
        }
        if printed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    printed.and_then(|()| print(&mut some))?;
    match listed.err().or_else(|| args.selection.nothing_in(store).filter(|_| is_empty)) {
        Some(failure) => output.fail_in(store, None, &failure),
        None => Ok(()),
    }
}

/// Asks `store` for the names and grades of images that its list does not state. Those that cannot be read are omitted.
fn name(store: &dyn Store, entries: &mut [StoreEntry]) {
    let unnamed: Vec<_> = entries.iter_mut().filter(|entry| entry.image_name.is_none()).collect();
    let ids: Vec<_> = unnamed.iter().map(|entry| entry.id.clone()).collect();
    for (entry, stated) in unnamed.into_iter().zip(store.stat_many(&ids)) {
        if let Some(stated) = stated.ok().flatten() {
            (entry.image_name, entry.grade) = (stated.image_name, stated.grade);
        }
    }
}

fn text_of(entry: &StoreEntry, are_many: bool) -> String {
    let ago = |time| match distance(time) {
        none if none == "-" => none,
        age => format!("{age} ago"),
    };
    let columns = [
        text::size(entry.stored_size),
        entry.index_size.map_or_else(|| "-".to_owned(), text::size),
        ago(entry.written),
        ago(entry.last_use),
        distance(entry.expires),
        entry.layout.name().to_owned(),
        entry.grade.map_or("-", Grade::name).to_owned(),
    ];
    let image = text::printable(entry.image_name.as_deref().unwrap_or("-").into());
    let rest = format!("{}  {image}", entry.id);
    if are_many {
        row(columns, &format!("{rest}  {}", text::printable(entry.location.as_str().into())))
    } else {
        row(columns, &rest)
    }
}

/// A row of the list. The widths are fixed, so that each row can be printed at once.
fn row([stored, index, written, used, expires, layout, grade]: [String; 7], rest: &str) -> String {
    format!(
        "{stored:>10}  {index:>10}  {written:>10}  {used:>10}  {expires:>8}  {layout:6}  {grade:7}  {rest}"
    )
}
