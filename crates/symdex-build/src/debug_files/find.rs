//! Finding one image in a file or a folder of debug files.

use symdex::ImageId;

use super::{FileError, ImageFiles, InputFiles, slices_of};

/// Why [`find_image`] returns no image.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum FindImageError {
    /// A file could not be read, and the other files have no wanted image.
    #[error(transparent)]
    File(#[from] FileError),
    /// All files could be read, and they have no wanted image.
    #[error("none of the {} images is wanted", images.len())]
    NotFound {
        /// The images that were found.
        images: Vec<ImageFiles>,
    },
    /// Several images are wanted.
    #[error("{} images are wanted; choose one by its architecture or id", images.len())]
    Ambiguous {
        /// The wanted images.
        images: Vec<ImageFiles>,
    },
}

/// Finds the one image that has this architecture, if one is named, and an id that `is_wanted` accepts.
///
/// Files of the same image are put together, with the companions among the files. A file that cannot be read is an
/// error only if no image in the other files is wanted.
///
/// # Errors
///
/// [`FindImageError`] if there is no such image, or more than one.
pub fn find_image(
    inputs: InputFiles,
    arch: Option<&str>,
    is_wanted: impl Fn(&ImageId) -> bool,
) -> Result<ImageFiles, FindImageError> {
    let mut images: Vec<ImageFiles> = Vec::new();
    let (mut failures, mut companions) = (Vec::new(), Vec::new());
    for file in inputs.into_files() {
        let listed = file.and_then(|file| match slices_of(&file) {
            Err(error) if error.is_companion() => {
                companions.push(file);
                Err(error)
            }
            listed => Ok((file, listed?)),
        });
        match listed {
            Ok((file, listed)) => {
                for listed in listed {
                    match listed {
                        Ok(listed) => match images.iter_mut().find(|image| image.is_image(&listed)) {
                            Some(image) => image.add(&file, &listed),
                            None => images.push(ImageFiles::new(&file, &listed)),
                        },
                        Err(failure) => failures.push(failure),
                    }
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    let is_wanted =
        |image: &ImageFiles| arch.is_none_or(|arch| image.arch() == arch) && is_wanted(image.id());
    let (mut wanted, others): (Vec<_>, Vec<_>) = images.into_iter().partition(is_wanted);
    failures.sort_by_key(FileError::is_companion);
    match (wanted.pop(), failures.into_iter().next()) {
        (None, Some(failure)) if others.is_empty() || !failure.is_companion() => Err(failure.into()),
        (None, _) => Err(FindImageError::NotFound { images: others }),
        (Some(image), _) if wanted.is_empty() => Ok(image.with_companions(companions)),
        (Some(image), _) => {
            wanted.push(image);
            Err(FindImageError::Ambiguous { images: wanted })
        }
    }
}
