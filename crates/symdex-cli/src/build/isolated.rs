//! The parent process of `symdex build --isolate`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use symdex::ImageId;
use symdex_build::debug_files::DebugFile;
use symdex_pipeline::archive::TemporaryFolder;
use symdex_pipeline::isolate::build::{
    BuildFailure, BuildOutput, BuildOutputs, BuildTask, FileImage, Plan, Planned, PlannedPart, TaskFile,
    TaskResult,
};
use symdex_pipeline::isolate::{Event, Isolation, Limits, Protections};
use symdex_store::StoreReader;
use tempfile::NamedTempFile;

use super::batch::Build;
use super::intake::Batch;
use super::job::{BuiltBytes, FinishedIndex};
use super::required::{Required, is_asked_for};
use super::{Args, child, in_flight};
use crate::archive;
use crate::failure::{CommandError, Failure, FailureKind, complain};
use crate::interrupt;
use crate::progress::Progress;

/// Memory of a child in addition to that of `--max-memory`: its program, its threads, and a small debug file.
const BASE_MEMORY: u64 = 256 << 20;

/// Builds in child processes.
pub(super) struct Isolated<'a> {
    args: &'a Args,
    isolation: Isolation,
    limits: Limits,
    /// Contains the next two folders. A signal that ends the command deletes it.
    _temporary: TemporaryFolder,
    /// The children's folder for temporary files. It has no file with a name.
    of_children: PathBuf,
    /// The folder for copies of indexes, which the children read.
    existing: PathBuf,
    /// Whether the limits that are in force have been printed.
    is_told: Mutex<bool>,
}

impl<'a> Isolated<'a> {
    pub(super) fn new(args: &'a Args) -> Result<Self, Failure> {
        interrupt::delete_temporary_folders();
        let temporary = TemporaryFolder::new_in(&std::env::temp_dir());
        let temporary = temporary.map_err(|error| archive::no_temporary_folder(&error))?;
        let [of_children, existing] = ["children", "existing"].map(|name| temporary.path().join(name));
        let made = std::fs::create_dir(&of_children).and_then(|()| std::fs::create_dir(&existing));
        made.map_err(|error| archive::no_temporary_folder(&error))?;
        let memory = args.max_memory as u64;
        let limits = Limits::new()
            .memory(Some(memory.saturating_add(memory / 4).saturating_add(BASE_MEMORY)))
            .seconds(args.max_seconds);
        let isolation = child::isolation()?.limits(limits.clone());
        let is_told = Mutex::new(false);
        Ok(Self { args, isolation, limits, _temporary: temporary, of_children, existing, is_told })
    }

    /// The images of the files at `paths`.
    pub(super) fn images(&self, paths: &[PathBuf]) -> Result<Vec<FileImage>, Failure> {
        self.isolation
            .images(paths)
            .map_err(|error| BuildFailure::of_child("--require-all".as_ref(), &error).into())
    }

    /// Builds and publishes the indexes of `batch`.
    pub(super) fn build(&self, batch: &Batch, build: &mut Build<'_>) -> Result<(), CommandError> {
        let found = batch.inputs.files().iter();
        let found = found.map(|found| match found {
            Ok(file) => Ok(task_file(file)),
            Err(error) => Err(Failure::from(error).to_wire()),
        });
        let Plan { tasks, skipped, failure } = self
            .isolation
            .plan(found.collect(), &self.args.arch)
            .map_err(|error| Failure::new(FailureKind::Other, error.to_string()))?;
        build.skip(skipped, failure.map(Failure::from));
        build.progress.add(tasks.iter().map(|task| task.size).sum());
        let children = in_flight(self.args, build.pool, tasks.len());
        let threads = build.pool.current_num_threads() / children;
        let limits = self.limits.clone().threads(threads as u64);
        let maps = self.args.symbol_map.iter().map(TaskFile::on_disk);
        let jobs = IsolatedJobs {
            isolated: self,
            isolation: self.isolation.clone().limits(limits),
            max_memory: self.args.max_memory / children,
            threads,
            symbol_maps: maps.chain(batch.unpacked_maps.iter().cloned()).collect(),
            progress: build.progress,
            required: build.required,
            stores: build.stores,
        };
        build.all(tasks, |task| jobs.build(task))
    }

    /// Prints once which limits are in force.
    fn tell(&self, protections: &Protections) {
        let mut is_told = self.is_told.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_told, true) && !self.args.quiet {
            let missing = match &protections.missing[..] {
                [] => String::new(),
                missing => format!("; this system lacks {}", missing.join(", ")),
            };
            complain(&format!("debug files are isolated: {}{missing}", protections.in_force.join(", ")));
        }
    }
}

/// What the children of a batch share.
struct IsolatedJobs<'i> {
    isolated: &'i Isolated<'i>,
    isolation: Isolation,
    /// The share of `--max-memory` and of the threads for each child.
    max_memory: usize,
    threads: usize,
    symbol_maps: Vec<TaskFile>,
    progress: &'i Progress,
    required: &'i Required<'i>,
    stores: &'i StoreReader,
}

impl IsolatedJobs<'_> {
    /// Builds the indexes of a task in a child.
    fn build(&self, planned: Planned) -> Vec<Result<FinishedIndex, Failure>> {
        let (file, part) = match (planned.file, planned.part) {
            (Some(file), Ok(part)) => (file, part),
            (_, Err(failure)) => return vec![Err(failure.into())],
            (None, Ok(_)) => return Vec::new(),
        };
        // These files are deleted when the child has ended.
        let existing = self.existing(&part);
        let mut task = self.task(file, part);
        task.existing = existing.iter().map(|(id, file)| (id.to_string(), file.path().into())).collect();
        let mut image = None;
        let progress = self.progress;
        let each = |event: Event<&TaskResult>| match event {
            Event::Progress { size, done, total } => {
                image.get_or_insert_with(|| progress.of_image(size)).set(done, total);
            }
            Event::Result(TaskResult::Image(built)) => {
                // What is left of the image counts as done when this is dropped.
                drop(image.take().unwrap_or_else(|| progress.of_image(built.debug_size)));
            }
            Event::Result(TaskResult::Found { id }) => {
                if let Ok(id) = id.parse() {
                    self.required.found(id);
                }
            }
            Event::Result(_) => drop(image.take()),
        };
        let BuildOutputs { images, protections } = self.isolation.build(&task, &self.folder(), each);
        if let Some(protections) = protections {
            progress.suspend(|| self.isolated.tell(&protections));
        }
        let finished = |BuildOutput { image, index }: BuildOutput| FinishedIndex {
            image,
            bytes: BuiltBytes::InChild(index),
        };
        images.into_iter().map(|result| result.map(finished).map_err(Failure::from)).collect()
    }

    fn task(&self, file: TaskFile, part: PlannedPart) -> BuildTask {
        let Args { arch, debug_dir, max_seconds, verify, .. } = self.isolated.args;
        let mut task = BuildTask::new(file);
        task.part = part;
        task.archs.clone_from(arch);
        task.ids = self.required.ids().iter().map(ImageId::to_string).collect();
        task.debug_dirs = debug_dir.iter().map(Into::into).collect();
        task.symbol_maps.clone_from(&self.symbol_maps);
        task.temporary = self.isolated.of_children.as_path().into();
        task.max_memory = self.max_memory;
        task.max_seconds = *max_seconds;
        task.threads = self.threads;
        task.verify = *verify;
        task
    }

    /// The indexes in the first store of the wanted images of `part`, as files that the child can read.
    fn existing(&self, part: &PlannedPart) -> Vec<(ImageId, NamedTempFile)> {
        if self.isolated.args.builds_all() {
            return Vec::new();
        }
        let ids = part.ids.iter().filter_map(|id| id.parse::<ImageId>().ok());
        let wanted = ids.filter(|id| is_asked_for(self.required.ids(), id));
        // An index that cannot be read or copied is built again.
        let copied = |id: ImageId| {
            let index = self.stores.get(0, &id).ok().flatten()?;
            let mut file = NamedTempFile::new_in(&self.isolated.existing).ok()?;
            file.write_all(&index).ok()?;
            Some((id, file))
        };
        wanted.filter_map(copied).collect()
    }

    /// The folder for indexes that are not published yet.
    fn folder(&self) -> PathBuf {
        self.isolated.args.output.clone().unwrap_or_else(std::env::temp_dir)
    }
}

pub(super) fn task_file(file: &DebugFile) -> TaskFile {
    match file.archive_entry() {
        Some((archive, entry)) => TaskFile::of_archive(file.path(), archive, entry),
        None => TaskFile::on_disk(file.path()),
    }
}

impl From<BuildFailure> for Failure {
    fn from(failure: BuildFailure) -> Self {
        let BuildFailure { file, kind, limit, reason, message } = failure;
        let (kind, limit) = (FailureKind::of_name(&kind), limit.map(String::into_boxed_str));
        Self { kind, message, reason: reason.into(), path: file.map(PathBuf::from), limit }
    }
}

impl Failure {
    /// The failure as a child sends it to its parent.
    pub(super) fn to_wire(&self) -> BuildFailure {
        BuildFailure {
            file: self.path.as_deref().map(Path::as_os_str).map(Into::into),
            kind: self.kind.name().to_owned(),
            limit: self.limit.as_deref().map(str::to_owned),
            reason: self.reason.clone().into_owned(),
            message: self.message.clone(),
        }
    }
}
