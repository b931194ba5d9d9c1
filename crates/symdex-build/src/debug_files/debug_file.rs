//! A debug file on disk, and its name for messages.

use std::path::{Path, PathBuf};

use crate::companions::{Companions, file_name};
use crate::error::Error;
use crate::image::Image;
use crate::slice::Slice;

/// A debug file on disk, and its name in messages and in the index.
///
/// The name is the path, except for a file from an archive or a pipe. Such a file is in a temporary folder, and its
/// name is that of the archive and the entry: `app.zip: MyApp.app.dSYM/Contents/Resources/DWARF/MyApp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugFile {
    path: PathBuf,
    name: PathBuf,
    /// The archive and the name in it, if the file comes from one. No archive and a name if it comes from a pipe.
    source: Option<(String, String)>,
}

impl DebugFile {
    /// The file at `path`.
    pub fn on_disk(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.clone(), path, source: None }
    }

    /// The file at `path`, unpacked from the entry `entry` of `archive`. These names are for messages only.
    pub fn of_archive(path: impl Into<PathBuf>, archive: &str, entry: &str) -> Self {
        let source = Some((archive.to_owned(), entry.to_owned()));
        Self { path: path.into(), name: format!("{archive}: {entry}").into(), source }
    }

    /// The file at `path`, which was copied from a pipe. `name` is the name of the pipe.
    pub fn of_pipe(path: impl Into<PathBuf>, name: &str) -> Self {
        Self { path: path.into(), name: name.into(), source: Some((String::new(), name.to_owned())) }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The archive and the entry that [`of_archive`](Self::of_archive) was given, or the name of a pipe as the entry of
    /// an archive without a name; `None` for a file on disk.
    #[must_use]
    pub fn archive_entry(&self) -> Option<(&str, &str)> {
        self.source.as_ref().map(|(archive, entry)| (&**archive, &**entry))
    }

    /// The name in the archive, or the path on disk.
    pub(crate) fn entry(&self) -> &Path {
        self.archive_entry().map_or(&self.path, |(_, entry)| Path::new(entry))
    }

    /// Gives `image`, which was loaded from this file, the name of the file.
    fn name_of_image<'d>(&self, image: Result<Image<'d>, Error>) -> Result<Image<'d>, Error> {
        let image = image?;
        match self.archive_entry() {
            Some((_, entry)) if image.name.text == file_name(&self.path) => {
                Ok(Image { name: image.name.clone().at(Path::new(entry)), ..image }.named())
            }
            _ => Ok(image),
        }
    }

    /// Loads the image in `slice`, which is a slice of this file.
    ///
    /// # Errors
    ///
    /// As [`Image::load`].
    pub fn load<'d>(&self, slice: &Slice<'d>, companions: &'d Companions) -> Result<Image<'d>, Error> {
        self.name_of_image(Image::load(slice, &self.path, companions))
    }

    /// Loads the image with this id and architecture; `None` if the file has no such image.
    pub(super) fn find<'d>(
        &self,
        id: &symdex::ImageId,
        arch: &str,
        companions: &'d Companions,
    ) -> Result<Option<Image<'d>>, Error> {
        Image::find(&self.path, id, arch, companions)?.map(|image| self.name_of_image(Ok(image))).transpose()
    }
}

/// Debug files in the tasks of child processes, which WebAssembly does not have.
#[cfg(any(unix, windows))]
mod in_tasks {
    use std::ffi::OsString;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::DebugFile;

    /// As its path and its place in an archive. A path in JSON would have to be UTF-8, unlike an [`OsString`].
    impl Serialize for DebugFile {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            (self.path.as_os_str(), &self.source).serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for DebugFile {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let (path, source) = <(OsString, Option<(String, String)>)>::deserialize(deserializer)?;
            Ok(match source {
                None => Self::on_disk(path),
                Some((archive, name)) if archive.is_empty() => Self::of_pipe(path, &name),
                Some((archive, entry)) => Self::of_archive(path, &archive, &entry),
            })
        }
    }
}
