//! Builds of debug files in child processes, and publishing of the indexes.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use symdex::{Cause, ImageId};
use symdex_answer::Symbolicator;
use symdex_pipeline::archive::TemporaryFolder;
use symdex_pipeline::{
    DiskSpace, Failure, Host, Indexes, Input, Intake, Pipeline, PipelineOptions, PublishedIndex, Reservation,
};
use symdex_store::{IndexBytes, OnConflict, PutOptions, SharedStore};

use super::job::JobProgress;
use super::publish::{Publishing, Unpublished};
use super::published::BuildResults;

/// Builds debug files in child processes and publishes their indexes. Threads share it.
#[derive(Debug)]
pub(crate) struct Builder {
    pipeline: Pipeline,
    pub(super) publishing: Publishing,
    /// The folder for temporary files.
    work: TemporaryFolder,
    /// What files in it may take.
    space: Arc<DiskSpace>,
    stopping: AtomicBool,
}

/// The one who wants a build. Threads share it.
pub(crate) trait BuildClient: Sync {
    /// The build has come so far.
    fn progress(&self, _: JobProgress) {}

    /// No store accepts an index, for this reason. Waits for about this time, and returns whether to retry.
    fn retries(&self, _: &str, _: Duration) -> bool {
        false
    }

    /// Whether nobody wants the build any more.
    fn is_over(&self) -> bool {
        false
    }
}

/// Waits for no store, and wants the build until it ends.
impl BuildClient for () {}

impl Builder {
    /// Builds as `options` say, in children, and publishes as `publishing` says. Temporary files are in
    /// `work`, and take `space`.
    ///
    /// # Errors
    ///
    /// [`Failure`] if threads cannot be started.
    pub(crate) fn new(
        mut options: PipelineOptions,
        publishing: Publishing,
        work: TemporaryFolder,
        space: Arc<DiskSpace>,
    ) -> Result<Self, Failure> {
        work.path().clone_into(&mut options.temporary);
        work.path().clone_into(&mut options.unpublished);
        Ok(Self {
            pipeline: Pipeline::new(options)?,
            publishing,
            work,
            space,
            stopping: AtomicBool::default(),
        })
    }

    /// Ends all builds. Their results have failures.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Reserves `bytes` in the folder for temporary files.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if they do not fit.
    pub(super) fn reserve(&self, bytes: u64) -> io::Result<Reservation> {
        let mut reservation = self.space.reserve();
        reservation.take(bytes)?;
        Ok(reservation)
    }

    /// The folder for temporary files.
    pub(super) fn work(&self) -> &Path {
        self.work.path()
    }

    /// The sources of answers, with the stores.
    pub(crate) fn symbolicator(&self) -> &Symbolicator {
        &self.publishing.symbolicator
    }

    /// Builds the indexes of `input`, and puts each as `put` says into the first store that can be written. The input
    /// comes with what becomes of indexes in it. If `wanted` is given, only this image is built; without it in `input`,
    /// the result has no image. A lookup finds an image once this has returned.
    ///
    /// Blocks, also while other builds use all children. The children end when `client` says that the build is over.
    pub(crate) fn build(
        &self,
        input: (Input, Indexes),
        wanted: Option<&ImageId>,
        put: &PutOptions,
        client: &dyn BuildClient,
    ) -> BuildResults {
        let host =
            BuildHost { builder: self, put, done: AtomicU64::new(0), total: AtomicU64::new(0), client };
        let mut results = BuildResults::default();
        if let Err(failure) = self.try_build(input, wanted, &host, &mut results) {
            results.images.push(Err(failure));
        }
        results
    }

    fn try_build(
        &self,
        (input, indexes): (Input, Indexes),
        wanted: Option<&ImageId>,
        host: &BuildHost<'_>,
        results: &mut BuildResults,
    ) -> Result<(), Failure> {
        let mut intake = Intake::new(vec![input]);
        self.work().clone_into(&mut intake.temporary);
        intake.space = Some(Arc::clone(&self.space));
        intake.indexes = indexes;
        let Some(batch) = intake.next_batch(&StopOnly(host))? else { return Ok(()) };
        results.warnings.extend(batch.warnings.iter().map(ToString::to_string));
        results.images.extend(batch.failures.iter().cloned().map(Err));
        let plan = self.pipeline.plan(&batch, host)?;
        let mut for_indexes = self.space.reserve();
        let no_room = |error: io::Error| Failure::new(Cause::Other, error.to_string());
        for_indexes.take(plan.index_space()).map_err(no_room)?;
        let store_error = OnceLock::new();
        // The job is not done if no store accepts an index, so that all of it is built again.
        let publish = |built: Result<_, Failure>| match store_error.get() {
            Some(_) => None,
            None => Some(built.and_then(|built| {
                self.publish(&built, host.put, host.client).map_err(|unpublished| match unpublished {
                    Unpublished::Failed(failure) => failure,
                    Unpublished::NoStore(failure) => {
                        store_error.get_or_init(|| failure.message.clone());
                        failure
                    }
                })
            })),
        };
        let built = self.pipeline.build(
            &batch,
            plan,
            wanted.map_or(&[], std::slice::from_ref),
            host,
            publish,
            |published| {
                results.images.extend(published);
                if store_error.get().is_none() { Ok(()) } else { Err(Stopped::NoStore) }
            },
        );
        results.store_error = store_error.into_inner();
        match built {
            Err(Stopped::Failed(failure)) => Err(failure),
            Err(Stopped::NoStore) | Ok(()) => Ok(()),
        }
    }

    /// Returns whether the stores have the indexes of all `images` now. Indexes in memory do not count. A store that
    /// cannot be queried has none.
    pub(super) fn has_all(&self, images: &[PublishedIndex]) -> bool {
        let stores = self.publishing.symbolicator.stores().stores();
        let is_in = |store: &Arc<SharedStore>, id: &ImageId| {
            store.stat(id).is_ok_and(|entry| entry.is_some())
                && store.open(id).is_ok_and(|image| image.is_some())
        };
        let has = |id: &ImageId| stores.iter().any(|store| is_in(store, id));
        images.iter().all(|image| image.id.parse().is_ok_and(|id| has(&id)))
    }
}

/// Why a build ends early.
enum Stopped {
    Failed(Failure),
    /// No store accepts an index.
    NoStore,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The host of unpacking, which is no progress of a build.
struct StopOnly<'b>(&'b BuildHost<'b>);

impl Host for StopOnly<'_> {
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// One build: its progress, and existing indexes that it can reuse.
struct BuildHost<'b> {
    builder: &'b Builder,
    put: &'b PutOptions,
    done: AtomicU64,
    total: AtomicU64,
    client: &'b dyn BuildClient,
}

impl Host for BuildHost<'_> {
    fn planned(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.read(0);
    }

    fn read(&self, bytes: u64) {
        let done = bytes + self.done.fetch_add(bytes, Ordering::Relaxed);
        self.client.progress(JobProgress { done, total: self.total.load(Ordering::Relaxed) });
    }

    fn is_stopped(&self) -> bool {
        self.builder.stopping.load(Ordering::Relaxed) || self.client.is_over()
    }

    /// The index that the same upload has made, in the store that gets the new ones: a job that starts over does not
    /// build it again. It does not count if the upload replaces indexes. An index of another upload does not count
    /// either: a child compares it with the debug file by what both state of themselves, which a hostile debug file can
    /// copy.
    fn existing(&self, id: &ImageId) -> Option<IndexBytes> {
        let store = self.builder.publishing.symbolicator.stores().writable()?;
        let upload = self.put.provenance.as_ref()?;
        let is_same = || {
            let put_by = store.stat(id).ok().flatten()?.provenance?;
            Some(put_by.sha256.is_some() && put_by.sha256 == upload.sha256)
        };
        if self.put.on_conflict == OnConflict::Replace || !is_same()? {
            return None;
        }
        store.get(id).ok().flatten()
    }
}
