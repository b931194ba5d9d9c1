//! The parent process of `symdex build --isolate`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;
use symdex_build::debug_files::FileError;
use symdex_build::{Error, Found, search};
use symdex_isolate::build::{BuildFailure, BuildOutput, BuildOutputs, BuildTask, Plan, Planned, TaskResult};
use symdex_isolate::{Event, Isolation, Limits, Protections};

use super::job::{BuiltBytes, FinishedIndex};
use super::{Args, child, in_flight, warn_about_archives};
use crate::failure::{Failure, FailureKind, complain};
use crate::progress::Progress;

/// Memory of a child in addition to that of `--max-memory`: its program, its threads, and a small debug file.
const BASE_MEMORY: u64 = 256 << 20;

/// What the children of a build share.
pub(super) struct IsolatedJobs<'a> {
    args: &'a Args,
    isolation: Isolation,
    /// The share of `--max-memory` and of the threads for each child.
    max_memory: usize,
    threads: usize,
    /// Whether the limits that are in force have been printed.
    is_told: Mutex<bool>,
}

impl<'a> IsolatedJobs<'a> {
    /// Reads the headers of the debug files in a child. Returns what the children share, the tasks, and how many files
    /// are skipped.
    pub(super) fn plan(args: &'a Args, pool: &ThreadPool) -> Result<(Self, Vec<Planned>, u64), Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(FailureKind::Other, format!("cannot find symdex itself: {error}"))
        })?;
        let memory = args.max_memory as u64;
        let limits = Limits::new()
            .memory(Some(memory.saturating_add(memory / 4).saturating_add(BASE_MEMORY)))
            .seconds(args.max_seconds);
        let isolation = Isolation::new(program).arg(child::COMMAND).limits(limits.clone());
        let Plan { tasks, skipped } = isolation
            .plan(debug_files(&args.inputs), &args.arch)
            .map_err(|error| Failure::new(FailureKind::Other, error.to_string()))?;
        let children = in_flight(args, pool, tasks.len());
        let threads = pool.current_num_threads() / children;
        let isolation = isolation.limits(limits.threads(threads as u64));
        let max_memory = args.max_memory / children;
        let jobs = Self { args, isolation, max_memory, threads, is_told: Mutex::new(false) };
        Ok((jobs, tasks, skipped))
    }

    /// The folder for indexes that are not published yet.
    fn folder(&self) -> PathBuf {
        self.args.output.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Builds the indexes of a task in a child.
    pub(super) fn build(&self, planned: Planned, progress: &Progress) -> Vec<Result<FinishedIndex, Failure>> {
        let (file, part) = match (planned.file, planned.part) {
            (Some(file), Ok(part)) => (file, part),
            (_, Err(failure)) => return vec![Err(failure.into())],
            (None, Ok(_)) => return Vec::new(),
        };
        let Args { arch, debug_dir, symbol_map, max_seconds, verify, .. } = self.args;
        let mut task = BuildTask::new(file);
        task.part = part;
        task.archs.clone_from(arch);
        task.debug_dirs = debug_dir.iter().map(Into::into).collect();
        task.symbol_maps = symbol_map.iter().map(Into::into).collect();
        task.max_memory = self.max_memory;
        task.max_seconds = *max_seconds;
        task.threads = self.threads;
        task.verify = *verify;
        let mut image = None;
        let BuildOutputs { images, protections } =
            self.isolation.build(&task, &self.folder(), |event| match event {
                Event::Progress { size, done, total } => {
                    image.get_or_insert_with(|| progress.of_image(size)).set(done, total);
                }
                Event::Result(TaskResult::Image(built)) => {
                    // What is left of the image counts as done when this is dropped.
                    drop(image.take().unwrap_or_else(|| progress.of_image(built.debug_size)));
                }
                Event::Result(_) => drop(image.take()),
            });
        if let Some(protections) = protections {
            progress.suspend(|| self.tell(&protections));
        }
        let finished = |BuildOutput { image, index }: BuildOutput| FinishedIndex {
            image,
            bytes: BuiltBytes::InChild(index),
        };
        images.into_iter().map(|result| result.map(finished).map_err(Failure::from)).collect()
    }

    /// Prints once which limits are in force.
    fn tell(&self, protections: &Protections) {
        let mut is_told = self.is_told.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_told, true) {
            let missing = match &protections.missing[..] {
                [] => String::new(),
                missing => format!("; this system lacks {}", missing.join(", ")),
            };
            complain(&format!("debug files are isolated: {}{missing}", protections.in_force.join(", ")));
        }
    }
}

/// The debug files of `inputs`. Only the first bytes of files are read here.
fn debug_files(inputs: &[PathBuf]) -> Vec<Result<PathBuf, BuildFailure>> {
    let mut files = Vec::new();
    for input in inputs {
        let Found { debug_files, archives, .. } = search(input);
        // The error for a folder without debug files names the archives itself.
        let has_none = matches!(debug_files[..], [Err(Error::NoDebugFile { .. })]);
        if !archives.is_empty() && !has_none {
            warn_about_archives(input, &archives);
        }
        let failed = |error| Failure::from(FileError::new(input, error)).to_wire();
        files.extend(debug_files.into_iter().map(|found| found.map_err(failed)));
    }
    files
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
