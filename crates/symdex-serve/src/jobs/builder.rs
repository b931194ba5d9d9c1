//! Builds of debug files in child processes, and publishing of the indexes.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use symdex::ImageId;
use symdex_pipeline::isolate::build::{
    BuildFailure, BuildOutput, BuildTask, Planned, PlannedPart, TaskFile, TaskResult,
};
use symdex_pipeline::isolate::{Event, Isolation, Limits};
use symdex_store::{OnConflict, PutOptions};
use tempfile::{NamedTempFile, TempDir};

use super::disk::free_space;
use super::intake::{BuildInput, Intake, failure};
use super::permits::Permits;
use super::publish::{Publishing, Retry, Unpublished};
use super::published::PublishedImage;

/// Memory of a child in addition to that of the build: its program, its threads, and a small debug file.
const BASE_MEMORY: u64 = 256 << 20;

/// How builds are limited.
#[derive(Clone, Debug)]
pub(crate) struct BuildLimits {
    /// How many children run at one time.
    pub(crate) children: usize,
    /// How many bytes of memory each build may take.
    pub(crate) memory: usize,
    /// How many seconds the index of one image may take.
    pub(crate) seconds: u64,
    /// How many bytes of the file system with the temporary files stay free.
    pub(crate) min_free: u64,
}

/// Builds debug files in child processes and publishes their indexes. Threads share it.
#[derive(Debug)]
pub(crate) struct Builder {
    isolation: Isolation,
    pub(super) publishing: Publishing,
    /// The folder for temporary files.
    work: PathBuf,
    limits: BuildLimits,
    children: Permits,
}

/// How much of the debug information is read, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuildProgress {
    /// How much is read.
    pub(crate) done: u64,
    /// The size of all debug files.
    pub(crate) total: u64,
}

/// What was built.
#[derive(Debug, Default)]
pub(crate) struct BuildResults {
    /// The images in the order of the files, and the files that have no index.
    pub(crate) images: Vec<Result<PublishedImage, BuildFailure>>,
    /// Entries that were left out although valid archives have them.
    pub(crate) warnings: Vec<String>,
    /// Why no store takes an index that was built. It is one of the failures of `images`, too.
    pub(crate) store_error: Option<String>,
}

impl Builder {
    /// Starts children as `isolation` says, and publishes as `publishing` says. Temporary files are in the folder
    /// `work`, which must exist.
    pub(crate) fn new(
        isolation: Isolation,
        publishing: Publishing,
        work: PathBuf,
        limits: BuildLimits,
    ) -> Self {
        let children = Permits::new(limits.children.max(1));
        Self { isolation, publishing, work, limits, children }
    }

    /// Builds the indexes of `inputs`, in child processes with limits, and puts each as `put` says into the first store
    /// that can be written. If `wanted` is given, only this image is built; without it among `inputs`, the result has
    /// no image. A lookup finds an image once this has returned.
    ///
    /// An index that no store takes is put again as often as `retry` says.
    ///
    /// This blocks, also until other builds leave room for more children. `on_progress` and `retry` are called from
    /// several threads.
    pub(crate) fn build(
        &self,
        inputs: &[BuildInput],
        wanted: Option<&ImageId>,
        put: &PutOptions,
        retry: &Retry<'_>,
        on_progress: &(dyn Fn(BuildProgress) + Sync),
    ) -> BuildResults {
        let name = inputs.first().map_or("", |input| &input.name);
        self.try_build(inputs, wanted, put, retry, on_progress).unwrap_or_else(|error| {
            let what = format!("cannot make temporary files in {}: {error}", self.work.display());
            BuildResults { images: vec![Err(failure(name, "other", &what))], ..BuildResults::default() }
        })
    }

    fn try_build(
        &self,
        inputs: &[BuildInput],
        wanted: Option<&ImageId>,
        put: &PutOptions,
        retry: &Retry<'_>,
        on_progress: &(dyn Fn(BuildProgress) + Sync),
    ) -> io::Result<BuildResults> {
        let intake = Intake::new(inputs, &self.work, self.archive_limits()?)?;
        let folders = BuildFolders::new(&self.work)?;
        let mut results = BuildResults { warnings: intake.warnings.clone(), ..BuildResults::default() };
        results.images.extend(intake.failures.iter().cloned().map(Err));
        let planned = {
            let _permit = self.children.take();
            let isolation = self.isolation.clone().limits(self.child_limits());
            isolation.plan(intake.files.iter().cloned().map(Ok).collect(), &[])
        };
        let tasks = match planned {
            Ok(plan) => plan.tasks,
            Err(error) => {
                let name = inputs.first().map_or("", |input| &input.name);
                results.images.push(Err(BuildFailure::of_child(name.as_ref(), &error)));
                return Ok(results);
            }
        };
        let progress = Progress::new(tasks.iter().map(|task| task.size).sum(), on_progress);
        let (maps, progress, store_error) = (&intake.maps, &progress, OnceLock::new());
        let build =
            Build { builder: self, wanted, put, maps, folders: &folders, progress, retry, store_error };
        results.images.extend(build.all(&tasks));
        results.store_error = build.store_error.into_inner();
        Ok(results)
    }

    /// The limits of an archive. What it unpacks to fits the free space.
    fn archive_limits(&self) -> io::Result<symdex_pipeline::archive::Limits> {
        let limits = symdex_pipeline::archive::Limits::default();
        let free = free_space(&self.work)?.map(|free| free.saturating_sub(self.limits.min_free));
        Ok(symdex_pipeline::archive::Limits {
            unpacked: free.unwrap_or(u64::MAX).min(limits.unpacked),
            ..limits
        })
    }

    fn child_limits(&self) -> Limits {
        let memory = self.limits.memory as u64;
        let memory = memory.saturating_add(memory / 4).saturating_add(BASE_MEMORY);
        let seconds = self.limits.seconds;
        Limits::new().memory(Some(memory)).seconds(Some(seconds)).threads(self.threads() as u64)
    }

    /// The threads of each child.
    fn threads(&self) -> usize {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        (cpus / self.limits.children.max(1)).max(1)
    }

    /// Whether the stores, which are asked for it now, have the indexes of all `images`. Indexes in memory do not count.
    /// A store that cannot be asked has none.
    pub(super) fn has_all(&self, images: &[PublishedImage]) -> bool {
        let reader = self.publishing.symbolicator.stores();
        let is_in = |store: usize, id: &ImageId| {
            reader.stat(store, id).is_ok_and(|entry| entry.is_some())
                && reader.open(store, id).is_ok_and(|image| image.is_some())
        };
        let has = |id: &ImageId| (0..reader.stores().len()).any(|store| is_in(store, id));
        images.iter().all(|image| image.id.parse().is_ok_and(|id| has(&id)))
    }

    /// The number of the first store that can be written.
    pub(super) fn writable_store(&self) -> Option<usize> {
        let stores = self.publishing.symbolicator.stores().stores();
        stores.iter().position(|store| !store.url().is_read_only())
    }
}

/// The temporary folders of one build. They are deleted when this is dropped.
struct BuildFolders {
    /// The folder that children use. It has no file with a name.
    children: TempDir,
    /// The indexes that exist already.
    existing: TempDir,
}

impl BuildFolders {
    fn new(work: &Path) -> io::Result<Self> {
        let folder = || tempfile::Builder::new().prefix("symdex-").tempdir_in(work);
        Ok(Self { children: folder()?, existing: folder()? })
    }
}

/// What the tasks of one build share.
struct Build<'b> {
    builder: &'b Builder,
    wanted: Option<&'b ImageId>,
    put: &'b PutOptions,
    maps: &'b [TaskFile],
    folders: &'b BuildFolders,
    progress: &'b Progress<'b>,
    retry: &'b Retry<'b>,
    /// Why no store takes an index.
    store_error: OnceLock<String>,
}

type Images = Vec<Result<PublishedImage, BuildFailure>>;

impl Build<'_> {
    /// Does `tasks`, several at a time. The results are in their order.
    fn all(&self, tasks: &[Planned]) -> Images {
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some((at, task)) = tasks.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
                let images = self.task(task);
                results.lock().unwrap_or_else(PoisonError::into_inner).push((at, images));
            }
        };
        thread::scope(|scope| {
            // This thread does tasks, too. It goes on alone if the system has no threads left.
            for _ in 1..self.builder.limits.children.min(tasks.len()) {
                if thread::Builder::new().name("symdex-build".to_owned()).spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().flat_map(|(_, images)| images).collect()
    }

    /// Builds and publishes the indexes of a task.
    fn task(&self, planned: &Planned) -> Images {
        let (file, part) = match (&planned.file, &planned.part) {
            (Some(file), Ok(part)) => (file, part),
            (_, Err(failure)) => return vec![Err(failure.clone())],
            (None, Ok(_)) => return Vec::new(),
        };
        // The job is not done, so that all of it is built again.
        if self.store_error.get().is_some() {
            return Vec::new();
        }
        // A file whose ids cannot be read fails in its child, which says why.
        let is_wanted = |wanted: &ImageId| part.ids.is_empty() || part.ids.contains(&wanted.to_string());
        if !self.wanted.is_none_or(is_wanted) {
            return Vec::new();
        }
        let _permit = self.builder.children.take();
        // These files are deleted when the child has ended.
        let existing = self.existing(part);
        let task = self.build_task(file, part, &existing);
        let mut read = self.progress.of_task(planned.size);
        let isolation = self.builder.isolation.clone().limits(self.builder.child_limits());
        let outputs = isolation.build(&task, &self.builder.work, |event| match event {
            Event::Progress { size, done, total } => read.set(size, done, total),
            Event::Result(TaskResult::Image(built)) => read.finish(built.debug_size),
            Event::Result(_) => {}
        });
        outputs.images.into_iter().map(|built| self.publish(&built?)).collect()
    }

    fn publish(&self, built: &BuildOutput) -> Result<PublishedImage, BuildFailure> {
        self.builder.publish(built, self.put, self.retry).map_err(|unpublished| match unpublished {
            Unpublished::Failed(failure) => failure,
            Unpublished::NoStore(failure) => {
                self.store_error.get_or_init(|| failure.message.clone());
                failure
            }
        })
    }

    fn build_task(
        &self,
        file: &TaskFile,
        part: &PlannedPart,
        existing: &[(ImageId, NamedTempFile)],
    ) -> BuildTask {
        let mut task = BuildTask::new(file.clone());
        task.part = part.clone();
        task.ids = self.wanted.iter().map(|id| id.to_string()).collect();
        task.symbol_maps = self.maps.to_vec();
        task.existing = existing.iter().map(|(id, file)| (id.to_string(), file.path().into())).collect();
        task.temporary = self.folders.children.path().into();
        task.max_memory = self.builder.limits.memory;
        task.max_seconds = Some(self.builder.limits.seconds);
        task.threads = self.builder.threads();
        task
    }

    /// The indexes of the images of `part` that the same upload has made, in the store that gets the new ones, as files
    /// that the child can read: a job that begins again does not build them again. They do not count if the upload
    /// replaces indexes. An index of another upload does not count either: a child compares it with the debug file by
    /// what both state of themselves, which a hostile debug file can copy. An index that cannot be read or copied is
    /// built again.
    fn existing(&self, part: &PlannedPart) -> Vec<(ImageId, NamedTempFile)> {
        let reader = self.builder.publishing.symbolicator.stores();
        let (Some(store), Some(upload)) = (self.builder.writable_store(), &self.put.provenance) else {
            return Vec::new();
        };
        if self.put.on_conflict == OnConflict::Replace {
            return Vec::new();
        }
        let ids = part.ids.iter().filter_map(|id| id.parse::<ImageId>().ok());
        let copied = |id: ImageId| {
            let put_by = reader.stat(store, &id).ok().flatten()?.provenance?;
            if put_by.sha256.is_none() || put_by.sha256 != upload.sha256 {
                return None;
            }
            let index = reader.get(store, &id).ok().flatten()?;
            let mut file = NamedTempFile::new_in(self.folders.existing.path()).ok()?;
            file.write_all(&index).ok()?;
            Some((id, file))
        };
        ids.filter(|id| self.wanted.is_none_or(|wanted| wanted == id)).filter_map(copied).collect()
    }
}

/// The progress of a build, which several threads report.
struct Progress<'p> {
    total: u64,
    done: AtomicU64,
    on_progress: &'p (dyn Fn(BuildProgress) + Sync),
}

impl<'p> Progress<'p> {
    fn new(total: u64, on_progress: &'p (dyn Fn(BuildProgress) + Sync)) -> Self {
        on_progress(BuildProgress { done: 0, total });
        Self { total, done: AtomicU64::new(0), on_progress }
    }

    fn of_task(&self, size: u64) -> TaskProgress<'_> {
        TaskProgress { progress: self, size, finished: 0, reported: 0 }
    }
}

/// The progress of a task. What is left of it counts as done when this is dropped.
struct TaskProgress<'p> {
    progress: &'p Progress<'p>,
    size: u64,
    /// The size of the images that are finished.
    finished: u64,
    /// What is counted as done.
    reported: u64,
}

impl TaskProgress<'_> {
    /// `done` of `total` parts of an image of `size` bytes are read.
    fn set(&mut self, size: u64, done: u64, total: u64) {
        let of_image = u128::from(size) * u128::from(done.min(total)) / u128::from(total.max(1));
        self.report(self.finished.saturating_add(u64::try_from(of_image).unwrap_or(size)));
    }

    /// An image of `size` bytes is finished.
    fn finish(&mut self, size: u64) {
        self.finished = self.finished.saturating_add(size);
        self.report(self.finished);
    }

    /// Counts `done` bytes of the task. It never counts more than the task has, and never goes back.
    fn report(&mut self, done: u64) {
        let more = done.min(self.size).saturating_sub(self.reported);
        if more != 0 {
            self.reported += more;
            let done = more + self.progress.done.fetch_add(more, Ordering::Relaxed);
            (self.progress.on_progress)(BuildProgress { done, total: self.progress.total });
        }
    }
}

impl Drop for TaskProgress<'_> {
    fn drop(&mut self) {
        self.report(self.size);
    }
}
