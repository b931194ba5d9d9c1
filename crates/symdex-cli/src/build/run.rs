//! The build of batches of inputs, and what is built so far.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use symdex::{Grade, ImageId};
use symdex_build::debug_files::{InputFiles, UnreadArchives};
use symdex_pipeline::isolate::Protections;
use symdex_pipeline::{Batch, BuiltIndex, Host, Pipeline, Plan, embedded_bytes};
use symdex_store::{IndexBytes, PutOptions, StoreReader};

use super::args::{BuildArgs, EmbedArgs};
use super::embed;
use super::required::Required;
use super::summary;
use super::totals::BuildOutput;
use crate::failure::{CommandError, Failure, note};
use crate::progress::Progress;
use crate::text;

/// A build of all batches.
struct Build<'a> {
    pipeline: &'a Pipeline,
    host: &'a BuildHost<'a>,
    required: Required<'a>,
    output: BuildOutput<'a>,
    /// How many tasks were done.
    tasks: usize,
    /// The failures of batches without a file of a wanted architecture, and the numbers of their files.
    without_arch: Vec<(Failure, u64)>,
}

/// Indexes that exist, progress, and a message.
pub(crate) struct BuildHost<'a> {
    args: &'a BuildArgs,
    /// Where the indexes are put. There is at least one, unless debug files get them.
    stores: &'a StoreReader,
    put: PutOptions,
    /// Whether images are built whose index the first store has.
    builds_all: bool,
    /// How debug files get the indexes, if they do.
    embed: Option<&'a EmbedArgs>,
    /// The debug files of the batch that get them.
    files: Mutex<Vec<PathBuf>>,
    progress: &'a Progress,
    /// Whether the limits that are in force have been printed.
    is_told: AtomicBool,
}

/// Builds `inputs` into the stores of `host`, except images with the ids that `leave_out` returns for each plan.
/// Returns the output before its totals, and whether the totals are for people, too.
pub(crate) fn build<'a>(
    pipeline: &'a Pipeline,
    inputs: &[PathBuf],
    host: &'a BuildHost<'a>,
    output: BuildOutput<'a>,
    mut leave_out: impl FnMut(&Plan) -> Result<BTreeSet<ImageId>, Failure>,
) -> Result<(BuildOutput<'a>, bool), CommandError> {
    let mut intake = host.args.inputs.intake(inputs);
    let mut build = Build::new(pipeline, host, output);
    while let Some(batch) = intake.next_batch(host.progress)? {
        build.batch(&batch, &mut leave_out)?;
    }
    build.finish()
}

impl<'a> BuildHost<'a> {
    pub(crate) fn new(
        args: &'a BuildArgs,
        stores: &'a StoreReader,
        put: PutOptions,
        progress: &'a Progress,
    ) -> Self {
        let (files, is_told) = (Mutex::default(), AtomicBool::new(false));
        Self { args, stores, put, builds_all: false, embed: None, files, progress, is_told }
    }

    pub(super) fn building_all(self, builds_all: bool) -> Self {
        Self { builds_all, ..self }
    }

    pub(super) fn embedding(self, embed: Option<&'a EmbedArgs>) -> Self {
        Self { embed, ..self }
    }
}

impl Host for BuildHost<'_> {
    fn planned(&self, bytes: u64) {
        self.progress.add(bytes);
    }

    fn read(&self, bytes: u64) {
        self.progress.bar().done(bytes);
    }

    fn existing(&self, id: &ImageId) -> Option<IndexBytes> {
        if self.builds_all {
            return None;
        }
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let embedded = files.iter().find_map(|file| embedded_bytes(file, id));
        embedded.or_else(|| self.stores.stores().first()?.get(id).ok().flatten())
    }

    fn confined(&self, protections: &Protections) {
        if self.args.reporting.is_quiet() || self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let missing = match &protections.missing[..] {
            [] => String::new(),
            missing => format!("; this system lacks {}", missing.join(", ")),
        };
        let limits = protections.in_force.join(", ");
        self.progress.suspend(|| note(&format!("debug files are isolated: {limits}{missing}")));
    }
}

impl<'a> Build<'a> {
    fn new(pipeline: &'a Pipeline, host: &'a BuildHost<'a>, output: BuildOutput<'a>) -> Self {
        let required = Required::new(&host.args.required);
        Self { pipeline, host, required, output, tasks: 0, without_arch: Vec::new() }
    }

    /// Builds and publishes the indexes of `batch`.
    fn batch(
        &mut self,
        batch: &Batch,
        leave_out: &mut impl FnMut(&Plan) -> Result<BTreeSet<ImageId>, Failure>,
    ) -> Result<(), CommandError> {
        let Self { pipeline, host, .. } = *self;
        let (required, output) = (&mut self.required, &mut self.output);
        host.progress.suspend(|| report_batch(batch, host.args, required, output))?;
        if let Err(failure) = self.required.mentioned(&batch.files, pipeline) {
            self.fail(&failure)?;
        }
        let mut plan = pipeline.plan(batch, host)?;
        match plan.no_such_arch.clone() {
            Some(failure) => self.without_arch.push((failure, plan.skipped)),
            None => self.output.skip(plan.skipped),
        }
        self.required.planned(&plan)?;
        let left_out = leave_out(&plan)?;
        self.required.left_out(&plan, &left_out);
        plan.leave_out(&left_out);
        if host.embed.is_some() {
            let files = batch.files.files().iter().flatten().map(|file| file.path().to_owned());
            *host.files.lock().unwrap_or_else(PoisonError::into_inner) = files.collect();
        }
        self.tasks += plan.task_len();
        let ids = self.required.ids(&plan);
        pipeline.build(batch, plan, &ids, host, |built| built, |built| self.built(built))
    }

    /// Publishes and reports an index, or reports a failure.
    fn built(&mut self, built: Result<BuiltIndex, Failure>) -> Result<(), CommandError> {
        let BuildHost { stores, put, embed, progress, .. } = self.host;
        let is_first = self.output.has_no_image();
        let image = match built.and_then(|built| match embed {
            Some(args) => embed::publish(built, args, is_first),
            None => summary::publish(built, stores, put),
        }) {
            Ok(image) => image,
            Err(failure) => return self.fail(&failure),
        };
        self.required.built(&image, || {
            let kept = image
                .published
                .id
                .parse()
                .ok()
                .and_then(|id| stores.stores().first()?.open(&id).ok().flatten());
            let kept = kept.as_ref().map(|kept| kept.metadata());
            kept.is_some_and(|kept| kept.counts.units != 0 && kept.grade() >= Grade::Names)
        });
        // The output of one or two files needs no totals.
        let are_many = self.tasks > 2;
        progress.suspend(|| self.output.image(image, are_many))
    }

    /// Reports and counts a failure.
    fn fail(&mut self, failure: &Failure) -> Result<(), CommandError> {
        self.host.progress.suspend(|| self.output.fail(failure))
    }

    /// Reports what is missing. Returns the output before its totals, and whether there are many files.
    fn finish(mut self) -> Result<(BuildOutput<'a>, bool), CommandError> {
        let mut without_arch = std::mem::take(&mut self.without_arch);
        // If an image was built, files without a wanted architecture are skipped.
        if self.output.has_no_image() {
            if let Some((failure, _)) = without_arch.pop() {
                self.fail(&failure)?;
            }
        } else {
            self.output.skip(without_arch.iter().map(|(_, files)| files).sum());
        }
        for failure in self.required.failures() {
            self.fail(&failure)?;
        }
        let are_many = self.tasks > 2 || self.output.has_skipped();
        Ok((self.output, are_many))
    }
}

/// Reports what is wrong with a batch, and warns about what is not read of it.
pub(crate) fn report_batch(
    batch: &Batch,
    args: &BuildArgs,
    required: &mut Required<'_>,
    output: &mut BuildOutput<'_>,
) -> Result<(), CommandError> {
    warn_about_archives(&batch.files, args);
    let special = batch.files.special_files();
    if !special.is_empty() {
        args.reporting.warn(&special.to_string());
    }
    for fault in &batch.warnings {
        args.reporting.warn(&fault.to_string());
        required.not_read(fault);
    }
    batch.failures.iter().try_for_each(|failure| output.fail(failure))
}

/// Warns about archives in folders of debug files.
fn warn_about_archives(inputs: &InputFiles, args: &BuildArgs) {
    for UnreadArchives { folder, archives, .. } in inputs.unread_archives() {
        let names = archives.iter().map(|path| path.strip_prefix(folder).unwrap_or(path).display());
        args.reporting.warn(&format!(
            "{}: archives in a folder are not read: {}; give them to symdex build as inputs",
            folder.display(),
            text::list(names)
        ));
    }
}
