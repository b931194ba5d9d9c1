//! The lines of JSON of the commands of `symdex store`.

use serde::Serialize;
use symdex::ImageId;
use symdex_store::{IdPrefix, PublishOutcome, Store};

use crate::build::sentence;
use crate::failure::{CommandError, CommandResult, Failure};
use crate::output::Output;

/// An index of a store, and what was done with it.
#[derive(Serialize)]
pub(super) struct IndexLine<'a, M> {
    pub(super) store: &'a str,
    pub(super) id: String,
    pub(super) location: String,
    pub(super) outcome: &'static str,
    /// The bytes in the store, or those of the file that was put or written.
    pub(super) size: u64,
    #[serde(flatten)]
    pub(super) more: M,
}

/// An index that was put into the store.
#[derive(Serialize)]
struct Put {
    /// The file, or where the index is in the store that it was copied from.
    from: String,
    conflict: bool,
}

/// What has failed: the index of `id`, or the store itself.
#[derive(Serialize)]
struct Failed<'a> {
    store: &'a str,
    id: Option<String>,
}

impl Output {
    /// Counts and prints what was done with an index.
    pub(super) fn index<M: Serialize>(
        &mut self,
        line: &IndexLine<'_, M>,
        text: impl FnOnce() -> String,
    ) -> Result<(), CommandError> {
        self.count(line.size);
        self.add(line.outcome, 1);
        self.line(line, text)
    }

    /// Counts and prints the outcome of putting the index of `id` into `store`. If it is unchanged and `is_copy` is
    /// true, people see no line.
    pub(super) fn put(
        &mut self,
        store: &dyn Store,
        (id, size, from): (&ImageId, u64, String),
        outcome: &PublishOutcome,
        is_copy: bool,
    ) -> Result<(), CommandError> {
        let (word, sentence) = (outcome.name(), sentence(Some(outcome)));
        let (url, location) = (store.url().to_string(), store.location(id));
        let more = Put { from, conflict: outcome.is_conflict() };
        let line = IndexLine { store: &url, id: id.to_string(), location, outcome: word, size, more };
        self.count(size);
        self.add(word, 1);
        match outcome {
            PublishOutcome::Unchanged if is_copy => self.json(&line),
            _ => self.line(&line, || format!("{id}  {sentence}")),
        }
    }

    /// Reports a failure of the index of `id` in `store`; of the store itself, for `None`.
    pub(super) fn fail_in(
        &mut self,
        store: &dyn Store,
        id: Option<&ImageId>,
        failure: &Failure,
    ) -> Result<(), CommandError> {
        let store = store.url().to_string();
        self.fail(&Failed { store: &store, id: id.map(ToString::to_string) }, failure)
    }

    /// Calls `each` with each of `ids`, and reports its failures. At the end, prints the totals as JSON.
    pub(super) fn of_ids(
        mut self,
        store: &dyn Store,
        ids: &[IdPrefix],
        mut each: impl FnMut(&mut Self, &IdPrefix) -> Result<(), CommandError>,
    ) -> CommandResult {
        for prefix in ids {
            match each(&mut self, prefix) {
                Err(CommandError::Failure(failure)) => {
                    self.fail_in(store, prefix.to_id().as_ref(), &failure)?;
                }
                done => done?,
            }
        }
        self.finish_quietly()
    }
}
