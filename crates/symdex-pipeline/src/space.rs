//! The free space of a file system, shared by all that write to it.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// After how many bytes the file system is asked again how much is free. Other programs write to it, too.
const CHECKED_EVERY: u64 = 16 << 20;

/// The space of a file system that may be used, so that some of it stays free. Threads share it: what one is about to
/// write, no other can take.
///
/// ```
/// use symdex_pipeline::DiskSpace;
///
/// let space = DiskSpace::measured_by(100, || Ok(Some(250)));
/// let (mut one, mut other) = (space.reserve(), space.reserve());
/// one.take(100)?;
/// assert!(other.take(100).is_err());
/// drop(one);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct DiskSpace {
    min_free: u64,
    free: Box<dyn Fn() -> io::Result<Option<u64>> + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many bytes may be taken until the file system is asked again.
    left: u64,
    /// How many bytes were taken since it was asked.
    taken: u64,
    /// How many bytes were taken and may not be written yet.
    unwritten: u64,
}

/// What one writer has taken of a [`DiskSpace`].
#[derive(Debug)]
pub struct Reservation {
    space: Arc<DiskSpace>,
    unwritten: u64,
}

impl DiskSpace {
    /// The space of the file system of `folder`, of which `min_free` bytes stay free. On other systems than Unix, there
    /// is no limit.
    #[must_use]
    pub fn of_folder(folder: &Path, min_free: u64) -> Arc<Self> {
        let folder = folder.to_owned();
        Self::measured_by(min_free, move || free_space(&folder))
    }

    /// A space of which `min_free` bytes stay free, while `free` says how many bytes are free. There is no limit while
    /// that is `None`.
    pub fn measured_by(
        min_free: u64,
        free: impl Fn() -> io::Result<Option<u64>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { min_free, free: Box::new(free), state: Mutex::default() })
    }

    /// A reservation of no bytes.
    #[must_use]
    pub fn reserve(self: &Arc<Self>) -> Reservation {
        Reservation { space: Arc::clone(self), unwritten: 0 }
    }

    /// Checks that `bytes` could be written now. They are not reserved.
    ///
    /// # Errors
    ///
    /// As [`Reservation::take`].
    pub fn check(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        self.measure(&mut state)?;
        if state.left < bytes { Err(self.full()) } else { Ok(()) }
    }

    fn measure(&self, state: &mut State) -> io::Result<()> {
        let free = (self.free)()?.unwrap_or(u64::MAX);
        state.left = free.saturating_sub(self.min_free).saturating_sub(state.unwritten);
        state.taken = 0;
        Ok(())
    }

    fn full(&self) -> io::Error {
        let limit = self.min_free;
        let text = format!("fewer than {limit} bytes would stay free on the disk, the limit of `min_free`");
        io::Error::new(ErrorKind::StorageFull, text)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Takes `bytes`, which are written next. What was taken before counts as written.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StorageFull`] if too little would stay free. Nothing is taken then. The system's error if it does
    /// not say how much is free.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        let space = &self.space;
        let mut state = space.lock();
        state.unwritten -= std::mem::take(&mut self.unwritten);
        if state.left < bytes || state.taken >= CHECKED_EVERY {
            space.measure(&mut state)?;
        }
        if state.left < bytes {
            return Err(space.full());
        }
        state.left -= bytes;
        state.taken = state.taken.saturating_add(bytes);
        state.unwritten += bytes;
        self.unwritten = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.space.lock().unwritten -= self.unwritten;
    }
}

impl fmt::Debug for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min_free, free: _, state } = self;
        f.debug_struct("DiskSpace").field("min_free", min_free).field("state", state).finish_non_exhaustive()
    }
}

/// How many bytes this user may still write in the folder `folder`. `None` on systems where symdex cannot tell.
#[cfg(unix)]
fn free_space(folder: &Path) -> io::Result<Option<u64>> {
    let stated = rustix::fs::statvfs(folder)?;
    Ok(Some(stated.f_bavail.saturating_mul(stated.f_frsize)))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on Unix systems")]
fn free_space(_: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn sixteen_writers_at_once_leave_the_minimum_free() {
        let free = Arc::new(AtomicU64::new(1_000_000));
        let measured = Arc::clone(&free);
        let space = DiskSpace::measured_by(400_000, move || Ok(Some(measured.load(Ordering::SeqCst))));
        let write = || {
            let mut reservation = space.reserve();
            let mut written = 0;
            while reservation.take(1000).is_ok() {
                free.fetch_sub(1000, Ordering::SeqCst);
                written += 1000;
            }
            written
        };
        let written: u64 = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..16).map(|_| scope.spawn(write)).collect();
            writers.into_iter().map(|writer| writer.join().expect("no panic")).sum()
        });
        // All is used: what was written counts once, although not all writers have said so.
        assert_eq!((written, free.load(Ordering::SeqCst)), (600_000, 400_000));
        free.store(u64::MAX, Ordering::SeqCst);
        assert!(space.reserve().take(1 << 40).is_ok(), "there is space again");
    }

    #[test]
    fn what_others_are_about_to_write_is_not_free() {
        let space = DiskSpace::measured_by(10, || Ok(Some(30)));
        let (mut one, mut other) = (space.reserve(), space.reserve());
        one.take(15).expect("free");
        let full = other.take(6).expect_err("taken");
        assert!(full.kind() == ErrorKind::StorageFull && full.to_string().contains("`min_free`"), "{full}");
        assert!(space.check(6).is_err());
        other.take(5).expect("left");
        drop(one);
        assert!(space.check(15).is_ok() && space.check(16).is_err());
        let unknown = DiskSpace::measured_by(u64::MAX / 2, || Ok(None));
        unknown.reserve().take(u64::MAX / 4).expect("no limit");
    }
}
