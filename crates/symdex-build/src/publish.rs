//! Putting an index into a folder of indexes, and finding one there.
//!
//! An index named by its id is in the folder itself or one level down, in a folder named by the id's first two digits. At any
//! moment it is absent, old or whole.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use symdex::MappedFile;
use symdex::{ImageId, Index};
use tempfile::{NamedTempFile, SpooledData, SpooledTempFile, spooled_tempfile};
use walkdir::WalkDir;

use crate::error::Error;

/// Where an index was put, and what was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The index file.
    pub path: PathBuf,
    /// What became of the new index and of the one before it.
    pub outcome: Outcome,
}

/// What became of a new index and of the one that was there before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was none: the new one is there now.
    Written,
    /// The same bytes were there already.
    Unchanged,
    /// A damaged one was there: the new one has replaced it.
    Repaired {
        /// What was wrong with it.
        damage: String,
    },
    /// Another one of the same id was there, and has stayed: it knows more than the new one.
    ConflictKept,
    /// Another one of the same id was there, and was replaced: the new one knows more.
    ConflictReplaced,
}

impl Outcome {
    /// Whether two different indexes of one id met.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Outcome::ConflictKept | Outcome::ConflictReplaced)
    }
}

/// The extension of index files.
pub(crate) const EXTENSION: &str = "symdex";

/// The file name of the index of `id`.
#[must_use]
pub fn file_name(id: &ImageId) -> String {
    format!("{id}.{EXTENSION}")
}

/// The index of `id` in `folder`, flat or fanned out; `None` where there is none.
///
/// # Errors
///
/// [`io::Error`] where the folder cannot be searched.
pub fn find_index(folder: &Path, id: &ImageId) -> io::Result<Option<PathBuf>> {
    Ok(find_indexes(folder, id)?.into_iter().next())
}

/// The indexes of `id` in `folder`: flat, then fanned out.
///
/// # Errors
///
/// [`io::Error`] where the folder cannot be searched.
pub fn find_indexes(folder: &Path, id: &ImageId) -> io::Result<Vec<PathBuf>> {
    let (name, digits) = (file_name(id), id.to_string());
    let places = [folder.join(&name), folder.join(digits.get(..2).unwrap_or_default()).join(&name)];
    let mut found = Vec::new();
    for path in places {
        match path.try_exists() {
            Ok(true) => found.push(path),
            Ok(false) => {}
            // A file may have the name that the folder for fanned out indexes would have.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory || !found.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// How deep [`indexes_below`] descends, and how many entries of folders it reads.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 1_000_000;

/// The indexes in a folder and in the folders below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexesBelow {
    /// Their paths. A folder's own indexes come before those of the folders in it, each in the order of their names.
    pub paths: Vec<PathBuf>,
    /// Whether some may be left out: the folders are nested more than 16 deep, or have more than 1,000,000 entries.
    pub is_cut: bool,
}

/// The indexes in `folder` and in the folders below it. Folders that cannot be read count as empty. Symbolic links to folders are not
/// followed, `folder` itself excepted.
#[must_use]
pub fn indexes_below(folder: &Path) -> IndexesBelow {
    let mut below = IndexesBelow::default();
    let walk = WalkDir::new(folder).max_depth(MAX_DEPTH);
    let walk = walk.sort_by_key(|entry| (entry.file_type().is_dir(), entry.file_name().to_owned()));
    for (count, entry) in walk.into_iter().flatten().enumerate() {
        let is_dir = entry.file_type().is_dir();
        if count == MAX_ENTRIES || (is_dir && entry.depth() == MAX_DEPTH) {
            below.is_cut = true;
        }
        if count == MAX_ENTRIES {
            break;
        }
        if !is_dir && entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
            below.paths.push(entry.into_path());
        }
    }
    below
}

/// The bytes of an index that is not published yet.
pub enum Unpublished {
    /// A small one.
    Memory(Vec<u8>),
    /// A larger one, in a temporary file that is gone once it is dropped.
    File(MappedFile),
}

impl Unpublished {
    /// What to write such an index to: it moves from memory to a temporary file as it grows.
    #[must_use]
    pub fn file() -> SpooledTempFile {
        const IN_MEMORY: usize = 4 << 20;
        spooled_tempfile(IN_MEMORY)
    }

    /// What was written to `file`.
    ///
    /// # Errors
    ///
    /// [`io::Error`] where it cannot be mapped.
    pub fn of(file: SpooledTempFile) -> io::Result<Self> {
        Ok(match file.into_inner() {
            SpooledData::InMemory(bytes) => Self::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Self::File(symdex::map_open_file(&file)?),
        })
    }
}

impl AsRef<[u8]> for Unpublished {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes,
            Self::File(bytes) => bytes,
        }
    }
}

/// Puts `index` into `folder`, which is made where it is missing.
///
/// Where an index of the same id is there already, the one with more functions stays, then the one with more ranges, then the
/// one that lacks less (names that are hidden in one and known in the other), then the one with more symbols, the one with more
/// names, and the one with the smaller digest: whichever of two indexes comes first, the same one is there in the end. To that end processes
/// and threads that publish into one folder take turns, where the platform can lock a folder (all but Windows).
///
/// # Errors
///
/// [`Error::Io`] where the folder cannot be written, [`Error::NewerIndex`] where the index there is one that
/// this version cannot read. Nothing has changed then, and no temporary file is left.
pub fn publish<B: AsRef<[u8]>>(folder: &Path, index: &Index<B>) -> Result<Published, Error> {
    let failed = |doing, path: &Path, source| Error::Io { doing, path: path.to_owned(), source };
    fs::create_dir_all(folder).map_err(|error| failed("create the folder", folder, error))?;
    let _turn = lock(folder);
    let existing = find_index(folder, index.id()).map_err(|error| failed("search", folder, error))?;
    let path = existing.clone().unwrap_or_else(|| folder.join(file_name(index.id())));
    let outcome = match existing {
        None => Outcome::Written,
        Some(existing) => {
            let bytes = fs::read(&existing).map_err(|error| failed("read", &existing, error))?;
            compare(index, &bytes).map_err(|source| Error::NewerIndex { path: existing, source })?
        }
    };
    if !matches!(outcome, Outcome::Unchanged | Outcome::ConflictKept) {
        write(&path, index.as_bytes()).map_err(|error| failed("write", &path, error))?;
    }
    Ok(Published { path, outcome })
}

/// Waits for its turn to publish into `folder`; it ends when the file is dropped. Without a lock there is still no partial
/// index, only the rule for two of one id depends on who comes last.
fn lock(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// What is to become of the index in `existing`, one of the same file name.
fn compare<B: AsRef<[u8]>>(new: &Index<B>, existing: &[u8]) -> Result<Outcome, symdex::Error> {
    if new.as_bytes() == existing {
        return Ok(Outcome::Unchanged);
    }
    // All of it is checked: a damaged one would win by counts that it no longer has the functions for.
    let verified = Index::open(existing).and_then(|index| index.verify().map(|_| index));
    let existing = match verified {
        Ok(index) if index.id() == new.id() => index,
        Ok(index) => return Ok(Outcome::Repaired { damage: format!("it was the index of {}", index.id()) }),
        // An index of a development version is replaced: nothing reads it any more.
        Err(symdex::Error::DevelopmentVersion) => {
            return Ok(Outcome::Repaired { damage: symdex::Error::DevelopmentVersion.to_string() });
        }
        Err(error) if error.is_unsupported() => return Err(error),
        Err(error) => return Ok(Outcome::Repaired { damage: error.to_string() }),
    };
    let new_wins = rank(new) > rank(&existing);
    Ok(if new_wins { Outcome::ConflictReplaced } else { Outcome::ConflictKept })
}

/// What of two indexes the one that stays has more of.
fn rank<B: AsRef<[u8]>>(index: &Index<B>) -> (u64, u64, Reverse<u64>, u64, u64, Reverse<u128>) {
    let counts = index.metadata().counts;
    let lacks =
        index.metadata().partial.iter().fold(0, |sum: u64, partial| sum.saturating_add(partial.count));
    let digest = Reverse(u128::from_le_bytes(index.digest()));
    // The twin that is not stripped has more symbols, or as many with more names.
    (counts.functions, counts.ranges, Reverse(lacks), counts.symbols, counts.names, digest)
}

/// Puts `bytes` at `path` in one step: a file beside it, made durable, then renamed. Until then the file deletes itself.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = temporary(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename is durable once the folder is. Windows does not open folders, and does not need it.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// A file in `folder` whose name no reader takes for an index.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".symdex-").suffix(".tmp");
    // Temporary files are for their owner alone unless told otherwise; an index is for whom the umask says.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use symdex::write::{EncodedStrings, ImageInfo, Writer};
    use symdex::{Arch, Counts, RowRule};

    use super::*;

    fn index(id: u8, functions: u64, ranges: u64, builder_name: &str) -> Index<Vec<u8>> {
        with_counts(id, Counts { functions, ranges, ..Counts::default() }, builder_name)
    }

    fn with_counts(id: u8, counts: Counts, builder_name: &str) -> Index<Vec<u8>> {
        let id = ImageId::new(&[id; 16]).expect("16 bytes are an id");
        let image = ImageInfo {
            id: id.clone(),
            image_name: builder_name.to_owned(),
            arch: Arch::from_macho(0x0100_000c, 0),
            base: 0,
            image_size: 0,
            executable: Vec::new(),
            text_exec_base: None,
            row_rule: RowRule::First,
        };
        let none: [&str; 0] = [];
        let names = EncodedStrings::new(&none).expect("no names");
        let files = EncodedStrings::new(&none).expect("no files");
        let writer = Writer::new(image, 0x1_0000, io::empty());
        let mut index = Vec::new();
        let sealed = writer.seal().expect("encodes");
        sealed.finish(&names, &files, counts, Vec::new(), &mut index).expect("small");
        Index::open(index).expect("as written")
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_index_that_knows_more_stays_whatever_the_order() {
        let digest_order = [index(7, 2, 3, "x"), index(7, 2, 3, "y")];
        let [small, large] = if rank(&digest_order[0]) < rank(&digest_order[1]) { [0, 1] } else { [1, 0] };
        let pairs = [
            (index(7, 1, 9, "x"), index(7, 2, 3, "x")),
            (index(7, 2, 3, "x"), index(7, 2, 4, "x")),
            (
                with_counts(7, Counts { functions: 2, symbols: 8, ..Counts::default() }, "x"),
                with_counts(7, Counts { functions: 2, symbols: 9, ..Counts::default() }, "x"),
            ),
            (
                Index::open(digest_order[small].as_bytes().to_vec()).expect("a copy"),
                Index::open(digest_order[large].as_bytes().to_vec()).expect("a copy"),
            ),
        ];
        for (less, more) in &pairs {
            for (first, second, outcome) in
                [(less, more, Outcome::ConflictReplaced), (more, less, Outcome::ConflictKept)]
            {
                let folder = tempfile::tempdir().expect("a folder");
                let published = |index| publish(folder.path(), index).expect("published");
                assert_eq!(published(first).outcome, Outcome::Written);
                assert_eq!(published(first).outcome, Outcome::Unchanged);
                let last = published(second);
                assert_eq!(last.outcome, outcome);
                assert_eq!(fs::read(&last.path).expect("readable"), more.as_bytes());
                assert_eq!(files(folder.path()), ["07070707070707070707070707070707.symdex"]);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn threads_that_publish_one_id_end_alike() {
        let folder = tempfile::tempdir().expect("a folder");
        let indexes: Vec<_> = (0..8).map(|functions| index(7, functions, 0, "x")).collect();
        std::thread::scope(|scope| {
            for index in &indexes {
                scope.spawn(|| publish(folder.path(), index).expect("published"));
            }
        });
        let path = find_index(folder.path(), indexes[7].id()).expect("readable").expect("there");
        assert_eq!(fs::read(path).expect("readable"), indexes[7].as_bytes());
        assert_eq!(files(folder.path()).len(), 1);
    }

    #[test]
    fn damaged_and_misnamed_indexes_are_replaced() {
        let new = index(7, 1, 1, "x");
        let mut flipped = index(7, 5, 5, "x").as_bytes().to_vec();
        *flipped.last_mut().expect("not empty") ^= 1;
        let other = index(8, 5, 5, "x").as_bytes().to_vec();
        for existing in [Vec::new(), b"text".to_vec(), flipped, other] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(file_name(new.id()));
            fs::write(&path, existing).expect("written");
            let published = publish(folder.path(), &new).expect("published");
            assert!(matches!(published.outcome, Outcome::Repaired { .. }), "{published:?}");
            assert_eq!(fs::read(&path).expect("readable"), new.as_bytes());
        }
    }

    #[test]
    fn an_index_of_a_newer_version_is_left_alone() {
        let new = index(7, 1, 1, "x");
        let mut newer = new.as_bytes().to_vec();
        // A header ends with the checksum of what is before; without the right one it is damaged, whatever its version.
        newer[8] += 1;
        let newer = sealed(newer, 128);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(file_name(new.id()));
        fs::write(&path, &newer).expect("written");
        assert!(matches!(publish(folder.path(), &new), Err(Error::NewerIndex { .. })));
        assert_eq!(fs::read(&path).expect("readable"), newer);
    }

    /// `index` with the right checksum behind the first bytes of a header of this size.
    fn sealed(mut index: Vec<u8>, header_size: usize) -> Vec<u8> {
        let (checked, checksum) = index[..header_size].split_at_mut(header_size - 8);
        checksum.copy_from_slice(&xxhash_rust::xxh3::xxh3_64(checked).to_le_bytes());
        index
    }

    #[test]
    fn an_index_of_a_development_version_is_replaced() {
        let new = index(7, 1, 1, "x");
        let mut older = new.as_bytes().to_vec();
        (older[8], older[10]) = (2, 192);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(file_name(new.id()));
        fs::write(&path, sealed(older, 192)).expect("written");
        let published = publish(folder.path(), &new).expect("published");
        assert!(
            matches!(&published.outcome, Outcome::Repaired { damage } if damage.contains("build it again"))
        );
        assert_eq!(fs::read(&path).expect("readable"), new.as_bytes());
    }

    #[test]
    fn a_fanned_out_folder_is_found_and_kept_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (index(7, 1, 1, "x"), index(7, 2, 2, "x"));
        assert_eq!(find_index(folder.path(), old.id()).expect("readable"), None);
        let flat = publish(folder.path(), &old).expect("published").path;
        let fanned = folder.path().join("07").join(file_name(old.id()));
        fs::create_dir(folder.path().join("07")).expect("a folder");
        fs::rename(flat, &fanned).expect("moved");
        assert_eq!(find_index(folder.path(), old.id()).expect("readable"), Some(fanned.clone()));
        assert_eq!(publish(folder.path(), &new).expect("published").path, fanned);
    }

    #[test]
    fn indexes_are_found_in_folders_of_folders() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, b"").expect("written");
        };
        for path in ["b.symdex", "1/2/c.symdex", "1/a.symdex", "07/07.symdex", "1/readme.txt"] {
            put(path);
        }
        let deep = format!("{}d.symdex", "x/".repeat(MAX_DEPTH));
        let shown = || {
            let IndexesBelow { paths, is_cut } = indexes_below(root.path());
            let relative = paths.iter().map(|path| path.strip_prefix(root.path()).expect("below").display());
            (relative.map(|path| path.to_string()).collect::<Vec<_>>().join(" "), is_cut)
        };
        let expected = "b.symdex 07/07.symdex 1/a.symdex 1/2/c.symdex".to_owned();
        assert_eq!(shown(), (expected.clone(), false));
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path(), root.path().join("1/loop")).expect("linked");
        assert_eq!(shown(), (expected.clone(), false));
        put(&deep);
        assert_eq!(shown(), (expected, true));
        assert_eq!(indexes_below(&root.path().join("none")), IndexesBelow::default());
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, b"").expect("written");
        let error = publish(&file.join("below"), &index(7, 1, 1, "x")).expect_err("below a file");
        assert!(error.to_string().contains("below"), "{error}");
        // A folder in the place of the index: the rename fails.
        let taken = folder.path().join("taken");
        let place = taken.join("07").join(file_name(index(7, 1, 1, "x").id()));
        fs::create_dir_all(&place).expect("a folder");
        publish(&taken, &index(7, 1, 1, "x")).expect_err("a folder is in the way");
        assert_eq!(files(&taken.join("07")).len(), 1);
    }
}
