//! Puts new indexes into the stores.

use std::time::Duration;

use symdex::Index;
use symdex_isolate::build::{BuildFailure, BuildOutput};
use symdex_report::KnownImage;

use super::builder::Builder;
use super::intake::failure;
use super::published::PublishedImage;

/// The first pause between two attempts. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Called with the reason when no store takes an index. Waits for about this time, and returns whether to try again.
pub(crate) type Retry<'r> = dyn Fn(&str, Duration) -> bool + Sync + 'r;

/// Why an index is not published.
pub(super) enum Unpublished {
    /// It never can be.
    Failed(BuildFailure),
    /// No store takes it now.
    NoStore(BuildFailure),
}

impl Builder {
    /// Puts a new index into the first store that takes it, as often as `retry` says.
    pub(super) fn publish(
        &self,
        built: &BuildOutput,
        retry: &Retry<'_>,
    ) -> Result<PublishedImage, Unpublished> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.try_publish(built) {
                Err(Unpublished::NoStore(failure)) => {
                    if !retry(&failure.message, pause) {
                        return Err(Unpublished::NoStore(failure));
                    }
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                published => return published,
            }
        }
    }

    /// Puts a new index into the first store that takes it.
    fn try_publish(&self, built: &BuildOutput) -> Result<PublishedImage, Unpublished> {
        let name = built.image.file.to_string_lossy();
        let failed = |what: &str| failure(&name, "other", what);
        let index = Index::open(built.index.as_ref())
            .map_err(|error| Unpublished::Failed(failed(&error.to_string())))?;
        let stores = self.symbolicator.stores().stores();
        let mut first_error = None;
        for (number, store) in stores.iter().enumerate().filter(|(_, store)| !store.url().is_read_only()) {
            match self.symbolicator.put(number, &index) {
                Ok(outcome) => {
                    let metadata = index.metadata();
                    let (name, id) = (metadata.image_name.clone(), metadata.id.clone());
                    self.known.add(KnownImage { name, id, arch: metadata.arch.name.clone() });
                    return Ok(PublishedImage::new(built, metadata, &outcome, store.url()));
                }
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(match first_error {
            Some(error) => {
                let failure = failed(&format!("its index is not published: {error}"));
                // The store has an index of a newer version, for example.
                match error.is_damage() || error.is_unsupported() {
                    true => Unpublished::Failed(failure),
                    false => Unpublished::NoStore(failure),
                }
            }
            None => Unpublished::NoStore(failed(
                "its index is not published: every store of this server is read-only",
            )),
        })
    }
}
