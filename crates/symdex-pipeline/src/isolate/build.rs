//! Builds of indexes in child processes of the command `symdex`.
//!
//! [`Isolation::plan`] reads the headers of debug files and lists the tasks of their build. [`Isolation::build`] does
//! one of them. [`Isolation::images`] lists the images of files. The types of this module are what parent and child
//! send each other. Paths are [`OsString`]s, because JSON cannot have a `PathBuf` that is not UTF-8.

mod outputs;
mod plan;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::outputs::{BuildOutput, BuildOutputs, IsolatedIndex};
pub use self::plan::Plan;
use crate::isolate::death::ChildError;
use crate::isolate::isolation::Isolation;
use crate::isolate::limits::Access;

/// A task of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// List the build tasks of debug files.
    Plan(PlanTask),
    /// Build the indexes of a debug file.
    Build(Box<BuildTask>),
    /// List the images of the files at these paths.
    Images(Vec<OsString>),
}

/// A result of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// A task of a plan.
    Planned(Planned),
    /// The end of a plan.
    Skipped {
        /// How many files have no image of a wanted architecture.
        files: u64,
        /// What is wrong if all files are skipped.
        failure: Option<BuildFailure>,
    },
    /// An image of [`BuildTask::ids`] is in the debug file.
    Found {
        /// Its id.
        id: String,
    },
    /// An image of a list.
    Listed(FileImage),
    /// An index, which is the next part of the child's output.
    Image(BuiltImage),
    /// A file, or a part of it, could not be read.
    Failed(BuildFailure),
}

/// A debug file of a task, and the name that messages have for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// Where the file is.
    pub path: OsString,
    /// The archive and the entry that the file was taken out of, if it was. A child can read such a file alone, and not
    /// the folder with other files of archives.
    pub archive_entry: Option<(String, String)>,
}

impl TaskFile {
    /// The file at `path`.
    pub fn on_disk(path: impl Into<OsString>) -> Self {
        Self { path: path.into(), archive_entry: None }
    }

    /// The file at `path`, which is called `ARCHIVE: ENTRY`.
    pub fn of_archive(
        path: impl Into<OsString>,
        archive: impl Into<String>,
        entry: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), archive_entry: Some((archive.into(), entry.into())) }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> OsString {
        match &self.archive_entry {
            None => self.path.clone(),
            Some((archive, entry)) => format!("{archive}: {entry}").into(),
        }
    }

    /// `access`, and what is needed to read this debug file.
    fn readable_in(&self, access: Access) -> Access {
        match self.archive_entry {
            None => access.debug_file(Path::new(&self.path)),
            Some(_) => access.read(&self.path),
        }
    }
}

/// The debug files of a build, whose headers are to be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanTask {
    /// The files, in order.
    pub files: Vec<TaskFile>,
    /// The wanted architectures; all if empty.
    pub archs: Vec<String>,
}

/// A task of a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planned {
    /// The debug file; `None` if it was not found.
    pub file: Option<TaskFile>,
    /// How many bytes the task reads, for progress.
    pub size: u64,
    /// What to build, or why it cannot be built.
    pub part: Result<PlannedPart, BuildFailure>,
}

/// The part of a build that one task does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPart {
    /// All files that have an image of the debug file, in order, if there are others.
    pub group: Vec<TaskFile>,
    /// The number of the image, if the debug file is a shared cache. Otherwise all images are built.
    pub cached_image: Option<usize>,
    /// The ids of the images that are built, as far as they can be read.
    pub ids: Vec<String>,
}

/// An image of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileImage {
    /// The file.
    pub file: OsString,
    /// The id of the image.
    pub id: String,
    /// Its architecture.
    pub arch: String,
}

/// One task of a build.
#[non_exhaustive]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuildTask {
    /// The debug file.
    pub file: TaskFile,
    /// Which part of it is built. The default is all images of the file, without other files.
    pub part: PlannedPart,
    /// The wanted architectures; all if empty.
    pub archs: Vec<String>,
    /// Folders in which files are searched that the debug file refers to.
    pub debug_dirs: Vec<OsString>,
    /// The ids of the wanted images; all if empty.
    pub ids: Vec<String>,
    /// Symbol maps and folders of them. The entry names a symbol map of an archive.
    pub symbol_maps: Vec<TaskFile>,
    /// Indexes that exist already: the ids of their images, and the paths. An image whose index is up to date is not
    /// built again.
    pub existing: Vec<(String, OsString)>,
    /// The folder for temporary files. A child can read the named files in it, so it should have none.
    pub temporary: OsString,
    /// Memory for units that wait for others, in bytes.
    pub max_memory: usize,
    /// Seconds that each index may take.
    pub max_seconds: Option<u64>,
    /// The number of threads.
    pub threads: usize,
    /// Whether each index is compared with the debug file.
    pub verify: bool,
}

impl BuildTask {
    /// Builds all images of `file`, with the defaults of `symdex build`, on one thread.
    #[must_use]
    pub fn new(file: TaskFile) -> Self {
        Self {
            file,
            part: PlannedPart::default(),
            archs: Vec::new(),
            debug_dirs: Vec::new(),
            ids: Vec::new(),
            symbol_maps: Vec::new(),
            existing: Vec::new(),
            temporary: std::env::temp_dir().into(),
            max_memory: 1 << 30,
            max_seconds: None,
            threads: 1,
            verify: false,
        }
    }

    /// The files that a child needs for this task.
    fn access(&self) -> Access {
        let files = self.part.group.iter().chain([&self.file]);
        let access = files.fold(Access::none(), |access, file| file.readable_in(access));
        let maps = self.symbol_maps.iter().map(|map| &map.path);
        let indexes = self.existing.iter().map(|(_, path)| path);
        let access = self.debug_dirs.iter().chain(maps).chain(indexes).fold(access, Access::read);
        access.temporary_files_in(&self.temporary)
    }
}

/// An index that was built, as far as its own metadata do not state it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuiltImage {
    /// The id of the image.
    pub id: String,
    /// The debug file.
    pub file: OsString,
    /// Other files of the image, whose symbols are in the index too.
    pub joined: Vec<OsString>,
    /// The size of the debug information, in bytes.
    pub debug_size: u64,
    /// The size of the index, in bytes.
    pub index_size: u64,
    /// What is odd about the debug file but changes no answer.
    pub warnings: Vec<String>,
    /// Whether the image has debug information.
    pub has_dwarf: bool,
    /// How many units could not be read to their end.
    pub failed_units: u64,
    /// What was left out because it states no code of the image, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Names that are still hidden.
    pub hidden_names: u64,
    /// How much code has answers.
    pub coverage: Coverage,
    /// The comparison with the debug file, if the task asks for it.
    pub verified: Option<Verified>,
    /// How long the build took.
    pub time: Duration,
}

/// The size of the executable sections, and how much of it each table answers, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Coverage {
    /// All bytes of the executable sections.
    pub executable: u64,
    /// The bytes that have a function or a line in the `dwarf` table.
    pub dwarf: u64,
    /// With a function in the `dwarf` table.
    pub dwarf_function: u64,
    /// With a function in the `symbol_table` table.
    pub symbol_table: u64,
}

/// The comparison of an index with its debug file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verified {
    /// How many addresses were compared.
    pub addresses: u64,
    /// At how many of them addr2line agrees.
    pub agreements: u64,
    /// At how many addr2line differs, by reason.
    pub explained: BTreeMap<String, u64>,
    /// At how many it differs for no known reason.
    pub unexplained: u64,
    /// Why the index must not be published; empty if it is right.
    pub wrong: Vec<String>,
}

/// Why a debug file, or a part of it, has no index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFailure {
    /// The file; `None` if the failure concerns no single file.
    pub file: Option<OsString>,
    /// The kind, as `symdex build --json` states it. `killed` means that the child has ended.
    pub kind: String,
    /// The limit that ended the child: [`Death::limit`](crate::isolate::Death::limit).
    pub limit: Option<String>,
    /// A few words by which failures are counted.
    pub reason: String,
    /// What is wrong, with the name of the file.
    pub message: String,
}

impl BuildFailure {
    /// The child for `file` has ended, or has not begun.
    #[must_use]
    pub fn of_child(file: &OsStr, error: &ChildError) -> Self {
        let limit = match error {
            ChildError::Ended(death) => Some(death.limit().to_owned()),
            ChildError::NotStarted { .. } => None,
        };
        let kind = if limit.is_some() { "killed" } else { "other" };
        Self {
            file: Some(file.into()),
            kind: kind.to_owned(),
            limit,
            reason: kind.to_owned(),
            message: format!("{}: {error}", file.display()),
        }
    }
}

/// Builds never write larger files than this for each byte of debug files, and than [`FREE_FILE_SIZE`].
const FILE_SIZE_RATIO: u64 = 64;
/// How large a file may be that a child writes, whatever the size of its debug file.
const FREE_FILE_SIZE: u64 = 1 << 30;

impl Isolation {
    /// These limits, with a limit of the size of written files in proportion to `files`.
    fn with_file_size(&self, files: impl Iterator<Item = impl AsRef<Path>>) -> Self {
        let size: u64 = files.map(|file| file.as_ref().metadata().map_or(0, |file| file.len())).sum();
        let limit = FREE_FILE_SIZE.saturating_add(size.saturating_mul(FILE_SIZE_RATIO));
        let limits = match self.limits.file_size {
            Some(_) => self.limits.clone(),
            None => self.limits.clone().file_size(Some(limit)),
        };
        self.clone().limits(limits)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_child_reads_an_unpacked_file_alone_and_a_file_on_disk_with_its_folder() {
        let mut task = BuildTask::new(TaskFile::of_archive("/tmp/x/0", "a.zip", "App"));
        task.part.group = vec![TaskFile::on_disk("/up/liba.so")];
        task.existing = vec![("00".to_owned(), "/tmp/y".into())];
        let read: Vec<_> = task.access().read.into_iter().collect();
        assert_eq!(read, ["/tmp/x/0", "/tmp/y", "/up", "/up/liba.so"]);
        assert_eq!(task.file.name(), "a.zip: App");
    }
}
