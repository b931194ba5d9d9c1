//! What a command line names to answer addresses from: an index, or an image in a debug file.

use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_build::{Companions, DirectLookup, Error, Identity, Image, Slice};

use crate::answers::Answers;
use crate::failure::{Failure, Kind, Outcome, complain};
use crate::joined::{Joined, identities};
use crate::{open, text};
use symdex_store::{IdPrefix, IndexFolder};

/// What addresses are answered from.
pub(crate) enum Source<B> {
    Index { index: Box<Index<B>>, path: PathBuf },
    DebugFile(DebugFile),
}

/// One image, in one or several debug files.
pub(crate) struct DebugFile {
    /// The file with the debug information. If no file has any, the first file of the image.
    path: PathBuf,
    /// The image's number among the slices of the file.
    slice: usize,
    /// Other files of the image, without debug information. They may have more symbols.
    beside: Vec<PathBuf>,
}

/// An image that was found, and what tells it apart from others.
struct Found {
    id: ImageId,
    arch: String,
    has_dwarf: bool,
    file: DebugFile,
}

/// Opens the index that these name. If there is none, finds the image in the debug file or in the folder of debug files.
pub(crate) fn open(
    object: &Path,
    arch: Option<&str>,
    id: Option<&IdPrefix>,
) -> Result<Source<impl AsRef<[u8]> + use<>>, Failure> {
    let source = match index_file(object, id)? {
        Some(path) => Source::Index { index: Box::new(open::index(&path, id)?), path },
        None => Source::DebugFile(debug_file(object, arch, id)?),
    };
    if let (Source::Index { index, path }, Some(arch)) = (&source, arch)
        && index.metadata().arch.name != arch
    {
        let message =
            format!("{}: an index for {}, not for {arch:?}", path.display(), index.metadata().arch.name);
        return Err(Failure::new(Kind::NotFound, message));
    }
    Ok(source)
}

impl DebugFile {
    /// Calls `answer` with the answers of this image. Files that it refers to are searched in `debug_dirs`, too.
    pub(crate) fn answers(
        &self,
        debug_dirs: &[PathBuf],
        answer: impl FnOnce(&mut Answers<'_, '_, Vec<u8>>) -> Outcome,
    ) -> Outcome {
        let failed = |error: &Error| Failure::debug_file(&self.path, error);
        let bytes = symdex::map_file(&self.path).map_err(|error| Failure::unreadable(&self.path, &error))?;
        let slices = symdex_build::slices(&bytes).map_err(|error| failed(&error))?;
        let gone = || Error::Malformed { what: "the image is not there any more".to_owned() };
        let slice = slices.get(self.slice).ok_or_else(|| failed(&gone()))?;
        let companions = Companions::new(debug_dirs.to_vec());
        let image = self.joined(slice, &companions).map_err(|error| failed(&error))?;
        let lookup = DirectLookup::new(&image).map_err(|error| failed(&error))?;
        for partial in &lookup.index().metadata().partial {
            let (path, partial) = (self.path.display(), text::partial(partial));
            complain(&format!("warning: {path}: {}", text::printable(partial.into())));
        }
        answer(&mut Answers::DebugFile { lookup: Box::new(lookup), path: &self.path })
    }

    /// The image of this slice, with the symbols of the other files. Other files that cannot be read are left out.
    fn joined<'d>(&self, slice: &Slice<'d>, companions: &'d Companions) -> Result<Image<'d>, Error> {
        let image = Image::load(slice, &self.path, companions)?;
        if self.beside.is_empty() {
            return Ok(image);
        }
        let id = Identity::of(slice)?.id;
        let mut joined = Joined::default();
        joined.add(&self.path, Ok(image));
        for path in &self.beside {
            joined.add_image(path, &id, &slice.arch.name, companions);
        }
        joined.image.ok_or_else(|| Error::Malformed { what: "the image is not there any more".to_owned() })
    }
}

impl Found {
    /// Adds another file of the same image.
    fn add(&mut self, other: Found) {
        match (self.has_dwarf, other.has_dwarf) {
            (false, true) => {
                let mut before = std::mem::replace(self, other).file;
                self.file.beside.push(before.path);
                self.file.beside.append(&mut before.beside);
            }
            (_, false) => self.file.beside.push(other.file.path),
            (true, true) => {}
        }
    }
}

/// Returns the path of the index, or `None` if `object` is a debug file or a folder of them.
fn index_file(object: &Path, id: Option<&IdPrefix>) -> Result<Option<PathBuf>, Failure> {
    if object.is_dir() {
        return id.map_or(Ok(None), |id| Ok(IndexFolder::new(object).find_prefix(id)?));
    }
    match Index::open_file(object) {
        Err(symdex::Error::Io(error)) => Err(Failure::unreadable(object, &error)),
        Err(symdex::Error::NotAnIndex { .. }) => Ok(None),
        _ => Ok(Some(object.to_owned())),
    }
}

/// The one image in `object` that has this architecture and this id.
///
/// A file that cannot be read is reported only if no image in the other files is the wanted one.
fn debug_file(object: &Path, arch: Option<&str>, id: Option<&IdPrefix>) -> Result<DebugFile, Failure> {
    let mut images: Vec<Found> = Vec::new();
    let mut failures = Vec::new();
    for path in symdex_build::find(object) {
        let path = path.map_err(|error| match error {
            Error::NoDebugFile { .. } => no_debug_file(object, id, &error),
            error => Failure::debug_file(object, &error),
        });
        if let Err(failure) = path.and_then(|path| add_images(&path, &mut images, &mut failures)) {
            failures.push(failure);
        }
    }
    let is_wanted = |image: &Found| {
        arch.is_none_or(|arch| image.arch == arch) && id.is_none_or(|id| id.matches(&image.id))
    };
    let list = |images: &[Found]| text::list(images.iter().map(|image| described(image, object)));
    let all = list(&images);
    images.retain(is_wanted);
    match (images.len(), failures.into_iter().next()) {
        (0, Some(failure)) => Err(failure),
        (0, None) => {
            let message = format!("{}: none of the images in it is wanted; it has {all}", object.display());
            Err(Failure::new(Kind::NotFound, message))
        }
        (1, _) => Ok(images.remove(0).file),
        _ => {
            let message = format!(
                "{}: choose one of its images with --arch or --id; it has {}",
                object.display(),
                list(&images)
            );
            Err(Failure::new(Kind::Usage, message))
        }
    }
}

/// Adds the images in the file at `path` to `images`. Files of one image are put together.
fn add_images(path: &Path, images: &mut Vec<Found>, failures: &mut Vec<Failure>) -> Result<(), Failure> {
    for (slice, identified) in identities(path)?.into_iter().enumerate() {
        let (id, arch, has_dwarf) = match identified {
            Ok(identified) => identified,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        let file = DebugFile { path: path.to_owned(), slice, beside: Vec::new() };
        let found = Found { id, arch, has_dwarf, file };
        match images.iter_mut().find(|image| image.id == found.id && image.arch == found.arch) {
            Some(image) => image.add(found),
            None => images.push(found),
        }
    }
    Ok(())
}

/// An image by its file's path below `object`, its architecture and its id.
fn described(image: &Found, object: &Path) -> String {
    let path = &image.file.path;
    let name = match path.strip_prefix(object) {
        Ok(below) if below != Path::new("") => below.to_string_lossy(),
        _ => text::file_name(path).into(),
    };
    format!("{} ({}, {})", text::printable(name), image.arch, image.id)
}

/// What is wrong with `object`, a folder without a debug file: it may be meant as a folder of indexes.
fn no_debug_file(object: &Path, id: Option<&IdPrefix>, error: &Error) -> Failure {
    let has_archives = matches!(error, Error::NoDebugFile { archives, .. } if !archives.is_empty());
    let is_of_indexes = (id.is_some() && !has_archives) || !IndexFolder::new(object).list().paths.is_empty();
    match open::index_path(object, id) {
        Err(failure) if is_of_indexes => failure,
        _ => Failure::debug_file(object, error),
    }
}
