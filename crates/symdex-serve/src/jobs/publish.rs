//! Puts new indexes into the stores.

use std::sync::Arc;
use std::time::Duration;

use symdex::{Cause, Index};
use symdex_answer::Symbolicator;
use symdex_pipeline::{BuiltIndex, Failure, PublishedIndex};
use symdex_store::{Error, OnConflict, Provenance, PublishOutcome, PutOptions, StoreUrl};

use super::builder::{BuildClient, Builder};
use crate::audit::AUDIT;

/// The first pause between two attempts. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where new indexes go.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(crate) symbolicator: Arc<Symbolicator>,
    /// Which of two different indexes to keep, unless the client may replace.
    pub(crate) on_conflict: OnConflict,
}

/// The reason why an index is not published.
pub(super) enum Unpublished {
    /// It can never be published.
    Failed(Failure),
    /// No store accepts it now.
    NoStore(Failure),
}

impl Builder {
    /// How indexes are put. With `replaces`, they replace different ones.
    pub(crate) fn put_options(&self, replaces: bool, provenance: Option<Provenance>) -> PutOptions {
        let on_conflict = if replaces { OnConflict::Replace } else { self.publishing.on_conflict };
        PutOptions::new().on_conflict(on_conflict).provenance(provenance)
    }

    /// Puts a new index into the first store that accepts it, as long as `client` wants it.
    pub(super) fn publish(
        &self,
        built: &BuiltIndex,
        put: &PutOptions,
        client: &dyn BuildClient,
    ) -> Result<PublishedIndex, Unpublished> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.try_publish(built, put) {
                Err(Unpublished::NoStore(failure)) => {
                    if !client.retries(&failure.message, pause) {
                        return Err(Unpublished::NoStore(failure));
                    }
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                published => return published,
            }
        }
    }

    /// Puts a new index into the first store that accepts it, unless an existing different one is kept.
    fn try_publish(&self, built: &BuiltIndex, put: &PutOptions) -> Result<PublishedIndex, Unpublished> {
        let failed = |what: &str| Failure::of_file(built.file.as_ref(), Cause::Other, what);
        let unpublished = |error: Error| {
            let failure = failed(&format!("its index is not published: {error}"));
            // The store has an index of a newer version, for example.
            let is_final = matches!(error.cause(), Cause::Unsupported | Cause::Lost | Cause::Damaged);
            if is_final { Unpublished::Failed(failure) } else { Unpublished::NoStore(failure) }
        };
        let index =
            Index::open(built.as_ref()).map_err(|error| Unpublished::Failed(failed(&error.to_string())))?;
        let metadata = index.metadata();
        let mut put = put.clone();
        put.provenance.iter_mut().for_each(|provenance| provenance.is_index = built.is_input);
        let published = self.publishing.symbolicator.publish(&index, &put).map_err(unpublished)?;
        let Some((store, outcome)) = published else {
            let what = "its index is not published: every store of this server is read-only";
            return Err(Unpublished::NoStore(failed(what)));
        };
        log(built, store.url(), &outcome, put.provenance.as_ref());
        let location = store.store().location(&metadata.id);
        let mut image = PublishedIndex::new(built, metadata, &[outcome], Some(location));
        if !built.has_dwarf {
            image.warnings.push("no debug information: only the symbol table is indexed".to_owned());
        }
        let partial = metadata.partial.iter();
        image.warnings.extend(partial.map(|one| format!("partial: {} x {}", one.count, one.reason)));
        Ok(image)
    }
}

/// Logs the outcome of publishing an index.
fn log(built: &BuiltIndex, store: &StoreUrl, outcome: &PublishOutcome, provenance: Option<&Provenance>) {
    tracing::info!(
        target: AUDIT,
        action = match outcome {
            PublishOutcome::Written | PublishOutcome::Unchanged => "publish",
            PublishOutcome::Kept | PublishOutcome::ConflictKept => "keep",
            _ => "replace",
        },
        token = provenance.and_then(|one| one.token.as_deref()),
        client = provenance.and_then(|one| one.client).map(tracing::field::display),
        sha256 = provenance.and_then(|one| one.sha256.as_deref()),
        file = %built.file.to_string_lossy(),
        image = built.id,
        store = %store,
        outcome = outcome.name(),
        "audit"
    );
}
