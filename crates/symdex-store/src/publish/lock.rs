//! Locks of a folder, which publishers hold in turns.

use std::fs::File;

use symdex::ImageId;

use crate::folder::IndexFolder;

/// The file in a subfolder that publishers lock. It stays, because deleting it would let two publishers lock two files.
const LOCK_FILE: &str = ".symdex-lock";

/// The right to change the index of one id. Dropping it lets the next publisher continue.
pub(crate) struct Turn {
    _folder: Option<File>,
    _subfolder: Option<File>,
}

impl IndexFolder {
    /// Waits until no other publisher has a turn for `id`. `None` if the system or the file system has no such locks.
    /// Indexes are then still written whole, but the rule for conflicts may compare with an index that is being
    /// replaced.
    ///
    /// Publishers into the folder itself lock the folder. Publishers into subfolders share the lock of the folder, so
    /// that both kinds exclude each other, and lock a file in the subfolder.
    pub(crate) fn lock(&self, id: &ImageId) -> Option<Turn> {
        let folder = File::open(self.path());
        if !self.fans_out {
            let folder = folder.ok()?;
            folder.lock().ok()?;
            return Some(Turn { _folder: Some(folder), _subfolder: None });
        }
        let folder = folder.ok().filter(|folder| folder.lock_shared().is_ok());
        // NFS locks a file only for a process that may write it.
        let path = self.subfolder(id).join(LOCK_FILE);
        let subfolder = File::options().create(true).truncate(false).write(true).open(path).ok()?;
        subfolder.lock().ok()?;
        Some(Turn { _folder: folder, _subfolder: Some(subfolder) })
    }
}
