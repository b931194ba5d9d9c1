//! `symdex store verify`.

use std::ops::Range;

use serde::Serialize;
use symdex::{ImageId, Index, VerifiedCounts};
use symdex_store::{Error, FetchedValue, IndexBytes, Store, StoredImage, StoredLayout, StoredValues};

use super::selection::{Listed, Selection, for_each};
use super::target::{self, UrlArgument};
use crate::failure::{Cause, CommandError, CommandResult, Failure, complain, failure_as_json};
use crate::output::Output;
use crate::text;
use crate::verify::IndexContents;

/// Check that the indexes of stores are whole: every page, every value, and that all of it decodes
///
/// Everything is fetched from the store, not from a cache. Lost and damaged values are named by their
/// numbers. In Redis this is a use of the indexes; elsewhere it is not.
///
/// Without --id, provenances in a folder without an index are listed, too. `symdex store gc` removes them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Stores: paths or URLs; - stands for those in SYMDEX_STORE or symdex.toml
    #[arg(required = true, value_name = "URL", value_parser = target::argument)]
    urls: Vec<UrlArgument>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    jobs: super::copy::Jobs,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex store verify s3://bucket/indexes
  symdex store verify redis://127.0.0.1:6379/0 --id 0c37c502
To repair a damaged index, put it or build it again: `symdex store put`, `symdex build --store`.
To copy it from another store, remove it first: `symdex store copy` skips indexes of one digest.

JSON:
  {\"store\", \"location\", \"layout\", \"id\", \"name\", \"arch\", \"chunks\", \"ranges\", \"pages\", \"partial\",
   \"values\", \"lost_values\", \"damaged_values\", \"error\"} for an index; without error if it is whole
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that cannot be opened
  {\"store\", \"id\", \"location\", \"orphans\", \"unused_seconds\"} for a file without an index
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line
Value N has the image offsets from N * 4 * chunk span on; `symdex inspect` prints the span.

Exit codes:
  0  every index is whole; there may be orphans
  4  an index is damaged, or a value was lost
  6  an index was made by a newer symdex
  5  the folder of a store is missing
  1  a store cannot be read
  3  no index has an id that --id gives";

/// The number of values that are fetched at once.
const BATCH: usize = 256;
/// More values than any index has. Metadata that states more are damaged.
const MAX_VALUES: u64 = 1 << 20;

/// The result for an index, as a line of JSON.
#[derive(Serialize)]
struct Checked {
    store: String,
    location: String,
    layout: &'static str,
    #[serde(flatten)]
    contents: IndexContents,
    values: u64,
    lost_values: Vec<u64>,
    damaged_values: Vec<u64>,
    /// Why the index is not whole.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "failure_as_json")]
    error: Option<Failure>,
}

/// A file that belongs to no index, as a line of JSON.
#[derive(Serialize)]
struct OrphanLine<'a> {
    store: &'a str,
    id: String,
    location: &'a str,
    /// Always 1.
    orphans: u64,
    unused_seconds: Option<u64>,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let stores = target::open_all(&args.urls)?;
    let mut output = Output::new(args.json);
    for store in &stores {
        match args.selection.list(&**store) {
            Ok(listed) => {
                for_each(
                    listed,
                    &args.jobs,
                    |listed| check(&**store, listed),
                    |listed, checked| report(&**store, listed, checked, &mut output),
                )?;
                if args.selection.is_all() {
                    list_orphans(&**store, &mut output)?;
                }
            }
            Err(failure) => output.fail_in(&**store, None, &failure)?,
        }
    }
    output.finish()
}

/// Lists the files that belong to no index.
fn list_orphans(store: &dyn Store, output: &mut Output) -> Result<(), CommandError> {
    let mut orphans = Vec::new();
    store.orphans(&mut |orphan| orphans.push(orphan)).map_err(Failure::from)?;
    let url = store.url().to_string();
    for orphan in &orphans {
        let unused_seconds = orphan.unused.map(|unused| unused.as_secs());
        let (id, location) = (orphan.id.to_string(), orphan.location.as_str());
        let line = OrphanLine { store: &url, id, location, orphans: 1, unused_seconds };
        output.line(&line, || format!("orphan  {location}"))?;
    }
    output.add("orphans", orphans.len() as u64);
    Ok(())
}

/// Checks one index. `None` if it was removed after it was listed.
fn check(store: &dyn Store, listed: &Listed) -> Result<Option<Checked>, Error> {
    if listed.layout == StoredLayout::Values {
        match store.open(&listed.id)? {
            None => return Ok(None),
            Some(StoredImage::Values(values)) => {
                let contents = IndexContents::new(values.metadata(), VerifiedCounts::default());
                let mut checked = Checked::new(store, StoredLayout::Values, &listed.id, contents);
                checked.check_values(&*values)?;
                return Ok(Some(checked));
            }
            // The index was put again, in one piece.
            Some(_) => {}
        }
    }
    let Some((index, counts)) = whole(store, &listed.id)? else { return Ok(None) };
    let contents = IndexContents::new(index.metadata(), counts);
    Ok(Some(Checked::new(store, StoredLayout::Whole, &listed.id, contents)))
}

/// The index of `id`, all of which is checked, from a store that keeps whole indexes. `None` if it has none.
pub(super) fn whole(
    store: &dyn Store,
    id: &ImageId,
) -> Result<Option<(Index<IndexBytes>, VerifiedCounts)>, Error> {
    let Some(bytes) = store.get(id)? else { return Ok(None) };
    let path = || store.location(id).into();
    let wrong = |error| Error::Index { path: path(), error };
    let index = Index::open(bytes).map_err(wrong)?;
    if index.id() != id {
        return Err(Error::OtherImage { path: path(), found: index.id().clone(), wanted: id.clone() });
    }
    let counts = index.verify().map_err(wrong)?;
    Ok(Some((index, counts)))
}

impl Checked {
    fn new(store: &dyn Store, layout: StoredLayout, id: &ImageId, contents: IndexContents) -> Self {
        let (store, location) = (store.url().to_string(), store.location(id));
        let (layout, values) = (layout.name(), 0);
        let (lost_values, damaged_values, error) = (Vec::new(), Vec::new(), None);
        Self { store, location, layout, contents, values, lost_values, damaged_values, error }
    }

    /// Fetches and checks all values.
    fn check_values(&mut self, values: &dyn StoredValues) -> Result<(), Error> {
        let ranges = values.metadata().value_numbers();
        let len = |range: &Range<u64>| range.end.saturating_sub(range.start);
        self.values = ranges.iter().map(len).fold(0, u64::saturating_add);
        if self.values > MAX_VALUES {
            let what =
                format!("the metadata states {} values; an index has at most {MAX_VALUES}", self.values);
            self.error = Some(self.damage(&what));
            return Ok(());
        }
        let numbers: Vec<u64> = ranges.into_iter().flatten().collect();
        for batch in numbers.chunks(BATCH) {
            self.check_fetched(batch, &values.fetch(batch)?);
        }
        let all = text::count(self.values, "value");
        let wrong = [(&self.lost_values, "lost"), (&self.damaged_values, "damaged")].into_iter();
        let wrong = wrong
            .filter(|(numbers, _)| !numbers.is_empty())
            .map(|(numbers, word)| format!("{} of {all} {word}: {}", numbers.len(), text::list(numbers)));
        let wrong: Vec<_> = wrong.collect();
        self.error = (!wrong.is_empty()).then(|| self.damage(&wrong.join("; ")));
        Ok(())
    }

    fn damage(&self, what: &str) -> Failure {
        let message = format!("{}: {what}; put the index into the store again", self.location);
        Failure::new(Cause::Damaged, message)
    }

    fn check_fetched(&mut self, numbers: &[u64], values: &[FetchedValue]) {
        for (number, value) in numbers.iter().zip(values) {
            let verified = match value {
                FetchedValue::Index(index) => Some(index.verify()),
                FetchedValue::Lost => None,
                FetchedValue::Damaged(_) => {
                    self.damaged_values.push(*number);
                    continue;
                }
            };
            match verified {
                None => self.lost_values.push(*number),
                Some(Ok(VerifiedCounts { chunks, ranges, pages, .. })) => {
                    self.contents.chunks += chunks;
                    self.contents.ranges += ranges;
                    self.contents.pages += pages;
                }
                Some(Err(_)) => self.damaged_values.push(*number),
            }
        }
    }
}

fn report(
    store: &dyn Store,
    Listed { id, stored_size, .. }: &Listed,
    checked: Result<Option<Checked>, Error>,
    output: &mut Output,
) -> Result<(), CommandError> {
    let checked = match checked {
        Ok(Some(checked)) => checked,
        Ok(None) => return Ok(()),
        Err(error) => {
            output.count(*stored_size);
            return output.fail_in(store, Some(id), &error.into());
        }
    };
    output.count(*stored_size);
    match &checked.error {
        None => {
            output.add("whole", 1);
            output.line(&checked, || checked.text())
        }
        Some(failure) => {
            complain(&failure.message);
            output.count_failure(failure);
            output.json(&checked)
        }
    }
}

impl Checked {
    fn text(&self) -> String {
        let IndexContents { id, name, arch, .. } = &self.contents;
        let values = match self.values {
            0 => String::new(),
            values => text::count(values, "value") + ", ",
        };
        let (name, counts) = (text::printable(name.into()), self.contents.counts());
        format!("{id}  {name}  {arch}  whole: {values}{counts}")
    }
}
