//! The images that a build must find: those of `--id`, and with `--require-all` all that the inputs have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use symdex::{Grade, ImageId};
use symdex_build::debug_files::InputFiles;
use symdex_pipeline::archive::{Fault, FaultKind};
use symdex_pipeline::{Batch, Pipeline, Plan, PublishedIndex};
use symdex_store::{IdPrefix, PublishOutcome};

use super::args::RequiredArgs;
use super::summary::ImageSummary;
use crate::failure::{Cause, Failure};
use crate::stores::one_of;
use crate::text;

/// The images that a build must find, and those that it has found.
pub(crate) struct Required<'a> {
    args: &'a RequiredArgs,
    /// The images in the inputs.
    found: BTreeSet<ImageId>,
    /// By id and architecture, the images without debug information so far: their file and name.
    without: BTreeMap<(String, String), (PathBuf, String)>,
    /// The images whose index has debug information.
    with: BTreeSet<(String, String)>,
    /// Archives in archives that were not opened.
    unopened: Vec<Failure>,
}

impl<'a> Required<'a> {
    pub(crate) fn new(args: &'a RequiredArgs) -> Self {
        let (found, without, with) = Default::default();
        Self { args, found, without, with, unopened: Vec::new() }
    }

    /// The ids of the images of `plan` that are built; none if all are.
    pub(super) fn ids(&self, plan: &Plan) -> Vec<ImageId> {
        if self.args.id.is_empty() {
            return Vec::new();
        }
        let wanted = plan.ids.iter().filter(|id| self.args.wants(id)).cloned();
        // No image has the last id. It stands for those of other plans.
        wanted.chain([ImageId::of_hash(0)]).collect()
    }

    /// Counts the images of a plan.
    ///
    /// # Errors
    ///
    /// [`Failure`] if several images of the inputs have ids that begin with the same digits of `--id`.
    pub(crate) fn planned(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.found.extend(plan.ids.iter().cloned());
        self.args.id.iter().try_for_each(|wanted| one_of(wanted, self.found.iter().cloned()).map(drop))
    }

    /// Counts images of a plan that are not built, because an index with debug information has these `ids` elsewhere.
    pub(super) fn left_out(&mut self, plan: &Plan, ids: &BTreeSet<ImageId>) {
        let images = plan.images().filter(|(_, (id, _))| ids.contains(id));
        self.with.extend(images.map(|(_, (id, arch))| (id.to_string(), arch)));
    }

    /// Counts an image that was built. `kept` tells whether the index of this id that was there already, and is kept,
    /// has debug information. Functions without names do not count as such.
    pub(super) fn built(&mut self, image: &ImageSummary, kept: impl FnOnce() -> bool) {
        if !self.args.require_all {
            return;
        }
        let PublishedIndex { id, arch, file, name, has_dwarf, grade, .. } = &image.published;
        let key = (id.clone(), arch.clone());
        let is_kept = image.outcome.as_ref().is_some_and(PublishOutcome::keeps_existing);
        if (*has_dwarf && *grade >= Grade::Names) || (is_kept && kept()) {
            self.with.insert(key);
        } else {
            self.without.insert(key, (PathBuf::from(file), name.clone()));
        }
    }

    /// Counts the binaries in each `.xcarchive`. They are not built, because the archive should have their dSYMs.
    ///
    /// # Errors
    ///
    /// [`Failure`] if no child can be started, or if one ends early.
    pub(super) fn mentioned(&mut self, inputs: &InputFiles, pipeline: &Pipeline) -> Result<(), Failure> {
        if !self.args.require_all {
            return Ok(());
        }
        let is_archive = |folder: &&Path| folder.extension().is_some_and(|kind| kind == "xcarchive");
        let files = inputs.files().iter().flatten();
        let archives: BTreeSet<&Path> =
            files.filter_map(|file| file.path().ancestors().find(is_archive)).collect();
        // Without the folder, there is no image to count.
        let mut products = Batch::default();
        archives.into_iter().for_each(|archive| products.files.add(&archive.join("Products")));
        let plan = pipeline.plan(&products, &())?;
        for (file, (id, arch)) in plan.images() {
            if self.args.wants(&id) {
                let name = text::file_name(file);
                self.without.insert((id.to_string(), arch), (file.to_owned(), name));
            }
        }
        plan.killed().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Counts an entry of an archive that was not read.
    pub(super) fn not_read(&mut self, fault: &Fault) {
        if self.args.require_all && matches!(fault.kind, FaultKind::TooDeep { .. }) {
            let failure = Failure::new(Cause::NotFound, format!("--require-all: {fault}"));
            self.unopened.push(failure.because("not opened").of_path(Path::new(&fault.archive)));
        }
    }

    /// A failure for each image that is missing.
    pub(crate) fn failures(&mut self) -> Vec<Failure> {
        let Self { found, without, with, unopened, .. } = self;
        let wanted: BTreeSet<_> = self.args.id.iter().collect();
        let is_absent = |wanted: &&IdPrefix| !found.iter().any(|id| wanted.matches(id));
        let absent = wanted.into_iter().filter(is_absent).map(|id| {
            let mut message = format!("no input has the image {id}, which --id asks for");
            if !found.is_empty() {
                message += &format!("; the inputs have {}", text::list(&*found));
            }
            Failure::new(Cause::NotFound, message).because("not in the inputs")
        });
        let without = without.iter().filter(|(key, _)| !with.contains(key));
        let without = without.map(|((id, arch), (file, name))| {
            let (shown, name) = (file.display(), text::printable(name.into()));
            let message = format!(
                "{shown}: no input has debug information of {name} ({arch}, {id}), which --require-all asks for; add \
                 its dSYM or debug file"
            );
            Failure::new(Cause::NotFound, message).because("without debug information").of_path(file)
        });
        absent.chain(without).chain(unopened.drain(..)).collect()
    }
}
