//! The free space of a file system.

use std::io;
use std::path::Path;

/// How many bytes this user may still write in the folder `folder`. `None` on systems where symdex cannot tell.
///
/// # Errors
///
/// The system's error.
#[cfg(unix)]
pub(crate) fn free_space(folder: &Path) -> io::Result<Option<u64>> {
    let stated = rustix::fs::statvfs(folder)?;
    Ok(Some(stated.f_bavail.saturating_mul(stated.f_frsize)))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on Unix systems")]
pub(crate) fn free_space(_: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}
