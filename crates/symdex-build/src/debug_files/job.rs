//! The images of one job of a build.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{BuildJob, FileError, ImageGroups, JoinedImage, NoSuchArch, is_wanted};
use crate::companions::Companions;
use crate::image::Image;
use crate::slice::{Slice, slices};

/// An image of a build job.
#[non_exhaustive]
#[derive(Debug)]
pub struct JobImage<'d> {
    /// The file that the image was loaded from first.
    pub path: PathBuf,
    /// The part of that file, for messages: a slice, or an image of a shared cache.
    pub part: String,
    /// Other files of the image, whose symbols are joined with it.
    pub joined: Vec<PathBuf>,
    /// The image.
    pub image: Image<'d>,
}

/// Why a build job, or one image of it, fails.
#[non_exhaustive]
#[derive(Debug)]
pub enum JobError<'j> {
    /// A file, or a part of it, cannot be read.
    File(&'j FileError),
    /// No file has a wanted architecture.
    NoSuchArch(&'j NoSuchArch),
}

impl fmt::Display for JobError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::NoSuchArch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JobError<'_> {}

impl BuildJob<'_> {
    /// Loads the images of the job whose architectures are `wanted`, and calls `each` with every image, or with the
    /// reason why it cannot be loaded, in file order.
    ///
    /// An image is joined with the other files of its group in `groups`. If it is joined into the image of another file,
    /// it is left to that file's job.
    pub fn for_each_image(
        &self,
        wanted: &[String],
        groups: &ImageGroups,
        companions: &Companions,
        mut each: impl FnMut(Result<JobImage<'_>, JobError<'_>>),
    ) {
        match self {
            Self::File(path) => {
                let read = each_in_file(path, wanted, groups, companions, &mut each);
                if let Err(error) = read {
                    each(Err(JobError::File(&error)));
                }
            }
            Self::CachedImage { cache, image } => {
                let (path, part) = (cache.to_path_buf(), image.path.clone());
                match image.load() {
                    Ok(image) => each(Ok(JobImage { path, part, joined: Vec::new(), image })),
                    Err(error) => each(Err(JobError::File(&FileError::new(path, error).in_part(part)))),
                }
            }
            Self::Failed(error) => each(Err(JobError::File(error))),
            Self::NoSuchArch(error) => each(Err(JobError::NoSuchArch(error))),
        }
    }
}

fn each_in_file(
    path: &Path,
    wanted: &[String],
    groups: &ImageGroups,
    companions: &Companions,
    each: &mut impl FnMut(Result<JobImage<'_>, JobError<'_>>),
) -> Result<(), FileError> {
    let bytes = symdex::map_file(path).map_err(|error| FileError::unreadable(path, error))?;
    let slices = slices(&bytes).map_err(|error| FileError::new(path, error))?;
    for slice in slices.iter().filter(|slice| is_wanted(&slice.arch.name, wanted)) {
        if let Some(joined) = groups.join(path, slice, companions) {
            each_joined(slice, joined, each);
        }
    }
    Ok(())
}

/// Calls `each` with the failures of `joined`, then with its image.
fn each_joined(
    slice: &Slice<'_>,
    joined: JoinedImage<'_>,
    each: &mut impl FnMut(Result<JobImage<'_>, JobError<'_>>),
) {
    let part = format!("{} slice", slice.arch.name);
    let JoinedImage { image, paths, failures } = joined;
    for failure in failures {
        each(Err(JobError::File(&failure.in_part(&part))));
    }
    let mut paths = paths.into_iter();
    if let Some((image, path)) = image.zip(paths.next()) {
        each(Ok(JobImage { path, part, joined: paths.collect(), image }));
    }
}
