//! The images of one job of a build.

use std::fmt;
use std::path::PathBuf;

use super::{BuildJob, DebugFile, FileError, ImageGroups, JoinedImage, NoSuchArch, is_wanted};
use crate::companions::Companions;
use crate::image::Image;
use crate::slice::{Slice, slices};

/// An image of a build job.
#[non_exhaustive]
#[derive(Debug)]
pub struct JobImage<'d> {
    /// The file that the image was loaded from first.
    pub file: DebugFile,
    /// The part of that file, for messages: a slice, or an image of a shared cache.
    pub part: String,
    /// The names of other files of the image, whose symbols are joined with it.
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
    /// An image is joined with the other files of its group in `groups`. If it is joined into the image of another
    /// file, the job of that file builds it.
    pub fn for_each_image(
        &self,
        wanted: &[String],
        groups: &ImageGroups,
        companions: &Companions,
        mut each: impl FnMut(Result<JobImage<'_>, JobError<'_>>),
    ) {
        match self {
            Self::File(file) => {
                let read = each_in_file(file, wanted, groups, companions, &mut each);
                if let Err(error) = read {
                    each(Err(JobError::File(&error)));
                }
            }
            Self::CachedImage { cache, image } => {
                let part = image.path.clone();
                match image.load() {
                    Ok(image) => {
                        let file = DebugFile::on_disk(*cache);
                        each(Ok(JobImage { file, part, joined: Vec::new(), image }));
                    }
                    Err(error) => each(Err(JobError::File(&FileError::new(*cache, error).in_part(part)))),
                }
            }
            Self::Failed(error) => each(Err(JobError::File(error))),
            Self::NoSuchArch(error) => each(Err(JobError::NoSuchArch(error))),
        }
    }
}

fn each_in_file(
    file: &DebugFile,
    wanted: &[String],
    groups: &ImageGroups,
    companions: &Companions,
    each: &mut impl FnMut(Result<JobImage<'_>, JobError<'_>>),
) -> Result<(), FileError> {
    let bytes = symdex::map_file(file.path()).map_err(|error| FileError::unreadable(file.name(), error))?;
    let slices = slices(&bytes).map_err(|error| FileError::new(file.name(), error))?;
    for slice in slices.iter().filter(|slice| is_wanted(&slice.arch.name, wanted)) {
        if let Some(joined) = groups.join(file, slice, companions) {
            each_joined(file, slice, joined, each);
        }
    }
    Ok(())
}

/// Calls `each` with the failures of `joined`, then with its image.
fn each_joined(
    file: &DebugFile,
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
    if let Some((image, first)) = image.zip(paths.next()) {
        // If `file` could not be read, the image is that of another file.
        let file = if first == file.name() { file.clone() } else { file.called(&first) };
        each(Ok(JobImage { file, part, joined: paths.collect(), image }));
    }
}
