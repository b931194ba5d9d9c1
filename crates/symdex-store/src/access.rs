//! How index files are opened: mapped into memory, or read.

use std::io;
use std::path::Path;

use symdex::Index;

use crate::buffer::IndexBytes;

/// How the bytes of an index file get into memory.
///
/// A mapped file is opened in microseconds, and a lookup reads a few kilobytes of it. But if the file is truncated
/// while it is mapped, the next lookup kills the process (on Unix with SIGBUS). A file that was read cannot change any
/// more; opening it takes time and memory for all of its bytes.
///
/// symdex replaces an index by renaming, so that it never changes a file that is mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexAccess {
    /// Reads a file that others can change, and maps all other files.
    ///
    /// On Unix, others can change a file if it or a folder above it belongs to someone other than the user of this
    /// process or root, or if its group or everybody may write to it. A sticky folder such as `/tmp` may be writable.
    /// What is below a folder that only its owner may search is out of reach. On Linux and macOS, all files of network
    /// file systems count as files that others can change; on Linux so do those of FUSE. On other systems than Unix,
    /// only files of other hosts are read (`\\host\share`), because Windows does not let anybody cut a mapped file.
    ///
    /// The file is checked when it is opened. Access control lists count only as far as the permission bits show them.
    #[default]
    Auto,
    /// Maps every file.
    Map,
    /// Reads every file.
    Read,
}

impl IndexAccess {
    /// Opens the index file at `path`.
    ///
    /// # Errors
    ///
    /// [`symdex::Error::Io`] if the file cannot be opened or read, [`symdex::Error::TooLarge`] if it should be read and
    /// has more than [`symdex::MAX_READ_SIZE`] bytes, otherwise as [`Index::open`].
    pub fn open(self, path: &Path) -> Result<Index<IndexBytes>, symdex::Error> {
        Index::open(self.bytes(path)?)
    }

    /// The bytes of the index file at `path`.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except that a mapped file need not be an index.
    pub(crate) fn bytes(self, path: &Path) -> Result<IndexBytes, symdex::Error> {
        // Links are resolved once. Otherwise, a link that changes could lead to another file than the one checked.
        let path = path.canonicalize()?;
        Ok(if self.maps(&path)? {
            symdex::map_file(&path)?.into()
        } else {
            symdex::read_index_file(&path)?.into()
        })
    }

    /// Whether the file at `path`, an absolute path without links, is mapped.
    fn maps(self, path: &Path) -> io::Result<bool> {
        match self {
            IndexAccess::Auto => Ok(!others_can_change(path)?),
            IndexAccess::Map => Ok(true),
            IndexAccess::Read => Ok(false),
        }
    }
}

/// Creates the folder at `path` and those above it, unless they exist. On Unix, only the user of this process may open
/// the new folders, so that [`IndexAccess::Auto`] maps the indexes in them. A folder that exists keeps its permissions.
///
/// # Errors
///
/// [`io::Error`] if it cannot be created.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether others can change the file at `path`, an absolute path without links. See [`IndexAccess::Auto`].
#[cfg(unix)]
fn others_can_change(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let user = rustix::process::geteuid().as_raw();
    let mut entries: Vec<_> = path.ancestors().collect();
    entries.reverse();
    for entry in entries {
        let metadata = entry.symlink_metadata()?;
        let entry = Entry { owner: metadata.uid(), mode: metadata.mode(), is_folder: metadata.is_dir() };
        match entry.access_of_others(user) {
            OthersAccess::Change => return Ok(true),
            OthersAccess::None => break,
            OthersAccess::Search => {}
        }
    }
    is_on_network(path)
}

/// A file, or a folder above it.
#[cfg(unix)]
#[derive(Clone, Copy)]
struct Entry {
    owner: u32,
    mode: u32,
    is_folder: bool,
}

/// What users other than the user of this process and root may do with a file or folder.
#[cfg(unix)]
#[derive(Debug, PartialEq, Eq)]
enum OthersAccess {
    /// They cannot reach what is in the folder.
    None,
    /// They cannot change it. What is in the folder has its own permissions.
    Search,
    /// They can change it, or its owner can permit that.
    Change,
}

#[cfg(unix)]
impl Entry {
    fn access_of_others(self, user: u32) -> OthersAccess {
        const WRITABLE: u32 = 0o022;
        const SEARCHABLE: u32 = 0o011;
        const STICKY: u32 = 0o1000;
        let has_bits = |bits| self.mode & bits != 0;
        if ![user, 0].contains(&self.owner) {
            OthersAccess::Change
        } else if self.is_folder && !has_bits(SEARCHABLE) {
            OthersAccess::None
        } else if has_bits(WRITABLE) && !(self.is_folder && has_bits(STICKY)) {
            OthersAccess::Change
        } else {
            OthersAccess::Search
        }
    }
}

/// Whether the file at `path` is on a file system that other machines, or other programs, can change.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_on_network(path: &Path) -> io::Result<bool> {
    // From linux/magic.h and the sources of the file systems: 9p, AFS, Ceph, CIFS, Coda, FUSE, GFS2, GPFS, Lustre, NCP,
    // NFS, OCFS2, SMB, SMB2, and the shared folders of VirtualBox and VMware.
    const NETWORK: [u32; 16] = [
        0x0102_1997,
        0x5346_414f,
        0x00c3_6400,
        0xff53_4d42,
        0x7375_7245,
        0x6573_5546,
        0x0116_1970,
        0x4750_4653,
        0x0bd0_0bd0,
        0x0000_564c,
        0x0000_6969,
        0x7461_636f,
        0x0000_517b,
        0xfe53_4d42,
        0x786f_4256,
        0xbacb_acbc,
    ];
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the numbers have 32 bits; the type depends on the system"
    )]
    let kind = rustix::fs::statfs(path)?.f_type as u32;
    Ok(NETWORK.contains(&kind))
}

/// Whether the file at `path` is on a file system of another machine.
#[cfg(target_vendor = "apple")]
fn is_on_network(path: &Path) -> io::Result<bool> {
    /// `MNT_LOCAL` of sys/mount.h.
    const LOCAL: u32 = 0x1000;
    Ok(rustix::fs::statfs(path)?.f_flags & LOCAL == 0)
}

/// `false`: network file systems are not recognised on this system.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
#[expect(clippy::unnecessary_wraps, reason = "other systems may fail")]
fn is_on_network(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether the file at `path`, an absolute path without links, is on another host. See [`IndexAccess::Auto`].
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "other systems may fail")]
fn others_can_change(path: &Path) -> io::Result<bool> {
    use std::path::{Component, Prefix};
    Ok(match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)),
        _ => false,
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::test_indexes::index;

    #[test]
    fn the_owner_and_the_permissions_decide_who_can_change_a_file() {
        use OthersAccess::{Change, None, Search};
        let (user, other) = (1000, 1001);
        let folder = |owner, mode| Entry { owner, mode, is_folder: true }.access_of_others(user);
        let file = |owner, mode| Entry { owner, mode, is_folder: false }.access_of_others(user);
        for owner in [user, 0] {
            assert_eq!(
                [0o755, 0o700, 0o710, 0o711].map(|mode| folder(owner, mode)),
                [Search, None, Search, Search]
            );
            assert_eq!([0o775, 0o757, 0o777].map(|mode| folder(owner, mode)), [Change, Change, Change]);
            assert_eq!([0o1777, 0o1775].map(|mode| folder(owner, mode)), [Search, Search], "a sticky folder");
            assert_eq!([0o600, 0o644, 0o755].map(|mode| file(owner, mode)), [Search, Search, Search]);
            assert_eq!([0o664, 0o646, 0o1666].map(|mode| file(owner, mode)), [Change, Change, Change]);
        }
        assert_eq!(
            [folder(other, 0o700), folder(other, 0o1777), file(other, 0o600)],
            [Change, Change, Change]
        );
    }

    #[test]
    fn a_file_that_others_can_change_is_read_unless_they_cannot_reach_it() {
        let root = tempfile::tempdir().expect("a folder");
        // The root may be reached through a link.
        let root = root.path().canonicalize().expect("a folder");
        let path = root.join("a/b/x.symdex");
        fs::create_dir_all(root.join("a/b")).expect("folders");
        let written = index(7, 1, 1, "x");
        fs::write(&path, written.as_bytes()).expect("written");
        let is_read = |modes: [u32; 4]| {
            let entries = [&root, &root.join("a"), &root.join("a/b"), &path];
            for (entry, mode) in entries.into_iter().zip(modes) {
                fs::set_permissions(entry, Permissions::from_mode(mode)).expect("permissions");
            }
            let all = [IndexAccess::Auto, IndexAccess::Map, IndexAccess::Read];
            for access in all {
                assert_eq!(access.open(&path).expect("an index").as_bytes(), written.as_bytes());
            }
            let [auto, map, read] = all.map(|access| access.maps(&path).expect("permissions can be read"));
            assert_eq!([map, read], [true, false]);
            !auto
        };
        assert!(!is_read([0o755, 0o755, 0o755, 0o644]));
        assert!(is_read([0o755, 0o755, 0o755, 0o664]), "the group can write to the file");
        assert!(is_read([0o755, 0o755, 0o777, 0o644]), "all can replace the file");
        assert!(is_read([0o755, 0o775, 0o755, 0o644]), "the group can replace the folder");
        assert!(!is_read([0o755, 0o1777, 0o755, 0o644]), "nobody can replace the folder");
        assert!(!is_read([0o700, 0o777, 0o777, 0o666]), "nobody can reach the file");
        assert!(is_read([0o710, 0o777, 0o777, 0o666]), "the group can reach the file");
    }
}
