//! The build of a batch: planned, then done in this process or in children, a few debug files at a time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rayon::ThreadPool;
use symdex::ImageId;
use symdex_build::debug_files::DebugFile;
use symdex_build::{Cache, CachedImage, SymbolMaps};
use tempfile::NamedTempFile;

use crate::archive::TemporaryFolder;
use crate::child::{BuildTask, symbol_maps};
use crate::failure::{Failure, FailureKind};
use crate::host::{Host, TaskProgress};
use crate::image::{ImageBuilder, ImageResult};
use crate::in_order::in_order;
use crate::intake::{Batch, add_unpacked_maps};
use crate::isolate::{Isolation, Limits};
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
        let place = match &self.options.isolation {
            None => {
                let mut maps = self.symbol_maps.clone();
                add_unpacked_maps(&mut maps, &batch.maps);
                Place::Here {
                    maps,
                    caches: caches.iter().map(|(file, cache)| (*file, cache.images())).collect(),
                }
            }
            Some(isolation) => Place::Children {
                isolation: isolation.clone().limits(self.limits(share.threads)),
                folders: Folders::new(&self.options.temporary)?,
            },
        };
        let build = Build { pipeline: self, batch, plan: &plan, ids, share, host, place };
        let work = |task| build.task(task).into_iter().map(&each).collect::<Vec<T>>();
        in_order(&self.pool, share.at_once, plan.tasks.iter().cloned(), work, |images| {
            images.into_iter().try_for_each(&mut done)
        })
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

/// The shared caches of `plan`, by the number of the file.
fn caches(plan: &Plan) -> Vec<(usize, Cache)> {
    let cached = plan.tasks.iter().flatten().filter(|task| task.cached_image.is_some());
    let mut cached: Vec<usize> = cached.map(|task| task.file).collect();
    cached.dedup();
    let open = |file: usize| Some((file, Cache::open(plan.files[file].0.path()).ok()?));
    cached.into_iter().filter_map(open).collect()
}

/// Where the tasks of a batch are done.
enum Place<'c> {
    Here { maps: SymbolMaps, caches: CachedImages<'c> },
    Children { isolation: Isolation, folders: Folders },
}

/// What the tasks of a batch share.
struct Build<'b, H> {
    pipeline: &'b Pipeline,
    batch: &'b Batch,
    plan: &'b Plan,
    ids: &'b [ImageId],
    share: Share,
    host: &'b H,
    place: Place<'b>,
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
        match &self.place {
            Place::Here { maps, caches } => self.here(&task, &joins, maps, caches, &progress),
            Place::Children { isolation, folders } => {
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
        let PipelineOptions { archs, debug_dirs, max_seconds, verify, .. } = &self.pipeline.options;
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
            None => images.slices(file, joins, |result| {
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

    fn in_child(
        &self,
        task: &Task,
        joins: Vec<Join>,
        isolation: &Isolation,
        folders: &Folders,
        progress: &TaskProgress<'_, H>,
    ) -> Vec<ImageResult> {
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
        let (images, protections) = isolation.build(build, &options.unpublished, |size, parts| match parts {
            Some((done, total)) => progress.set(size, done, total),
            None => progress.finish(size),
        });
        protections.iter().for_each(|protections| self.host.confined(protections));
        images
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
