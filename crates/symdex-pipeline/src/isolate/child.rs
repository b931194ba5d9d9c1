//! The child's side: [`enter`].

use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::isolate::confine::{confine, renew_cpu_time};
use crate::isolate::limits::Limits;
use crate::isolate::protocol::{Line, Request};

/// Reads a task from standard input, limits this process, and calls `work` with the task. Returns the exit code of the
/// process.
///
/// Call this at the start of `main`, before the process has threads. Nothing of the task's files is read before the
/// limits are in force. The process ends when its parent ends.
pub fn enter<T: DeserializeOwned, R: Serialize>(work: impl FnOnce(T, &Channel<R>)) -> ExitCode {
    match begin(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("a child process of symdex could not begin: {error}");
            ExitCode::FAILURE
        }
    }
}

fn begin<T: DeserializeOwned, R: Serialize>(work: impl FnOnce(T, &Channel<R>)) -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let Request { limits, access, is_nice, task } = serde_json::from_str(&line)?;
    if is_nice {
        lower_priority();
    }
    let protections = confine(&limits, &access)?;
    end_with_the_parent()?;
    let channel = Channel { limits, percent: AtomicU64::new(0), results: PhantomData };
    channel.write(&Line::Confined(protections))?;
    work(task, &channel);
    channel.write(&Line::End {})
}

/// Leaves the CPUs to other processes, with all threads that are started from now on. On Windows, the parent has set the
/// class of the process. A system that refuses it is no error.
fn lower_priority() {
    #[cfg(unix)]
    {
        _ = rustix::process::nice(10);
    }
}

/// Ends this process when its standard input is closed, which the parent does by ending. Linux also kills it then.
fn end_with_the_parent() -> io::Result<()> {
    const STACK: usize = 64 << 10;
    let wait = || {
        let mut byte = [0];
        // Nothing is written after the task. An error ends the process as well.
        let _ = io::stdin().lock().read(&mut byte);
        std::process::exit(1);
    };
    thread::Builder::new().name("parent".to_owned()).stack_size(STACK).spawn(wait).map(drop)
}

/// A child's connection to its parent, for results of the type `R`.
#[derive(Debug)]
pub struct Channel<R> {
    limits: Limits,
    /// The progress that was reported last, of the next result.
    percent: AtomicU64,
    results: PhantomData<fn(R)>,
}

impl<R: Serialize> Channel<R> {
    /// The file for the bytes that the child makes. It is empty at first. The parent reads it when the child has ended.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if standard output is closed.
    pub fn output(&self) -> io::Result<File> {
        #[cfg(unix)]
        let file = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        #[cfg(windows)]
        let file = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
        Ok(file.into())
    }

    /// Reports the progress of the next result: `done` of `total` parts of an input of `size` bytes. At most 100
    /// reports are sent for each result.
    pub fn progress(&self, size: u64, done: u64, total: u64) {
        let percent = done.saturating_mul(100) / total.max(1);
        if self.percent.fetch_max(percent, Ordering::Relaxed) < percent {
            // If the parent no longer reads it, this process is about to end.
            let _ = self.write(&Line::Progress { size, done, total });
        }
    }

    /// Sends a result. The time for the next one begins.
    pub fn send(&self, result: R) {
        self.percent.store(0, Ordering::Relaxed);
        let _ = self.write(&Line::Result(result));
        let _ = renew_cpu_time(&self.limits);
    }

    fn write(&self, line: &Line<R>) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        // One write for each line, so that lines of several threads do not mix.
        io::stderr().lock().write_all(text.as_bytes())
    }
}
