//! The index that atos answers from: one that is there, or one that is built for it.

use std::path::{Path, PathBuf};

use symdex::Index;
use symdex_build::publish::indexes_below;
use symdex_build::{Companions, Error, Identity, Image, Slice};

use super::Args;
use crate::failure::{Failure, Kind};
use crate::joined::index_of;
use crate::progress::Progress;
use crate::wanted_id::WantedId;
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

/// The index of the one image in `object` that has this architecture and this id.
fn build(object: &Path, arch: Option<&str>, id: Option<&WantedId>) -> Result<Index<Vec<u8>>, Failure> {
    let mut files = Vec::new();
    for found in symdex_build::find(object) {
        let path = found.map_err(|error| match error {
            // It may be a folder of indexes.
            Error::NoDebugFile { .. } if !indexes_below(object).paths.is_empty() => open::which_index(object),
            error => Failure::debug_file(object, &error),
        })?;
        let bytes = symdex::map_file(&path).map_err(|error| Failure::unreadable(&path, &error))?;
        files.push((path, bytes));
    }
    let mut candidates = Vec::new();
    for (path, bytes) in &files {
        let slices = symdex_build::slices(bytes).map_err(|error| Failure::debug_file(path, &error))?;
        candidates.extend(slices.into_iter().map(|slice| (path.as_path(), slice)));
    }
    let is_wanted = |path: &Path, slice: &Slice<'_>| -> Result<bool, Failure> {
        let has_id = |id: &WantedId| {
            let identity = Identity::of(slice).map_err(|error| Failure::debug_file(path, &error))?;
            Ok(id.is_start_of(&identity.id))
        };
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
            candidates.iter().map(|(path, slice)| (*path, slice)),
            Kind::NotFound,
        )),
        _ => Err(none_or_many(
            object,
            "choose one of its images with -arch or --id; it has",
            wanted.iter().copied(),
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
