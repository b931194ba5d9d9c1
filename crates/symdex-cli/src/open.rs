//! Opening the index that a command line names.

use std::path::{Path, PathBuf};

use crate::failure::{Cause, Failure, complain};
use crate::stores::StoreArgs;
use crate::text;
use symdex::{Index, Metadata};
use symdex_store::{IdPrefix, IndexAccess, IndexBytes, IndexFolder, OpenImage};

/// How indexes are opened.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct AccessOption {
    /// Map every index into memory. By default, an index that others can change, or that is on a network file system,
    /// is read instead: if a mapped file is truncated, the command is killed
    #[arg(long)]
    map: bool,
}

impl AccessOption {
    pub(crate) fn access(self) -> IndexAccess {
        if self.map { IndexAccess::Map } else { IndexAccess::Auto }
    }
}

/// The path of an index: `path` itself, or the index of the image `id` in the folder `path`.
pub(crate) fn index_path(path: &Path, id: Option<&IdPrefix>) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let Some(id) = id else { return Err(which_index(path)) };
    IndexFolder::new(path).find_prefix(id)?.ok_or_else(|| {
        let message = format!(
            "{}: no index in this folder or below it has an id that begins with {id}",
            path.display()
        );
        Failure::new(Cause::NotFound, message)
    })
}

/// Reports that the search of `folder` for indexes was not complete.
pub(crate) fn report_incomplete_search(folder: &Path) {
    let folder = folder.display();
    complain(&format!(
        "{folder}: only a part of it was searched for indexes, because it is too large or too deep"
    ));
}

/// The failure for a folder without `--id`. The message lists the ids of its indexes.
pub(crate) fn which_index(folder: &Path) -> Failure {
    let indexes = IndexFolder::new(folder).files().paths;
    let what = if indexes.is_empty() {
        "it has none (a dSYM needs `symdex build` first)".to_owned()
    } else {
        format!("it has {}", text::list(indexes.iter().map(|path| described(path))))
    };
    let message = format!("{}: a folder of indexes; choose one with --id; {what}", folder.display());
    Failure::new(Cause::Usage, message)
}

/// Describes an index by its id and, if it can be read, by name and architecture.
fn described(path: &Path) -> String {
    let id = path.file_stem().unwrap_or_default().display();
    match Metadata::read_file(path) {
        Ok(metadata) => {
            format!("{id} ({}, {})", text::printable(metadata.image_name.into()), metadata.arch.name)
        }
        Err(_) => id.to_string(),
    }
}

/// Opens the index at `path`, and checks that it is the index of `id` if one is given.
pub(crate) fn index(
    path: &Path,
    id: Option<&IdPrefix>,
    access: AccessOption,
) -> Result<Index<IndexBytes>, Failure> {
    let index = access.access().open(path).map_err(|error| Failure::index(path, &error))?;
    match id {
        Some(id) if !id.matches(index.id()) => {
            let message = format!("{}: the index of {}, not of {id}", path.display(), index.id());
            Err(Failure::new(Cause::NotFound, message))
        }
        _ => Ok(index),
    }
}

/// The image `id` of the first store that has it, if the command line names any. Otherwise the index at `path`, by
/// default the current folder, or the index of `id` in the folder `path`.
pub(crate) fn image(
    path: Option<&Path>,
    stores: &StoreArgs,
    id: Option<&IdPrefix>,
    access: AccessOption,
) -> Result<OpenImage, Failure> {
    if let Some(found) = stores.find(id, access)? {
        return Ok(found);
    }
    let path = index_path(path.unwrap_or(Path::new(".")), id)?;
    Ok(OpenImage::alone(index(&path, id, access)?, path.display().to_string()))
}
