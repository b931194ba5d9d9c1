//! Why a child ended before its task was done.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use symdex::Cause;

use crate::isolate::limits::Limits;

/// Why a task that was given to a child was not done.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The child could not be started, or could not be given its task.
    #[error("{}: cannot start a child process: {error}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// The child ended before its task was done.
    #[error(transparent)]
    Ended(#[from] Death),
}

impl ChildError {
    /// The cause.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::NotStarted { .. } => Cause::Other,
            Self::Ended(death) => death.cause(),
        }
    }
}

/// How a child ended before its task was done.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Death {
    /// It needed more memory than it may have.
    #[error("needs more memory than the {} MB that a child may have; raise `max_memory` to build it", limit >> 20)]
    OutOfMemory {
        /// [`Limits::memory`] in bytes.
        limit: u64,
    },
    /// It used more CPU time than it may.
    #[error(
        "needs more than the {limit} s of CPU time that a child may use; raise `max_seconds` to build it"
    )]
    CpuTime {
        /// The limit in seconds.
        limit: u64,
    },
    /// The parent killed it because it took too long for one result.
    #[error("took longer than the {limit} s that a child may take; raise `max_seconds` to build it")]
    WallClock {
        /// [`Limits::seconds`].
        limit: u64,
    },
    /// It wrote a larger file than it may.
    #[error("wrote a file that is larger than the {} MB that a child may write", limit >> 20)]
    FileSize {
        /// [`Limits::file_size`] in bytes.
        limit: u64,
    },
    /// It made a system call that a child may not make, for example to open a socket or to start a program.
    #[error(
        "made a system call that a child may not make, and was killed; report this file to the authors of symdex"
    )]
    ForbiddenCall,
    /// It overflowed its stack.
    #[error("overflowed the stack of a child; report this file to the authors of symdex")]
    StackOverflow,
    /// It panicked.
    #[error("the child panicked: {message}; report this file to the authors of symdex")]
    Panic {
        /// The message of the panic, cut after 300 bytes.
        message: String,
    },
    /// The parent killed it because it stops.
    #[error("was not finished because the program is stopping")]
    Stopped,
    /// A signal killed it.
    #[error("the child was killed by signal {signal}{}", meaning_of(*signal))]
    Signal {
        /// The number of the signal.
        signal: i32,
    },
    /// It ended without a signal, or wrote something else than lines of its protocol.
    #[error("the child ended with {status} before its task was done: {message}")]
    Protocol {
        /// Its exit status, as text.
        status: String,
        /// What it wrote last, cut after 300 bytes.
        message: String,
    },
}

impl Death {
    /// The cause: [`Cause::Limit`] if the child used more than it may.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::OutOfMemory { .. }
            | Self::CpuTime { .. }
            | Self::WallClock { .. }
            | Self::FileSize { .. } => Cause::Limit,
            _ => Cause::Other,
        }
    }

    /// The limit or event in one word: `memory`, `cpu_time`, `wall_clock`, `file_size`, `system_call`, `stack`,
    /// `panic`, `stop`, `signal` or `exit`.
    #[must_use]
    pub fn limit(&self) -> &'static str {
        match self {
            Self::OutOfMemory { .. } => "memory",
            Self::CpuTime { .. } => "cpu_time",
            Self::WallClock { .. } => "wall_clock",
            Self::FileSize { .. } => "file_size",
            Self::ForbiddenCall => "system_call",
            Self::StackOverflow => "stack",
            Self::Panic { .. } => "panic",
            Self::Stopped => "stop",
            Self::Signal { .. } => "signal",
            Self::Protocol { .. } => "exit",
        }
    }

    /// The death of a child that ended with `status` and wrote the text `said`, which is not of its protocol.
    pub(crate) fn of(status: ExitStatus, said: &str, limits: &Limits) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::of_signal(signal, said, limits);
        }
        // Windows has no signals: an abort is an exit status there.
        let message = shortened(said);
        match status.code() {
            Some(101) => Self::Panic { message },
            _ if has_failed_allocation(said) => Self::OutOfMemory { limit: limits.memory.unwrap_or(0) },
            _ => Self::Protocol { status: status.to_string(), message },
        }
    }

    #[cfg(unix)]
    fn of_signal(signal: i32, said: &str, limits: &Limits) -> Self {
        use rustix::process::Signal;
        let is = |other: Signal| signal == other.as_raw();
        let limit = |limit: Option<u64>| limit.unwrap_or(0);
        if has_failed_allocation(said) {
            Self::OutOfMemory { limit: memory_limit(limits) }
        } else if is(Signal::XCPU) {
            Self::CpuTime { limit: limit(limits.cpu_seconds()) }
        } else if is(Signal::XFSZ) {
            Self::FileSize { limit: limit(limits.file_size) }
        } else if is(Signal::SYS) {
            Self::ForbiddenCall
        } else if said.contains("has overflowed its stack") {
            Self::StackOverflow
        } else if is(Signal::ABORT) && said.contains("panicked at ") {
            Self::Panic { message: shortened(said) }
        } else {
            Self::Signal { signal }
        }
    }
}

/// The limit of memory of a child: it inherits that of this process if that is smaller.
#[cfg(unix)]
fn memory_limit(limits: &Limits) -> u64 {
    let inherited = rustix::process::getrlimit(rustix::process::Resource::Data).maximum;
    limits.memory.into_iter().chain(inherited).min().unwrap_or(0)
}

/// What a signal may mean.
fn meaning_of(signal: i32) -> &'static str {
    const SIGKILL: i32 = 9;
    if signal == SIGKILL { " (the system may be out of memory)" } else { "" }
}

/// Whether the runtime has reported a failed allocation. It then aborts.
fn has_failed_allocation(said: &str) -> bool {
    said.contains("memory allocation of ")
}

/// The end of what a child said, on one line.
fn shortened(said: &str) -> String {
    const LONGEST: usize = 300;
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let end: String = line.chars().take(LONGEST).collect();
    end.escape_default().to_string().replace("\\'", "'").replace("\\\"", "\"")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn each_way_to_end_has_its_name() {
        let limits = Limits::new().memory(Some(64 << 20)).seconds(Some(3)).file_size(Some(1 << 20));
        let death = |raw: i32, said: &str| Death::of(ExitStatus::from_raw(raw), said, &limits);
        let overflow = "\nthread 'main' (1) has overflowed its stack\nfatal runtime error: stack overflow";
        let cases = [
            (death(6, "memory allocation of 99 bytes failed"), "memory", "64 MB"),
            (death(24, ""), "cpu_time", "5 s of CPU time"),
            (death(25, ""), "file_size", "1 MB"),
            (death(31, ""), "system_call", "may not make"),
            (death(6, overflow), "stack", "overflowed"),
            (death(11, ""), "signal", "signal 11"),
            (death(9, ""), "signal", "out of memory"),
            (death(101 << 8, "thread 'main' panicked at a.rs:1:\nboom"), "panic", "a.rs:1: boom"),
            (death(7 << 8, "what"), "exit", "what"),
        ];
        for (death, limit, text) in cases {
            assert_eq!(death.limit(), limit);
            assert!(death.to_string().contains(text), "{death}");
        }
    }

    #[test]
    fn what_a_child_said_is_one_short_line() {
        assert_eq!(shortened("a\n b\x1b[31m"), "a b\\u{1b}[31m");
        assert_eq!(shortened(&"x".repeat(1000)).len(), 300);
    }
}
