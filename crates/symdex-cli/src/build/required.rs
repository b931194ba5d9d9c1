//! The images that a build must find: those of `--id`, and with `--require-all` all that the inputs have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use symdex::ImageId;
use symdex_build::debug_files::{InputFiles, images_in};
use symdex_pipeline::archive::{Fault, FaultKind};
use symdex_pipeline::isolate::build::FileImage;

use super::summary::ImageSummary;
use crate::failure::{Failure, FailureKind};
use crate::text;

#[derive(clap::Args)]
pub(super) struct RequiredArgs {
    /// Build only the image of this id, and fail if no input has it. All digits of the id are needed. May be repeated
    #[arg(long, value_name = "ID")]
    id: Vec<ImageId>,
    /// Fail if an image of the inputs gets no index with debug information, for example because its dSYM is missing
    #[arg(long)]
    require_all: bool,
}

/// The images that a build must find, and those that it has found.
pub(super) struct Required<'a> {
    args: &'a RequiredArgs,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The images of `--id` that are in the inputs.
    found: BTreeSet<ImageId>,
    /// By id and architecture, the images without debug information so far: their file and name.
    without: BTreeMap<(String, String), (PathBuf, String)>,
    /// The images whose index has debug information.
    with: BTreeSet<(String, String)>,
    /// Archives in archives that were not opened.
    unopened: Vec<Failure>,
}

/// Whether `id` is one of `ids`, the ids of `--id`. Every image is asked for if there are none.
pub(super) fn is_asked_for(ids: &[ImageId], id: &ImageId) -> bool {
    ids.is_empty() || ids.contains(id)
}

/// The images of the file at `path`, from its headers, as far as they can be read.
pub(super) fn images_of(path: &Path) -> impl Iterator<Item = FileImage> {
    images_in(path).into_iter().flatten().flatten().map(|image| FileImage {
        file: path.into(),
        id: image.identity.id.to_string(),
        arch: image.arch,
    })
}

impl<'a> Required<'a> {
    pub(super) fn new(args: &'a RequiredArgs) -> Self {
        Self { args, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of `--id`.
    pub(super) fn ids(&self) -> &'a [ImageId] {
        &self.args.id
    }

    /// Whether the image is to be built, which an input has.
    pub(super) fn wants(&self, id: &ImageId) -> bool {
        if self.args.id.contains(id) {
            self.found(id.clone());
        }
        is_asked_for(self.ids(), id)
    }

    /// An input has the image of `--id`.
    pub(super) fn found(&self, id: ImageId) {
        self.seen().found.insert(id);
    }

    /// Counts an image that was built.
    pub(super) fn built(&self, image: &ImageSummary) {
        if !self.args.require_all {
            return;
        }
        let key = (image.id.clone(), image.arch.clone());
        // A different index of the id that is kept has more functions, unless --on-conflict says otherwise.
        if image.has_dwarf || image.outcome == "kept" {
            self.seen().with.insert(key);
        } else {
            self.seen().without.insert(key, (PathBuf::from(&image.file), image.image.clone()));
        }
    }

    /// Counts the binaries in each `.xcarchive`. They are not built, because the archive should have their dSYMs.
    /// `list` lists the images of files.
    ///
    /// # Errors
    ///
    /// The failure of `list`.
    pub(super) fn mentioned(
        &self,
        inputs: &InputFiles,
        list: impl FnOnce(&[PathBuf]) -> Result<Vec<FileImage>, Failure>,
    ) -> Result<(), Failure> {
        if !self.args.require_all {
            return Ok(());
        }
        let is_archive = |folder: &&Path| folder.extension().is_some_and(|kind| kind == "xcarchive");
        let files = inputs.files().iter().flatten();
        let archives: BTreeSet<&Path> =
            files.filter_map(|file| file.path().ancestors().find(is_archive)).collect();
        let products = archives.into_iter().map(|archive| archive.join("Products"));
        // Without the folder, there is no image to count.
        let binaries: Vec<_> = products.flat_map(|folder| symdex_build::find(&folder)).flatten().collect();
        for FileImage { file, id, arch } in list(&binaries)? {
            if self.args.id.is_empty() || self.args.id.iter().any(|wanted| wanted.to_string() == id) {
                let file = PathBuf::from(file);
                let name = text::file_name(&file);
                self.seen().without.insert((id, arch), (file, name));
            }
        }
        Ok(())
    }

    /// Counts an entry of an archive that was not read.
    pub(super) fn not_read(&self, fault: &Fault) {
        if self.args.require_all && matches!(fault.kind, FaultKind::TooDeep { .. }) {
            let failure = Failure::new(FailureKind::NotFound, format!("--require-all: {fault}"));
            let failure =
                Failure { reason: "not opened".into(), ..failure }.of_path(Path::new(&fault.archive));
            self.seen().unopened.push(failure);
        }
    }

    /// A failure for each image that is missing.
    pub(super) fn failures(&self) -> Vec<Failure> {
        let Seen { found, without, with, unopened } = std::mem::take(&mut *self.seen());
        let wanted: BTreeSet<_> = self.args.id.iter().collect();
        let absent = wanted.into_iter().filter(|id| !found.contains(id)).map(|id| {
            let message = format!("no input has the image {id}, which --id asks for");
            Failure { reason: "not in the inputs".into(), ..Failure::new(FailureKind::NotFound, message) }
        });
        let without = without.into_iter().filter(|(key, _)| !with.contains(key));
        let without = without.map(|((id, arch), (file, name))| {
            let (shown, name) = (file.display(), text::printable(name.into()));
            let message = format!(
                "{shown}: no input has debug information of {name} ({arch}, {id}), which --require-all asks for; add \
                 its dSYM or debug file"
            );
            let reason = "without debug information".into();
            Failure { reason, ..Failure::new(FailureKind::NotFound, message) }.of_path(&file)
        });
        absent.chain(without).chain(unopened).collect()
    }
}
