//! The parent's side: [`Isolation`].

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::isolate::confine::Protections;
use crate::isolate::death::{ChildError, Death};
use crate::isolate::limits::{Access, Limits};
use crate::isolate::protocol::{Event, Line, Request};

/// `BELOW_NORMAL_PRIORITY_CLASS` of processthreadsapi.h.
#[cfg(windows)]
const BELOW_NORMAL_PRIORITY_CLASS: u32 = 0x4000;

/// A child that is late by this is killed. Until then, it may report itself that it takes too long.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is asked whether a child has to end.
const STOP_WITHIN: Duration = Duration::from_millis(100);
/// The longest line that a child may write.
const LONGEST_LINE: u64 = 64 << 20;
/// How much is kept of the text that is no line of the protocol.
const KEPT_TEXT: usize = 4 << 10;

/// Starts children: the program, its arguments, and its limits.
#[derive(Clone, Debug)]
pub struct Isolation {
    program: PathBuf,
    arguments: Vec<OsString>,
    pub(crate) limits: Limits,
    grace: Duration,
    is_nice: bool,
}

impl Isolation {
    /// Children run `program`, which must call [`child::enter`](crate::isolate::child::enter). They have no limits but
    /// the default ones of [`Limits`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            limits: Limits::new(),
            grace: GRACE,
            is_nice: false,
        }
    }

    /// Adds an argument of the program.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The limits of each child.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How much longer than [`Limits::seconds`] a child may take for a result before it is killed. The default is 2 s.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Children leave the CPUs to other processes: on Unix at nice 10, on Windows in the class below normal.
    #[must_use]
    pub fn nice(self) -> Self {
        Self { is_nice: true, ..self }
    }

    /// Runs one child, gives it `task`, and calls `each` with what it reports. Returns when the child has ended. The
    /// child writes its bytes to `output`. It is killed when `is_stopped`, which is asked several times a second.
    ///
    /// # Errors
    ///
    /// [`ChildError`] if the child could not be started, or ended before its task was done. Results that it sent before
    /// are valid.
    pub fn run<T: Serialize, R: DeserializeOwned + Send + 'static>(
        &self,
        task: &T,
        access: &Access,
        output: &File,
        is_stopped: &dyn Fn() -> bool,
        mut each: impl FnMut(Event<R>),
    ) -> Result<Protections, ChildError> {
        let not_started = |error| ChildError::NotStarted { program: self.program.clone(), error };
        if is_stopped() {
            return Err(Death::Stopped.into());
        }
        let mut running = self.start(output, access).map_err(not_started)?;
        let lines = running.lines::<R>().map_err(not_started)?;
        // Fails if the child has ended already. Its death is the better error.
        let (limits, access, is_nice) = (self.limits.clone(), access.clone(), self.is_nice);
        let request = Request { limits, access, is_nice, task };
        let _ = running.give(&request).map_err(not_started);
        let mut protections = None;
        let mut deadline = self.deadline();
        let mut said = String::new();
        let mut is_done = false;
        loop {
            match next(&lines, deadline, is_stopped) {
                Ok(Said::Line(Line::Confined(confined))) => protections = Some(confined),
                Ok(Said::Line(Line::Progress { size, done, total })) => {
                    each(Event::Progress { size, done, total });
                }
                Ok(Said::Line(Line::Result(result))) => {
                    deadline = self.deadline();
                    each(Event::Result(result));
                }
                Ok(Said::Line(Line::End {})) => is_done = true,
                Ok(Said::Text(text)) if said.len() < KEPT_TEXT => said.push_str(&text),
                Ok(Said::Text(_)) => {}
                Err(RecvTimeoutError::Timeout) if is_stopped() => return Err(Death::Stopped.into()),
                Err(RecvTimeoutError::Timeout) => {
                    let limit = self.limits.seconds.unwrap_or(0);
                    return Err(Death::WallClock { limit }.into());
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = running.wait().map_err(not_started)?;
        match protections {
            Some(protections) if is_done && status.success() => Ok(protections),
            _ => Err(Death::of(status, &said, &self.limits).into()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let seconds = self.limits.seconds?;
        Instant::now().checked_add(Duration::from_secs(seconds).checked_add(self.grace)?)
    }

    fn start(&self, output: &File, access: &Access) -> io::Result<Running> {
        let mut command = Command::new(&self.program);
        if let Some(folder) = &access.temporary {
            // Only Unix systems use this variable.
            command.env("TMPDIR", folder);
        }
        #[cfg(windows)]
        if self.is_nice {
            std::os::windows::process::CommandExt::creation_flags(&mut command, BELOW_NORMAL_PRIORITY_CLASS);
        }
        let child = command
            .args(&self.arguments)
            // The messages of a panic are read.
            .env("RUST_BACKTRACE", "0")
            // If the allocator is jemalloc: address space that it keeps for later counts for the limit of memory.
            .env("_RJEM_MALLOC_CONF", "retain:false")
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(Stdio::piped())
            .spawn()?;
        Running::new(child, &self.limits)
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }
}

/// The next line, until `deadline` or until `is_stopped`.
fn next<T>(
    lines: &Receiver<T>,
    deadline: Option<Instant>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<T, RecvTimeoutError> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A time of zero would return a line that is there already.
        if is_stopped() || left.is_some_and(|left| left.is_zero()) {
            return Err(RecvTimeoutError::Timeout);
        }
        match lines.recv_timeout(left.unwrap_or(STOP_WITHIN).min(STOP_WITHIN)) {
            Err(RecvTimeoutError::Timeout) => {}
            said => return said,
        }
    }
}

/// A child that is killed when this is dropped.
struct Running {
    child: Child,
    /// The child ends when this is closed.
    input: Option<ChildStdin>,
    /// The process is in the job until both have ended.
    #[cfg(windows)]
    _job: win32job::Job,
}

impl Running {
    #[cfg(not(windows))]
    #[expect(clippy::unnecessary_wraps, reason = "it fails on Windows")]
    fn new(mut child: Child, _: &Limits) -> io::Result<Self> {
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Puts the child into a job object, before it gets its task.
    #[cfg(windows)]
    fn new(mut child: Child, limits: &Limits) -> io::Result<Self> {
        use std::os::windows::io::AsRawHandle as _;
        let mut info = win32job::ExtendedLimitInfo::new();
        info.limit_kill_on_job_close();
        if let Some(memory) = limits.memory {
            info.limit_working_memory(1 << 20, usize::try_from(memory).unwrap_or(usize::MAX).max(2 << 20));
        }
        let job = win32job::Job::create_with_limit_info(&info).map_err(io::Error::other)?;
        job.assign_process(child.as_raw_handle() as isize).map_err(io::Error::other)?;
        let input = child.stdin.take();
        Ok(Self { child, input, _job: job })
    }

    /// Writes the task. A child that does not read it is killed by its deadline at the latest.
    fn give<T: Serialize>(&mut self, request: &Request<T>) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.input.as_mut().map_or(Ok(()), |input| input.write_all(&line))
    }

    /// Reads what the child writes, on a thread that ends when the child has ended.
    fn lines<R: DeserializeOwned + Send + 'static>(&mut self) -> io::Result<Receiver<Said<R>>> {
        // A child that writes faster than its parent reads has to wait.
        let (sender, receiver) = mpsc::sync_channel(64);
        let Some(errors) = self.child.stderr.take() else { return Ok(receiver) };
        let read = move || {
            let mut errors = BufReader::new(errors);
            while let Some(said) = read_line(&mut errors) {
                if sender.send(said).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("isolated child".to_owned()).spawn(read)?;
        Ok(receiver)
    }

    fn wait(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the child has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of a child.
enum Said<R> {
    Line(Line<R>),
    Text(String),
}

/// The next line; `None` at the end, or after a line that is too long.
fn read_line<R: DeserializeOwned>(errors: &mut impl BufRead) -> Option<Said<R>> {
    let mut line = Vec::new();
    let length = errors.take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
    let is_cut = length as u64 == LONGEST_LINE && !line.ends_with(b"\n");
    if length == 0 || is_cut {
        return None;
    }
    let parsed = line.starts_with(b"{").then(|| serde_json::from_slice(&line).ok()).flatten();
    Some(match parsed {
        Some(line) => Said::Line(line),
        None => Said::Text(String::from_utf8_lossy(&line[..line.len().min(KEPT_TEXT)]).into_owned()),
    })
}
