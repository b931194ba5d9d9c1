//! The source that a command line names: an index, or an image in debug files.

use std::path::{Path, PathBuf};

#[cfg(feature = "drop-in")]
use symdex::Grade;
use symdex::{Metadata, Partial};
use symdex_build::debug_files::{FileError, FindImageError, ImageFiles, InputFiles, find_image};
use symdex_build::{Companions, DirectLookup, Error, Image, can_be_avoided};
use symdex_pipeline::{Batch, embedded_index};
use symdex_store::{IdPrefix, IndexFolder, OpenImage, Store as _};

use crate::archive;
use crate::failure::{Cause, CommandResult, Failure, complain};
use crate::image_lookup::ImageLookup;
use crate::open::{self, AccessOption};
use crate::stores::StoreArgs;
use crate::text;

/// The source of answers.
pub(crate) enum AddressSource {
    Index(OpenImage),
    DebugFiles {
        files: Box<ImageFiles>,
        /// Owns the files of an archive.
        _archive: Option<Box<Batch>>,
    },
}

/// Of which losses of debug information to warn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warnings {
    All,
    /// Those that other files can avoid. Another program prints the messages as well.
    #[cfg_attr(not(feature = "drop-in"), expect(dead_code, reason = "only the drop-in commands omit some"))]
    Avoidable,
}

/// Opens the index of `id` in `stores`, if the command line names any. Otherwise opens the index at `object`, or the
/// index of `id` in the folder `object`. If there is none, finds the image in the debug file or in the folder of debug
/// files.
pub(crate) fn open(
    object: Option<&Path>,
    stores: &StoreArgs,
    arch: Option<&str>,
    id: Option<&IdPrefix>,
    access: AccessOption,
) -> Result<AddressSource, Failure> {
    let image = match (stores.find(id, access)?, object) {
        (Some(found), _) => found,
        (None, None) => return Err(Failure::new(Cause::Usage, "name a file, or a store with --store")),
        (None, Some(object)) => match index_file(object, id)? {
            Some(path) => {
                let index = open::index(&path, id, access)?;
                // The user may have no permission to write.
                _ = path.parent().map(|folder| IndexFolder::new(folder).touch(index.id()));
                OpenImage::alone(index, path.display().to_string())
            }
            None => return debug_files(object, arch, id),
        },
    };
    let of_index = &image.metadata().arch.name;
    if let Some(arch) = arch.filter(|arch| of_index != arch) {
        let message = format!("{}: an index for {of_index}, not for {arch:?}", image.location());
        return Err(Failure::new(Cause::NotFound, message));
    }
    Ok(AddressSource::Index(image))
}

impl AddressSource {
    /// The most that it answers. Of debug files, only the headers are read.
    #[cfg(feature = "drop-in")]
    pub(crate) fn grade(&self) -> Grade {
        match self {
            Self::Index(image) => image.grade(),
            Self::DebugFiles { files, .. } if files.has_lines() => Grade::Lines,
            Self::DebugFiles { .. } => Grade::Names,
        }
    }

    /// Calls `answer` with the answers of this source. Files that a debug file refers to are searched in `debug_dirs`,
    /// too.
    pub(crate) fn answer(
        &self,
        debug_dirs: &[PathBuf],
        warnings: Warnings,
        answer: impl FnOnce(&mut ImageLookup<'_, '_>) -> CommandResult,
    ) -> CommandResult {
        match self {
            Self::Index(image) => answer(&mut ImageLookup::Index(image.clone())),
            Self::DebugFiles { files, .. } => answer_directly(files, debug_dirs, warnings, answer),
        }
    }
}

/// Calls `answer` with answers from the image of `files`. Files that it refers to are searched in `debug_dirs`, too.
/// Other files of the image that cannot be read are reported.
fn answer_directly(
    files: &ImageFiles,
    debug_dirs: &[PathBuf],
    warnings: Warnings,
    answer: impl FnOnce(&mut ImageLookup<'_, '_>) -> CommandResult,
) -> CommandResult {
    let path = files.name();
    let companions = Companions::new(debug_dirs.to_vec()).files(files.companions());
    let (image, failures) = files.load(&companions).map_err(Failure::from)?;
    let mut gravest = None;
    for failure in failures.iter().map(Failure::from) {
        complain(&failure.message);
        gravest = gravest.max(Some(failure.cause));
    }
    let failed = |error| Failure::debug_file(path, &error);
    let lookup = DirectLookup::new(&image).map_err(failed)?;
    let far_images = far_images(files, &image, &companions)?;
    let far = far_images.iter().map(|far| Ok(DirectLookup::new(far)?.relative_to(&image)));
    let far = far.collect::<Result<Vec<_>, Error>>().map_err(failed)?;
    let is_reported = |partial: &&Partial| warnings == Warnings::All || can_be_avoided(&partial.reason);
    for partial in lookup.index().metadata().partial.iter().filter(is_reported) {
        let partial = text::partial(partial);
        complain(&format!("warning: {}: {}", path.display(), text::printable(partial.into())));
    }
    Ok(answer(&mut ImageLookup::DebugFile { lookup: Box::new(lookup), far, path })?.max(gravest))
}

/// The parts of the image of `files` that are too far from `image` for an index.
fn far_images<'c>(
    files: &ImageFiles,
    image: &Image<'c>,
    companions: &'c Companions,
) -> Result<Vec<Image<'c>>, Failure> {
    // A hostile file can have code anywhere.
    const MAX_FAR: usize = 8;
    let mut images: Vec<Image<'c>> = Vec::new();
    for (start, _) in image.outside() {
        if images.len() < MAX_FAR
            && images.iter().all(|image| image.outside().iter().any(|(other, _)| other == start))
        {
            companions.load_near(Some(*start));
            images.push(files.load(companions).map_err(Failure::from)?.0);
        }
    }
    Ok(images)
}

/// Returns the path of the index, or `None` if `object` is a debug file or a folder of debug files.
pub(crate) fn index_file(object: &Path, id: Option<&IdPrefix>) -> Result<Option<PathBuf>, Failure> {
    if archive::is_pipe(object) {
        return Ok(None);
    }
    if object.is_dir() {
        return id.map_or(Ok(None), |id| Ok(IndexFolder::new(object).find_prefix(id)?));
    }
    match Metadata::read_file(object) {
        Err(symdex::Error::Io(error)) => Err(Failure::unreadable(object, &error)),
        Err(symdex::Error::NotAnIndex { .. }) => Ok(None),
        _ => Ok(Some(object.to_owned())),
    }
}

/// Finds the files of the one image in `object` that has this architecture and this id. If `object` is an archive,
/// reports what is wrong with it.
fn debug_files(object: &Path, arch: Option<&str>, id: Option<&IdPrefix>) -> Result<AddressSource, Failure> {
    let (files, archive) = match archive::only_debug_files(object)? {
        None => (InputFiles::find([object]), None),
        Some(mut archive) => (std::mem::take(&mut archive.files), Some(Box::new(archive))),
    };
    if !files.special_files().is_empty() {
        complain(&format!("warning: {}", files.special_files()));
    }
    let found = find_image(files, arch, |found| id.is_none_or(|id| id.matches(found)));
    let found = found.map_err(|error| not_found(object, id, error))?;
    Ok(embedded(&found)
        .unwrap_or_else(|| AddressSource::DebugFiles { files: Box::new(found), _archive: archive }))
}

/// The index that the debug file of `files` carries. A warning says why one is not used.
pub(crate) fn embedded(files: &ImageFiles) -> Option<AddressSource> {
    let index = embedded_index(files).unwrap_or_else(|why| {
        complain(&format!("warning: {why}"));
        None
    });
    Some(AddressSource::Index(OpenImage::alone(index?, files.name().display().to_string())))
}

/// The failure for `object`, in which no image was found because of `error`.
pub(crate) fn not_found(object: &Path, id: Option<&IdPrefix>, error: FindImageError) -> Failure {
    let list = |images: &[ImageFiles]| text::list(images.iter().map(|image| described(image, object)));
    match error {
        FindImageError::File(error) if matches!(error.error(), Error::NoDebugFile { .. }) => {
            no_debug_file(object, id, &error)
        }
        FindImageError::File(error) => error.into(),
        FindImageError::NotFound { images } => {
            let (object, all) = (object.display(), list(&images));
            let message =
                format!("{object}: no image in it has the architecture and id that were given; it has {all}");
            Failure::new(Cause::NotFound, message)
        }
        FindImageError::Ambiguous { images } => {
            let (object, images) = (object.display(), list(&images));
            let message = format!("{object}: choose one of its images with --arch or --id; it has {images}");
            Failure::new(Cause::Usage, message)
        }
        error => Failure::new(Cause::Other, format!("{}: {error}", object.display())),
    }
}

/// Describes an image by its file's path below `object`, its architecture and its id.
fn described(image: &ImageFiles, object: &Path) -> String {
    let path = image.name();
    let name = match path.strip_prefix(object) {
        Ok(below) if below != Path::new("") => below.to_string_lossy(),
        _ => text::file_name(path).into(),
    };
    format!("{} ({}, {})", text::printable(name), image.arch(), image.id())
}

/// The failure for `object`, a folder without a debug file. If it may be a folder of indexes, the message says what is
/// wrong with it as such.
fn no_debug_file(object: &Path, id: Option<&IdPrefix>, error: &FileError) -> Failure {
    let has_archives = matches!(error.error(), Error::NoDebugFile { archives, .. } if !archives.is_empty());
    let is_of_indexes = (id.is_some() && !has_archives) || !IndexFolder::new(object).files().paths.is_empty();
    match open::index_path(object, id) {
        Err(failure) if is_of_indexes => failure,
        _ => error.into(),
    }
}
