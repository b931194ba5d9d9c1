//! Finding debug files in a bundle, an `.xcarchive` or a folder.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::companions::DWZ;
use crate::debug_files::DebugFile;
use crate::error::{Error, first_paths};
use crate::slice::FIRST_JAVA_VERSION;

/// The extension of index files.
const INDEX_EXTENSION: &str = "symdex";

/// The debug files of `input`, in the order of their paths. The list is never empty: if no debug file is found, it has
/// an error.
///
/// If `input` is a file, it is returned unread. If it is a folder, all debug files in it, at any depth, are returned
/// once. Symbolic links are followed. These files are debug files:
///
/// * every file in `Contents/Resources/DWARF` of a `.dSYM` bundle;
/// * linked Mach-O and ELF files, but no object files and static libraries;
/// * Linux kernel modules and their debug files, by their names: `*.ko` and `*.ko.debug`;
/// * the main file of a dyld shared cache.
///
/// Of an `.xcarchive`, only the folder `dSYMs` is searched, if there is one: the binaries beside it are the same images
/// without debug information. `._*` files and `__MACOSX`, which archivers make, are skipped.
///
/// ```
/// # use std::path::Path;
/// use symdex_build::find;
///
/// # let folder = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo");
/// for debug_file in find(folder) {
///     println!("{}", debug_file?.display());
/// }
/// # Ok::<(), symdex_build::Error>(())
/// ```
///
/// # Errors
///
/// Errors are in the list, in the order of their paths, so that one unreadable folder does not hide the others.
/// [`Error::Io`] if something cannot be read, [`Error::NoDebugFile`] if a folder has no debug file.
#[must_use]
pub fn find(input: &Path) -> Vec<Result<PathBuf, Error>> {
    search(input).debug_files
}

/// The debug files, companions, indexes and archives of an input, as [`search`] finds them.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// What [`find`] returns.
    pub debug_files: Vec<Result<PathBuf, Error>>,
    /// Files in the folder to which debug files refer, in the order of their paths: packages of split units (`.dwp`),
    /// and supplementary files where distributions have them (in `.dwz`).
    pub companions: Vec<PathBuf>,
    /// Index files in the folder at any depth, by their extension, in the order of their paths.
    pub indexes: Vec<PathBuf>,
    /// Files in a folder that look like archives by their names (`.zip`, `.tgz`, ...), in the order of their paths.
    /// They may hold debug files, but are not read.
    pub archives: Vec<PathBuf>,
    /// FIFOs, sockets and devices in a folder, in the order of their paths. They are never opened. One in
    /// `Contents/Resources/DWARF` of a bundle is in `debug_files` instead, and reading it reports an error.
    pub special: SpecialFiles,
}

/// FIFOs, sockets and devices that were found in folders of debug files. As text, the first ten and the number of
/// others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialFiles(Vec<PathBuf>);

impl SpecialFiles {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `others`.
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

impl fmt::Display for SpecialFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped, neither a file nor a folder: {}", first_paths(&self.0, Path::new("")))
    }
}

/// The debug files of `input`, as [`find`] returns them, and the companions, indexes and archives beside them.
///
/// ```
/// # use std::path::Path;
/// use symdex_build::search;
///
/// # let folder = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo");
/// let found = search(folder);
/// println!("{} debug files, {} archives are not read", found.debug_files.len(), found.archives.len());
/// # assert!(found.archives.is_empty() && found.debug_files.iter().all(Result::is_ok));
/// ```
#[must_use]
pub fn search(input: &Path) -> FoundFiles {
    let only = |found| FoundFiles { debug_files: vec![found], ..FoundFiles::default() };
    match std::fs::metadata(input) {
        Err(source) => only(Err(unreadable(input, source))),
        Ok(metadata) if metadata.is_dir() => search_below(input),
        // What is neither a file nor a folder is reported when it is opened.
        Ok(_) => only(Ok(input.to_owned())),
    }
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Io { doing: "read", path: path.to_owned(), source }
}

fn search_below(folder: &Path) -> FoundFiles {
    // Links can make a number of paths that is exponential in the depth, so each folder is searched once.
    let mut seen = HashSet::new();
    let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    let entries = walk.filter_entry(|entry| {
        is_wanted(entry) && (!entry.file_type().is_dir() || is_new(entry.path(), &mut seen))
    });
    let mut found = FoundFiles::default();
    for entry in entries {
        if let Ok(entry) = &entry {
            let (kind, path) = (entry.file_type(), || entry.path().to_owned());
            if kind.is_file() {
                found.archives.extend(is_archive(entry).then(path));
                // An unreadable file is an error in `debug_files`.
                found
                    .companions
                    .extend(is_companion(entry.path(), || head_of(entry.path())).unwrap_or(false).then(path));
                found.indexes.extend(has_extension(entry.path(), INDEX_EXTENSION).then(path));
            } else if !kind.is_dir() && !is_in_bundle(entry.path()) {
                found.special.0.push(path());
                continue;
            }
        }
        found.debug_files.extend(debug_file(entry).transpose());
    }
    let mut seen = HashSet::new();
    found.debug_files.retain(|found| found.as_ref().map_or(true, |path| is_new(path, &mut seen)));
    if found.debug_files.is_empty() {
        let archives = found.archives.clone();
        found.debug_files.push(Err(Error::NoDebugFile { folder: folder.to_owned(), archives }));
    }
    found
}

/// Whether the file has the name of an archive.
fn is_archive(file: &DirEntry) -> bool {
    const ENDS: [&str; 13] = [
        ".zip", ".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz", ".tzst", ".tar.zst",
        ".7z", ".ipa", ".apk",
    ];
    let name = file.file_name().to_string_lossy().to_ascii_lowercase();
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Adds the real path of `path` to `seen`. Returns whether it is new.
fn is_new(path: &Path, seen: &mut HashSet<PathBuf>) -> bool {
    seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

fn is_wanted(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let is_junk = name == "__MACOSX" || name == ".DS_Store" || name.as_encoded_bytes().starts_with(b"._");
    let beside_dsyms = || {
        let parent = entry.path().parent().filter(|parent| has_extension(parent, "xcarchive"));
        name != "dSYMs" && parent.is_some_and(|archive| archive.join("dSYMs").is_dir())
    };
    entry.depth() == 0 || !(is_junk || beside_dsyms())
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// The path of the entry, if it is a debug file.
fn debug_file(entry: walkdir::Result<DirEntry>) -> Result<Option<PathBuf>, Error> {
    let path = match &entry {
        Ok(entry) if entry.file_type().is_dir() => return Ok(None),
        Ok(entry) => entry.path(),
        Err(error) => error.path().unwrap_or(Path::new("")),
    };
    // Every file there should be a debug file. An empty one must be reported, and not skipped.
    let in_bundle = is_in_bundle(path);
    if let Err(error) = &entry {
        let is_loop = error.loop_ancestor().is_some();
        let leads_nowhere = path.is_symlink() && path.metadata().is_err();
        if is_loop || leads_nowhere && !in_bundle {
            return Ok(None);
        }
        let source = error.io_error().map_or_else(|| io::Error::other(error.to_string()), copy_of);
        return Err(unreadable(path, source));
    }
    let wanted = in_bundle || begins_as_linked(path).map_err(|source| unreadable(path, source))?;
    Ok(wanted.then(|| path.to_owned()))
}

/// Whether an entry of an archive may be a debug file, by its name in the archive and the first bytes of its contents.
/// At least 24 bytes are needed.
///
/// The answer is the same as that of [`search`] for a file in a folder, except for a universal binary, whose first
/// bytes do not tell whether it is linked. A companion counts as a debug file.
#[must_use]
pub fn may_be_debug_file(name: &Path, head: &[u8]) -> bool {
    let number = || head.get(4..8).and_then(|bytes| bytes.try_into().ok().map(u32::from_be_bytes));
    is_in_bundle(name)
        || match head.first_chunk::<4>() {
            Some(b"\xca\xfe\xba\xbe" | b"\xca\xfe\xba\xbf") => {
                number().is_none_or(|count| count < FIRST_JAVA_VERSION)
            }
            _ => {
                head.starts_with(b"dyld_v1")
                    || is_linked(head)
                    || is_kernel_module(name, head)
                    || is_companion(name, || Ok(head.to_vec())).unwrap_or(false)
            }
        }
}

/// Whether a file may be one to which debug files refer, by its name: a package of split units, or a supplementary file
/// where distributions have them. `head` reads its first bytes, if the name fits. It is an ELF file that is not linked.
fn is_companion(name: &Path, head: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<bool> {
    if !has_extension(name, "dwp") && !name.components().any(|part| part.as_os_str() == DWZ) {
        return Ok(false);
    }
    let head = head()?;
    Ok(head.starts_with(b"\x7fELF") && !is_linked(&head))
}

fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    read_at(&mut symdex::open_regular_file(path)?, 0)
}

impl DebugFile {
    /// Whether the file is a debug file or a companion by the rules of [`search`]: by its place in a bundle, by its
    /// name, or by its first bytes.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if it cannot be read.
    pub fn is_debug_file(&self) -> io::Result<bool> {
        let is_companion = is_companion(self.entry(), || head_of(self.path()))?;
        Ok(is_companion || is_in_bundle(self.entry()) || begins_as_linked(self.path())?)
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Whether `path` is `X.dSYM/Contents/Resources/DWARF/<file>`.
#[must_use]
pub fn is_in_bundle(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1);
    let inside = ["DWARF", "Resources", "Contents"];
    inside.iter().all(|name| folders.next().is_some_and(|folder| folder.ends_with(name)))
        && folders.next().is_some_and(|bundle| has_extension(bundle, "dsym"))
}

/// Whether the file begins like a linked Mach-O or ELF file, like a universal binary whose first slice is linked, or
/// like the main file of a shared cache. At most 48 bytes are read.
fn begins_as_linked(path: &Path) -> io::Result<bool> {
    let mut file = symdex::open_regular_file(path)?;
    let head = read_at(&mut file, 0)?;
    let number =
        |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok().map(u32::from_be_bytes));
    let slice = match (head.first_chunk::<4>(), number(4)) {
        (Some(b"\xca\xfe\xba\xbe" | b"\xca\xfe\xba\xbf"), Some(count)) if count >= FIRST_JAVA_VERSION => {
            return Ok(false);
        }
        (Some(b"\xca\xfe\xba\xbe"), _) => number(16).map(u64::from),
        (Some(b"\xca\xfe\xba\xbf"), _) => {
            number(16).zip(number(20)).map(|(high, low)| u64::from(high) << 32 | u64::from(low))
        }
        _ if head.starts_with(b"dyld_v1") => return Ok(!is_cache_part(path)),
        _ => return Ok(is_linked(&head) || is_kernel_module(path, &head)),
    };
    // A file that ends before its first slice is a truncated debug file. Reading it reports that.
    let Some(slice) = slice else { return Ok(true) };
    let slice = read_at(&mut file, slice)?;
    Ok(slice.is_empty() || is_linked(&slice))
}

/// Whether `path`, a file of a shared cache, is not its main file. The main file is beside it, and its name is a prefix
/// of this one's.
fn is_cache_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_there = |main: &str| main != name && path.with_file_name(main).is_file();
    name.match_indices('.').any(|(dot, _)| {
        let (main, suffix) = name.split_at(dot);
        suffix != ".development" && (is_there(main) || is_there(&format!("{main}.development")))
    })
}

/// Up to 24 bytes at `offset`.
fn read_at(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(24).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a thin file that begins with `head` is Mach-O or ELF, and not an object file. Object files are not linked
/// yet.
fn is_linked(head: &[u8]) -> bool {
    const MH_OBJECT: &[u8] = &[1, 0, 0, 0];
    // ET_EXEC and ET_DYN, in the order of a little-endian file and of a big-endian one.
    const LINKED: [&[u8]; 4] = [&[2, 0], &[3, 0], &[0, 2], &[0, 3]];
    match head.first_chunk::<4>() {
        Some(b"\x7fELF") => head.get(16..18).is_some_and(|kind| LINKED.contains(&kind)),
        Some(b"\xcf\xfa\xed\xfe" | b"\xce\xfa\xed\xfe") => head.get(12..16) != Some(MH_OBJECT),
        // Big-endian files are not supported. That must be reported, so they are not skipped.
        magic => matches!(magic, Some(b"\xfe\xed\xfa\xce" | b"\xfe\xed\xfa\xcf")),
    }
}

/// Whether a file that begins with `head` is an ELF file and called as kernel modules and their debug files are. They
/// are object files, of which a folder may have any number.
fn is_kernel_module(path: &Path, head: &[u8]) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    head.starts_with(b"\x7fELF") && (name.ends_with(b".ko") || name.ends_with(b".ko.debug"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DSYM: &[u8] = b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x0a\0\0\0";
    const MODULE: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0\x01\0\0\0";
    const OBJECT: &[u8] = b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x01\0\0\0";

    fn write(root: &Path, path: &str, bytes: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("inside the root")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    /// The result of [`find`] as paths relative to `root`. `!` precedes the path of an error.
    fn names(root: &Path, input: &str) -> Vec<String> {
        let show =
            |path: &Path| path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        let found = find(&root.join(input));
        found
            .iter()
            .map(|found| match found {
                Ok(path) => show(path),
                Err(Error::Io { path, .. } | Error::NoDebugFile { folder: path, .. }) => {
                    format!("!{}", show(path))
                }
                Err(other) => panic!("{other}"),
            })
            .collect()
    }

    #[test]
    fn folders_bundles_and_archives_yield_their_debug_files_in_order() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "all/b.dSYM/Contents/Resources/DWARF/two", DSYM);
        write(root, "all/b.dSYM/Contents/Resources/DWARF/one", b"");
        write(root, "all/b.dSYM/Contents/Resources/DWARF/._one", DSYM);
        write(root, "all/b.dSYM/Contents/Info.plist", b"<plist>");
        write(root, "all/__MACOSX/x.dSYM/Contents/Resources/DWARF/x", DSYM);
        write(root, "all/a/plain", DSYM);
        write(root, "all/a/unlinked.o", OBJECT);
        write(root, "all/a/notes.txt", b"cf fa ed fe");
        write(root, "all/a/module.ko", MODULE);
        write(root, "all/a/module.o", MODULE);
        write(root, "all/App.xcarchive/dSYMs/App.dSYM/Contents/Resources/DWARF/App", DSYM);
        write(root, "all/App.xcarchive/Products/App", DSYM);
        write(root, "none/notes.txt", b"");
        let app = "all/App.xcarchive/dSYMs/App.dSYM/Contents/Resources/DWARF/App";
        let [one, two] = ["one", "two"].map(|name| format!("all/b.dSYM/Contents/Resources/DWARF/{name}"));
        assert_eq!(names(root, "all"), [app, "all/a/module.ko", "all/a/plain", &one, &two]);
        assert_eq!(names(root, "all/b.dSYM"), [one.as_str(), &two]);
        assert_eq!(names(root, "all/App.xcarchive"), [app]);
        assert_eq!(names(root, "all/a/notes.txt"), ["all/a/notes.txt"]);
        assert_eq!(names(root, "none"), ["!none"]);
        assert_eq!(names(root, "missing"), ["!missing"]);
    }

    #[test]
    fn archives_indexes_and_companions_in_a_folder_are_named_and_not_read() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        for name in ["b.zip", "a/dsyms.TAR.GZ", "a/._junk.zip", "c.tgz", "notes.gz", "zip", "none.dwp"] {
            write(root, name, b"PK");
        }
        let unlinked = [b"\x7fELF\x02\x01\x01\0".as_slice(), &[0; 8], &[1, 0]].concat();
        for name in ["d/app.dwp", ".dwz/common", "app.o"] {
            write(root, name, &unlinked);
        }
        write(root, "folder.zip/plain", DSYM);
        write(root, "4c/4c11.symdex", b"");
        let found = search(root);
        let archives = ["a/dsyms.TAR.GZ", "b.zip", "c.tgz"].map(|name| root.join(name));
        assert_eq!(found.archives, archives);
        assert_eq!(found.indexes, [root.join("4c/4c11.symdex")]);
        assert_eq!(found.companions, [".dwz/common", "d/app.dwp"].map(|name| root.join(name)));
        assert!(matches!(&found.debug_files[..], [Ok(path)] if *path == root.join("folder.zip/plain")));
        // An archive that is itself the input is returned as a debug file. Reading it reports an error.
        assert!(search(&root.join("b.zip")).archives.is_empty());
    }

    #[test]
    fn universal_binaries_count_by_their_first_slice() {
        let root = tempfile::tempdir().expect("a folder");
        let fat = |count: u8, slice: &[u8]| {
            let mut file = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, count];
            file.extend([1, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 16, 0, 0, 0, 0]);
            file.resize(32, 0);
            file.extend(slice);
            file
        };
        write(root.path(), "fat", &fat(1, DSYM));
        write(root.path(), "cut", &fat(1, b""));
        write(root.path(), "Main.class", &fat(52, DSYM));
        write(root.path(), "objects", &fat(1, OBJECT));
        write(root.path(), "library", &fat(1, b"!<arch>\n"));
        assert_eq!(names(root.path(), ""), ["cut", "fat"]);
    }

    #[test]
    fn a_shared_cache_is_its_main_file() {
        let root = tempfile::tempdir().expect("a folder");
        let cache = b"dyld_v1   arm64\0";
        for name in [
            "a",
            "a.01",
            "a.02.development",
            "a.symbols",
            "a.development",
            "b.development",
            "b.1.development",
        ] {
            write(root.path(), &format!("both/{name}"), cache);
        }
        write(root.path(), "alone/a.01", cache);
        assert_eq!(
            names(root.path(), ""),
            ["alone/a.01", "both/a", "both/a.development", "both/b.development"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once_and_loops_end() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "real/b.dSYM/Contents/Resources/DWARF/b", DSYM);
        write(root, "all/again", b"");
        symlink(root.join("real/b.dSYM"), root.join("all/a.dSYM")).expect("a link");
        symlink(root.join("real/b.dSYM"), root.join("all/b.dSYM")).expect("a link");
        symlink(root.join("all"), root.join("all/loop")).expect("a link");
        symlink(root.join("nowhere"), root.join("all/dangling")).expect("a link");
        symlink(root.join("all/self"), root.join("all/self")).expect("a link");
        assert_eq!(names(root, "all")[0], "all/a.dSYM/Contents/Resources/DWARF/b");
        symlink(root.join("gone"), root.join("real/b.dSYM/Contents/Resources/DWARF/c")).expect("a link");
        assert_eq!(names(root, "all")[1..], ["!all/a.dSYM/Contents/Resources/DWARF/c"]);
    }
}
