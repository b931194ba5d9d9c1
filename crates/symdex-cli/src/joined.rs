//! Files of one image, joined, and the index of what comes of it.

use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_build::{Companions, Error, Identity, Image, Options};

use crate::failure::Failure;
use crate::progress::Progress;

/// An image's id and architecture, and whether a file of it has debug information.
pub(crate) type Identified = (ImageId, String, bool);

/// The images in the file at `path`.
pub(crate) fn identities(path: &Path) -> Result<Vec<Result<Identified, Failure>>, Failure> {
    let failed = |error| Failure::debug_file(path, &error);
    let bytes = symdex::map_file(path).map_err(|error| Failure::unreadable(path, &error))?;
    let slices = symdex_build::slices(&bytes).map_err(failed)?;
    let identified = slices.into_iter().map(|slice| {
        let Identity { id, has_dwarf, .. } = Identity::of(&slice).map_err(failed)?;
        Ok((id, slice.arch.name, has_dwarf))
    });
    Ok(identified.collect())
}

/// The index of `image`, in memory, with the options that a build has by default; messages name the file at `path`.
pub(crate) fn index_of(
    image: &Image<'_>,
    path: &Path,
    progress: &Progress,
) -> Result<Index<Vec<u8>>, Failure> {
    let of_image = progress.of_image(image.debug_size);
    let built = symdex_build::build(image, &Options::default(), &|done, all| of_image.set(done, all))
        .map_err(|error| Failure::debug_file(path, &error))?;
    Index::open(built.bytes).map_err(|error| Failure::index(path, &error))
}

/// An image, joined of its files as far as they can be read.
#[derive(Default)]
pub(crate) struct Joined<'d> {
    pub(crate) image: Option<Image<'d>>,
    /// The files it is of.
    pub(crate) paths: Vec<PathBuf>,
    /// Why others are not in it.
    pub(crate) failures: Vec<Failure>,
}

impl<'d> Joined<'d> {
    /// Joins the image with this id for this architecture, in the file at `path`, with those before it.
    pub(crate) fn add_image(&mut self, path: &Path, id: &ImageId, arch: &str, companions: &'d Companions) {
        let found = Image::find(path, id, arch, companions);
        let gone = || Error::Malformed { what: "the image is not there any more".to_owned() };
        self.add(path, found.and_then(|found| found.ok_or_else(gone)));
    }

    /// Joins the image of the file at `path` with those before it.
    pub(crate) fn add(&mut self, path: &Path, image: Result<Image<'d>, Error>) {
        let image = match (self.image.take(), image) {
            (None, Ok(first)) => Ok(first),
            (Some(image), Ok(other)) if image.goes_with(&other) => Ok(image.with(other)),
            (image, Ok(_)) => Err((image, other_addresses())),
            (image, Err(error)) => Err((image, error)),
        };
        self.image = match image {
            Ok(image) => {
                self.paths.push(path.to_owned());
                Some(image)
            }
            Err((image, error)) => {
                self.failures.push(Failure::debug_file(path, &error));
                image
            }
        };
    }
}

fn other_addresses() -> Error {
    Error::Malformed { what: "the image has other addresses than in the file it belongs to".to_owned() }
}
