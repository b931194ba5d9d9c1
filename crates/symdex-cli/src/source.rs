//! What a command line names to answer addresses from: an index, or an image in a debug file.

use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_build::{Companions, DirectLookup, Error, Identity, Image, Slice};

use crate::answers::Answers;
use crate::failure::{Failure, Kind, Outcome};
use crate::{open, text};

/// What addresses are answered from.
pub(crate) enum Source<B> {
    Index(Index<B>),
    DebugFile(DebugFile),
}

/// One image of a debug file.
pub(crate) struct DebugFile {
    path: PathBuf,
    /// The image's number among the slices of the file.
    slice: usize,
}

/// The index that `object`, `arch` and `id` name or, where there is none, the image of a debug file.
pub(crate) fn open(
    object: &Path,
    arch: Option<&str>,
    id: Option<&ImageId>,
) -> Result<Source<impl AsRef<[u8]> + use<>>, Failure> {
    let source = match index_file(object, id)? {
        Some(path) => Source::Index(open::index(&path, id)?),
        None => Source::DebugFile(debug_file(object, arch, id)?),
    };
    if let (Source::Index(index), Some(arch)) = (&source, arch)
        && index.metadata().arch.name != arch
    {
        let message =
            format!("{}: an index for {}, not for {arch:?}", object.display(), index.metadata().arch.name);
        return Err(Failure::new(Kind::NotFound, message));
    }
    Ok(source)
}

impl DebugFile {
    /// What `answer` does with the answers of this image.
    pub(crate) fn answers(&self, answer: impl FnOnce(&mut Answers<'_, '_, Vec<u8>>) -> Outcome) -> Outcome {
        let failed = |error: &Error| Failure::debug_file(&self.path, error);
        let bytes = symdex::map_file(&self.path).map_err(|error| Failure::unreadable(&self.path, &error))?;
        let slices = symdex_build::slices(&bytes).map_err(|error| failed(&error))?;
        let gone = || Error::Malformed { what: "the image is not there any more".to_owned() };
        let slice = slices.get(self.slice).ok_or_else(|| failed(&gone()))?;
        let companions = Companions::default();
        let image = Image::load(slice, &self.path, &companions).map_err(|error| failed(&error))?;
        let lookup = DirectLookup::new(&image).map_err(|error| failed(&error))?;
        answer(&mut Answers::DebugFile { lookup: Box::new(lookup), path: &self.path })
    }
}

/// The index file that is meant; `None` where it is a debug file or a folder of them.
fn index_file(object: &Path, id: Option<&ImageId>) -> Result<Option<PathBuf>, Failure> {
    if object.is_dir() {
        let Some(id) = id else { return Ok(None) };
        return symdex_build::publish::find_index(object, id)
            .map_err(|error| Failure::unreadable(object, &error));
    }
    match Index::open_file(object) {
        Err(symdex::Error::Io(error)) => Err(Failure::unreadable(object, &error)),
        Err(symdex::Error::NotAnIndex { .. }) => Ok(None),
        _ => Ok(Some(object.to_owned())),
    }
}

/// The one image in `object` that has this architecture and this id.
fn debug_file(object: &Path, arch: Option<&str>, id: Option<&ImageId>) -> Result<DebugFile, Failure> {
    let mut files = Vec::new();
    for found in symdex_build::find(object) {
        let path = found.map_err(|error| match error {
            Error::NoDebugFile { .. } => no_debug_file(object, id, &error),
            error => Failure::debug_file(object, &error),
        })?;
        let bytes = symdex::map_file(&path).map_err(|error| Failure::unreadable(&path, &error))?;
        files.push((path, bytes));
    }
    let mut candidates = Vec::new();
    for (path, bytes) in &files {
        let slices = symdex_build::slices(bytes).map_err(|error| Failure::debug_file(path, &error))?;
        let numbered = slices.into_iter().enumerate();
        candidates.extend(numbered.map(|(number, slice)| (path.as_path(), number, slice)));
    }
    let is_wanted = |path: &Path, slice: &Slice<'_>| -> Result<bool, Failure> {
        let has_id = |id: &ImageId| match Identity::of(slice) {
            Ok(identity) => Ok(identity.id == *id),
            Err(error) => Err(Failure::debug_file(path, &error)),
        };
        Ok(arch.is_none_or(|arch| slice.arch.name == arch) && id.map_or(Ok(true), has_id)?)
    };
    let mut wanted = Vec::new();
    for (path, number, slice) in &candidates {
        if is_wanted(path, slice)? {
            wanted.push((*path, *number));
        }
    }
    match wanted[..] {
        [(path, slice)] => Ok(DebugFile { path: path.to_owned(), slice }),
        [] => Err(none_or_many(
            object,
            "none of the images in it is wanted; it has",
            &candidates,
            Kind::NotFound,
        )),
        _ => Err(none_or_many(
            object,
            "choose one of its images with its architecture or --id; it has",
            &candidates,
            Kind::Usage,
        )),
    }
}

/// What is wrong with `object`, a folder without a debug file: it may be meant as a folder of indexes.
fn no_debug_file(object: &Path, id: Option<&ImageId>, error: &Error) -> Failure {
    let is_of_indexes = id.is_some() || !symdex_build::publish::indexes_in(object).is_empty();
    match open::index_path(object, id) {
        Err(failure) if is_of_indexes => failure,
        _ => Failure::debug_file(object, error),
    }
}

fn none_or_many(object: &Path, what: &str, candidates: &[(&Path, usize, Slice<'_>)], kind: Kind) -> Failure {
    let describe = |(path, _, slice): &(&Path, usize, Slice<'_>)| {
        format!("{} ({})", text::file_name(path), slice.arch.name)
    };
    let images: Vec<_> = candidates.iter().map(describe).collect();
    Failure::new(kind, format!("{}: {what} {}", object.display(), images.join(", ")))
}
