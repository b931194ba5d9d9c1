//! Where modules come from: indexes of files, folders and stores, and the files that requests name.

use std::path::{Path, PathBuf};

use symdex::{ImageId, MappedFile, Metadata};
use symdex_build::Companions;
use symdex_build::debug_files::{DebugFile, FindImageError, ImageFiles, InputFiles, find_image, slices_of};
use symdex_store::{IdPrefix, IndexFolder, StoreReader};

use super::modules::ModuleName;
use crate::failure::{Failure, FailureKind, complain};
use crate::open::{self, AccessOption};
use crate::source::{self, AddressSource};
use crate::stores::{Failures, FoundImage};

/// Where modules are searched.
pub(super) struct Sources {
    pub(super) indexes: Vec<PathBuf>,
    pub(super) debug_dirs: Vec<PathBuf>,
    /// Packages of split units that modules may refer to.
    pub(super) packages: Vec<DebugFile>,
    pub(super) stores: StoreReader,
    pub(super) access: AccessOption,
}

impl Sources {
    /// The index of the module; without one, its files.
    pub(super) fn open(&self, name: &ModuleName) -> Result<AddressSource, Failure> {
        match name {
            ModuleName::BuildId(prefix) => {
                let Some(id) = prefix.to_id() else { return Err(not_found(prefix)) };
                if let Some(path) = self.path_of(name) {
                    let files = image_at(&path, None)?;
                    if *files.id() == id {
                        return Ok(self.open_image(files));
                    }
                    complain(&format!("{}: has the id {}, and not {id}", path.display(), files.id()));
                }
                self.index_of(&id)?.ok_or_else(|| not_found(prefix))
            }
            ModuleName::File { path, arch } => {
                if let Some(path) = source::index_file(path, None)? {
                    let index = Box::new(open::index(&path, None, self.access)?);
                    return Ok(AddressSource::Index { index, path });
                }
                let files = image_at(path, arch.as_deref())?;
                warn_about_dsym(path, &files);
                Ok(self.open_image(files))
            }
        }
    }

    /// The index of an image; without one, its files. An index without functions is not enough if they have some.
    fn open_image(&self, files: ImageFiles) -> AddressSource {
        let is_enough = |source: &AddressSource| !files.has_dwarf() || source.has_functions();
        match self.index_of(files.id()) {
            Ok(found) => {
                if let Some(found) = found.filter(is_enough) {
                    return found;
                }
            }
            Err(failure) => complain(&failure.message),
        }
        let companions = [files.companions(), &self.packages].concat();
        AddressSource::DebugFiles { files: Box::new(files.with_companions(companions)), _archive: None }
    }

    /// The files of a module. Indexes have neither data nor all symbols.
    pub(super) fn files_of(&self, name: &ModuleName) -> Vec<MappedFile> {
        let files = self.path_of(name).map(|path| files_at(&path));
        let files = files.iter().flat_map(InputFiles::files).flatten();
        files.filter_map(|file| symdex::map_file(file.path()).ok()).collect()
    }

    /// The path of a module's file. The file of a build id is in a debug folder.
    pub(super) fn path_of(&self, name: &ModuleName) -> Option<PathBuf> {
        match name {
            ModuleName::File { path, .. } => Some(path.clone()),
            ModuleName::BuildId(prefix) => {
                let folders = Companions::new(self.debug_dirs.clone());
                folders.by_build_id(&prefix.to_id()?).find(|path| path.is_file())
            }
        }
    }

    /// The first index of `id` in the files, folders and stores of the command line.
    fn index_of(&self, id: &ImageId) -> Result<Option<AddressSource>, Failure> {
        for path in &self.indexes {
            let found = match path.is_dir() {
                true => IndexFolder::new(path).find_prefix(&IdPrefix::from(id))?,
                false => Some(path.clone())
                    .filter(|path| Metadata::read_file(path).is_ok_and(|metadata| metadata.id == *id)),
            };
            if let Some(path) = found {
                let index = Box::new(open::index(&path, Some(&IdPrefix::from(id)), self.access)?);
                return Ok(Some(AddressSource::Index { index, path }));
            }
        }
        let mut failures: Failures = self.stores.stores().iter().map(|_| None).collect();
        let found = self.stores.find_noting(id, &mut failures);
        failures.iter().flatten().for_each(|error| complain(&format!("warning: {error}")));
        Ok(found.map(|image| AddressSource::Stored(FoundImage::from(image))))
    }
}

fn not_found(prefix: &IdPrefix) -> Failure {
    let message = format!(
        "no index and no file in .build-id of a debug folder has the build id {prefix}; name folders or stores of \
         indexes, or folders of debug files"
    );
    Failure::new(FailureKind::NotFound, message)
}

/// The debug files at `path` and in the dSYM beside it.
fn files_at(path: &Path) -> InputFiles {
    InputFiles::find(std::iter::once(path.to_owned()).chain(dsym_beside(path)))
}

fn dsym_beside(path: &Path) -> Option<PathBuf> {
    let mut dsym = path.as_os_str().to_owned();
    dsym.push(".dSYM");
    Some(PathBuf::from(dsym)).filter(|dsym| dsym.is_dir())
}

/// The ids of the images in `files`.
fn ids_in(files: InputFiles) -> Vec<ImageId> {
    let slices = files.into_files().into_iter().flatten().filter_map(|file| slices_of(&file).ok());
    slices.flatten().flatten().map(|listed| listed.identity.id).collect()
}

/// Says so if the dSYM beside `path` is of another build than `files`, the files of the image there.
fn warn_about_dsym(path: &Path, files: &ImageFiles) {
    if let Some(dsym) = dsym_beside(path).filter(|_| !files.has_dwarf()) {
        let ids: Vec<_> = ids_in(InputFiles::find([&dsym])).iter().map(ImageId::to_string).collect();
        let (dsym, id, others) = (dsym.display(), files.id(), ids.join(", "));
        complain(&format!(
            "warning: {dsym}: does not match: it has the id {others}, and the binary has {id}"
        ));
    }
}

/// The image in the file at `path` and in the dSYM beside it. `arch` chooses one of several.
pub(super) fn image_at(path: &Path, arch: Option<&str>) -> Result<ImageFiles, Failure> {
    // A dSYM of another build has other images.
    let own = dsym_beside(path).map_or(Vec::new(), |_| ids_in(InputFiles::find([path])));
    let found = match find_image(files_at(path), None, |id| own.is_empty() || own.contains(id)) {
        // Clients state the architecture of the machine for files of any other, too.
        Err(FindImageError::Ambiguous { images }) => {
            let (mut chosen, others): (Vec<_>, Vec<_>) =
                images.into_iter().partition(|image| Some(image.arch()) == arch);
            match chosen.pop().filter(|_| chosen.is_empty()) {
                Some(image) => Ok(image),
                None => Err(FindImageError::Ambiguous { images: chosen.into_iter().chain(others).collect() }),
            }
        }
        found => found,
    };
    found.map_err(|error| source::not_found(path, None, error))
}
