//! Where modules come from: indexes of files, folders and stores, and the files that requests name.

use std::path::{Path, PathBuf};

use symdex::{Grade, ImageId};
use symdex_build::Companions;
use symdex_build::debug_files::{DebugFile, FindImageError, ImageFiles, InputFiles, find_image, slices_of};
use symdex_pipeline::Batch;
use symdex_store::{IdPrefix, OpenImage, StoreReader};

use super::modules::ModuleName;
use crate::failure::{Cause, Failure, complain};
use crate::open::{self, AccessOption};
use crate::source::{self, AddressSource};
use crate::stores::id_of;
use crate::{archive, text};

/// Where modules are searched.
pub(super) struct Sources {
    /// The indexes and folders of indexes, then the stores.
    pub(super) stores: StoreReader,
    /// How many of these are indexes and folders.
    pub(super) indexes: usize,
    pub(super) debug_dirs: Vec<PathBuf>,
    /// Packages of split units that modules may refer to.
    pub(super) packages: Vec<DebugFile>,
    pub(super) access: AccessOption,
    /// Whether columns are printed. No index has them, so that only the debug file answers as without an index.
    pub(super) columns: bool,
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
                let found = match self.index_of(&id)? {
                    None => self.index_from(prefix)?,
                    found => found,
                };
                found.map(of_index).ok_or_else(|| not_found(prefix))
            }
            ModuleName::File { path, arch } => {
                if let Some(path) = source::index_file(path, None)? {
                    let index = open::index(&path, None, self.access)?;
                    let image = OpenImage::alone(index, path.display().to_string());
                    return Ok(of_index(AddressSource::Index(image)));
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
        let is_enough = |source: &AddressSource| !files.has_lines() || source.grade() == Grade::Lines;
        let index = self.index_of(files.id()).unwrap_or_else(|failure| {
            complain(&failure.message);
            None
        });
        let of_files = || {
            let companions = [files.companions(), &self.packages].concat();
            let files = Box::new(files.clone().with_companions(companions));
            AddressSource::DebugFiles { files, _archive: None }
        };
        let embedded = || if self.columns { None } else { source::embedded(&files) };
        let source = index.filter(is_enough).or_else(embedded).unwrap_or_else(of_files);
        Ok(OpenModule { source, image: Some(files), _owner: owner })
    }

    /// The index of `id` of the greatest grade in the indexes, folders and stores of the command line. Of equal ones,
    /// the first.
    fn index_of(&self, id: &ImageId) -> Result<Option<AddressSource>, Failure> {
        let mut failures = self.stores.no_failures();
        let found = self.stores.find_noting(id, &mut failures);
        // An index that is there, but cannot be opened, is not missing.
        let unread =
            failures.iter_mut().take(self.indexes).find_map(|failure| failure.take_if(|_| found.is_none()));
        failures.iter().flatten().for_each(|error| complain(&format!("warning: {error}")));
        unread.map_or(Ok(found.map(AddressSource::Index)), |error| Err(error.into()))
    }

    /// The index of the only id in the indexes and folders that begins with `prefix`.
    fn index_from(&self, prefix: &IdPrefix) -> Result<Option<AddressSource>, Failure> {
        let indexes = self.stores.stores().iter().take(self.indexes).map(|store| store.store());
        id_of(indexes, prefix, &mut self.stores.no_failures())?.map_or(Ok(None), |id| self.index_of(&id))
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
    let is_one = |dsym: &PathBuf| files.files().any(|file| file.path().starts_with(dsym));
    if let Some(dsym) = dsym_beside(path).filter(|dsym| !files.has_lines() && !is_one(dsym)) {
        let (others, id) = (text::list(ids_in(InputFiles::find([&dsym]))), files.id());
        let dsym = dsym.display();
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
