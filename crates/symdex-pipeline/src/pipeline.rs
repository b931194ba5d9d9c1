//! The build of a batch: planned, then done in this process or in children, a few debug files at a time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::ThreadPool;
use symdex::ImageId;
use symdex_build::debug_files::{DebugFile, ImageFiles};
use symdex_build::{SharedCache, SharedCacheImage, StopFlag, SymbolMaps};
use symdex_store::IndexBytes;

use crate::failure::Failure;
use crate::image::{BuiltIndex, ImageBuilder, ImageResult};
use crate::intake::{Batch, add_unpacked_maps};
use crate::isolate::tasks::{BuildTask, Folders, symbol_maps};
use crate::isolate::{Isolation, Limits, Protections};
use crate::plan::{Contents, Join, Plan, Task, contents_of};
use crate::{in_order, pool};

/// Memory of a child in addition to that of its build: its program, its threads, and a small debug file.
const BASE_MEMORY: u64 = 256 << 20;
/// Images that share the memory are built at the same time only if each of them may take this much. It is enough for a
/// debug file of a few hundred megabytes.
const ENOUGH_MEMORY: usize = 250_000_000;

/// How many seconds the check of an index may take, and for how many of its bytes it may take one more. A core checks
/// 15 MB of a real index in a second. In a forged one, few bytes can stand for many ranges.
const CHECK_SECONDS: u64 = 60;
const CHECKED_BYTES: u64 = 1_000_000;

/// What a build asks and tells its caller. Threads share it.
pub trait Host: Sync {
    /// `bytes` more of archives or debug files will be read.
    fn planned(&self, _bytes: u64) {}

    /// `bytes` more are read.
    fn read(&self, _bytes: u64) {}

    /// Whether archives are read no further, and children are killed. It is asked often, by several threads.
    fn is_stopped(&self) -> bool {
        false
    }

    /// The index of this image that exists already. An image whose index is up to date is not built again.
    fn existing(&self, _id: &ImageId) -> Option<IndexBytes> {
        None
    }

    /// These limits are in force in a child that has ended.
    fn confined(&self, _protections: &Protections) {}
}

/// Says nothing, and has no index.
impl Host for () {}

/// How debug files are built.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// The wanted architectures; all if empty.
    pub archs: Vec<String>,
    /// The id of the one image that states none, if no image has this id.
    pub given_id: Option<ImageId>,
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
    /// The flag that ends the builds of this process once it is set. Children ignore it.
    pub stop: StopFlag,
    /// Whether each index is compared with the debug file. That may take four times the memory.
    pub verify: bool,
    /// Whether indexes get readable names, for readers without a demangler.
    pub readable_names: bool,
    /// Whether indexes get unwind rows, for unwinding stacks from registers and memory.
    pub unwind_rows: bool,
    /// Whether an image that has code and no function gets an empty index instead of a failure.
    pub allow_empty: bool,
    /// Whether the indexes are for the debug files to carry: see [`embedded_index`](crate::embedded_index()). Such an
    /// index states all of its debug file, and is made of this one file, which has debug information.
    pub embed: bool,
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
            given_id: None,
            debug_dirs: Vec::new(),
            symbol_maps: Vec::new(),
            threads: 0,
            at_once: None,
            max_memory: 1_000_000_000,
            max_seconds: None,
            stop: None,
            verify: false,
            readable_names: false,
            unwind_rows: false,
            allow_empty: false,
            embed: false,
            isolation: None,
            temporary: std::env::temp_dir(),
            unpublished: std::env::temp_dir(),
        }
    }
}

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

    pub(crate) fn options(&self) -> &PipelineOptions {
        &self.options
    }

    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    /// Reads the headers of the debug files of `batch`, and lists what has to be built.
    ///
    /// # Errors
    ///
    /// [`Failure`] if no child can be started.
    pub fn plan(&self, batch: &Batch, host: &impl Host) -> Result<Plan, Failure> {
        let found: Vec<Result<DebugFile, Failure>> =
            batch.files.files().iter().map(|file| file.as_ref().cloned().map_err(Failure::from)).collect();
        let files: Vec<DebugFile> = found.iter().flatten().cloned().collect();
        let contents = self.pool.install(|| match &self.options.isolation {
            None => Ok(contents_of(&files)),
            Some(isolation) => {
                isolation.clone().limits(self.limits(1)).contents_of(&files, &|| host.is_stopped())
            }
        })?;
        let PipelineOptions { archs, given_id, .. } = &self.options;
        Ok(Plan::new(found, contents, archs, given_id.as_ref(), &batch.indexes))
    }

    /// Builds the images of `plan`, the plan of `batch`; only those with one of these `ids`, if there are any. Calls
    /// `each` with every index and failure, on several threads, and `done` with what it returns, on this thread and in
    /// the order of the plan. After `done` fails, no more debug files are built.
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
        // They are empty if children open the shared caches.
        let caches = if self.options.isolation.is_none() { caches(&plan) } else { Vec::new() };
        let runner = match &self.options.isolation {
            None => {
                let mut maps = self.symbol_maps.clone();
                add_unpacked_maps(&mut maps, &batch.maps);
                Runner::Here {
                    maps,
                    caches: caches.iter().map(|(file, cache)| (*file, cache.images())).collect(),
                }
            }
            Some(isolation) => Runner::Children {
                isolation: isolation.clone().limits(self.limits(share.threads)),
                folders: Folders::new(&self.options.temporary)?,
            },
        };
        let build = Build { pipeline: self, batch, plan: &plan, ids, share, host, runner };
        let work = |task| build.task(task).into_iter().map(&each).collect::<Vec<T>>();
        in_order(&self.pool, share.at_once, plan.tasks.iter().cloned(), work, |images| {
            images.into_iter().try_for_each(&mut done)
        })
    }

    /// Builds the index of one image in this process, from those of its `files` that can be read. Calls `progress` with
    /// the size of its debug information in bytes, and with how many of how many parts of it are read. Returns the
    /// index, and why other files were not read.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the index cannot be built, or if no file can be read: then that of the first file.
    pub fn build_image(
        &self,
        files: &ImageFiles,
        progress: &(dyn Fn(u64, u64, u64) + Sync),
    ) -> Result<(BuiltIndex, Vec<Failure>), Failure> {
        let mut failures = Vec::new();
        let failed = |failure| failures.push(failure);
        let images = ImageBuilder { companions: files.companions(), ..self.images(progress) };
        match self.pool.install(|| images.files(files, failed)) {
            Some(built) => Ok((built?, failures)),
            None => Err(failures.into_iter().next().unwrap_or_else(|| Failure::gone(files.name()))),
        }
    }

    /// Builds all images with all of the memory, whether they have an index or not.
    fn images<'w>(&'w self, progress: &'w (dyn Fn(u64, u64, u64) + Sync)) -> ImageBuilder<'w> {
        let PipelineOptions { archs, debug_dirs, max_memory, max_seconds, .. } = &self.options;
        ImageBuilder {
            archs,
            ids: &[],
            given_id: None,
            debug_dirs,
            companions: &[],
            maps: &self.symbol_maps,
            max_memory: *max_memory,
            max_seconds: *max_seconds,
            stop: self.options.stop,
            verify: self.options.verify,
            readable_names: self.options.readable_names,
            unwind_rows: self.options.unwind_rows,
            allow_empty: self.options.allow_empty,
            embed: self.options.embed,
            existing: &|_| None,
            progress,
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

/// The images of open shared caches, by the number of the file.
type CachedImages<'c> = HashMap<usize, Vec<SharedCacheImage<'c>>>;

/// The shared caches of `plan`, by the number of the file.
fn caches(plan: &Plan) -> Vec<(usize, SharedCache)> {
    let cached = plan.tasks.iter().flatten().filter(|task| task.cached_image.is_some());
    let mut cached: Vec<usize> = cached.map(|task| task.file).collect();
    cached.dedup();
    let open = |file: usize| Some((file, SharedCache::open(plan.files[file].0.path()).ok()?));
    cached.into_iter().filter_map(open).collect()
}

/// Where the tasks of a batch are done.
enum Runner<'c> {
    Here { maps: SymbolMaps, caches: CachedImages<'c> },
    Children { isolation: Isolation, folders: Folders },
}

/// The progress of a task. What is left of it counts as read when this is dropped.
pub(crate) struct TaskProgress<'h, H: Host> {
    host: &'h H,
    size: u64,
    /// The size of the images that are finished.
    finished: AtomicU64,
    /// What is counted as read.
    reported: AtomicU64,
}

impl<'h, H: Host> TaskProgress<'h, H> {
    pub(crate) fn new(host: &'h H, size: u64) -> Self {
        Self { host, size, finished: AtomicU64::new(0), reported: AtomicU64::new(0) }
    }

    /// `done` of `total` parts of an image of `size` bytes are read. Calls may come from any thread, in any order.
    pub(crate) fn set(&self, size: u64, done: u64, total: u64) {
        let of_image = u128::from(size) * u128::from(done.min(total)) / u128::from(total.max(1));
        let finished = self.finished.load(Ordering::Relaxed);
        self.report(finished.saturating_add(u64::try_from(of_image).unwrap_or(size)));
    }

    /// An image of `size` bytes is finished.
    pub(crate) fn finish(&self, size: u64) {
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

/// What the tasks of a batch share.
struct Build<'b, H> {
    pipeline: &'b Pipeline,
    batch: &'b Batch,
    plan: &'b Plan,
    ids: &'b [ImageId],
    share: Share,
    host: &'b H,
    runner: Runner<'b>,
}

impl<H: Host> Build<'_, H> {
    fn task(&self, task: Result<Task, Failure>) -> Vec<ImageResult> {
        let task = match task {
            Ok(task) => task,
            Err(failure) => return vec![Err(failure)],
        };
        let progress = TaskProgress::new(self.host, task.size);
        let Some(joins) = self.plan.joins(&task, &self.pipeline.options.archs, self.ids) else {
            return Vec::new();
        };
        match &self.runner {
            Runner::Here { maps, caches } => self.here(&task, &joins, maps, caches, &progress),
            Runner::Children { isolation, folders } => {
                self.in_child(&task, joins, isolation, folders, &progress)
            }
        }
    }

    fn here(
        &self,
        task: &Task,
        joins: &[Join],
        maps: &SymbolMaps,
        caches: &CachedImages<'_>,
        progress: &TaskProgress<'_, H>,
    ) -> Vec<ImageResult> {
        let on_progress = |size, done, total| progress.set(size, done, total);
        let images = ImageBuilder {
            ids: self.ids,
            given_id: self.plan.given_id.as_ref(),
            companions: &self.plan.companions,
            maps,
            max_memory: self.share.memory,
            existing: &|id| self.host.existing(id),
            ..self.pipeline.images(&on_progress)
        };
        let (file, _) = &self.plan.files[task.file];
        let mut results = Vec::new();
        match task.cached_image {
            None => images.slices(file, joins, |result| {
                if let Ok(built) = &result {
                    progress.finish(built.debug_size);
                }
                results.push(result);
            }),
            Some(number) => {
                let image = caches.get(&task.file).and_then(|images| images.get(number));
                let image = image.ok_or_else(|| Failure::gone(file.name()));
                results.push(image.and_then(|image| images.cached(file.path(), image)));
            }
        }
        results
    }

    fn in_child(
        &self,
        task: &Task,
        joins: Vec<Join>,
        isolation: &Isolation,
        folders: &Folders,
        progress: &TaskProgress<'_, H>,
    ) -> Vec<ImageResult> {
        let options = &self.pipeline.options;
        let (file, contents) = &self.plan.files[task.file];
        let mut isolation = isolation.clone();
        if let Contents::Index(_) = contents {
            let seconds = CHECK_SECONDS + task.size / CHECKED_BYTES;
            let seconds = isolation.limits.seconds.map_or(seconds, |limit| limit.min(seconds));
            isolation.limits.seconds = Some(seconds);
        }
        // These files are deleted when the child has ended.
        let existing = folders.copies(&joins, |id| self.host.existing(id));
        let maps = options.symbol_maps.iter().map(DebugFile::on_disk).chain(self.batch.maps.iter().cloned());
        let build = BuildTask {
            file: file.clone(),
            joins,
            cached_image: task.cached_image,
            archs: options.archs.clone(),
            ids: self.ids.to_vec(),
            given_id: self.plan.given_id.clone(),
            debug_dirs: options.debug_dirs.iter().map(OsString::from).collect(),
            companions: self.plan.companions.clone(),
            symbol_maps: maps.collect(),
            existing: existing.iter().map(|(id, file)| (id.clone(), file.path().into())).collect(),
            temporary: folders.children.clone().into(),
            max_memory: self.share.memory,
            max_seconds: options.max_seconds,
            threads: self.share.threads,
            verify: options.verify,
            readable_names: options.readable_names,
            unwind_rows: options.unwind_rows,
            allow_empty: options.allow_empty,
            embed: options.embed,
        };
        let is_stopped = || self.host.is_stopped();
        let on_progress = |size, parts| match parts {
            Some((done, total)) => progress.set(size, done, total),
            None => progress.finish(size),
        };
        let (images, protections) = isolation.build(build, &options.unpublished, &is_stopped, on_progress);
        protections.iter().for_each(|protections| self.host.confined(protections));
        images
    }
}
