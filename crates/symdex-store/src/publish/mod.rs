//! Publishing an index in a folder: atomically, and by a rule that decides between two different indexes of one id.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use symdex::{Cause, Grade, Index, Metadata};
use tempfile::NamedTempFile;

use crate::error::{Error, cause_of_stored};
use crate::folder::IndexFolder;
use crate::provenance::{self, Provenance, PutOptions};

mod lock;

/// The result of [`IndexFolder::publish`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The index file.
    pub path: PathBuf,
    /// Whether the new index was written.
    pub outcome: PublishOutcome,
}

/// Whether a new index was written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// There was no index of this id. The new one was written.
    Written,
    /// The folder had the same bytes. Nothing was written.
    Unchanged,
    /// The new index has replaced a damaged one.
    Repaired {
        /// What was wrong with the old index.
        damage: String,
    },
    /// A different index was kept: [`OnConflict`](crate::OnConflict) says why. One of the two has another
    /// [grade](Metadata::grade), as that of a stripped file, lacks more of its file, or was written by another version.
    /// Or they differ only in readable names or unwind rows, which options of the build add.
    Kept,
    /// A different index was replaced, as in [`Kept`](Self::Kept).
    Replaced,
    /// A different index was kept: [`OnConflict`](crate::OnConflict) says why. Two debug files have the same id.
    ConflictKept,
    /// A different index was replaced, as in [`ConflictKept`](Self::ConflictKept).
    ConflictReplaced,
}

impl PublishOutcome {
    /// Whether an index of another debug file of the same id existed.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, PublishOutcome::ConflictKept | PublishOutcome::ConflictReplaced)
    }

    /// The name in JSON: `written`, `unchanged`, `repaired`, `kept` or `replaced`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Unchanged => "unchanged",
            Self::Repaired { .. } => "repaired",
            Self::Kept | Self::ConflictKept => "kept",
            Self::Replaced | Self::ConflictReplaced => "replaced",
        }
    }

    /// Whether the existing index stays.
    #[must_use]
    pub fn keeps_existing(&self) -> bool {
        matches!(self, PublishOutcome::Unchanged | PublishOutcome::Kept | PublishOutcome::ConflictKept)
    }

    /// The outcome for an index that differs from the existing one, and that the rule prefers if `wins` is true.
    pub(crate) fn of_different(new: (&Metadata, &Rank), existing: (&Metadata, &Rank), wins: bool) -> Self {
        let ((new, new_rank), (existing, existing_rank)) = (new, existing);
        let optional = |rank: &Rank| rank.4;
        let has_other_options = new == existing && optional(new_rank) != optional(existing_rank);
        let is_conflict = !has_other_options
            && new.builder == existing.builder
            && new.grade() == existing.grade()
            && new.partial == existing.partial;
        match (is_conflict, wins) {
            (false, false) => Self::Kept,
            (false, true) => Self::Replaced,
            (true, false) => Self::ConflictKept,
            (true, true) => Self::ConflictReplaced,
        }
    }
}

impl IndexFolder {
    /// Publishes `index` in this folder, which is created if it does not exist.
    ///
    /// At any moment, readers find no index of this id, the whole old one, or the whole new one. An existing index is
    /// replaced at its path, in the folder itself or fanned out. The first index of an id is written to the folder
    /// itself, or to a subfolder if the folder is to [`fan_out`](Self::fan_out).
    ///
    /// If a different index of this id exists, [`OnConflict::More`](crate::OnConflict::More) decides which one stays.
    /// See [`Store::put_with`](crate::Store::put_with) for other rules.
    ///
    /// Processes and threads that publish into one folder take turns by locking the folder. Some file systems of
    /// networks have no locks, and Windows cannot lock a folder. There the last of two simultaneous publishers wins.
    /// If the folder is to fan out, they lock a file in the subfolder, which NFS and Windows allow.
    ///
    /// A process that is killed while it publishes leaves a temporary file, `.symdex-*.tmp`. The first time that a
    /// process writes an index to a folder and has the lock, it deletes such files that are older than a day.
    ///
    /// # Errors
    ///
    /// [`Error::NotPublished`] if the folder cannot be created, searched or written, [`Error::Unreadable`] if the index
    /// that exists cannot be read, [`Error::NewerIndex`] if it is of a newer version, [`Error::Store`] if the folder
    /// was there before and has vanished. The folder then has the same indexes as before and no temporary file. One
    /// exception: if the folder cannot be synced after the new index has got its name, the index is there, but a power
    /// failure may undo that.
    pub fn publish<B: AsRef<[u8]>>(&self, index: &Index<B>) -> Result<Published, Error> {
        self.publish_with(index, &PutOptions::new())
    }

    /// As [`publish`](Self::publish), with a rule for different indexes, and with a provenance that is written to a
    /// file beside the index. The file is written before the index: if that fails, the old index stays without a
    /// provenance.
    pub(crate) fn publish_with<B: AsRef<[u8]>>(
        &self,
        index: &Index<B>,
        options: &PutOptions,
    ) -> Result<Published, Error> {
        self.check_not_vanished()?;
        let folder = self.path();
        let failed =
            |action, path: &Path, error| Error::NotPublished { action, path: path.to_owned(), error };
        let place = self.path_of_new(index.id());
        let parent_of_new = parent(&place);
        fs::create_dir_all(parent_of_new)
            .map_err(|error| failed("create the folder", parent_of_new, error))?;
        // From now on, it is there.
        self.check_not_vanished()?;
        let turn = self.lock(index.id());
        let mut attempts = 0;
        loop {
            attempts += 1;
            let existing = self.search(index.id()).map_err(|error| failed("search", folder, error))?;
            let existing = existing.into_iter().next();
            let (path, is_first) = match &existing {
                Some(existing) => (existing.clone(), false),
                // A link to a missing file takes the name. In the end it is replaced.
                None => (place.clone(), attempts <= ATTEMPTS),
            };
            let outcome = match existing {
                None => PublishOutcome::Written,
                Some(existing) => {
                    let mut bytes = Vec::new();
                    symdex::open_regular_file(&existing)
                        .and_then(|mut file| file.read_to_end(&mut bytes))
                        .map_err(|error| Error::unreadable(&existing, error))?;
                    let put_by = |digest| provenance::read_beside(&existing, digest);
                    compare(index, &bytes, options, put_by)
                        .map_err(|error| Error::NewerIndex { path: existing.clone(), error })?
                }
            };
            if !outcome.keeps_existing() {
                if turn.is_some() {
                    delete_abandoned(parent(&path));
                }
                write_provenance(&path, index.digest(), options.provenance.as_ref())
                    .map_err(|error| failed("write", &provenance::path_beside(&path), error))?;
                match write(&path, index.as_bytes(), is_first) {
                    // Another publisher, which does not see the lock, was faster. The rule decides between both.
                    Err(error) if is_first && error.kind() == ErrorKind::AlreadyExists => continue,
                    written => written.map_err(|error| failed("write", &path, error))?,
                }
            }
            return Ok(Published { path, outcome });
        }
    }
}

/// Compares `new` with `existing`, the bytes that the store has for its id. `put_by` returns what the store keeps about
/// the existing index, which has this digest. An error is that of an index of a newer version.
pub(crate) fn compare<B: AsRef<[u8]>>(
    new: &Index<B>,
    existing: &[u8],
    options: &PutOptions,
    put_by: impl FnOnce([u8; 16]) -> Option<Provenance>,
) -> Result<PublishOutcome, symdex::Error> {
    if new.as_bytes() == existing {
        return Ok(PublishOutcome::Unchanged);
    }
    // The whole index is verified. Otherwise a damaged index could win by functions that it cannot answer.
    let verified = Index::open(existing).and_then(|index| index.verify().map(|_| index));
    let existing = match verified {
        Ok(index) if index.id() == new.id() => index,
        Ok(index) => {
            return Ok(PublishOutcome::Repaired { damage: format!("it was the index of {}", index.id()) });
        }
        Err(error) if cause_of_stored(&error) == Cause::Unsupported => return Err(error),
        Err(error) => return Ok(PublishOutcome::Repaired { damage: error.to_string() }),
    };
    let put_by = put_by(existing.digest());
    let (new, existing) = ((new.metadata(), &rank(new)), (existing.metadata(), &rank(&existing)));
    let wins = provenance::replaces(options, new.1, existing.1, put_by.as_ref());
    Ok(PublishOutcome::of_different(new, existing, wins))
}

/// The key of the conflict rule. The index with the greater key stays.
pub(crate) type Rank = (Grade, [u64; 2], Reverse<u64>, [u64; 2], [bool; 3], Reverse<u128>);

/// The rank of `index` by the conflict rule.
pub(crate) fn rank<B: AsRef<[u8]>>(index: &Index<B>) -> Rank {
    rank_of(index.metadata(), [index.has_readable_names(), index.has_unwind_rows()], index.digest())
}

/// The rank of the index that has this metadata, readable names or none, unwind rows or none, and this digest.
pub(crate) fn rank_of(metadata: &Metadata, has_optional: [bool; 2], digest: [u8; 16]) -> Rank {
    let counts = metadata.counts;
    let partial = metadata.partial.iter().fold(0, |sum: u64, partial| sum.saturating_add(partial.count));
    let digest = Reverse(u128::from_le_bytes(digest));
    let with_lines = [counts.functions, counts.ranges];
    // A file that is not stripped has more symbols than its stripped twin, or as many symbols with more names.
    let others = [counts.symbols, counts.names];
    let [has_readable_names, has_unwind_rows] = has_optional;
    let has_segments = metadata.segments.as_ref().is_some_and(|segments| !segments.is_empty());
    let optional = [has_segments, has_readable_names, has_unwind_rows];
    (metadata.grade(), with_lines, Reverse(partial), others, optional, digest)
}

/// How often the first index of an id is written without replacing a file that has its name.
const ATTEMPTS: u32 = 8;

/// What the names of temporary files begin and end with.
const TEMPORARY: [&str; 2] = [".symdex-", ".tmp"];

/// A temporary file that is older belongs to no living process. The age protects those of publishers on other machines,
/// which may not see the lock.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Deletes the temporary files of killed processes in `folder`. A process searches each folder once, because a folder
/// can have 100,000 files. A file that cannot be deleted stays.
pub(crate) fn delete_abandoned(folder: &Path) {
    static SEARCHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !SEARCHED.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let abandoned = entries.map(|entry| entry.path()).filter(|path| is_abandoned(path));
    abandoned.for_each(|path| _ = fs::remove_file(path));
}

/// Whether `path` is the temporary file of a killed process.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_temporary =
        name.is_some_and(|name| name.starts_with(TEMPORARY[0]) && name.ends_with(TEMPORARY[1]));
    let age = || path.symlink_metadata().ok()?.modified().ok()?.elapsed().ok();
    is_temporary && age().is_some_and(|age| age > ABANDONED_AFTER)
}

/// The folder of the file at `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes `bytes` to `path` in one step: to a temporary file beside it, which is synced and then renamed. If a step
/// fails, the temporary file is deleted. If `is_first` is true, an existing file is not replaced, on file systems that
/// can do that in one step.
fn write(path: &Path, bytes: &[u8], is_first: bool) -> io::Result<()> {
    let folder = parent(path);
    let mut file = temporary(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let persisted = if is_first { file.persist_noclobber(path) } else { file.persist(path) };
    persisted.or_else(|error| match error.error.kind() {
        ErrorKind::AlreadyExists => Err(error.error),
        _ => error.file.persist(path).map_err(|error| error.error),
    })?;
    // The rename is durable once the folder is synced. Windows cannot open folders and does not need this.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Writes the provenance of the index file at `path`, which gets this digest. Removes the old one if there is none.
fn write_provenance(path: &Path, digest: [u8; 16], provenance: Option<&Provenance>) -> io::Result<()> {
    match provenance {
        Some(one) => write(&provenance::path_beside(path), provenance::line(one, digest).as_bytes(), false),
        None => provenance::remove_beside(path),
    }
}

/// A temporary file in `folder` whose name is not that of an index.
pub(crate) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let [prefix, suffix] = TEMPORARY;
    builder.prefix(prefix).suffix(suffix);
    // By default only the owner can read a temporary file. An index has the permissions of the umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests;
