//! Writing a file whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::publish::{delete_abandoned, parent, temporary};

/// The number of links after which a path counts as a loop of links, as in Linux.
const MAX_LINKS: usize = 40;

/// Whether a file that was written outlives a failure of the machine, such as a power failure, right afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is synced before it gets its name, so it does. This waits for the disk.
    Synced,
    /// It may then be empty. For files that can be made again.
    Unsynced,
}

/// Writes `contents` to the file at `path`, so that the file is absent, old or whole at any moment, whatever happens to
/// the process.
///
/// The bytes are written to a temporary file in the same folder, which is synced if `durability` asks for it, and then
/// renamed. A file that existed keeps its permissions and, if this user may set them, its owner and group; its other
/// hard links keep the old contents. A new file has the permissions of the umask. Links are followed. Pipes, devices
/// and open files of processes, such as `/dev/stdout`, cannot be replaced: the bytes are appended to them.
///
/// If a step fails, the temporary file is deleted. A killed process leaves it, `.symdex-*.tmp`, and the first call of a
/// later process for the same folder deletes it when it is older than a day.
///
/// # Errors
///
/// [`Error::NotPublished`] with the step that failed and its path. The file then is as it was, unless it is one that
/// cannot be replaced.
pub fn replace_file(path: &Path, mut contents: impl io::Read, durability: Durability) -> Result<(), Error> {
    let failed = |action, path: &Path, error| Error::NotPublished { action, path: path.to_owned(), error };
    let target = resolve(path).map_err(|error| failed("follow the link", path, error))?;
    let Some(target) = target else {
        let opened = OpenOptions::new().append(true).open(path);
        return opened
            .and_then(|mut file| io::copy(&mut contents, &mut file).map(drop))
            .map_err(|error| failed("write", path, error));
    };
    // A file that the user may not write to is not replaced, although its folder may permit that.
    let old = match OpenOptions::new().write(true).open(&target) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed("write", &target, error)),
    };
    let folder = parent(&target);
    delete_abandoned(folder);
    let mut new = temporary(folder).map_err(|error| failed("create a temporary file", folder, error))?;
    let written = old.map_or(Ok(()), |old| keep_permissions(&old, new.as_file()));
    let written =
        written.and_then(|()| io::copy(&mut contents, &mut new).map(drop)).and_then(|()| match durability {
            Durability::Synced => new.as_file().sync_all(),
            Durability::Unsynced => Ok(()),
        });
    written.map_err(|error| failed("write", &target, error))?;
    new.persist(&target).map_err(|error| failed("replace", &target, error.error))?;
    Ok(())
}

/// The file that `path` leads to, which need not exist; `None` if it cannot be replaced.
fn resolve(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Ok(None);
    }
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        // In these folders, files stand for open files of processes.
        if ["/dev/fd", "/proc"].iter().any(|folder| target.starts_with(folder)) {
            return Ok(None);
        }
        match target.read_link() {
            Ok(link) => target = parent(&target).join(link),
            Err(_) => return Ok(Some(target)),
        }
    }
    Err(io::Error::other("there are too many links"))
}

/// Gives `new` the permissions of `old` and, if possible, its owner and its group.
fn keep_permissions(old: &File, new: &File) -> io::Result<()> {
    let metadata = old.metadata()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        // Only root may give a file away, and others only to groups that they are in.
        let _ = fchown(new, None, Some(metadata.gid()));
        let _ = fchown(new, Some(metadata.uid()), None);
    }
    new.set_permissions(metadata.permissions())
}

#[cfg(test)]
mod tests {
    use super::Durability::{Synced, Unsynced};
    use super::*;

    /// The names in a folder, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let entries =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_created_and_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.crash");
        for (text, durability) in [("first", Synced), ("second, which is longer", Unsynced), ("", Synced)] {
            replace_file(&path, text.as_bytes(), durability).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("readable"), text);
        }
        assert_eq!(names(folder.path()), ["report.crash"]);
    }

    #[test]
    fn what_cannot_be_replaced_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("folder")).expect("a folder");
        let error = |name: &str| {
            let path = folder.path().join(name);
            let error = replace_file(&path, &b"new"[..], Synced).expect_err("an error").to_string();
            error.strip_prefix(&folder.path().display().to_string()).unwrap_or(&error).to_owned()
        };
        assert!(error("folder").starts_with("/folder: cannot write: "), "{}", error("folder"));
        let missing = error("missing/report");
        assert!(missing.starts_with("/missing: cannot create a temporary file: "), "{missing}");
        assert_eq!(names(folder.path()), ["folder"]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept_and_links_are_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("below")).expect("a folder");
        fs::write(path("below/report"), "old").expect("written");
        for mode in [0o640, 0o604, 0o777] {
            fs::set_permissions(path("below/report"), fs::Permissions::from_mode(mode)).expect("permissions");
            replace_file(&path("below/report"), &b"new"[..], Synced).expect("written");
            let permissions = fs::metadata(path("below/report")).expect("there").permissions();
            assert_eq!(permissions.mode() & 0o7777, mode);
        }
        symlink("below/report", path("link")).expect("a link");
        symlink(path("link"), path("link to link")).expect("a link");
        replace_file(&path("link to link"), &b"by links"[..], Synced).expect("written");
        assert_eq!(fs::read_to_string(path("below/report")).expect("readable"), "by links");
        symlink("below/missing", path("dangling")).expect("a link");
        replace_file(&path("dangling"), &b"created"[..], Synced).expect("written");
        assert_eq!(fs::read_to_string(path("below/missing")).expect("readable"), "created");
        symlink("loop", path("loop")).expect("a link");
        let error = replace_file(&path("loop"), &b""[..], Synced).expect_err("a loop").to_string();
        assert!(error.contains("loop: cannot follow the link: there are too many links"), "{error}");
        assert_eq!(names(folder.path()), ["below", "dangling", "link", "link to link", "loop"]);
        assert!(["dangling", "link", "link to link"].iter().all(|link| path(link).is_symlink()));
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_open_files_are_written_to() {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;
        replace_file(Path::new("/dev/null"), &b"nothing"[..], Synced).expect("written");
        let full =
            replace_file(Path::new("/dev/full"), &b"text"[..], Synced).map_err(|error| error.to_string());
        if cfg!(target_os = "linux") {
            assert!(full.is_err_and(|error| error.starts_with("/dev/full: cannot write: No space left")));
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().write_all(b"before, ").expect("written");
        let open = format!("/dev/fd/{}", file.as_file().as_raw_fd());
        replace_file(open.as_ref(), &b"after"[..], Synced).expect("written");
        assert_eq!(fs::read_to_string(file.path()).expect("readable"), "before, after");
        // A folder of files in memory, below `/dev`.
        if let Ok(folder) = tempfile::tempdir_in("/dev/shm") {
            for text in ["new", "replaced"] {
                replace_file(&folder.path().join("a"), text.as_bytes(), Synced).expect("written");
                assert_eq!(fs::read_to_string(folder.path().join("a")).expect("readable"), text);
            }
        }
    }

    #[test]
    fn temporary_files_of_killed_processes_are_deleted_after_a_day() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = std::time::SystemTime::now();
        for (name, hours) in [(".symdex-old.tmp", 25), (".symdex-new.tmp", 1)] {
            let file = File::create(folder.path().join(name)).expect("created");
            file.set_modified(now - std::time::Duration::from_secs(hours * 60 * 60)).expect("a time");
        }
        replace_file(&folder.path().join("report"), &b""[..], Synced).expect("written");
        assert_eq!(names(folder.path()), [".symdex-new.tmp", "report"]);
    }
}
