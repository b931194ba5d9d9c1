//! The images in one file, from its headers alone.

use std::path::Path;

use super::{DebugFile, FileError};
use crate::error::Error;
use crate::image::Identity;
use crate::shared_cache::SharedCache;
use crate::slice::{Slice, slices};

/// An image in a debug file.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedImage {
    /// Its id, the kind of file, and whether the file has debug information of it.
    pub identity: Identity,
    /// The name of its architecture.
    pub arch: String,
    /// The size of its slice, or its size in a shared cache, in bytes.
    pub size: u64,
    /// The path under which an image of a shared cache is installed; `None` for an image in a file of its own.
    pub cached_path: Option<String>,
}

/// The images in the file at `path`: one for each slice of a debug file, and all images of a shared cache.
///
/// An image that cannot be read is an error in its place. Parts that a shared cache lacks are errors before its images.
///
/// # Errors
///
/// [`FileError`] if the file cannot be read at all.
pub fn images_in(path: &Path) -> Result<Vec<Result<ListedImage, FileError>>, FileError> {
    if !SharedCache::is_cache(path) {
        return slices_of(&DebugFile::on_disk(path));
    }
    let failed = |error| FileError::new(path, error);
    let cache = SharedCache::open(path).map_err(failed)?;
    let missing = cache.missing().into_iter().map(|error| Err(failed(error)));
    let images = cache.images();
    let listed = images.iter().map(|image| {
        let of_image = |error| failed(error).in_part(&image.path);
        let arch = image.arch().map_err(of_image)?.name;
        let identity = image.identity().map_err(of_image)?;
        Ok(ListedImage { identity, arch, size: image.size(), cached_path: Some(image.path.clone()) })
    });
    Ok(missing.chain(listed).collect())
}

/// The images in the debug file `file`, one for each of its slices. An image that cannot be read is an error in its
/// place. The error names the slice if the file has several.
///
/// # Errors
///
/// [`FileError`] if nothing of the file can be read, or if it is a shared cache or a companion.
pub fn slices_of(file: &DebugFile) -> Result<Vec<Result<ListedImage, FileError>>, FileError> {
    let failed = |error| FileError::new(file.name(), error);
    let bytes = symdex::map_file(file.path()).map_err(|error| FileError::unreadable(file.name(), error))?;
    let slices = slices(&bytes).map_err(failed)?;
    let is_universal = slices.len() > 1;
    if let [slice] = &slices[..]
        && let Err(error @ Error::Companion { .. }) = Identity::of(slice)
    {
        return Err(failed(error));
    }
    let listed = slices.into_iter().map(|slice| {
        let part = format!("{} slice", slice.arch.name);
        listed_slice(slice)
            .map_err(|error| if is_universal { failed(error).in_part(part) } else { failed(error) })
    });
    Ok(listed.collect())
}

fn listed_slice(slice: Slice<'_>) -> Result<ListedImage, Error> {
    let size = slice.bytes()?.len() as u64;
    Ok(ListedImage { identity: Identity::of(&slice)?, arch: slice.arch.name, size, cached_path: None })
}
