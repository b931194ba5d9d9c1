//! The indexes of a store that a command line selects.

use std::ops::ControlFlow;

use symdex::ImageId;
use symdex_pipeline::{in_order, pool};
use symdex_store::{IdPrefix, Store, StoreEntry, StoredLayout};

use super::copy::Jobs;
use crate::failure::{Cause, CommandError, Failure};
use crate::progress::Progress;
use crate::stores;

/// The option that selects indexes.
#[derive(clap::Args)]
pub(super) struct Selection {
    /// Only the indexes whose ids begin with these digits, at least four. May be repeated
    #[arg(long = "id", value_name = "ID")]
    prefixes: Vec<IdPrefix>,
}

/// An index that was listed.
pub(super) struct Listed {
    pub(super) id: ImageId,
    pub(super) layout: StoredLayout,
    pub(super) stored_size: u64,
}

impl Selection {
    /// Calls `visit` with the selected indexes of `store`, in no particular order, until it returns
    /// [`ControlFlow::Break`].
    pub(super) fn visit(
        &self,
        store: &dyn Store,
        visit: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        if let Some(entries) = self.entries_of_ids(store)? {
            _ = entries.into_iter().try_for_each(visit);
            return Ok(());
        }
        store
            .list(&mut |entry| if self.has(&entry.id) { visit(entry) } else { ControlFlow::Continue(()) })?;
        Ok(())
    }

    /// The selected indexes of `store`, sorted by id. If a selection matches none, that is a failure.
    pub(super) fn list(&self, store: &dyn Store) -> Result<Vec<Listed>, Failure> {
        let mut all = Vec::new();
        self.visit(store, &mut |StoreEntry { id, layout, stored_size, .. }| {
            all.push(Listed { id, layout, stored_size });
            ControlFlow::Continue(())
        })?;
        if all.is_empty()
            && let Some(failure) = self.nothing_in(store)
        {
            return Err(failure);
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        // An object store may have an index twice, compressed and not. Redis may list an index twice.
        all.dedup_by(|a, b| a.id == b.id);
        Ok(all)
    }

    /// The failure for a selection that matches no index of `store`; `None` if all indexes are selected.
    pub(super) fn nothing_in(&self, store: &dyn Store) -> Option<Failure> {
        let prefixes = crate::text::list(&self.prefixes);
        let message = format!("{}: no index has an id that begins with {prefixes}", store.url());
        (!self.prefixes.is_empty()).then(|| Failure::new(Cause::NotFound, message))
    }

    /// Whether all indexes are selected.
    pub(super) fn is_all(&self) -> bool {
        self.prefixes.is_empty()
    }

    fn has(&self, id: &ImageId) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| prefix.matches(id))
    }

    /// The indexes of exactly these ids, if `store` has all of them. The list of a large store takes long.
    fn entries_of_ids(&self, store: &dyn Store) -> Result<Option<Vec<StoreEntry>>, Failure> {
        let ids: Option<Vec<_>> = self.prefixes.iter().map(stores::whole_id).collect();
        let Some(mut ids) = ids.filter(|ids| !ids.is_empty()) else { return Ok(None) };
        ids.sort();
        ids.dedup();
        let entries = ids.iter().map(|id| store.stat(id)).collect::<Result<Option<Vec<_>>, _>>();
        Ok(entries?)
    }
}

/// Calls `work` with each of `listed`, on several threads, and `report` with what it returns, in order. Shows the
/// progress.
pub(super) fn for_each<R: Send, E: From<CommandError>>(
    listed: Vec<Listed>,
    jobs: &Jobs,
    work: impl Fn(&Listed) -> R + Sync,
    mut report: impl FnMut(&Listed, R) -> Result<(), E>,
) -> Result<(), E> {
    let pool = pool(jobs.jobs.into()).map_err(CommandError::from)?;
    let progress = Progress::new(listed.iter().map(|listed| listed.stored_size).sum());
    in_order(
        &pool,
        pool.current_num_threads(),
        listed,
        |listed| {
            let _share = progress.of_image(listed.stored_size);
            let done = work(&listed);
            (listed, done)
        },
        |(listed, done)| progress.suspend(|| report(&listed, done)),
    )
}

/// The id of the one index of `store` that `prefix` means.
pub(super) fn id_in(store: &dyn Store, prefix: &IdPrefix) -> Result<ImageId, Failure> {
    if let Some(id) = prefix.to_id()
        && store.stat(&id)?.is_some()
    {
        return Ok(id);
    }
    let mut failure = None;
    let id = stores::id_of([store], prefix, std::slice::from_mut(&mut failure))?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    id.ok_or_else(|| {
        let message = format!("{}: no index has an id that begins with {prefix}", store.url());
        Failure::new(Cause::NotFound, message)
    })
}
