//! The child process of `symdex build --isolate`.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use symdex_build::debug_files::{BuildInputs, BuildJob, BuildPlan, ImageGroups, JobError};
use symdex_isolate::build::{BuildTask, PlanTask, Planned, PlannedPart, Task, TaskResult};
use symdex_isolate::child::{Channel, enter};

use super::job::{FinishedIndex, JobProgress, Work, each_index};
use crate::failure::{Failure, FailureKind};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "isolated-child";

/// Does the task that standard input states. See [`symdex_isolate::child`].
pub(crate) fn run() -> ExitCode {
    enter(|task, parent| match task {
        Task::Plan(task) => plan(&task, parent),
        Task::Build(task) => {
            if let Err(failure) = build(&task, parent) {
                parent.send(TaskResult::Failed(failure.to_wire()));
            }
        }
    })
}

/// Sends the build tasks of debug files.
fn plan(task: &PlanTask, parent: &Channel<TaskResult>) {
    let inputs = BuildInputs::find(&task.files);
    let BuildPlan { jobs, skipped, .. } = inputs.plan(&task.archs);
    let groups = Groups::of(&inputs, &task.files);
    let mut cached: HashMap<&Path, usize> = HashMap::new();
    for job in &jobs {
        let (file, part) = match job {
            BuildJob::File(path) => {
                let group = groups.with(path);
                (Some(*path), Ok(PlannedPart { group, cached_image: None }))
            }
            BuildJob::CachedImage { cache, .. } => {
                let number = cached.entry(cache).or_default();
                let part = PlannedPart { group: Vec::new(), cached_image: Some(*number) };
                *number += 1;
                (Some(*cache), Ok(part))
            }
            BuildJob::Failed(error) => (Some(error.path()), Err(Failure::from(*error).to_wire())),
            BuildJob::NoSuchArch(error) => (None, Err(Failure::from(JobError::NoSuchArch(error)).to_wire())),
        };
        let file = file.map(Into::into);
        parent.send(TaskResult::Planned(Planned { file, size: job.size(), part }));
    }
    parent.send(TaskResult::Skipped(skipped));
}

/// The files of a plan that have an image of each other.
struct Groups<'f> {
    files: &'f [OsString],
    /// By path: the numbers of the file itself and of the others.
    numbers: HashMap<PathBuf, BTreeSet<usize>>,
}

impl<'f> Groups<'f> {
    fn of(inputs: &BuildInputs, files: &'f [OsString]) -> Self {
        let places: HashMap<&Path, usize> = files.iter().map(Path::new).zip(0..).collect();
        let mut numbers: HashMap<PathBuf, BTreeSet<usize>> = HashMap::new();
        for group in ImageGroups::of(inputs).iter() {
            let group: Vec<&Path> = group.collect();
            for file in &group {
                let others = group.iter().filter_map(|other| places.get(other).copied());
                numbers.entry((*file).to_owned()).or_default().extend(others);
            }
        }
        Self { files, numbers }
    }

    /// The files that have an image of the file at `path`, in order, and that file; empty if no other file has one.
    fn with(&self, path: &Path) -> Vec<OsString> {
        self.numbers.get(path).into_iter().flatten().map(|number| self.files[*number].clone()).collect()
    }
}

/// Builds the indexes of a debug file, and sends what is known of each.
fn build(task: &BuildTask, parent: &Channel<TaskResult>) -> Result<(), Failure> {
    let pool = super::pool(u16::try_from(task.threads).ok())?;
    let paths = |paths: &[OsString]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let maps = super::symbol_maps(&paths(&task.symbol_maps))?;
    let group = BuildInputs::find(&task.part.group);
    let groups = pool.install(|| ImageGroups::of(&group));
    let work = Work {
        archs: &task.archs,
        debug_dirs: &paths(&task.debug_dirs),
        maps: &maps,
        groups: &groups,
        max_memory: task.max_memory,
        max_seconds: task.max_seconds,
        verify: task.verify,
        store: None,
        progress: JobProgress::Parent(parent),
    };
    let file = Path::new(&task.file);
    let mut output = parent.output().map_err(|error| unwritable(file, &error))?;
    let mut send = |index| parent.send(sent(index, &mut output, file));
    match task.part.cached_image {
        None => pool.install(|| each_index(&BuildJob::File(file), &work, send)),
        Some(number) => {
            let inputs = BuildInputs::find([file]);
            let plan = inputs.plan(&task.archs);
            let mut images = plan.jobs.iter().filter(|job| matches!(job, BuildJob::CachedImage { .. }));
            match images.nth(number) {
                Some(job) => pool.install(|| each_index(job, &work, send)),
                None => {
                    let message = format!("{}: the image is not there any more", file.display());
                    send(Err(Failure::new(FailureKind::Damaged, message).of_path(file)));
                }
            }
        }
    }
    Ok(())
}

/// Writes a finished index to `output`.
fn sent(index: Result<FinishedIndex, Failure>, output: &mut File, file: &Path) -> TaskResult {
    let written = index.and_then(|FinishedIndex { image, bytes }| {
        output.write_all(bytes.as_ref()).map_err(|error| unwritable(file, &error))?;
        Ok(image)
    });
    match written {
        Ok(image) => TaskResult::Image(image),
        Err(failure) => TaskResult::Failed(failure.to_wire()),
    }
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Other, format!("{}: cannot write its index: {error}", file.display()))
        .of_path(file)
}
