//! Opening the index that a command line names.

use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_build::publish;

use crate::failure::{Failure, Kind};

/// The path of the index that `path` and `id` name: the file itself, or the one of the image `id` in a folder.
pub(crate) fn index_path(path: &Path, id: Option<&ImageId>) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let shown = path.display();
    let Some(id) = id else {
        let message = format!(
            "{shown}: a folder; say which image's index in it with --id (a dSYM needs `symdex build` first)"
        );
        return Err(Failure::new(Kind::Usage, message));
    };
    let found = publish::find_index(path, id).map_err(|error| Failure::unreadable(path, &error))?;
    found.ok_or_else(|| {
        let message = format!(
            "{shown}: no index of {id} in this folder; expected {} there, or in a folder named by its first two digits",
            publish::file_name(id)
        );
        Failure::new(Kind::Missing, message)
    })
}

/// Opens the index at `path`, which is that of the image `id` where one is given.
pub(crate) fn index(path: &Path, id: Option<&ImageId>) -> Result<Index<impl AsRef<[u8]> + use<>>, Failure> {
    let index = Index::open_file(path).map_err(|error| Failure::index(path, &error))?;
    match id {
        Some(id) if id != index.id() => {
            let message = format!("{}: the index of {}, not of {id}", path.display(), index.id());
            Err(Failure::new(Kind::NotFound, message))
        }
        _ => Ok(index),
    }
}
