//! The runtime on which clients of network stores run.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

/// Runs `future` on the runtime of the stores, and waits for its result, at most for `timeout`. May be called from any
/// thread, also from a thread of another runtime. The future is dropped when the time is over.
///
/// # Errors
///
/// [`io::ErrorKind::TimedOut`] if the time is over, another error if the runtime cannot be started or if the future
/// panics.
pub fn wait<T, F>(timeout: Duration, future: F) -> io::Result<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // The receiver waits until the sender is used or dropped.
        _ = sender.send(tokio::time::timeout(timeout, future).await);
    });
    match receiver.recv() {
        Ok(result) => result.map_err(|_| io::ErrorKind::TimedOut.into()),
        Err(_) => Err(io::Error::other("the client of the store has panicked")),
    }
}

/// Runs `future` on the runtime, and does not wait for it. It does not run if the runtime cannot be started.
#[cfg(feature = "redis")]
pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = runtime() {
        runtime.spawn(future);
    }
}

/// The runtime of this process. The first call starts its thread.
fn runtime() -> io::Result<Handle> {
    static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);
    let mut started = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*started {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    // The thread ends with the process.
    let run = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("symdex-store".to_owned()).spawn(run)?;
    *started = Some(handle.clone());
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_runs_from_any_thread_and_in_another_runtime() {
        let wait_for_seven = || wait(Duration::from_secs(60), async { 7 }).expect("in time");
        assert_eq!(wait_for_seven(), 7);
        let other = Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(other.block_on(async { wait_for_seven() }), 7);
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(wait_for_seven)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().is_ok_and(|seven| seven == 7)));
    }

    #[test]
    fn slow_and_panicking_futures_are_errors() {
        let slow = wait(Duration::from_millis(10), std::future::pending::<()>()).expect_err("never ready");
        assert_eq!(slow.kind(), io::ErrorKind::TimedOut);
        wait(Duration::from_secs(60), async { panic!("as the test wants") })
            .map(|(): ()| ())
            .expect_err("panics");
        assert_eq!(wait(Duration::from_secs(60), async { 7 }).expect("the runtime still runs"), 7);
    }
}
