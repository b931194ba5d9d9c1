//! The files of one image, and the image joined from them.

use std::path::{Path, PathBuf};

use symdex::ImageId;

use super::{DebugFile, FileError, ListedImage, gone};
use crate::companions::Companions;
use crate::error::Error;
use crate::image::{Image, ImageName};
use crate::input::find;

/// The files of one image: a debug file, and files without debug information that may have more symbols.
#[derive(Clone, Debug)]
pub struct ImageFiles {
    id: ImageId,
    arch: String,
    has_dwarf: bool,
    has_lines: bool,
    image_name: ImageName,
    /// The first file that has debug information. If no file has any, the first file.
    file: DebugFile,
    /// Other files, without debug information.
    beside: Vec<DebugFile>,
    /// Files that the debug information may refer to.
    companions: Vec<DebugFile>,
}

impl ImageFiles {
    /// The image `listed` of `file`.
    #[must_use]
    pub fn new(file: &DebugFile, listed: &ListedImage) -> Self {
        Self {
            id: listed.identity.id.clone(),
            arch: listed.arch.clone(),
            has_dwarf: listed.identity.has_dwarf,
            has_lines: listed.identity.has_lines,
            image_name: name_in(file, listed),
            file: file.clone(),
            beside: Vec::new(),
            companions: Vec::new(),
        }
    }

    /// The same files, found together with `companions`.
    #[must_use]
    pub fn with_companions(self, companions: Vec<DebugFile>) -> Self {
        Self { companions, ..self }
    }

    /// The companions that were found together with the files. The image is loaded with
    /// [`Companions::files`] of these.
    #[must_use]
    pub fn companions(&self) -> &[DebugFile] {
        &self.companions
    }

    /// Whether `listed` is the same image: it has the same id and architecture.
    #[must_use]
    pub fn is_image(&self, listed: &ListedImage) -> bool {
        self.id == listed.identity.id && self.arch == listed.arch
    }

    /// Adds another file of the image. A second file with debug information is ignored.
    pub fn add(&mut self, file: &DebugFile, listed: &ListedImage) {
        self.image_name = self.image_name.clone().or(name_in(file, listed));
        self.has_lines |= listed.identity.has_lines;
        match (self.has_dwarf, listed.identity.has_dwarf) {
            (false, true) => {
                self.beside.push(std::mem::replace(&mut self.file, file.clone()));
                self.has_dwarf = true;
            }
            (_, false) => self.beside.push(file.clone()),
            (true, true) => {}
        }
    }

    /// The image's id.
    #[must_use]
    pub fn id(&self) -> &ImageId {
        &self.id
    }

    /// The name of its architecture.
    #[must_use]
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Whether one of the files states functions with lines: in DWARF, or in the tables of the Go runtime.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.has_lines
    }

    /// The name of the image: that of the binary, if it is one of the files.
    #[must_use]
    pub fn image_name(&self) -> &str {
        &self.image_name.text
    }

    /// The name, for messages, of the first file that has debug information; if no file has any, of the first file.
    #[must_use]
    pub fn name(&self) -> &Path {
        self.file.name()
    }

    /// The files, of which the first is the one with this [`name`](Self::name).
    pub fn files(&self) -> impl Iterator<Item = &DebugFile> {
        std::iter::once(&self.file).chain(&self.beside)
    }

    /// Joins all files of the image that can be read.
    #[must_use]
    pub fn join<'d>(&self, companions: &'d Companions) -> JoinedImage<'d> {
        let mut joined = JoinedImage::default();
        for file in self.files() {
            joined.add_file(file, &self.id, &self.arch, companions);
        }
        joined
    }

    /// Loads the image from the file with this [`name`](Self::name) and joins the other files with it. Returns the
    /// image, and the reasons why other files are omitted.
    ///
    /// # Errors
    ///
    /// [`FileError`] if that file cannot be read.
    pub fn load<'d>(&self, companions: &'d Companions) -> Result<(Image<'d>, Vec<FileError>), FileError> {
        let JoinedImage { image, paths, failures } = self.join(companions);
        match image.filter(|_| paths.first().is_some_and(|first| first == self.name())) {
            Some(image) => Ok((image, failures)),
            None => Err(failures.into_iter().next().unwrap_or_else(|| FileError::gone(self.name()))),
        }
    }
}

fn name_in(file: &DebugFile, listed: &ListedImage) -> ImageName {
    ImageName::of(file.entry(), listed.identity.kind, listed.identity.has_dwarf)
}

/// An image joined from several files, as far as these can be read.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct JoinedImage<'d> {
    /// The image; `None` if no file could be read.
    pub image: Option<Image<'d>>,
    /// The files that are joined in it, in the order in which they were added.
    pub paths: Vec<PathBuf>,
    /// The reasons why other files are omitted.
    pub failures: Vec<FileError>,
}

impl<'d> JoinedImage<'d> {
    /// Joins the image of this id and architecture in all debug files at or below `input`.
    ///
    /// # Errors
    ///
    /// [`FileError`] if `input` is not a debug file or a folder that has some.
    pub fn find(
        input: &Path,
        id: &ImageId,
        arch: &str,
        companions: &'d Companions,
    ) -> Result<Self, FileError> {
        let files = find(input).into_iter().map(|found| found.map(DebugFile::on_disk));
        let files: Result<Vec<_>, _> = files.collect();
        let files = files.map_err(|error| FileError::new(input, error))?;
        Ok(Self::among(&files, id, arch, companions))
    }

    /// Joins the image of this id and architecture in all of `files` that have it.
    #[must_use]
    pub fn among<'f>(
        files: impl IntoIterator<Item = &'f DebugFile>,
        id: &ImageId,
        arch: &str,
        companions: &'d Companions,
    ) -> Self {
        let mut joined = Self::default();
        for file in files {
            match file.find(id, arch, companions) {
                Ok(None) | Err(Error::NoSuchArch { .. } | Error::Companion { .. }) => {}
                Ok(Some(image)) => joined.add(file.name(), Ok(image)),
                Err(error) => joined.add(file.name(), Err(error)),
            }
        }
        joined
    }

    /// Joins the image of this id and architecture in `file` with the files before it.
    pub fn add_file(&mut self, file: &DebugFile, id: &ImageId, arch: &str, companions: &'d Companions) {
        let found = file.find(id, arch, companions);
        self.add(file.name(), found.and_then(|found| found.ok_or_else(gone)));
    }

    /// Joins `image`, which was loaded from the file at `path`, with the files before it.
    pub fn add(&mut self, path: &Path, image: Result<Image<'d>, Error>) {
        let image = match (self.image.take(), image) {
            (None, Ok(first)) => Ok(first),
            (Some(image), Ok(other)) if image.can_join(&other) => Ok(image.join(other)),
            (Some(image), Ok(other)) => {
                let error = other_addresses(&image, &other);
                Err((Some(image), error))
            }
            (image, Err(error)) => Err((image, error)),
        };
        self.image = match image {
            Ok(image) => {
                self.paths.push(path.to_owned());
                Some(image)
            }
            Err((image, error)) => {
                self.failures.push(FileError::new(path, error));
                image
            }
        };
    }
}

fn other_addresses(image: &Image<'_>, other: &Image<'_>) -> Error {
    let (base, others) = (image.info.base, other.info.base);
    let what = format!(
        "the image has other addresses than in the file it belongs to, from {others:#x} on and not from {base:#x} on"
    );
    Error::Malformed { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Identity, ImageKind};

    fn listed(id: u8, has_dwarf: bool) -> ListedImage {
        let id = ImageId::new(&[id; 16]).expect("16 bytes are an id");
        let identity = Identity { id, has_dwarf, has_lines: has_dwarf, kind: ImageKind::ElfLibrary };
        ListedImage { identity, arch: "arm64".to_owned(), size: 0, cached_path: None }
    }

    #[test]
    fn the_first_file_with_debug_information_is_read_first() {
        let mut files = ImageFiles::new(&DebugFile::on_disk("binary"), &listed(1, false));
        assert!(files.is_image(&listed(1, true)) && !files.is_image(&listed(2, true)));
        for (path, has_dwarf) in [("stripped", false), ("debug", true), ("copy", true), ("other", false)] {
            files.add(&DebugFile::on_disk(path), &listed(1, has_dwarf));
        }
        assert!(files.has_lines());
        assert_eq!((files.name(), files.image_name()), (Path::new("debug"), "binary"));
        assert_eq!(files.beside, ["stripped", "binary", "other"].map(DebugFile::on_disk));
    }

    #[test]
    fn an_image_without_a_readable_file_is_not_loaded() {
        let files = ImageFiles::new(&DebugFile::on_disk("/nowhere/at/all"), &listed(1, false));
        let companions = Companions::default();
        assert_eq!(files.join(&companions).failures.len(), 1);
        let error = files.load(&companions).expect_err("no such file");
        assert!(error.to_string().starts_with("/nowhere/at/all: cannot read: "), "{error}");
    }
}
