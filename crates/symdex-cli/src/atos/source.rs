//! The index that atos answers from: one that is there, or one that is built for it.

use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_build::{Companions, Image, Slice};

use super::Args;
use crate::failure::{Failure, Kind};
use crate::joined::index_of;
use crate::progress::Progress;
use crate::{open, text};

/// An index, in a file or in memory.
pub(super) enum Source<B> {
    Index(Index<B>),
    Built(Index<Vec<u8>>),
}

pub(super) fn open(args: &Args) -> Result<Source<impl AsRef<[u8]> + use<>>, Failure> {
    let Args { object, arch, id, .. } = args;
    let index = match index_file(object, id.as_ref())? {
        Some(path) => Source::Index(open::index(&path, id.as_ref())?),
        None => Source::Built(build(object, arch.as_deref(), id.as_ref())?),
    };
    if let (Source::Index(index), Some(arch)) = (&index, arch)
        && index.metadata().arch.name != *arch
    {
        let message =
            format!("{}: an index for {}, not for {arch:?}", object.display(), index.metadata().arch.name);
        return Err(Failure::new(Kind::NotFound, message));
    }
    Ok(index)
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

/// The index of the one image in `object` that has this architecture and this id.
fn build(object: &Path, arch: Option<&str>, id: Option<&ImageId>) -> Result<Index<Vec<u8>>, Failure> {
    let mut files = Vec::new();
    for found in symdex_build::find(object) {
        let path = found.map_err(|error| Failure::debug_file(object, &error))?;
        let bytes = symdex::map_file(&path).map_err(|error| Failure::unreadable(&path, &error))?;
        files.push((path, bytes));
    }
    let mut candidates = Vec::new();
    for (path, bytes) in &files {
        let slices = symdex_build::slices(bytes).map_err(|error| Failure::debug_file(path, &error))?;
        candidates.extend(slices.into_iter().map(|slice| (path.as_path(), slice)));
    }
    let is_wanted = |path: &Path, slice: &Slice<'_>| -> Result<bool, Failure> {
        let companions = Companions::default();
        let has_id = |id: &ImageId| image(path, slice, &companions).map(|image| image.info.id == *id);
        Ok(arch.is_none_or(|arch| slice.arch.name == arch) && id.map_or(Ok(true), has_id)?)
    };
    let mut wanted = Vec::new();
    for (path, slice) in &candidates {
        if is_wanted(path, slice)? {
            wanted.push((*path, slice));
        }
    }
    match wanted[..] {
        [(path, slice)] => build_one(path, slice),
        [] => Err(none_or_many(
            object,
            "none of the images in it is wanted; it has",
            &candidates,
            Kind::NotFound,
        )),
        _ => Err(none_or_many(
            object,
            "choose one of its images with -arch or --id; it has",
            &candidates,
            Kind::Usage,
        )),
    }
}

fn image<'d>(path: &Path, slice: &Slice<'d>, companions: &'d Companions) -> Result<Image<'d>, Failure> {
    Image::load(slice, path, companions).map_err(|error| Failure::debug_file(path, &error))
}

fn build_one(path: &Path, slice: &Slice<'_>) -> Result<Index<Vec<u8>>, Failure> {
    let companions = Companions::default();
    let image = image(path, slice, &companions)?;
    index_of(&image, path, &Progress::new(image.debug_size))
}

fn none_or_many(object: &Path, what: &str, candidates: &[(&Path, Slice<'_>)], kind: Kind) -> Failure {
    let describe =
        |(path, slice): &(&Path, Slice<'_>)| format!("{} ({})", text::file_name(path), slice.arch.name);
    let images: Vec<_> = candidates.iter().map(describe).collect();
    Failure::new(kind, format!("{}: {what} {}", object.display(), images.join(", ")))
}
