//! How many files and connections the process may have open.

/// The files that are left for stores, jobs and logs when all connections are open.
const RESERVED: u64 = 256;

/// Raises the limit of open files as far as the process may, and returns how many connections fit. No limit is known
/// on Windows.
pub(crate) fn connections_that_fit() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // Many systems have a soft limit of 1,024, for programs that use `select`. macOS refuses some hard limits.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        match getrlimit(Resource::Nofile).current {
            Some(files) => {
                usize::try_from(files.saturating_sub(RESERVED.min(files / 2))).unwrap_or(usize::MAX)
            }
            None => usize::MAX,
        }
    }
    #[cfg(not(unix))]
    {
        usize::MAX
    }
}
