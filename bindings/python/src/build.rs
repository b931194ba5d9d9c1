//! Debug files in, indexes out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyList;
use symdex::{Cause, ImageId};
use symdex_pipeline::{
    Batch, BuiltIndex, Failure, Host, Input, Intake, MAX_THREADS, Pipeline, PipelineOptions, PublishedIndex,
};
use symdex_store::{IndexBytes, IndexFolder, PublishOutcome, PutOptions, ReaderOptions, SharedStore};

use crate::arguments::{Id, Paths, paths};
use crate::errors::{of_argument, of_failure};
use crate::index::Index;
use crate::store::Store;
use crate::symbolicator::warn;

/// What :func:`build` made of its inputs.
#[pyclass(frozen, get_all, module = "symdex")]
pub(crate) struct BuildResult {
    /// The images that have an index now, in the order of the inputs.
    images: Vec<Py<BuiltImage>>,
    /// The exceptions of the inputs and images that have none. Empty unless ``check=False``.
    failures: Py<PyList>,
}

#[pymethods]
impl BuildResult {
    fn __repr__(&self, py: Python<'_>) -> String {
        let failures = self.failures.bind(py).len();
        format!("<BuildResult of {} images, {failures} failures>", self.images.len())
    }
}

/// An image whose index was built.
#[pyclass(frozen, get_all, module = "symdex")]
pub(crate) struct BuiltImage {
    /// The id of the image.
    id: String,
    /// The file name of the image.
    image_name: String,
    /// The architecture.
    arch: String,
    /// The debug file.
    file: PathBuf,
    /// The size of the debug information in bytes.
    debug_size: u64,
    /// The size of the index in bytes.
    index_size: u64,
    /// Whether the debug file has debug information. Otherwise, the index has the names of its symbol table.
    has_debug_information: bool,
    /// What is odd about the debug file but changes no answer.
    warnings: Vec<String>,
    /// What the output or the store did with the index, as :meth:`Store.put` returns it; ``None`` without both.
    outcome: Option<&'static str>,
    /// Where the index is: a path, or a URL with a key; ``None`` without an output and a store.
    location: Option<String>,
    /// The index, if it was put nowhere.
    index: Option<Py<Index>>,
}

#[pymethods]
impl BuiltImage {
    fn __repr__(&self) -> String {
        let Self { id, image_name, arch, .. } = self;
        format!("<BuiltImage {image_name} {arch} {id}>")
    }
}

/// Where new indexes go.
struct Target {
    store: Option<Arc<SharedStore>>,
    put: PutOptions,
}

impl Host for Target {
    fn existing(&self, id: &ImageId) -> Option<IndexBytes> {
        self.store.as_ref()?.get(id).ok().flatten()
    }
}

/// Builds the indexes of debug files.
///
/// ``inputs`` are dSYMs, ``.xcarchive`` folders, ELF or Mach-O files, folders, and archives (zip, tar, gzip, zstd): one
/// path or an iterable of paths. The indexes go to one of:
///
/// * ``output``, a folder, in files named by the ids of the images. It is created if it does not exist;
/// * ``store``, a :class:`Store`;
/// * neither: :attr:`BuiltImage.index` is then the open index.
///
/// ``archs`` and ``ids`` restrict the images. ``debug_dirs`` are searched for files that debug files refer to, and
/// ``symbol_maps`` reveal hidden names. ``jobs`` is the number of threads, by default one for each core; ``max_memory``
/// limits the memory of builds in bytes. ``verify`` compares each index with its debug file, which takes longer.
/// ``readable_names`` adds readable names to the indexes, for readers that have no demangler. ``on_conflict`` decides
/// which of two different indexes of an id stays: ``"more"`` (the one with more functions), ``"keep"`` or
/// ``"replace"``. An index that is up to date is not built again.
///
/// Inputs that can be read are built even if others fail. Then the exception of the gravest failure is raised, with a
/// :class:`BuildResult` as its attribute ``result``; with ``check=False``, the result is returned instead. Signals are
/// handled while a build runs: Ctrl-C ends it. Raises ValueError for more than 1024 jobs.
///
/// Debug files are read in this process. For untrusted files, run ``symdex build --isolate``.
///
/// >>> [image] = build("testdata/dsyms/inline-dwarf4.dSYM").images
/// >>> image.index.lookup(0x3cf)[0].function
/// 'cell'
#[pyfunction]
#[pyo3(signature = (inputs, output=None, *, store=None, archs=None, ids=None, debug_dirs=None, symbol_maps=None, jobs=0,
                    max_memory=1_000_000_000, verify=false, readable_names=false, on_conflict="more", check=true))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn build(
    py: Python<'_>,
    inputs: Paths,
    output: Option<PathBuf>,
    store: Option<&Store>,
    archs: Option<Vec<String>>,
    ids: Option<Vec<Id>>,
    debug_dirs: Option<Paths>,
    symbol_maps: Option<Paths>,
    jobs: usize,
    max_memory: usize,
    verify: bool,
    readable_names: bool,
    on_conflict: &str,
    check: bool,
) -> PyResult<BuildResult> {
    let store = match (output, store) {
        (Some(_), Some(_)) => return Err(of_argument("give either output or store, not both")),
        (Some(folder), None) => {
            Some(SharedStore::new(Box::new(IndexFolder::new(folder)), &ReaderOptions::of_one_run()))
        }
        (None, store) => store.map(|store| Arc::clone(store.shared())),
    };
    if jobs > MAX_THREADS.into() {
        return Err(of_argument(format!("jobs={jobs}: a build has at most {MAX_THREADS} threads")));
    }
    let rule = on_conflict.parse().map_err(|error| of_argument(format!("on_conflict: {error}")))?;
    let mut options = PipelineOptions::default();
    options.archs = archs.unwrap_or_default();
    options.debug_dirs = paths(debug_dirs);
    options.symbol_maps = paths(symbol_maps);
    options.threads = jobs;
    options.max_memory = max_memory;
    options.verify = verify;
    options.readable_names = readable_names;
    let target = Target { store, put: PutOptions::new().on_conflict(rule) };
    let ids: Vec<ImageId> = ids.into_iter().flatten().map(|id| id.0).collect();
    let mut build = Build::default();
    let is_main = on_main_thread(py)?;
    options.stop = is_main.then_some(&STOP);
    py.detach(|| {
        if is_main {
            watched(|| build.run(inputs.0, options, &ids, &target))
        } else {
            build.run(inputs.0, options, &ids, &target).map_err(of_failure)
        }
    })?;
    build.warnings.iter().try_for_each(|message| warn(py, message))?;
    build.result(py, check)
}

/// What is built so far.
#[derive(Default)]
struct Build {
    /// The images, and the indexes that are in no store.
    images: Vec<(BuiltImage, Option<IndexBytes>)>,
    failures: Vec<Failure>,
    warnings: Vec<String>,
}

/// Ends the builds that the main thread waits for. Python handles signals on that thread only.
static STOP: AtomicBool = AtomicBool::new(false);

/// How long a signal waits until it is handled.
const PAUSE: Duration = Duration::from_millis(50);

fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("main_thread")?.is(&threading.call_method0("current_thread")?))
}

/// Runs `build` on a thread of its own, and handles signals meanwhile. After an exception of a handler, such as
/// `KeyboardInterrupt`, ends the build and raises the exception.
fn watched(build: impl FnOnce() -> Result<(), Failure> + Send) -> PyResult<()> {
    STOP.store(false, Ordering::Relaxed);
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || done.send(build()));
        loop {
            match is_done.recv_timeout(PAUSE) {
                Ok(result) => return result.map_err(of_failure),
                Err(RecvTimeoutError::Timeout) => {
                    let handled = Python::attach(|py| py.check_signals());
                    handled.inspect_err(|_| STOP.store(true, Ordering::Relaxed))?;
                }
                // The thread has panicked, and so does the scope.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })
}

impl Build {
    fn run(
        &mut self,
        inputs: Vec<PathBuf>,
        options: PipelineOptions,
        ids: &[ImageId],
        target: &Target,
    ) -> Result<(), Failure> {
        let pipeline = Pipeline::new(options)?;
        let mut intake = Intake::new(inputs.into_iter().map(Input::Path).collect());
        let (mut found, mut without_arch) = (Vec::new(), None);
        while let Some(batch) = intake.next_batch(target)? {
            self.note(&batch);
            let plan = pipeline.plan(&batch, target)?;
            without_arch = plan.no_such_arch.clone().or(without_arch);
            found.extend(ids.iter().filter(|id| plan.ids.contains(id)).cloned());
            pipeline.build(&batch, plan, ids, target, |built| built, |built| self.add(built, target))?;
        }
        let absent = ids
            .iter()
            .filter(|id| !found.contains(id))
            .map(|id| Failure::new(Cause::NotFound, format!("no input has the image {id}")));
        self.failures.extend(absent);
        self.failures.extend(without_arch.filter(|_| self.images.is_empty()));
        Ok(())
    }

    /// Adds what is wrong with the inputs of `batch`.
    fn note(&mut self, batch: &Batch) {
        self.failures.extend(batch.failures.iter().cloned());
        self.warnings.extend(batch.warnings.iter().map(ToString::to_string));
        let special = batch.files.special_files();
        self.warnings.extend((!special.is_empty()).then(|| special.to_string()));
        for unread in batch.files.unread_archives() {
            let (folder, count) = (unread.folder.display(), unread.archives.len());
            self.warnings
                .push(format!("{folder}: archives in a folder are not read ({count}); give them as inputs"));
        }
    }

    fn add(&mut self, built: Result<BuiltIndex, Failure>, target: &Target) -> Result<(), Failure> {
        match built.and_then(|built| target.put(built)) {
            Ok(image) => self.images.push(image),
            Err(failure) => self.failures.push(failure),
        }
        Ok(())
    }

    fn result(self, py: Python<'_>, check: bool) -> PyResult<BuildResult> {
        let images = self.images.into_iter().map(|(mut image, bytes)| {
            if let Some(bytes) = bytes {
                image.index = Some(Py::new(py, Index::opened(bytes)?)?);
            }
            Py::new(py, image)
        });
        let images = images.collect::<PyResult<_>>()?;
        let gravest = self.failures.iter().max_by_key(|failure| failure.cause).cloned();
        let failures: Vec<_> = self.failures.into_iter().map(of_failure).collect();
        let result = BuildResult { images, failures: PyList::new(py, failures)?.unbind() };
        match gravest.filter(|_| check) {
            None => Ok(result),
            Some(failure) => {
                let error = of_failure(failure);
                error.value(py).setattr("result", result)?;
                Err(error)
            }
        }
    }
}

impl Target {
    /// Puts the index into the store. Without one, returns the bytes of the index.
    fn put(&self, built: BuiltIndex) -> Result<(BuiltImage, Option<IndexBytes>), Failure> {
        let file = PathBuf::from(&built.file);
        let damaged = |error| Failure::index(&file, &error);
        let index = symdex::Index::open(built.as_ref()).map_err(damaged)?;
        if let Some(wrong) = built.verified.as_ref().and_then(|verified| verified.wrong.first()) {
            let message = format!("not published: its answers differ from the debug file: {wrong}");
            return Err(Failure::of_file(&file, Cause::Other, &message));
        }
        let metadata = index.metadata();
        let outcome = match &self.store {
            Some(store) => Some(store.put(&index, &self.put)?),
            None => None,
        };
        let location = self.store.as_ref().map(|store| store.store().location(&metadata.id));
        let published = PublishedIndex::new(&built, metadata, outcome.as_slice(), location);
        let image = BuiltImage {
            id: published.id,
            image_name: published.name,
            arch: published.arch,
            debug_size: published.debug_size,
            index_size: published.index_size,
            has_debug_information: published.has_dwarf,
            warnings: published.warnings,
            outcome: outcome.as_ref().map(PublishOutcome::name),
            location: published.location,
            index: None,
            file: file.clone(),
        };
        Ok((image, self.store.is_none().then(|| built.into_bytes())))
    }
}
