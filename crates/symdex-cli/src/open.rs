//! Opening the index that a command line names.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, FailureKind, complain};
use crate::text;
use symdex::Index;
use symdex_store::{IdPrefix, IndexBytes, IndexFolder};

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
        Failure::new(FailureKind::NotFound, message)
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
    let indexes = IndexFolder::new(folder).list().paths;
    let what = match indexes.is_empty() {
        true => "it has none (a dSYM needs `symdex build` first)".to_owned(),
        false => format!("it has {}", text::list(indexes.iter().map(|path| described(path)))),
    };
    let message = format!("{}: a folder of indexes; choose one with --id; {what}", folder.display());
    Failure::new(FailureKind::Usage, message)
}

/// Describes an index by its id and, if it can be read, by name and architecture.
fn described(path: &Path) -> String {
    let id = path.file_stem().unwrap_or_default().display();
    match Index::open_file(path) {
        Ok(index) => {
            let metadata = index.metadata();
            format!("{id} ({}, {})", text::printable(metadata.image_name.as_str().into()), metadata.arch.name)
        }
        Err(_) => id.to_string(),
    }
}

/// Opens the index at `path`, and checks that it is the index of `id` if one is given.
pub(crate) fn index(path: &Path, id: Option<&IdPrefix>) -> Result<Index<IndexBytes>, Failure> {
    let index = symdex::map_file(path).map_err(symdex::Error::from).and_then(|file| Index::open(file.into()));
    let index: Index<IndexBytes> = index.map_err(|error| Failure::index(path, &error))?;
    match id {
        Some(id) if !id.matches(index.id()) => {
            let message = format!("{}: the index of {}, not of {id}", path.display(), index.id());
            Err(Failure::new(FailureKind::NotFound, message))
        }
        _ => Ok(index),
    }
}
