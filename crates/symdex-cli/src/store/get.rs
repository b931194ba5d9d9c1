//! `symdex store get`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use symdex::{ImageId, Index};
use symdex_store::{Durability, IdPrefix, IndexBytes, IndexFolder, Store, replace_file};

use super::line::IndexLine;
use super::selection::id_in;
use super::target::{self, UrlArgument};
use crate::failure::{Cause, CommandError, CommandResult, Failure};
use crate::output::Output;
use crate::text;

/// Write indexes of a store to files
///
/// An index is checked before it is written, and a file is written whole or not at all. An existing file is replaced.
/// This is not a use of the index. Redis does not keep whole indexes, so it has none to write.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A store: a path or a URL; - stands for the one in SYMDEX_STORE or symdex.toml
    #[arg(value_name = "URL", value_parser = target::argument)]
    url: UrlArgument,
    /// Ids of images, or their first digits, at least four
    #[arg(required = true, value_name = "ID")]
    ids: Vec<IdPrefix>,
    /// Write to this file, or into this folder. Without it, into the current folder. - is standard output
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex store get s3://bucket/indexes 0c37c502
  symdex store get s3://bucket/indexes 0c37c502 1f2e33aa -o indexes
  symdex store get s3://bucket/indexes 0c37c502 -o - | sha256sum

JSON:
  {\"store\", \"id\", \"location\", \"outcome\": \"written\", \"size\", \"file\"} for a file that was written
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that was not
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line

Exit codes:
  0  every index was written
  4  an index is damaged
  6  an index was made by a newer symdex
  5  the folder of the store is missing
  1  the store cannot be read, or a file cannot be written
  3  the store has no such index";

/// The file to which an index was written.
#[derive(Serialize)]
struct Written {
    file: String,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let store = args.url.open_existing()?;
    let url = store.url().to_string();
    if args.output.as_deref() == Some(Path::new("-")) {
        return print(&*store, args);
    }
    Output::new(args.json).of_ids(&*store, &args.ids, |output, prefix| {
        let id = id_in(&*store, prefix)?;
        let path = path_of(&id, args)?;
        let index = checked(&*store, &id)?;
        replace_file(&path, index.as_bytes(), Durability::Synced).map_err(Failure::from)?;
        let size = index.as_bytes().len() as u64;
        let text = || format!("{id}  {}  {}", text::size(size), text::printable(path.to_string_lossy()));
        let (location, outcome) = (store.location(&id), "written");
        let more = Written { file: path.display().to_string() };
        output.index(&IndexLine { store: &url, id: id.to_string(), location, outcome, size, more }, text)
    })
}

/// Writes one index to standard output.
fn print(store: &dyn Store, args: &Args) -> CommandResult {
    let [prefix] = &args.ids[..] else {
        let message = "-o -: standard output takes one index; give one id, or a folder with -o";
        return Err(Failure::new(Cause::Usage, message).into());
    };
    let index = checked(store, &id_in(store, prefix)?)?;
    let mut out = io::stdout().lock();
    out.write_all(index.as_bytes()).and_then(|()| out.flush()).map_err(CommandError::from)?;
    Ok(None)
}

/// The file for the index of `id`. Several indexes need a folder.
fn path_of(id: &ImageId, args: &Args) -> Result<PathBuf, Failure> {
    let name = IndexFolder::file_name(id);
    let Some(path) = &args.output else { return Ok(name.into()) };
    if args.ids.len() > 1 && !path.is_dir() {
        let failed = |error| {
            let message = format!("{}: cannot create the folder: {error}", path.display());
            Failure::new(Cause::Other, message)
        };
        fs::create_dir_all(path).map_err(failed)?;
    }
    Ok(if path.is_dir() { path.join(name) } else { path.clone() })
}

/// The whole index of `id`, all of which is checked.
fn checked(store: &dyn Store, id: &ImageId) -> Result<Index<IndexBytes>, Failure> {
    match super::verify::whole(store, id)? {
        Some((index, _)) => Ok(index),
        None => Err(Failure::new(Cause::NotFound, format!("{}: the index is not there", store.location(id)))),
    }
}
