//! The tasks of the children of a [`Pipeline`](crate::Pipeline): the child's side ([`run_child`]), and the parent's.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use symdex::{Cause, ImageId, Index, MappedFile};
use symdex_build::debug_files::{DebugFile, FileError};
use symdex_build::{Error, SharedCache, SymbolMaps};
use symdex_store::IndexBytes;
use tempfile::NamedTempFile;

use crate::archive::TemporaryFolder;
use crate::failure::Failure;
use crate::image::{BuiltBytes, BuiltIndex, ImageBuilder, ImageResult};
use crate::intake::add_unpacked_maps;
use crate::isolate::child::{Channel, enter};
use crate::isolate::{Access, ChildError, Event, Isolation, Protections};
use crate::plan::{Contents, Join, contents_of};

/// The first argument of a child.
const ARGUMENT: &str = "symdex-isolated-child";
/// Builds never write larger files than this for each byte of debug files, and than [`FREE_FILE_SIZE`].
const FILE_SIZE_RATIO: u64 = 64;
/// How large a file may be that a child writes, whatever the size of its debug file.
const FREE_FILE_SIZE: u64 = 1 << 30;

impl Isolation {
    /// Children run this program, which must call [`run_child`] first of all in its `main`.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the system does not say which program this is.
    pub fn of_this_program() -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(Cause::Other, format!("cannot find the program of this process: {error}"))
        })?;
        Ok(Self::new(program).arg(ARGUMENT))
    }
}

/// Does the task of a child, if [`Isolation::of_this_program`] has started this process as one. Returns its exit code,
/// with which `main` should return. Returns `None` in any other process.
///
/// A program that builds in child processes calls this first of all in its `main`, before it has threads and open
/// files. See [`isolate::child`](crate::isolate::child).
pub fn run_child() -> Option<ExitCode> {
    let is_child = std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT);
    is_child.then(|| enter(do_task))
}

/// A task of a child.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Task {
    /// Read the headers of these files.
    Headers(Vec<DebugFile>),
    Build(Box<BuildTask>),
}

/// A result of a child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskResult {
    /// The contents of the next file.
    Headers(Result<Contents, Failure>),
    /// An index, which is the next part of the child's output.
    Image(Box<BuiltIndex>),
    /// A file, or a part of it, could not be read.
    Failed(Failure),
}

/// The build of a debug file, or of one image of a shared cache.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildTask {
    pub(crate) file: DebugFile,
    /// The other files of its images.
    pub(crate) joins: Vec<Join>,
    /// The number of the image, if the file is a shared cache.
    pub(crate) cached_image: Option<usize>,
    pub(crate) archs: Vec<String>,
    pub(crate) ids: Vec<ImageId>,
    pub(crate) given_id: Option<ImageId>,
    pub(crate) debug_dirs: Vec<OsString>,
    /// Packages and supplementary files that were given together with the debug file.
    pub(crate) companions: Vec<DebugFile>,
    /// Symbol maps and folders of them, and symbol maps of archives.
    pub(crate) symbol_maps: Vec<DebugFile>,
    /// Indexes that exist already: the ids of their images, and the paths.
    pub(crate) existing: Vec<(ImageId, OsString)>,
    /// The folder for temporary files. A child can read the named files in it, so it should have none.
    pub(crate) temporary: OsString,
    pub(crate) max_memory: usize,
    pub(crate) max_seconds: Option<u64>,
    pub(crate) threads: usize,
    pub(crate) verify: bool,
    pub(crate) readable_names: bool,
    pub(crate) unwind_rows: bool,
    pub(crate) allow_empty: bool,
    pub(crate) embed: bool,
}

impl BuildTask {
    /// The debug file and those that are joined with it.
    fn files(&self) -> impl Iterator<Item = &DebugFile> {
        let joined = self.joins.iter().filter_map(|join| join.others.as_ref());
        std::iter::once(&self.file).chain(joined.flatten())
    }

    /// The files that a child needs for this task.
    fn access(&self) -> Access {
        let access = self.files().fold(Access::none(), readable);
        let given = self.symbol_maps.iter().chain(&self.companions).map(DebugFile::path);
        let indexes = self.existing.iter().map(|(_, path)| Path::new(path));
        let others = self.debug_dirs.iter().map(Path::new).chain(given).chain(indexes);
        others.fold(access, Access::read).temporary_files_in(&self.temporary)
    }
}

/// `access`, and what is needed to read a debug file: one on disk with its folder, one of an archive alone, without the
/// files of other archives.
fn readable(access: Access, file: &DebugFile) -> Access {
    match file.archive_entry() {
        None => access.debug_file(file.path()),
        Some(_) => access.read(file.path()),
    }
}

// The child's side.

fn do_task(task: Task, parent: &Channel<TaskResult>) {
    match task {
        Task::Headers(files) => {
            contents_of(&files).into_iter().for_each(|contents| parent.send(TaskResult::Headers(contents)));
        }
        Task::Build(task) => {
            if let Err(failure) = build(&task, parent) {
                parent.send(TaskResult::Failed(failure));
            }
        }
    }
}

/// Builds the indexes of a debug file, and sends what is known of each.
fn build(task: &BuildTask, parent: &Channel<TaskResult>) -> Result<(), Failure> {
    let pool = crate::pool(task.threads)?;
    let debug_dirs: Vec<PathBuf> = task.debug_dirs.iter().map(PathBuf::from).collect();
    let images = ImageBuilder {
        archs: &task.archs,
        ids: &task.ids,
        given_id: task.given_id.as_ref(),
        debug_dirs: &debug_dirs,
        companions: &task.companions,
        maps: &symbol_maps(&task.symbol_maps)?,
        max_memory: task.max_memory,
        max_seconds: task.max_seconds,
        stop: None,
        verify: task.verify,
        readable_names: task.readable_names,
        unwind_rows: task.unwind_rows,
        allow_empty: task.allow_empty,
        embed: task.embed,
        existing: &|id| {
            let (_, path) = task.existing.iter().find(|(of, _)| of == id)?;
            symdex::map_file(Path::new(path)).ok().map(IndexBytes::from)
        },
        progress: &|size, done, total| parent.progress(size, done, total),
    };
    let name = task.file.name();
    let mut output = parent.output().map_err(|error| unwritable(name, &error))?;
    let mut send = |index: ImageResult| {
        let written = index.and_then(|index| {
            output.write_all(index.as_ref()).map_err(|error| unwritable(name, &error))?;
            Ok(Box::new(index))
        });
        parent.send(written.map_or_else(TaskResult::Failed, TaskResult::Image));
    };
    pool.install(|| match task.cached_image {
        None => images.slices(&task.file, &task.joins, send),
        Some(number) => send(cached(task.file.path(), number, &images)),
    });
    Ok(())
}

/// Builds the index of one image of the shared cache at `path`.
fn cached(path: &Path, number: usize, images: &ImageBuilder<'_>) -> ImageResult {
    let cache = SharedCache::open(path).map_err(|error| FileError::new(path, error))?;
    let all = cache.images();
    let gone = || {
        let message = "the image is not there any more";
        FileError::new(path, Error::Malformed { what: message.to_owned() })
    };
    images.cached(path, all.get(number).ok_or_else(gone)?)
}

/// The symbol maps at `maps`, those of archives last.
pub(crate) fn symbol_maps(maps: &[DebugFile]) -> Result<SymbolMaps, Failure> {
    let on_disk = maps.iter().filter(|map| map.archive_entry().is_none());
    let on_disk: Vec<PathBuf> = on_disk.map(|map| map.path().to_owned()).collect();
    let mut found =
        SymbolMaps::find(&on_disk).map_err(|error| Failure::debug_file(Path::new("symbol maps"), &error))?;
    add_unpacked_maps(&mut found, maps);
    Ok(found)
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::of_file(file, Cause::Other, &format!("cannot write its index: {error}"))
}

// The parent's side.

/// The temporary folders of the children of a build. A signal that ends the process deletes them.
pub(crate) struct Folders {
    _root: TemporaryFolder,
    /// The folder that children use. It has no file with a name.
    pub(crate) children: PathBuf,
    /// The folder for copies of existing indexes.
    existing: PathBuf,
}

impl Folders {
    pub(crate) fn new(parent: &Path) -> Result<Self, Failure> {
        let made = || {
            let root = TemporaryFolder::new_in(parent)?;
            let [children, existing] = ["children", "existing"].map(|name| root.path().join(name));
            fs::create_dir(&children)?;
            fs::create_dir(&existing)?;
            Ok(Self { _root: root, children, existing })
        };
        made().map_err(|error| Failure::no_temporary_folder(&error))
    }

    /// The indexes of images that exist already, as files that a child can read. They are deleted when they are
    /// dropped. An index that cannot be read or copied is built again.
    pub(crate) fn copies(
        &self,
        joins: &[Join],
        existing: impl Fn(&ImageId) -> Option<IndexBytes>,
    ) -> Vec<(ImageId, NamedTempFile)> {
        let built = joins.iter().filter(|join| join.others.is_some());
        let copied = |join: &Join| {
            let (id, _) = &join.image;
            let index = existing(id)?;
            let mut file = NamedTempFile::new_in(&self.existing).ok()?;
            file.write_all(&index).ok()?;
            Some((id.clone(), file))
        };
        built.filter_map(copied).collect()
    }
}

impl Isolation {
    /// Reads the headers of `files` in a child, as [`find_culprits`] does.
    ///
    /// # Errors
    ///
    /// [`Failure`] if no child can be started.
    pub(crate) fn contents_of(
        &self,
        files: &[DebugFile],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<Result<Contents, Failure>>, Failure> {
        let contents = find_culprits(files, &|files| self.try_contents_of(files, is_stopped));
        contents.map_err(|error| Failure::new(Cause::Other, error.to_string()))
    }

    fn try_contents_of(
        &self,
        files: &[DebugFile],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<Result<Contents, Failure>>, ChildError> {
        let mut contents = Vec::new();
        if files.is_empty() {
            return Ok(contents);
        }
        let access = files.iter().fold(Access::none(), readable);
        let output = tempfile::tempfile()
            .map_err(|error| ChildError::NotStarted { program: self.program().to_owned(), error })?;
        self.run(&Task::Headers(files.to_vec()), &access, &output, is_stopped, |event| {
            if let Event::Result(TaskResult::Headers(of_file)) = event {
                contents.push(of_file);
            }
        })?;
        Ok(contents)
    }

    /// Does `task` in a child, and checks its indexes. `progress` gets the size of an image, and how many of how many
    /// of its parts are done; `None` for the parts when the image is finished. Returns the images in file order, and
    /// which limits were in force. If the child has ended early, the last image says why, and the limits are `None`.
    ///
    /// The child writes to a temporary file in `folder`, which is created if it does not exist. The file has no name
    /// where the system has such files, so that nothing is left of it when this process is killed. The child cannot
    /// open anything in the folder.
    pub(crate) fn build(
        &self,
        task: BuildTask,
        folder: &Path,
        is_stopped: &dyn Fn() -> bool,
        mut progress: impl FnMut(u64, Option<(u64, u64)>),
    ) -> (Vec<ImageResult>, Option<Protections>) {
        let name = task.file.name().to_owned();
        let other = |path: &Path, what: String| Failure::of_file(path, Cause::Other, &what);
        let output = match fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)) {
            Ok(output) => output,
            Err(error) => {
                let failure = other(folder, format!("cannot write a temporary file: {error}"));
                return (vec![Err(failure)], None);
            }
        };
        let isolation = self.with_file_size(task.files());
        let (access, mut results) = (task.access(), Vec::new());
        let task = Task::Build(Box::new(task));
        let ended = isolation.run(&task, &access, &output, is_stopped, |event| match event {
            Event::Progress { size, done, total } => progress(size, Some((done, total))),
            Event::Result(result) => {
                if let TaskResult::Image(index) = &result {
                    progress(index.debug_size, None);
                }
                results.push(result);
            }
        });
        let mut images: Vec<_> = match Outputs::new(&output) {
            Ok(mut outputs) => results.into_iter().filter_map(|result| outputs.next(result, &name)).collect(),
            Err(error) => vec![Err(other(&name, format!("cannot read its index: {error}")))],
        };
        let protections = ended.map_err(|error| images.push(Err(Failure::of_child(&name, &error)))).ok();
        (images, protections)
    }

    /// These limits, with a limit of the size of written files in proportion to `files`.
    fn with_file_size<'f>(&self, files: impl Iterator<Item = &'f DebugFile>) -> Self {
        let size: u64 = files.map(|file| file.path().metadata().map_or(0, |file| file.len())).sum();
        let limit = FREE_FILE_SIZE.saturating_add(size.saturating_mul(FILE_SIZE_RATIO));
        let limits = match self.limits.file_size {
            Some(_) => self.limits.clone(),
            None => self.limits.clone().file_size(Some(limit)),
        };
        self.clone().limits(limits)
    }
}

/// What `read` returns for all `files`. If its child ends early, further children read halves of the files, so that few
/// bad files among many need few children. A file at which a child ends on its own is a failure.
fn find_culprits<T>(
    files: &[DebugFile],
    read: &impl Fn(&[DebugFile]) -> Result<Vec<Result<T, Failure>>, ChildError>,
) -> Result<Vec<Result<T, Failure>>, ChildError> {
    let error = match read(files) {
        Err(error @ ChildError::Ended(_)) => error,
        done => return done,
    };
    if let [file] = files {
        return Ok(vec![Err(Failure::of_child(file.name(), &error))]);
    }
    let (first, second) = files.split_at(files.len() / 2);
    let mut all = find_culprits(first, read)?;
    all.extend(find_culprits(second, read)?);
    Ok(all)
}

/// The output of a child, which consists of the indexes in the order of its results.
struct Outputs {
    /// `None` if it is empty. An empty file cannot be mapped everywhere.
    file: Option<Arc<MappedFile>>,
    /// The end of the last index.
    end: usize,
}

impl Outputs {
    /// The output in `file`. The child has ended, so that nobody changes it.
    fn new(file: &File) -> io::Result<Self> {
        let file = match file.metadata()?.len() {
            0 => None,
            _ => Some(Arc::new(symdex::map_open_file(file)?)),
        };
        Ok(Self { file, end: 0 })
    }

    /// The index or the failure that `result` reports. `None` for another result.
    fn next(&mut self, result: TaskResult, file: &Path) -> Option<ImageResult> {
        match result {
            TaskResult::Failed(failure) => Some(Err(failure)),
            TaskResult::Image(index) => Some(self.index(*index).map_err(|what| {
                Failure::of_file(file, Cause::Other, &format!("the child's index is not used: {what}"))
            })),
            TaskResult::Headers(_) => None,
        }
    }

    /// `built` with the next part of the output, which must be the whole index of its image.
    fn index(&mut self, built: BuiltIndex) -> Result<BuiltIndex, String> {
        let length = usize::try_from(built.index_size).map_err(|error| error.to_string())?;
        let start = self.end;
        let range = start..start.checked_add(length).ok_or("its size overflows")?;
        let file = self.file.as_ref().filter(|file| range.end <= file.len());
        let file = Arc::clone(file.ok_or("it is not in the child's output")?);
        self.end = range.end;
        let built = BuiltIndex { bytes: BuiltBytes::OfChild(file, range), ..built };
        let index = Index::open(built.as_ref()).map_err(|error| error.to_string())?;
        index.verify().map_err(|error| error.to_string())?;
        match index.id().to_string() {
            id if id == built.id => Ok(built),
            id => Err(format!("it is the index of {id}, not of {}", built.id)),
        }
    }
}

#[cfg(test)]
mod tests;
