//! The folders to search for files that a debug file refers to, and the memory of these files and of decompressed
//! sections.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use symdex::ImageId;
use symdex::MappedFile;
use typed_arena::Arena;

use crate::error::Error;
use crate::limits::{Deadline, StopFlag};

/// Owns bytes that images borrow: decompressed sections, and the files that a debug file refers to.
///
/// It must outlive the images that are loaded with it. The bytes stay in memory until it is dropped, so use one for
/// each debug file, not one for a whole program.
#[derive(Default)]
pub struct Companions {
    /// Folders of debug files such as `/usr/lib/debug`. Files in them are found by build id in `.build-id`, or by the
    /// path of the binary.
    debug_dirs: Vec<PathBuf>,
    max_memory: Option<usize>,
    max_seconds: Option<u64>,
    stop: StopFlag,
    deadline: Cell<Deadline>,
    /// Whether something was omitted because of `max_memory`.
    is_exceeded: Cell<bool>,
    /// How many bytes `buffers` has.
    kept: Cell<usize>,
    buffers: Arena<Vec<u8>>,
    maps: Arena<MappedFile>,
}

impl Companions {
    /// An empty owner. Files that an image refers to are searched beside it and in `debug_dirs`.
    #[must_use]
    pub fn new(debug_dirs: Vec<PathBuf>) -> Self {
        Self { debug_dirs, ..Self::default() }
    }

    /// How many bytes of decompressed sections may be kept. An image that needs more fails with [`Error::TooLarge`].
    /// Give [`BuildOptions::max_memory`](crate::BuildOptions::max_memory) the same limit: it counts these bytes, too.
    #[must_use]
    pub fn max_memory(self, bytes: usize) -> Self {
        Self { max_memory: Some(bytes), ..self }
    }

    /// How many seconds the loading of an image may take. An image that takes longer fails with [`Error::TooSlow`].
    /// Give [`BuildOptions::max_seconds`](crate::BuildOptions::max_seconds) the same limit: it counts this time, too.
    /// `None` is no limit.
    #[must_use]
    pub fn max_seconds(self, seconds: Option<u64>) -> Self {
        Self { max_seconds: seconds, ..self }
    }

    /// Ends with [`Error::Stopped`] once the flag is set. The default is no flag.
    #[must_use]
    pub fn stop(self, stop: StopFlag) -> Self {
        Self { stop, ..self }
    }

    /// Begins to load an image.
    pub(crate) fn begin(&self) {
        self.deadline.set(Deadline::after(self.max_seconds).stopped_by(self.stop));
        self.is_exceeded.set(false);
    }

    /// When the image has to be loaded.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline.get()
    }

    /// How many bytes of decompressed sections are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.get()
    }

    /// How many bytes may still be kept.
    pub(crate) fn left(&self) -> u64 {
        self.max_memory.map_or(u64::MAX, |limit| limit.saturating_sub(self.kept()) as u64)
    }

    /// Checks that `bytes` more may be kept.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub(crate) fn check(&self, bytes: u64) -> Result<(), Error> {
        self.is_exceeded.set(self.is_exceeded.get() || bytes > self.left());
        self.check_loaded()
    }

    /// Checks that no limit was exceeded during loading.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] and [`Error::TooSlow`].
    pub(crate) fn check_loaded(&self) -> Result<(), Error> {
        self.deadline().check()?;
        match self.max_memory.filter(|_| self.is_exceeded.get()) {
            Some(limit) => Err(Error::TooLarge { limit, what: "its decompressed sections" }),
            None => Ok(()),
        }
    }

    /// Keeps `bytes`.
    pub(crate) fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.kept.set(self.kept().saturating_add(bytes.capacity()));
        self.buffers.alloc(bytes)
    }

    /// The `paths` that may be opened for the file at `file`: those in its folder, in a debug folder, or in a folder
    /// `.dwz` above it. Symbolic links are followed; the owner of the folder made them.
    ///
    /// Debug files may be untrusted. They may state any path, such as that of a secret file, or of a file on another
    /// machine.
    pub(crate) fn within(&self, file: &Path, paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let folder = file.parent().and_then(normal);
        let roots: Vec<PathBuf> = self.debug_dirs.iter().filter_map(|folder| normal(folder)).collect();
        let may_be_opened = |path: &PathBuf| {
            let in_dwz = || path.ancestors().find(|folder| folder.file_name() == Some(OsStr::new(".dwz")));
            roots.iter().chain(&folder).any(|root| path.starts_with(root))
                || folder
                    .as_ref()
                    .zip(in_dwz())
                    .is_some_and(|(folder, dwz)| dwz.parent().is_some_and(|above| folder.starts_with(above)))
        };
        paths.into_iter().filter_map(|path| normal(&path)).filter(may_be_opened).collect()
    }

    /// The debug folders.
    pub(crate) fn debug_dirs(&self) -> impl Iterator<Item = &Path> {
        self.debug_dirs.iter().map(PathBuf::as_path)
    }

    /// Maps the file at `path` into memory.
    pub(crate) fn open(&self, path: &Path) -> io::Result<&[u8]> {
        Ok(self.maps.alloc(symdex::map_file(path)?))
    }

    /// The paths that a file with this build id can have: `.build-id/0c/37c502...debug` in each debug folder.
    pub fn by_build_id(&self, id: &ImageId) -> impl Iterator<Item = PathBuf> {
        let digits = id.to_string();
        let in_folder = move |folder: &PathBuf| {
            let (first, rest) = digits.split_at_checked(2)?;
            Some(folder.join(".build-id").join(first).join(format!("{rest}.debug")))
        };
        self.debug_dirs.iter().filter_map(in_folder)
    }

    /// The paths of a file `name` that `file` refers to: beside it, in `.debug` beside it, in each debug folder, and in
    /// the same path below each debug folder.
    pub(crate) fn by_name(&self, file: &Path, name: &Path) -> impl Iterator<Item = PathBuf> {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
        let beside = [folder.join(name), folder.join(".debug").join(name)];
        // The path without its root or, on Windows, its drive.
        let below: PathBuf =
            absolute.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let (below, name) = (below.join(name), name.to_owned());
        let in_folder = move |folder: &PathBuf| [folder.join(&name), folder.join(&below)];
        beside.into_iter().chain(self.debug_dirs.iter().flat_map(in_folder))
    }
}

/// The last part of `path`.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(OsStr::to_string_lossy).unwrap_or_default().into_owned()
}

/// A path from debug information. Returns `None` if it is longer than any path can be.
pub(crate) fn path_of(name: &[u8]) -> Option<PathBuf> {
    /// The limit of Linux. The limit of macOS is a quarter of it.
    const LONGEST: usize = 4096;
    (name.len() <= LONGEST).then(|| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
}

/// The start of a name from a debug file, for messages. The name may be as long as the file.
pub(crate) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 300;
    match name.get(..LONGEST) {
        Some(beginning) if name.len() > LONGEST => format!("{}...", String::from_utf8_lossy(beginning)),
        _ => String::from_utf8_lossy(name).into_owned(),
    }
}

/// The absolute path without `.` and `..`. Nothing is looked up on disk.
fn normal(path: &Path) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut normal = PathBuf::new();
    for part in std::path::absolute(path).ok()?.components() {
        match part {
            Component::CurDir => {}
            // There is nothing above the root.
            Component::ParentDir => _ = normal.pop(),
            part => normal.push(part),
        }
    }
    Some(normal)
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

    #[cfg(unix)]
    #[test]
    fn files_elsewhere_are_not_opened_because_a_debug_file_names_them() {
        let companions = Companions::new(vec!["/debug/".into()]);
        let within =
            |path: &str| companions.within(Path::new("/up/x/../load/liba.so"), [PathBuf::from(path)]);
        for inside in ["/up/load/a.dwo", "/debug/a", "/up/.dwz/a", "/.dwz/a"] {
            assert_eq!(within(inside), [Path::new(inside)]);
        }
        assert_eq!(within("/up/load/../../up/load/./obj//a.dwo"), [Path::new("/up/load/obj/a.dwo")]);
        for outside in
            ["/etc/passwd", "/up/loader/a", "/up/load/../a", "/debug/../a", "/a/.dwz/a", "/../a", "a"]
        {
            assert_eq!(within(outside), [""; 0].map(PathBuf::from), "{outside}");
        }
        let beside = Companions::default().within(Path::new("liba.so"), ["./obj/a.dwo".into()]);
        assert_eq!(beside, [std::env::current_dir().expect("a folder").join("obj/a.dwo")]);
    }

    #[test]
    fn names_without_end_are_cut() {
        assert!(path_of(&[b'a'; 4097]).is_none());
        assert_eq!((shown(&[b'a'; 300]).len(), shown(&[b'a'; 9000]).len()), (300, 303));
    }

    #[test]
    fn files_are_searched_by_build_id_and_by_name() {
        let companions = Companions::new(vec!["/debug".into()]);
        let id: ImageId = "0c37c5".parse().expect("an id");
        let found: Vec<PathBuf> = companions.by_build_id(&id).collect();
        assert_eq!(found, [Path::new("/debug/.build-id/0c/37c5.debug")]);
        let found: Vec<PathBuf> =
            companions.by_name(Path::new("/lib/x/liba.so"), Path::new("a.debug")).collect();
        let expected = ["/lib/x/a.debug", "/lib/x/.debug/a.debug", "/debug/a.debug", "/debug/lib/x/a.debug"];
        assert_eq!(found, expected.map(Path::new));
    }
}
