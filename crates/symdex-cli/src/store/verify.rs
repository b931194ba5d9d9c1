//! `symdex store verify`.

use std::ops::Range;

use serde::Serialize;
use symdex::{ImageId, Index, Metadata, VerifiedCounts};
use symdex_pipeline::{in_order, pool};
use symdex_store::{Error, FetchedValue, IndexBytes, Store, StoredImage, StoredLayout, StoredValues};

use super::output::Output;
use super::selection::{Listed, Selection};
use super::target::{self, UrlArgument};
use crate::failure::{CommandError, CommandResult, Failure, FailureKind, FailureView, complain};
use crate::progress::Progress;
use crate::text;

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
  {\"store\", \"id\", \"location\", \"layout\", \"image\", \"arch\", \"chunks\", \"ranges\", \"pages\", \"values\",
   \"lost_values\", \"damaged_values\", \"error\"} for an index; without error if it is whole
  {\"store\", \"id\", \"error\": {\"kind\", \"message\"}} for an index that cannot be opened
  {\"store\", \"id\", \"location\", \"orphans\", \"unused_seconds\"} for a file without an index
  {\"totals\": {\"indexes\", \"stored_size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line
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

/// The result for an index.
struct Checked {
    layout: StoredLayout,
    image: String,
    arch: String,
    counts: VerifiedCounts,
    values: u64,
    lost: Vec<u64>,
    damaged: Vec<u64>,
    failure: Option<Failure>,
}

/// An index that was checked, as a line of JSON.
#[derive(Serialize)]
struct CheckedLine<'a> {
    store: &'a str,
    id: String,
    location: &'a str,
    layout: &'static str,
    image: &'a str,
    arch: &'a str,
    chunks: u64,
    ranges: u64,
    pages: u64,
    values: u64,
    lost_values: &'a [u64],
    damaged_values: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<crate::failure::FailureView<'a>>,
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
                verify(&**store, listed, args, &mut output)?;
                if args.selection.is_all() {
                    list_orphans(&**store, &mut output)?;
                }
            }
            Err(failure) => output.fail(&store.url().to_string(), None, &failure)?,
        }
    }
    output.finish()
}

fn verify(
    store: &dyn Store,
    listed: Vec<Listed>,
    args: &Args,
    output: &mut Output,
) -> Result<(), CommandError> {
    let pool = pool(args.jobs.jobs.into())?;
    let progress = Progress::new(listed.iter().map(|listed| listed.stored_size).sum());
    in_order(
        &pool,
        pool.current_num_threads(),
        listed,
        |listed| {
            let _share = progress.of_image(listed.stored_size);
            let checked = check(store, &listed);
            (listed, checked)
        },
        |(listed, checked)| progress.suspend(|| report(store, &listed, checked, output)),
    )
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
    if !orphans.is_empty() {
        output.add("orphans", orphans.len() as u64);
    }
    Ok(())
}

/// Checks one index. `None` if it was removed after it was listed.
fn check(store: &dyn Store, listed: &Listed) -> Result<Option<Checked>, Error> {
    if listed.layout == StoredLayout::Values {
        match store.open(&listed.id)? {
            None => return Ok(None),
            Some(StoredImage::Values(values)) => {
                let mut checked = Checked::new(values.metadata(), StoredLayout::Values);
                checked.check_values(&*values, &store.location(&listed.id))?;
                return Ok(Some(checked));
            }
            // The index was put again, in one piece.
            Some(_) => {}
        }
    }
    let Some((index, counts)) = whole(store, &listed.id)? else { return Ok(None) };
    Ok(Some(Checked { counts, ..Checked::new(index.metadata(), StoredLayout::Whole) }))
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
    fn new(metadata: &Metadata, layout: StoredLayout) -> Self {
        Self {
            layout,
            image: metadata.image_name.clone(),
            arch: metadata.arch.name.clone(),
            counts: VerifiedCounts::default(),
            values: 0,
            lost: Vec::new(),
            damaged: Vec::new(),
            failure: None,
        }
    }

    /// Fetches and checks all values.
    fn check_values(&mut self, values: &dyn StoredValues, location: &str) -> Result<(), Error> {
        let ranges = values.metadata().value_numbers();
        let len = |range: &Range<u64>| range.end.saturating_sub(range.start);
        self.values = ranges.iter().map(len).fold(0, u64::saturating_add);
        if self.values > MAX_VALUES {
            let what =
                format!("the metadata states {} values; an index has at most {MAX_VALUES}", self.values);
            self.failure = Some(damage(location, &what));
            return Ok(());
        }
        let numbers: Vec<u64> = ranges.into_iter().flatten().collect();
        for batch in numbers.chunks(BATCH) {
            self.check_fetched(batch, &values.fetch(batch)?);
        }
        let all = text::count(self.values, "value");
        let wrong = [(&self.lost, "lost"), (&self.damaged, "damaged")].into_iter();
        let wrong = wrong
            .filter(|(numbers, _)| !numbers.is_empty())
            .map(|(numbers, word)| format!("{} of {all} {word}: {}", numbers.len(), text::list(numbers)));
        let wrong: Vec<_> = wrong.collect();
        self.failure = (!wrong.is_empty()).then(|| damage(location, &wrong.join("; ")));
        Ok(())
    }

    fn check_fetched(&mut self, numbers: &[u64], values: &[FetchedValue]) {
        for (number, value) in numbers.iter().zip(values) {
            let verified = match value {
                FetchedValue::Index(index) => Some(index.verify()),
                FetchedValue::Lost => None,
                FetchedValue::Damaged(_) => {
                    self.damaged.push(*number);
                    continue;
                }
            };
            match verified {
                None => self.lost.push(*number),
                Some(Ok(VerifiedCounts { chunks, ranges, pages, .. })) => {
                    self.counts.chunks += chunks;
                    self.counts.ranges += ranges;
                    self.counts.pages += pages;
                }
                Some(Err(_)) => self.damaged.push(*number),
            }
        }
    }
}

fn damage(location: &str, what: &str) -> Failure {
    Failure::new(FailureKind::Damaged, format!("{location}: {what}; put the index into the store again"))
}

fn report(
    store: &dyn Store,
    Listed { id, stored_size, .. }: &Listed,
    checked: Result<Option<Checked>, Error>,
    output: &mut Output,
) -> Result<(), CommandError> {
    let url = store.url().to_string();
    let checked = match checked {
        Ok(Some(checked)) => checked,
        Ok(None) => return Ok(()),
        Err(error) => {
            output.count(*stored_size);
            return output.fail(&url, Some(id), &Failure::from(error));
        }
    };
    let Checked { layout, image, arch, counts, values, lost, damaged, failure } = &checked;
    match failure {
        None => output.count_outcome("whole", *stored_size),
        Some(_) => output.count(*stored_size),
    }
    let location = store.location(id);
    let line = CheckedLine {
        store: &url,
        id: id.to_string(),
        location: &location,
        layout: layout.name(),
        image,
        arch,
        chunks: counts.chunks,
        ranges: counts.ranges,
        pages: counts.pages,
        values: *values,
        lost_values: lost,
        damaged_values: damaged,
        error: failure.as_ref().map(FailureView::from),
    };
    match failure {
        None => output.line(&line, || checked.text(id)),
        Some(failure) => {
            output.json(&line)?;
            complain(&failure.message);
            output.count_failure(failure.kind);
            Ok(())
        }
    }
}

impl Checked {
    fn text(&self, id: &ImageId) -> String {
        let Self { image, arch, counts: VerifiedCounts { chunks, ranges, pages, .. }, values, .. } = self;
        let mut parts =
            vec![text::count(*chunks, "chunk"), text::count(*ranges, "range"), text::count(*pages, "page")];
        if self.layout == StoredLayout::Values {
            parts.insert(0, text::count(*values, "value"));
        }
        format!("{id}  {}  {arch}  whole: {}", text::printable(image.as_str().into()), parts.join(", "))
    }
}
