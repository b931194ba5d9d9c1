//! How debug files are fetched.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use symdex_pipeline::DiskSpace;

/// Bytes that are expected in addition, and bytes that have arrived.
type OnBytes = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How [`DebugSources`](super::DebugSources) fetch debug files.
#[must_use]
#[derive(Clone)]
pub struct FetchOptions {
    pub(crate) timeout: Duration,
    pub(crate) total: Duration,
    pub(crate) retries: u32,
    pub(crate) pause: Duration,
    pub(crate) max_size: u64,
    pub(crate) temporary: PathBuf,
    pub(crate) space: Option<Arc<DiskSpace>>,
    pub(crate) on_bytes: Option<OnBytes>,
}

impl FetchOptions {
    /// The default options.
    pub fn new() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            total: Duration::from_secs(30 * 60),
            retries: 3,
            pause: Duration::from_secs(30),
            max_size: 16 << 30,
            temporary: std::env::temp_dir(),
            space: None,
            on_bytes: None,
        }
    }

    /// Sets how long a source may take to answer a request, or to send the next bytes. The default is 30 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long the files of one image may take in one source, with all retries. The default is 30 minutes.
    pub fn total(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets how often a request is repeated that has failed for a reason that may pass. The default is 3.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets for how long a source is left alone after three failures in a row. The default is 30 seconds.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets how many bytes a debug file may have, compressed or not. The default is 16 GiB.
    pub fn max_size(mut self, size: u64) -> Self {
        self.max_size = size;
        self
    }

    /// Sets the folder for fetched files. They are deleted after their use. The default is the system's folder for
    /// temporary files.
    pub fn temporary(mut self, folder: impl Into<PathBuf>) -> Self {
        self.temporary = folder.into();
        self
    }

    /// Sets the space that fetched files may take. Without it, they may fill the disk.
    pub fn space(mut self, space: Arc<DiskSpace>) -> Self {
        self.space = Some(space);
        self
    }

    /// Calls `on_bytes` while files are fetched: with the number of bytes that are expected in addition to those of
    /// earlier calls, and with the number of bytes that have arrived since the last call. It can be called from any
    /// thread.
    pub fn on_bytes(mut self, on_bytes: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        self.on_bytes = Some(Arc::new(on_bytes));
        self
    }
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FetchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timeout, total, retries, pause, max_size, temporary, space, on_bytes: _ } = self;
        f.debug_struct("FetchOptions")
            .field("timeout", timeout)
            .field("total", total)
            .field("retries", retries)
            .field("pause", pause)
            .field("max_size", max_size)
            .field("temporary", temporary)
            .field("space", space)
            .finish_non_exhaustive()
    }
}
