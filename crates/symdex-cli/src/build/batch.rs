//! The build of batches of inputs, and what is built so far.

use std::path::PathBuf;
use std::time::Instant;

use rayon::ThreadPool;
use symdex_build::debug_files::{
    BuildInputs, BuildJob, BuildPlan, ImageGroups, InputFiles, JobError, UnreadArchives,
};
use symdex_pipeline::isolate::build::FileImage;
use symdex_store::{PutOptions, StoreReader};

use super::intake::Batch;
use super::isolated::Isolated;
use super::job::{FinishedIndex, JobProgress, Work, build_job};
use super::required::{Required, images_of};
use super::totals::BuildTotals;
use super::{Args, in_flight, summary};
use crate::failure::{CommandError, CommandResult, Failure};
use crate::in_order::in_order;
use crate::progress::Progress;
use crate::text;

/// A build of all batches.
pub(super) struct Build<'a> {
    pub(super) args: &'a Args,
    pub(super) pool: &'a ThreadPool,
    /// Where the indexes are put. There is at least one.
    pub(super) stores: &'a StoreReader,
    pub(super) progress: &'a Progress,
    pub(super) required: &'a Required<'a>,
    totals: BuildTotals,
    /// How many jobs were run.
    jobs: usize,
    /// The failures of batches without a file of a wanted architecture, and the numbers of their files.
    without_arch: Vec<(Failure, u64)>,
}

impl<'a> Build<'a> {
    pub(super) fn new(
        args: &'a Args,
        pool: &'a ThreadPool,
        stores: &'a StoreReader,
        progress: &'a Progress,
        required: &'a Required<'a>,
    ) -> Self {
        let totals = BuildTotals::default();
        Self { args, pool, stores, progress, required, totals, jobs: 0, without_arch: Vec::new() }
    }

    /// Builds and publishes the indexes of `batch`, in child processes if `isolated` is given.
    pub(super) fn batch(
        &mut self,
        batch: Batch,
        isolated: Option<&Isolated<'_>>,
    ) -> Result<(), CommandError> {
        self.progress.suspend(|| {
            self.warn_about_archives(&batch.inputs);
            batch.warnings.iter().for_each(|fault| self.args.warn(&fault.to_string()));
        });
        batch.warnings.iter().for_each(|fault| self.required.not_read(fault));
        for failure in &batch.failures {
            self.fail(failure.clone())?;
        }
        let list = |files: &[PathBuf]| match isolated {
            Some(isolated) => isolated.images(files),
            None => Ok(files.iter().flat_map(|file| images_of(file)).collect::<Vec<FileImage>>()),
        };
        if let Err(failure) = self.required.mentioned(&batch.inputs, list) {
            self.fail(failure)?;
        }
        match isolated {
            Some(isolated) => isolated.build(&batch, self),
            None => self.here(batch),
        }
    }

    /// Reads the debug files of `batch` in this process.
    fn here(&mut self, batch: Batch) -> Result<(), CommandError> {
        // The unpacked files are deleted when `batch` is dropped.
        let Batch { inputs, ref maps, .. } = batch;
        let inputs = BuildInputs::from(inputs);
        let BuildPlan { mut jobs, skipped, .. } = inputs.plan(&self.args.arch);
        let all_skipped = match jobs.pop_if(|job| matches!(job, BuildJob::NoSuchArch(_))) {
            Some(BuildJob::NoSuchArch(error)) => {
                Some((Failure::from(JobError::NoSuchArch(&error)), error.files))
            }
            _ => None,
        };
        match all_skipped {
            Some((failure, files)) => self.skip(files, Some(failure)),
            None => self.skip(skipped, None),
        }
        let groups = self.pool.install(|| ImageGroups::of(&inputs));
        self.progress.add(jobs.iter().map(BuildJob::size).sum());
        let Self { args, pool, stores, progress, required, .. } = *self;
        let work = Work {
            archs: &args.arch,
            debug_dirs: &args.debug_dir,
            maps,
            groups: &groups,
            max_memory: args.max_memory / in_flight(args, pool, jobs.len()),
            max_seconds: args.max_seconds,
            verify: args.verify,
            wants: &|id| required.wants(id),
            existing: &|id| if args.builds_all() { None } else { stores.get(0, id).ok().flatten() },
            progress: JobProgress::Bar(progress),
        };
        self.all(jobs, |job| build_job(&job, &work))
    }

    /// Builds the indexes of `jobs`, publishes and reports them.
    pub(super) fn all<J: Send>(
        &mut self,
        jobs: Vec<J>,
        build: impl Fn(J) -> Vec<Result<FinishedIndex, Failure>> + Sync,
    ) -> Result<(), CommandError> {
        let Self { args, pool, stores, progress, required, .. } = *self;
        self.jobs += jobs.len();
        // The output of one or two files needs no totals.
        let are_many = self.jobs > 2;
        let at_a_time = in_flight(args, pool, jobs.len());
        let put = PutOptions::new().on_conflict(args.on_conflict);
        in_order(pool, at_a_time, jobs, build, |images| {
            for image in images {
                match image.and_then(|image| summary::publish(image, stores, &put)) {
                    Ok(image) => {
                        required.built(&image);
                        let reported = progress.suspend(|| summary::report(&image, args, are_many));
                        self.totals.count_losses(reported?);
                        self.totals.count(&Ok(image));
                    }
                    Err(failure) => self.fail(failure)?,
                }
            }
            Ok(())
        })
    }

    /// Counts `files` files without a wanted image; with a failure if a batch has no other files.
    pub(super) fn skip(&mut self, files: u64, failure: Option<Failure>) {
        match failure {
            Some(failure) => self.without_arch.push((failure, files)),
            None => self.totals.skip(files),
        }
    }

    /// Reports and counts a failure.
    fn fail(&mut self, failure: Failure) -> Result<(), CommandError> {
        self.progress.suspend(|| summary::report_failure(&failure, self.args.json))?;
        self.totals.count(&Err(failure));
        Ok(())
    }

    /// Reports what is missing, and the totals. Returns the gravest failure.
    pub(super) fn finish(mut self, begun: Instant) -> CommandResult {
        let mut without_arch = std::mem::take(&mut self.without_arch);
        // If an image was built, files without a wanted architecture are skipped.
        match self.totals.has_no_image() {
            true => {
                if let Some((failure, _)) = without_arch.pop() {
                    self.fail(failure)?;
                }
            }
            false => self.totals.skip(without_arch.iter().map(|(_, files)| files).sum()),
        }
        for failure in self.required.failures() {
            self.fail(failure)?;
        }
        let Self { args, progress, mut totals, jobs, .. } = self;
        match args.json {
            true => totals.print_json(begun.elapsed())?,
            false if args.quiet => {}
            false if jobs > 2 || totals.has_skipped() => progress.suspend(|| totals.report(begun.elapsed())),
            false => {}
        }
        if let Some(losses) = totals.losses() {
            progress.suspend(|| args.warn(&losses));
        }
        Ok(totals.gravest())
    }

    /// Warns about archives in folders of debug files.
    fn warn_about_archives(&self, inputs: &InputFiles) {
        for UnreadArchives { folder, archives, .. } in inputs.unread_archives() {
            let names = archives.iter().map(|path| path.strip_prefix(folder).unwrap_or(path).display());
            self.args.warn(&format!(
                "{}: archives in a folder are not read: {}; give them to symdex build as inputs",
                folder.display(),
                text::list(names)
            ));
        }
    }
}
