//! Where modules come from: indexes of files, folders and stores, and the files that requests name.

use std::path::{Path, PathBuf};

use symdex::{Grade, ImageId, Metadata};
use symdex_build::Companions;
use symdex_build::debug_files::{DebugFile, FindImageError, ImageFiles, InputFiles, find_image, slices_of};
use symdex_pipeline::Batch;
use symdex_store::{IdPrefix, IndexFolder, StoreReader};

use super::modules::ModuleName;
use crate::archive;
use crate::failure::{Cause, Failure, complain};
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

/// A module: what answers addresses, and its files, which data, symbols and sections are read from.
pub(super) struct OpenModule {
    pub(super) source: AddressSource,
    /// `None` if the module is an index.
    pub(super) image: Option<ImageFiles>,
    /// Owns the copy of a file that was read from a pipe.
    pub(super) _owner: Option<Batch>,
}

impl Sources {
    /// The index of the module; without one, its files.
    pub(super) fn open(&self, name: &ModuleName) -> Result<OpenModule, Failure> {
        let of_index = |source| OpenModule { source, image: None, _owner: None };
        match name {
            ModuleName::BuildId(prefix) => {
                let Some(id) = prefix.to_id() else { return Err(not_found(prefix)) };
                let folders = Companions::new(self.debug_dirs.clone());
                if let Some(path) = folders.by_build_id(&id).find(|path| path.is_file()) {
                    let found = self.open_image(&path, None)?;
                    match &found.image {
                        Some(image) if *image.id() != id => {
                            complain(&format!("{}: has the id {}, and not {id}", path.display(), image.id()));
                        }
                        _ => return Ok(found),
                    }
                }
                self.index_of(&id)?.map(of_index).ok_or_else(|| not_found(prefix))
            }
            ModuleName::File { path, arch } => {
                if let Some(path) = source::index_file(path, None)? {
                    let index = Box::new(open::index(&path, None, self.access)?);
                    return Ok(of_index(AddressSource::Index { index, path }));
                }
                self.open_image(path, arch.as_deref())
            }
        }
    }

    /// The index of the image in the file at `path`; without one, its files. An index without lines is not enough if
    /// they have some.
    fn open_image(&self, path: &Path, arch: Option<&str>) -> Result<OpenModule, Failure> {
        let (files, owner) = files_at(path)?;
        let files = image_of(files, path, arch)?;
        warn_about_dsym(path, &files);
        let is_enough = |source: &AddressSource| !files.has_dwarf() || source.grade() == Grade::Lines;
        let index = self.index_of(files.id()).unwrap_or_else(|failure| {
            complain(&failure.message);
            None
        });
        let of_files = || {
            let companions = [files.companions(), &self.packages].concat();
            let files = Box::new(files.clone().with_companions(companions));
            AddressSource::DebugFiles { files, _archive: None }
        };
        let source = index.filter(is_enough).unwrap_or_else(of_files);
        Ok(OpenModule { source, image: Some(files), _owner: owner })
    }

    /// The index of `id` of the greatest grade in the files, folders and stores of the command line. Of equal ones, the
    /// first.
    fn index_of(&self, id: &ImageId) -> Result<Option<AddressSource>, Failure> {
        let mut best: Option<AddressSource> = None;
        for path in &self.indexes {
            let found = match path.is_dir() {
                true => IndexFolder::new(path).find_prefix(&IdPrefix::from(id))?,
                false => Some(path.clone())
                    .filter(|path| Metadata::read_file(path).is_ok_and(|metadata| metadata.id == *id)),
            };
            if let Some(path) = found {
                let index = Box::new(open::index(&path, Some(&IdPrefix::from(id)), self.access)?);
                let found = AddressSource::Index { index, path };
                if best.as_ref().is_none_or(|best| best.grade() < found.grade()) {
                    best = Some(found);
                }
                if best.as_ref().is_some_and(|best| best.grade() == Grade::Lines) {
                    return Ok(best);
                }
            }
        }
        let mut failures: Failures = self.stores.stores().iter().map(|_| None).collect();
        let found = self.stores.find_noting(id, &mut failures);
        failures.iter().flatten().for_each(|error| complain(&format!("warning: {error}")));
        let found = found.map(|image| AddressSource::Stored(FoundImage::from(image)));
        let is_better = |found: &AddressSource| best.as_ref().is_none_or(|best| best.grade() < found.grade());
        Ok(found.filter(is_better).or(best))
    }
}

fn not_found(prefix: &IdPrefix) -> Failure {
    let message = format!(
        "no index and no file in .build-id of a debug folder has the build id {prefix}; name folders or stores of \
         indexes, or folders of debug files"
    );
    Failure::new(Cause::NotFound, message)
}

/// The debug files at `path` and in the dSYM beside it. A pipe is copied to a file; its owner is returned, too.
fn files_at(path: &Path) -> Result<(InputFiles, Option<Batch>), Failure> {
    if archive::is_pipe(path)
        && let Some(mut owner) = archive::only_debug_files(path)?
    {
        return Ok((std::mem::take(&mut owner.files), Some(owner)));
    }
    Ok((InputFiles::find(std::iter::once(path.to_owned()).chain(dsym_beside(path))), None))
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

/// The image in the `files` of `path`. `arch` chooses one of several.
fn image_of(files: InputFiles, path: &Path, arch: Option<&str>) -> Result<ImageFiles, Failure> {
    // A dSYM of another build has other images.
    let own = dsym_beside(path).map_or(Vec::new(), |_| ids_in(InputFiles::find([path])));
    let found = match find_image(files, None, |id| own.is_empty() || own.contains(id)) {
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
