//! What a command line names to answer addresses from: an index, or an image in a debug file.

use std::path::{Path, PathBuf};

use symdex::Index;
use symdex_build::publish::indexes_below;
use symdex_build::{Companions, DirectLookup, Error, Identity, Image, Slice};

use crate::answers::Answers;
use crate::failure::{Failure, Kind, Outcome};
use crate::wanted_id::WantedId;
use crate::{open, text};

/// What addresses are answered from.
pub(crate) enum Source<B> {
    Index(Box<Index<B>>),
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
    id: Option<&WantedId>,
) -> Result<Source<impl AsRef<[u8]> + use<>>, Failure> {
    let source = match index_file(object, id)? {
        Some(path) => Source::Index(Box::new(open::index(&path, id)?)),
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
fn index_file(object: &Path, id: Option<&WantedId>) -> Result<Option<PathBuf>, Failure> {
    if object.is_dir() {
        return id.map_or(Ok(None), |id| id.index_in(object));
    }
    match Index::open_file(object) {
        Err(symdex::Error::Io(error)) => Err(Failure::unreadable(object, &error)),
        Err(symdex::Error::NotAnIndex { .. }) => Ok(None),
        _ => Ok(Some(object.to_owned())),
    }
}

/// The one image in `object` that has this architecture and this id.
fn debug_file(object: &Path, arch: Option<&str>, id: Option<&WantedId>) -> Result<DebugFile, Failure> {
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
        let has_id = |id: &WantedId| match Identity::of(slice) {
            Ok(identity) => Ok(id.is_start_of(&identity.id)),
            Err(error) => Err(Failure::debug_file(path, &error)),
        };
        Ok(arch.is_none_or(|arch| slice.arch.name == arch) && id.map_or(Ok(true), has_id)?)
    };
    let mut wanted = Vec::new();
    for (path, number, slice) in &candidates {
        if is_wanted(path, slice)? {
            wanted.push((*path, *number, slice));
        }
    }
    match wanted[..] {
        [(path, number, _)] => Ok(DebugFile { path: path.to_owned(), slice: number }),
        [] => Err(none_or_many(
            object,
            "none of the images in it is wanted; it has",
            candidates.iter().map(|(path, _, slice)| (*path, slice)),
            Kind::NotFound,
        )),
        _ => Err(none_or_many(
            object,
            "choose one of its images with --arch or --id; it has",
            wanted.iter().map(|(path, _, slice)| (*path, *slice)),
            Kind::Usage,
        )),
    }
}

/// What is wrong with `object`, a folder without a debug file: it may be meant as a folder of indexes.
fn no_debug_file(object: &Path, id: Option<&WantedId>, error: &Error) -> Failure {
    let is_of_indexes = id.is_some() || !indexes_below(object).paths.is_empty();
    match open::index_path(object, id) {
        Err(failure) if is_of_indexes => failure,
        _ => Failure::debug_file(object, error),
    }
}

fn none_or_many<'a>(
    object: &Path,
    what: &str,
    images: impl Iterator<Item = (&'a Path, &'a Slice<'a>)>,
    kind: Kind,
) -> Failure {
    let describe = |(path, slice): (&Path, &Slice<'_>)| {
        let id = Identity::of(slice).map(|identity| format!(", {}", identity.id)).unwrap_or_default();
        format!("{} ({}{id})", text::file_name(path), slice.arch.name)
    };
    let images = text::list(images.map(describe));
    Failure::new(kind, format!("{}: {what} {images}", object.display()))
}
