//! `symdex store gc`.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use symdex_store::{GcCounts, Orphan, RecordedUses, Store, StoreEntry};

use super::line::IndexLine;
use super::target::{self, UrlArgument};
use super::times::distance;
use crate::failure::{Cause, CommandError, CommandResult, Failure, complain};
use crate::number;
use crate::output::Output;
use crate::text;

/// Remove the indexes that were not used for some time
///
/// The last use counts; in an object store, which records no uses, the time of writing. In a folder, a use is recorded
/// once a day by every command and server that reads the index and can write its file, whether it reads the folder as a
/// store, with --index, or by its path. Uses of readers that cannot write are not recorded. Redis records a use once an
/// hour. An index that is used while gc runs stays.
///
/// What belongs to no index is removed at the same age: in Redis, values whose metadata the server has evicted, and
/// metadata whose values are all lost; in a folder, provenances without an index. Temporary files that killed processes
/// have left in a folder are removed after a day. Values that killed processes have left in Redis expire by themselves.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A store: a path or a URL; - stands for the one in SYMDEX_STORE or symdex.toml
    #[arg(value_name = "URL", value_parser = target::argument)]
    url: UrlArgument,
    /// Remove indexes that were not used for this time: 45d, 6months. m is minutes. For less than a day, gc asks first
    #[arg(long, value_name = "AGE", value_parser = number::parse_time)]
    older_than: Duration,
    /// Also remove indexes that were used during the last day, or all of them with --older-than 0s, and do not ask
    #[arg(long)]
    force: bool,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, one object per line for each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex store gc /var/lib/symdex --older-than 45d --dry-run
  symdex store gc /var/lib/symdex --older-than 45d
  symdex store gc /var/lib/symdex --older-than 0s --force

JSON:
  {\"store\", \"id\", \"location\", \"outcome\", \"size\"} for an index
  {\"totals\": {\"indexes\", \"size\", \"outcomes\", \"failures\", \"seconds\"}} as the last line
The outcome is removed, or with --dry-run would_remove. The totals also have kept and
leftover_files, and orphans: the files that belonged to no index.

Exit codes:
  0  everything that was old is removed
  2  the time is short, and neither --force nor a person at a terminal has confirmed it
  5  the folder of the store is missing
  1  the store cannot be listed, or an index cannot be removed";

/// Uses are recorded at most once in this time.
const USE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// An index may become old after the store was listed and before it is processed.
const MARGIN: Duration = Duration::from_secs(10 * 60);

pub(super) fn run(args: &Args) -> CommandResult {
    let store = args.url.open_existing()?;
    let mut output = Output::new(args.json);
    if !args.dry_run && !args.force {
        confirm(args.older_than)?;
    }
    if args.dry_run {
        let (old, kept) = older_than(&*store, args.older_than)?;
        if !old.is_empty() {
            say_unseen_uses(&*store);
        }
        old.iter().try_for_each(|entry| report(&*store, entry, "would_remove", &mut output))?;
        output.add("kept", kept);
        let mut orphans = 0;
        let mut count = |orphan: Orphan| {
            if orphan.unused.is_some_and(|unused| unused >= args.older_than) {
                orphans += 1;
            }
        };
        store.orphans(&mut count).map_err(Failure::from)?;
        output.add("orphans", orphans);
        return output.finish();
    }
    // The store only counts what it removes.
    let (candidates, _) = older_than(&*store, args.older_than.saturating_sub(MARGIN))?;
    let GcCounts { kept, leftovers, orphans, failed, .. } =
        store.gc(args.older_than).map_err(Failure::from)?;
    let mut is_any_removed = false;
    for entry in &candidates {
        if store.stat(&entry.id).map_err(Failure::from)?.is_none() {
            is_any_removed = true;
            report(&*store, entry, "removed", &mut output)?;
        }
    }
    if is_any_removed {
        say_unseen_uses(&*store);
    }
    output.add("kept", kept);
    output.add("leftover_files", leftovers);
    output.add("orphans", orphans);
    if failed > 0 {
        let message = format!("{}: {} could not be removed", store.url(), text::count(failed, "index"));
        complain(&message);
        let failure = Failure::new(Cause::Other, message);
        (0..failed).for_each(|_| output.count_failure(&failure));
    }
    output.finish()
}

/// Asks whether a short time is intended.
///
/// # Errors
///
/// A failure if it is not, or if there is no terminal to ask.
fn confirm(age: Duration) -> Result<(), Failure> {
    let refused = |message: String| Err(Failure::new(Cause::Usage, message));
    if age.is_zero() {
        return refused("--older-than 0s removes every index; give --force if that is meant".to_owned());
    }
    if age >= USE_INTERVAL {
        return Ok(());
    }
    let short = format!(
        "--older-than is {}: uses are recorded once a day, so that indexes in daily use may be removed (m is \
         minutes; months are written as in 6months)",
        in_words(age)
    );
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refused(format!("{short}; give --force if that is meant"));
    }
    complain(&format!("{short}. Remove them? [y/N]"));
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => refused("nothing is removed".to_owned()),
    }
}

/// A duration in the largest unit of which it is a whole number: `90 minutes`.
fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(60 * 60, "hour"), (60, "minute"), (1, "second")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    unit.map_or_else(|| "less than a second".to_owned(), |(unit, noun)| text::count(seconds / unit, noun))
}

/// Says which uses of an index the store does not record.
fn say_unseen_uses(store: &dyn Store) {
    let unseen = match store.recorded_uses() {
        RecordedUses::Hourly => "a use is recorded once an hour",
        RecordedUses::None => "the store records no uses; the age of an index counts",
        RecordedUses::Daily => "uses by readers that may not write the files of the indexes are not recorded",
    };
    complain(&format!("{}: {unseen}", store.url()));
}

/// The indexes that were not used for `age`, sorted by id, and the number of the others.
fn older_than(store: &dyn Store, age: Duration) -> Result<(Vec<StoreEntry>, u64), Failure> {
    let (mut old, mut kept) = (Vec::new(), 0);
    let is_old = |time: SystemTime| time.elapsed().is_ok_and(|elapsed| elapsed > age);
    store.list(&mut |entry| {
        if entry.last_use.or(entry.written).is_some_and(is_old) {
            old.push(entry);
        } else {
            kept += 1;
        }
        ControlFlow::Continue(())
    })?;
    old.sort_by(|a, b| (&a.id, &a.location).cmp(&(&b.id, &b.location)));
    old.dedup_by(|a, b| a.location == b.location);
    Ok((old, kept))
}

fn report(
    store: &dyn Store,
    entry: &StoreEntry,
    outcome: &'static str,
    output: &mut Output,
) -> Result<(), CommandError> {
    let StoreEntry { id, location, stored_size: size, .. } = entry;
    let (url, location) = (store.url().to_string(), location.clone());
    let line = IndexLine { store: &url, id: id.to_string(), location, outcome, size: *size, more: () };
    output.index(&line, || {
        let words = outcome.replace('_', " ");
        let age = distance(entry.last_use.or(entry.written));
        format!("{words}  {id}  {}  last used {age} ago", text::size(*size))
    })
}
