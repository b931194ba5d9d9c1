//! What images need beside the bytes of their own file, and where it is searched.

use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use symdex::ImageId;
use typed_arena::Arena;

/// What images borrow that is not in their own file's bytes: sections that are stored compressed, and files that the image's file
/// refers to.
///
/// It has to outlive the images that are loaded with it.
#[derive(Default)]
pub struct Companions {
    /// Folders of debug files, as `/usr/lib/debug` is one: by build id below `.build-id`, or by the path of the file they are of.
    debug_dirs: Vec<PathBuf>,
    buffers: Arena<Vec<u8>>,
    maps: Arena<Mmap>,
}

impl Companions {
    /// Files that an image refers to are searched beside it, and in `debug_dirs`.
    #[must_use]
    pub fn new(debug_dirs: Vec<PathBuf>) -> Self {
        Self { debug_dirs, ..Self::default() }
    }

    /// Keeps `bytes`.
    pub(crate) fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.buffers.alloc(bytes)
    }

    /// The bytes of the file at `path`.
    pub(crate) fn open(&self, path: &Path) -> io::Result<&[u8]> {
        Ok(self.maps.alloc(symdex::map_file(path)?))
    }

    /// Where a file with this build id may be: `.build-id/0c/37c502...debug` in each debug folder.
    pub(crate) fn by_build_id(&self, id: &ImageId) -> impl Iterator<Item = PathBuf> {
        let digits = id.to_string();
        let in_folder = move |folder: &PathBuf| {
            let (first, rest) = digits.split_at_checked(2)?;
            Some(folder.join(".build-id").join(first).join(format!("{rest}.debug")))
        };
        self.debug_dirs.iter().filter_map(in_folder)
    }

    /// Where a file may be that has this path below a debug folder.
    pub(crate) fn below_debug_dirs(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        self.debug_dirs.iter().map(move |folder| folder.join(path))
    }

    /// Where a file called `name` that `file` refers to may be: beside it, in `.debug` beside it, and below each debug folder in
    /// the same path.
    pub(crate) fn by_name(&self, file: &Path, name: &Path) -> impl Iterator<Item = PathBuf> {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
        let beside = [folder.join(name), folder.join(".debug").join(name)];
        // The path without what makes it absolute: a root, on Windows a drive.
        let below: PathBuf =
            absolute.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect();
        let below = below.join(name);
        beside.into_iter().chain(self.debug_dirs.iter().map(move |folder| folder.join(&below)))
    }
}

impl std::fmt::Debug for Companions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Companions({:?}, {} buffers, {} files)",
            self.debug_dirs,
            self.buffers.len(),
            self.maps.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_searched_by_build_id_and_by_name() {
        let companions = Companions::new(vec!["/debug".into()]);
        let id: ImageId = "0c37c5".parse().expect("an id");
        let found: Vec<PathBuf> = companions.by_build_id(&id).collect();
        assert_eq!(found, [Path::new("/debug/.build-id/0c/37c5.debug")]);
        let found: Vec<PathBuf> =
            companions.by_name(Path::new("/lib/x/liba.so"), Path::new("a.debug")).collect();
        let expected = ["/lib/x/a.debug", "/lib/x/.debug/a.debug", "/debug/lib/x/a.debug"];
        assert_eq!(found, expected.map(Path::new));
    }
}
