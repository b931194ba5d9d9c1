//! The child process of `symdex build --isolate`.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use symdex::ImageId;
use symdex_build::SymbolMaps;
use symdex_build::debug_files::{
    BuildInputs, BuildJob, BuildPlan, DebugFile, ImageGroups, InputFiles, JobError, is_wanted, slices_of,
};
use symdex_pipeline::isolate::Isolation;
use symdex_pipeline::isolate::build::{
    BuildTask, PlanTask, Planned, PlannedPart, Task, TaskFile, TaskResult,
};
use symdex_pipeline::isolate::child::{Channel, enter};
use symdex_store::IndexBytes;

use super::isolated::task_file;
use super::job::{FinishedIndex, JobProgress, Work, each_index};
use super::required::images_of;
use crate::failure::{Failure, FailureKind};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "isolated-child";

/// Starts this program as a child that does a task. The child reads no configuration: its parent has read it.
pub(crate) fn isolation() -> Result<Isolation, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(FailureKind::Other, format!("cannot find symdex itself: {error}")))?;
    Ok(Isolation::new(program).arg(COMMAND).arg("--no-config"))
}

/// Does the task that standard input states. See [`symdex_pipeline::isolate::child`].
pub(crate) fn run() -> ExitCode {
    enter(|task, parent| match task {
        Task::Plan(task) => plan(&task, parent),
        Task::Build(task) => {
            if let Err(failure) = build(&task, parent) {
                parent.send(TaskResult::Failed(failure.to_wire()));
            }
        }
        Task::Images(files) => {
            let images = files.iter().flat_map(|file| images_of(Path::new(file)));
            images.for_each(|image| parent.send(TaskResult::Listed(image)));
        }
    })
}

fn debug_file(file: &TaskFile) -> DebugFile {
    match &file.archive_entry {
        Some((archive, entry)) => DebugFile::of_archive(&file.path, archive, entry),
        None => DebugFile::on_disk(&file.path),
    }
}

/// The files of a task. Those on disk may be shared caches.
fn inputs(files: &[TaskFile]) -> BuildInputs {
    let mut inputs = InputFiles::default();
    for file in files {
        match &file.archive_entry {
            None => inputs.add(Path::new(&file.path)),
            Some(_) => _ = inputs.add_unpacked(debug_file(file)),
        }
    }
    inputs.into()
}

/// Sends the build tasks of debug files.
fn plan(task: &PlanTask, parent: &Channel<TaskResult>) {
    let inputs = inputs(&task.files);
    let BuildPlan { jobs, mut skipped, .. } = inputs.plan(&task.archs);
    let groups = Groups::of(&inputs, &task.files);
    let mut cached: HashMap<&Path, usize> = HashMap::new();
    let mut all_skipped = None;
    for job in &jobs {
        let (file, part) = match job {
            BuildJob::File(file) => (task_file(file), Ok(groups.part(file, &task.archs))),
            BuildJob::CachedImage { cache, image } => {
                let number = cached.entry(cache).or_default();
                let ids = image.identity().iter().map(|identity| identity.id.to_string()).collect();
                let part = PlannedPart { group: Vec::new(), cached_image: Some(*number), ids };
                *number += 1;
                (TaskFile::on_disk(*cache), Ok(part))
            }
            BuildJob::Failed(error) => {
                (TaskFile::on_disk(error.path()), Err(Failure::from(*error).to_wire()))
            }
            BuildJob::NoSuchArch(error) => {
                skipped = error.files;
                all_skipped = Some(Failure::from(JobError::NoSuchArch(error)).to_wire());
                continue;
            }
        };
        parent.send(TaskResult::Planned(Planned { file: Some(file), size: job.size(), part }));
    }
    parent.send(TaskResult::Skipped { files: skipped, failure: all_skipped });
}

/// The files of a plan that have an image of each other.
struct Groups<'f> {
    files: &'f [TaskFile],
    /// By path: the numbers of the file itself and of the others.
    numbers: HashMap<PathBuf, BTreeSet<usize>>,
}

impl<'f> Groups<'f> {
    fn of(inputs: &BuildInputs, files: &'f [TaskFile]) -> Self {
        let places: HashMap<&Path, usize> = files.iter().map(|file| Path::new(&file.path)).zip(0..).collect();
        let mut numbers: HashMap<PathBuf, BTreeSet<usize>> = HashMap::new();
        for group in ImageGroups::of(inputs).iter() {
            let group: Vec<&Path> = group.map(DebugFile::path).collect();
            for file in &group {
                let others = group.iter().filter_map(|other| places.get(other).copied());
                numbers.entry((*file).to_owned()).or_default().extend(others);
            }
        }
        Self { files, numbers }
    }

    /// The part that builds `file`: with the files that have an image of it, in order, and the ids of its images.
    fn part(&self, file: &DebugFile, archs: &[String]) -> PlannedPart {
        let numbers = self.numbers.get(file.path()).into_iter().flatten();
        let group = numbers.map(|number| self.files[*number].clone()).collect();
        let images = slices_of(file).into_iter().flatten().flatten();
        let wanted = images.filter(|image| is_wanted(&image.arch, archs));
        let ids: BTreeSet<String> = wanted.map(|image| image.identity.id.to_string()).collect();
        PlannedPart { group, cached_image: None, ids: ids.into_iter().collect() }
    }
}

/// Builds the indexes of a debug file, and sends what is known of each.
fn build(task: &BuildTask, parent: &Channel<TaskResult>) -> Result<(), Failure> {
    let pool = super::pool(u16::try_from(task.threads).ok())?;
    let paths = |paths: &[OsString]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let maps = symbol_maps(&task.symbol_maps)?;
    let group = inputs(&task.part.group);
    let groups = pool.install(|| ImageGroups::of(&group));
    let work = Work {
        archs: &task.archs,
        debug_dirs: &paths(&task.debug_dirs),
        maps: &maps,
        groups: &groups,
        max_memory: task.max_memory,
        max_seconds: task.max_seconds,
        verify: task.verify,
        wants: &|id| is_wanted_image(id, &task.ids, parent),
        existing: &|id| existing(id, &task.existing),
        progress: JobProgress::Parent(parent),
    };
    let name = task.file.name();
    let name = Path::new(&name);
    let mut output = parent.output().map_err(|error| unwritable(name, &error))?;
    let mut send = |index| parent.send(sent(index, &mut output, name));
    match task.part.cached_image {
        None => pool.install(|| each_index(&BuildJob::File(&debug_file(&task.file)), &work, send)),
        Some(number) => {
            let inputs = inputs(std::slice::from_ref(&task.file));
            let plan = inputs.plan(&task.archs);
            let mut images = plan.jobs.iter().filter(|job| matches!(job, BuildJob::CachedImage { .. }));
            match images.nth(number) {
                Some(job) => pool.install(|| each_index(job, &work, send)),
                None => {
                    let message = format!("{}: the image is not there any more", name.display());
                    send(Err(Failure::new(FailureKind::Damaged, message).of_path(name)));
                }
            }
        }
    }
    Ok(())
}

/// The symbol maps at `maps`, those of archives last.
fn symbol_maps(maps: &[TaskFile]) -> Result<SymbolMaps, Failure> {
    let on_disk = maps.iter().filter(|map| map.archive_entry.is_none());
    let mut found = super::symbol_maps(&on_disk.map(|map| PathBuf::from(&map.path)).collect::<Vec<_>>())?;
    for map in maps {
        if let Some((_, entry)) = &map.archive_entry {
            found.add(Path::new(entry), Path::new(&map.path));
        }
    }
    Ok(found)
}

/// Whether the image is one of `ids`. Tells the parent that the debug file has it.
fn is_wanted_image(id: &ImageId, ids: &[String], parent: &Channel<TaskResult>) -> bool {
    let id = id.to_string();
    if !ids.contains(&id) {
        return ids.is_empty();
    }
    parent.send(TaskResult::Found { id });
    true
}

/// The index of `id` among `indexes`.
fn existing(id: &ImageId, indexes: &[(String, OsString)]) -> Option<IndexBytes> {
    let (_, path) = indexes.iter().find(|(of, _)| *of == id.to_string())?;
    symdex::map_file(Path::new(path)).ok().map(IndexBytes::from)
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
