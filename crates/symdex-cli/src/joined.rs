//! Files of one image, joined.

use std::path::{Path, PathBuf};

use symdex::ImageId;
use symdex_build::{Companions, Error, Image};

use crate::failure::Failure;

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
