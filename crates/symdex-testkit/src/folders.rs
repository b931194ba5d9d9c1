//! Folders for tests, and the names in them.

use std::path::Path;

/// A new folder, which is deleted when it is dropped.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The names in a folder, sorted. Empty if the folder does not exist.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The names of the indexes in the store in `folder`, sorted.
pub fn indexes_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        names_in(folder).iter().flat_map(|digits| names_in(&folder.join(digits))).collect();
    names.retain(|name| name.ends_with(".symdex"));
    names.sort();
    names
}
