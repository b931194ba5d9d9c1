//! `symdex store stat`.

use symdex::Grade;
use symdex_store::{IdPrefix, Provenance, Store, StoreEntry, rfc3339};

use super::list::EntryLine;
use super::selection::id_in;
use super::target::{self, UrlArgument};
use super::times::distance;
use crate::failure::{Cause, CommandError, CommandResult, Failure};
use crate::output::Output;
use crate::text;

/// Show what a store states about single indexes: name of the image, grade, location, sizes, times, layout, provenance
///
/// Only the metadata of an index is read, and this is not a use of it. `symdex inspect --store URL --id ID` shows the
/// contents of an index.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A store: a path or a URL; - stands for the one in SYMDEX_STORE or symdex.toml
    #[arg(value_name = "URL", value_parser = target::argument)]
    url: UrlArgument,
    /// Ids of images, or their first digits, at least four
    #[arg(required = true, value_name = "ID")]
    ids: Vec<IdPrefix>,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex store stat s3://bucket/indexes 0c37c502-aba0-3641-a08f-84c794684f36
  symdex store stat redis://127.0.0.1:6379/0 0c37 --json

JSON: as `symdex store ls --json`.

Exit codes:
  0  the store has every index
  5  the folder is missing
  1  the store cannot be read
  3  the store has no such index";

pub(super) fn run(args: &Args) -> CommandResult {
    let store = args.url.open_existing()?;
    Output::new(args.json)
        .of_ids(&*store, &args.ids, |output, prefix| show(&*store, &stat(&*store, prefix)?, output))
}

fn stat(store: &dyn Store, prefix: &IdPrefix) -> Result<StoreEntry, Failure> {
    let id = id_in(store, prefix)?;
    store.stat(&id)?.ok_or_else(|| {
        // It was removed after it was listed.
        Failure::new(Cause::NotFound, format!("{}: the index is not there", store.location(&id)))
    })
}

fn show(store: &dyn Store, entry: &StoreEntry, output: &mut Output) -> Result<(), CommandError> {
    output.count(entry.stored_size);
    output.line(&EntryLine { store: &store.url().to_string(), entry }, || {
        let size = |size: Option<u64>| size.map_or_else(|| "not stated".to_owned(), text::size);
        let ago = |time, none: &str| match time {
            Some(time) => format!("{} ({} ago)", rfc3339(time), distance(Some(time))),
            None => none.to_owned(),
        };
        let expires = match entry.expires {
            Some(time) => format!("{} (in {})", rfc3339(time), distance(Some(time))),
            None => "the store sets no time".to_owned(),
        };
        let provenance = match &entry.provenance {
            Some(provenance) => origin(provenance),
            None => "not stated".to_owned(),
        };
        format!(
            "{}\n    image     {}\n    grade     {}\n    location  {}\n    stored    {}\n    index     {}\n    layout    {}\n    \
             written   {}\n    last use  {}\n    expires   {expires}\n    upload    {provenance}",
            entry.id,
            text::printable(entry.image_name.as_deref().unwrap_or("not stated").into()),
            entry.grade.map_or("not stated", Grade::name),
            text::printable(entry.location.as_str().into()),
            size(Some(entry.stored_size)),
            size(entry.index_size),
            entry.layout.name(),
            ago(entry.written, "not stated"),
            ago(entry.last_use, "not recorded"),
        )
    })
}

/// Who has uploaded an index, in words.
fn origin(provenance: &Provenance) -> String {
    let Provenance { received, token, client, sha256, is_fetched, is_index, .. } = provenance;
    let token = token.as_ref().map(|token| format!(" with the token {}", text::printable(token.into())));
    let client = client.map(|client| format!(" from {client}"));
    let sha256 = sha256.as_ref().map(|digits| format!(", SHA-256 {}", text::printable(digits.into())));
    let fetched = is_fetched.then(|| ", fetched from a symbol server".to_owned());
    let sent = is_index.then(|| ", sent as an index".to_owned());
    let parts = [token, client, sha256, fetched, sent].map(Option::unwrap_or_default).concat();
    format!("{}{parts}", rfc3339(*received))
}
