//! The build of a batch: planned, then done in this process or in children, a few debug files at a time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::ThreadPool;
use symdex::ImageId;
use symdex_build::debug_files::DebugFile;
use symdex_build::{Cache, CachedImage, SymbolMaps};
use symdex_store::IndexBytes;
use tempfile::NamedTempFile;

use crate::archive::TemporaryFolder;
use crate::child::{BuildTask, symbol_maps};
use crate::failure::{Failure, FailureKind};
use crate::image::{ImageBuilder, ImageResult};
use crate::in_order::in_order;
use crate::intake::Batch;
use crate::isolate::{Isolation, Limits, Protections};
use crate::plan::{Join, Plan, Task, contents_of};

/// Memory of a child in addition to that of its build: its program, its threads, and a small debug file.
const BASE_MEMORY: u64 = 256 << 20;
/// Images that share the memory are built at the same time only if each of them may take this much. It is enough for a
/// debug file of a few hundred megabytes.
const ENOUGH_MEMORY: usize = 250_000_000;

/// How debug files are built.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// The wanted architectures; all if empty.
    pub archs: Vec<String>,
    /// Folders in which files are searched that a debug file refers to.
    pub debug_dirs: Vec<PathBuf>,
    /// Symbol maps and folders of them.
    pub symbol_maps: Vec<PathBuf>,
    /// How many threads build. 0, the default, is one for each core.
    pub threads: usize,
    /// How many debug files are built at one time, each with all of the memory. The default is `None`: as many as there
    /// are threads and enough memory. They share it.
    pub at_once: Option<usize>,
    /// How many bytes builds may take, beside the debug files, which are mapped. The default is 1 GB. A child may
    /// allocate a quarter and 256 MiB more.
    pub max_memory: usize,
    /// How many seconds the index of one image may take.
    pub max_seconds: Option<u64>,
    /// Whether each index is compared with the debug file. That may take four times the memory.
    pub verify: bool,
    /// How children are started. `None`, the default, builds in this process. The limits are set by the options above.
    pub isolation: Option<Isolation>,
    /// The folder for temporary files of children.
    pub temporary: PathBuf,
    /// The folder for indexes of children that are not published yet. It is created if it does not exist.
    pub unpublished: PathBuf,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self {
            archs: Vec::new(),
            debug_dirs: Vec::new(),
            symbol_maps: Vec::new(),
            threads: 0,
            at_once: None,
            max_memory: 1_000_000_000,
            max_seconds: None,
            verify: false,
            isolation: None,
            temporary: std::env::temp_dir(),
            unpublished: std::env::temp_dir(),
        }
    }
}

/// What a build asks and tells its caller. Threads share it.
pub trait Host: Sync {
    /// `bytes` more of archives or debug files will be read.
    fn planned(&self, _bytes: u64) {}

    /// `bytes` more are read.
    fn read(&self, _bytes: u64) {}

    /// The index of this image that exists already. An image whose index is up to date is not built again.
    fn existing(&self, _id: &ImageId) -> Option<IndexBytes> {
        None
    }

    /// These limits are in force in a child that has ended.
    fn confined(&self, _protections: &Protections) {}
}

/// Says nothing, and has no index.
impl Host for () {}

/// Builds debug files.
#[derive(Debug)]
pub struct Pipeline {
    options: PipelineOptions,
    symbol_maps: SymbolMaps,
    pool: ThreadPool,
}

/// What each of several builds at one time may use.
#[derive(Clone, Copy)]
struct Share {
    at_once: usize,
    memory: usize,
    threads: usize,
}

impl Pipeline {
    /// A pipeline with these options.
    ///
    /// # Errors
    ///
    /// [`Failure`] if threads cannot be started, or a symbol map cannot be found.
    pub fn new(options: PipelineOptions) -> Result<Self, Failure> {
        let threads = match &options.isolation {
            // The threads of this process wait for children.
            Some(_) => options.at_once.unwrap_or(options.threads),
            None => options.threads,
        };
        let maps: Vec<DebugFile> = options.symbol_maps.iter().map(DebugFile::on_disk).collect();
        Ok(Self { pool: pool(threads)?, symbol_maps: symbol_maps(&maps)?, options })
    }

    /// Reads the headers of the debug files of `batch`, and lists what has to be built.
    ///
    /// # Errors
    ///
    /// [`Failure`] if no child can be started.
    pub fn plan(&self, batch: &Batch) -> Result<Plan, Failure> {
        let found: Vec<Result<DebugFile, Failure>> =
            batch.files.files().iter().map(|file| file.as_ref().cloned().map_err(Failure::from)).collect();
        self.plan_of(found, &self.options.archs)
    }

    /// The plan to build all images of the files at `paths`, as far as they can be read.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub fn plan_files(&self, paths: &[PathBuf]) -> Result<Plan, Failure> {
        self.plan_of(paths.iter().map(|path| Ok(DebugFile::on_disk(path))).collect(), &[])
    }

    fn plan_of(&self, found: Vec<Result<DebugFile, Failure>>, archs: &[String]) -> Result<Plan, Failure> {
        let files: Vec<DebugFile> = found.iter().flatten().cloned().collect();
        let contents = self.pool.install(|| match &self.options.isolation {
            None => Ok(contents_of(&files)),
            Some(isolation) => isolation.clone().limits(self.limits(1)).contents_of(&files),
        });
        let contents = contents.map_err(|error| Failure::new(FailureKind::Other, error.to_string()))?;
        Ok(Plan::new(found, contents, archs))
    }

    /// Builds the images of `plan`, the plan of `batch`; only those with one of these `ids`, if there are any. Calls
    /// `each` with every index and failure, on several threads, and `done` with what it returns, on this thread and in the
    /// order of the plan. After `done` fails, no more debug files are built.
    ///
    /// # Errors
    ///
    /// The error of `done`; a [`Failure`] if there is no folder for temporary files, or a symbol map cannot be used.
    pub fn build<T: Send, E: From<Failure>>(
        &self,
        batch: &Batch,
        plan: Plan,
        ids: &[ImageId],
        host: &impl Host,
        each: impl Fn(ImageResult) -> T + Sync,
        mut done: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        host.planned(plan.size());
        let share = self.share(plan.tasks.len());
        let build = Build { pipeline: self, batch, plan: &plan, ids, share, host };
        let all_done = |images: Vec<T>| images.into_iter().try_for_each(&mut done);
        let work = |results: Vec<ImageResult>| results.into_iter().map(&each).collect();
        let tasks = plan.tasks.iter().cloned();
        match &self.options.isolation {
            None => {
                let mut maps = self.symbol_maps.clone();
                batch.maps.iter().for_each(|map| {
                    _ = maps.add(
                        map.archive_entry().map_or(map.path(), |(_, entry)| Path::new(entry)),
                        map.path(),
                    )
                });
                let caches = build.caches();
                let images: CachedImages<'_> =
                    caches.iter().map(|(file, cache)| (*file, cache.images())).collect();
                in_order(
                    &self.pool,
                    share.at_once,
                    tasks,
                    |task| work(build.here(task, &maps, &images)),
                    all_done,
                )
            }
            Some(isolation) => {
                let folders = Folders::new(&self.options.temporary)?;
                let isolation = isolation.clone().limits(self.limits(share.threads));
                in_order(
                    &self.pool,
                    share.at_once,
                    tasks,
                    |task| work(build.in_child(task, &isolation, &folders)),
                    all_done,
                )
            }
        }
    }

    /// What each of `tasks` builds may use.
    fn share(&self, tasks: usize) -> Share {
        let PipelineOptions { at_once, max_memory, threads, .. } = self.options;
        match at_once {
            Some(at_once) => {
                let cores = || std::thread::available_parallelism().map_or(1, usize::from);
                let threads = if threads == 0 { cores() } else { threads };
                Share { at_once, memory: max_memory, threads: (threads / at_once.max(1)).max(1) }
            }
            None => {
                let threads = self.pool.current_num_threads();
                let at_once = threads.min(tasks).min(max_memory / ENOUGH_MEMORY).max(1);
                Share { at_once, memory: max_memory / at_once, threads: threads / at_once }
            }
        }
    }

    /// The limits of a child with this many threads.
    fn limits(&self, threads: usize) -> Limits {
        let memory = self.options.max_memory as u64;
        let memory = memory.saturating_add(memory / 4).saturating_add(BASE_MEMORY);
        Limits::new().memory(Some(memory)).seconds(self.options.max_seconds).threads(threads as u64)
    }
}

/// A pool of this many threads; of one for each core if it is 0.
///
/// # Errors
///
/// [`Failure`] if they cannot be started.
pub fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Failure::new(FailureKind::Other, format!("cannot start {threads} threads: {error}")))
}

/// The temporary folders of the builds of a batch. A signal that ends the process deletes them.
struct Folders {
    _root: TemporaryFolder,
    /// The folder that children use. It has no file with a name.
    children: PathBuf,
    /// The folder for copies of existing indexes.
    existing: PathBuf,
}

impl Folders {
    fn new(parent: &Path) -> Result<Self, Failure> {
        let made = || {
            let root = TemporaryFolder::new_in(parent)?;
            let [children, existing] = ["children", "existing"].map(|name| root.path().join(name));
            std::fs::create_dir(&children)?;
            std::fs::create_dir(&existing)?;
            Ok(Self { _root: root, children, existing })
        };
        made().map_err(|error| Failure::no_temporary_folder(&error))
    }
}

/// The images of open shared caches, by the number of the file.
type CachedImages<'c> = HashMap<usize, Vec<CachedImage<'c>>>;

/// What the tasks of a batch share.
struct Build<'b, H> {
    pipeline: &'b Pipeline,
    batch: &'b Batch,
    plan: &'b Plan,
    ids: &'b [ImageId],
    share: Share,
    host: &'b H,
}

impl<H: Host> Build<'_, H> {
    /// The shared caches of the plan, by the number of the file.
    fn caches(&self) -> Vec<(usize, Cache)> {
        let mut cached: Vec<usize> = Vec::new();
        let tasks = self.plan.tasks.iter().flatten().filter(|task| task.cached_image.is_some());
        cached.extend(tasks.map(|task| task.file));
        cached.dedup();
        let open = |file: usize| Some((file, Cache::open(self.plan.files[file].0.path()).ok()?));
        cached.into_iter().filter_map(open).collect()
    }

    /// Does `task` in this process.
    fn here(
        &self,
        task: Result<Task, Failure>,
        maps: &SymbolMaps,
        caches: &CachedImages<'_>,
    ) -> Vec<ImageResult> {
        let (task, joins) = match self.begin(task) {
            Ok(begun) => begun,
            Err(results) => return results,
        };
        let PipelineOptions { archs, debug_dirs, max_seconds, verify, .. } = &self.pipeline.options;
        let progress = TaskProgress::new(self.host, task.size);
        let images = ImageBuilder {
            archs,
            ids: self.ids,
            debug_dirs,
            maps,
            max_memory: self.share.memory,
            max_seconds: *max_seconds,
            verify: *verify,
            existing: &|id| self.host.existing(id),
            progress: &|size, done, total| progress.set(size, done, total),
        };
        let (file, _) = &self.plan.files[task.file];
        let mut results = Vec::new();
        match task.cached_image {
            None => images.slices(file, &joins, |result| {
                if let Ok(built) = &result {
                    progress.finish(built.image.debug_size);
                }
                results.push(result);
            }),
            Some(number) => {
                let image = caches.get(&task.file).and_then(|images| images.get(number));
                results.push(match image {
                    Some(image) => images.cached(file.path(), image),
                    None => {
                        let what = "the image is not there any more";
                        Err(Failure::of_file(file.name(), FailureKind::Damaged, what))
                    }
                });
            }
        }
        results
    }

    /// Does `task` in a child.
    fn in_child(
        &self,
        task: Result<Task, Failure>,
        isolation: &Isolation,
        folders: &Folders,
    ) -> Vec<ImageResult> {
        let (task, joins) = match self.begin(task) {
            Ok(begun) => begun,
            Err(results) => return results,
        };
        let options = &self.pipeline.options;
        // These files are deleted when the child has ended.
        let existing = self.existing(&joins, &folders.existing);
        let maps = options.symbol_maps.iter().map(DebugFile::on_disk).chain(self.batch.maps.iter().cloned());
        let build = BuildTask {
            file: self.plan.files[task.file].0.clone(),
            joins,
            cached_image: task.cached_image,
            archs: options.archs.clone(),
            ids: self.ids.to_vec(),
            debug_dirs: options.debug_dirs.iter().map(OsString::from).collect(),
            symbol_maps: maps.collect(),
            existing: existing.iter().map(|(id, file)| (id.clone(), file.path().into())).collect(),
            temporary: folders.children.clone().into(),
            max_memory: self.share.memory,
            max_seconds: options.max_seconds,
            threads: self.share.threads,
            verify: options.verify,
        };
        let progress = TaskProgress::new(self.host, task.size);
        let (images, protections) = isolation.build(build, &options.unpublished, |size, parts| match parts {
            Some((done, total)) => progress.set(size, done, total),
            None => progress.finish(size),
        });
        protections.iter().for_each(|protections| self.host.confined(protections));
        images
    }

    /// The images that a task builds; its results if there is nothing to build.
    fn begin(&self, task: Result<Task, Failure>) -> Result<(Task, Vec<Join>), Vec<ImageResult>> {
        let task = task.map_err(|failure| vec![Err(failure)])?;
        match self.plan.joins(&task, &self.pipeline.options.archs, self.ids) {
            Some(joins) => Ok((task, joins)),
            None => {
                self.host.read(task.size);
                Err(Vec::new())
            }
        }
    }

    /// The indexes of images that exist already, as files in `folder` that the child can read. An index that cannot be
    /// read or copied is built again.
    fn existing(&self, joins: &[Join], folder: &Path) -> Vec<(ImageId, NamedTempFile)> {
        let built = joins.iter().filter(|join| join.others.is_some());
        let copied = |join: &Join| {
            let (id, _) = &join.image;
            let index = self.host.existing(id)?;
            let mut file = NamedTempFile::new_in(folder).ok()?;
            file.write_all(&index).ok()?;
            Some((id.clone(), file))
        };
        built.filter_map(copied).collect()
    }
}

/// The progress of a task. What is left of it counts as read when this is dropped.
struct TaskProgress<'h, H: Host> {
    host: &'h H,
    size: u64,
    /// The size of the images that are finished.
    finished: AtomicU64,
    /// What is counted as read.
    reported: AtomicU64,
}

impl<'h, H: Host> TaskProgress<'h, H> {
    fn new(host: &'h H, size: u64) -> Self {
        Self { host, size, finished: AtomicU64::new(0), reported: AtomicU64::new(0) }
    }

    /// `done` of `total` parts of an image of `size` bytes are read. Calls may come from any thread, in any order.
    fn set(&self, size: u64, done: u64, total: u64) {
        let of_image = u128::from(size) * u128::from(done.min(total)) / u128::from(total.max(1));
        let finished = self.finished.load(Ordering::Relaxed);
        self.report(finished.saturating_add(u64::try_from(of_image).unwrap_or(size)));
    }

    /// An image of `size` bytes is finished.
    fn finish(&self, size: u64) {
        let finished = self.finished.fetch_add(size, Ordering::Relaxed);
        self.report(finished.saturating_add(size));
    }

    /// Counts `done` bytes of the task. It never counts more than the task has, and never goes back.
    fn report(&self, done: u64) {
        let done = done.min(self.size);
        let before = self.reported.fetch_max(done, Ordering::Relaxed);
        if done > before {
            self.host.read(done - before);
        }
    }
}

impl<H: Host> Drop for TaskProgress<'_, H> {
    fn drop(&mut self) {
        self.report(self.size);
    }
}
