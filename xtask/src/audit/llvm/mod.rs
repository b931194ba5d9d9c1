//! llvm-symbolizer: how it is found and asked.

mod classes;
mod symbols;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Result, bail};
use symdex_audit::Frame;
use symdex_build::Error;

pub(crate) use self::classes::{LLVM_SYMBOLIZER, LlvmPeer};

/// The program. Any version is used; the classes describe LLVM 19.
pub(crate) struct LlvmSymbolizer {
    program: PathBuf,
    /// The line in which llvm-symbolizer states its version.
    pub(crate) version: String,
    /// A folder with links to Mach-O files. Asked for a binary itself, it would read a dSYM beside the binary.
    links: tempfile::TempDir,
    /// The folders in which llvm-symbolizer looks for debug files.
    debug_dirs: Vec<PathBuf>,
}

impl LlvmSymbolizer {
    /// Finds it in the folder that `LLVM_BIN` names, or else on the PATH. It looks for debug files in `debug_dirs`
    /// only.
    ///
    /// # Errors
    /// If it is not found. The message says where it was looked for, and how to install it.
    pub(crate) fn find(debug_dirs: &[PathBuf]) -> Result<Self> {
        let candidates = match std::env::var_os("LLVM_BIN") {
            Some(bin) => vec![Path::new(&bin).join("llvm-symbolizer")],
            None => ["llvm-symbolizer-19", "llvm-symbolizer"].map(PathBuf::from).to_vec(),
        };
        for program in candidates {
            let output = Command::new(&program).arg("--version").output();
            let Some(output) = output.ok().filter(|output| output.status.success()) else { continue };
            let text = String::from_utf8_lossy(&output.stdout);
            let version = text.lines().find(|line| line.contains("version")).unwrap_or("version unknown");
            let version = version.trim().to_owned();
            let debug_dirs = debug_dirs.to_vec();
            return Ok(Self { program, version, links: tempfile::tempdir()?, debug_dirs });
        }
        bail!(
            "llvm-symbolizer is neither in the folder LLVM_BIN names nor on the PATH. Debian: `apt-get install \
             llvm-19`; without it, --no-llvm compares with addr2line alone"
        )
    }

    /// The path to ask about `file`: a link to it or, for ELF, its own path, because the files beside it belong to it.
    fn asked(&self, file: &Path) -> io::Result<PathBuf> {
        let mut magic = [0; 4];
        let is_elf = File::open(file)?.read_exact(&mut magic).is_ok() && magic == *b"\x7fELF";
        if is_elf { Ok(file.to_owned()) } else { self.link(file) }
    }

    /// A link to `file`, the same for each call.
    fn link(&self, file: &Path) -> io::Result<PathBuf> {
        let file = file.canonicalize()?;
        let mut hasher = DefaultHasher::new();
        file.hash(&mut hasher);
        let link = self.links.path().join(hasher.finish().to_string());
        match crate::tools::link(&file, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(link),
        }
    }

    /// Starts a process that answers with the frames at each of `svmas` in the slice for `arch` of `file`.
    ///
    /// # Errors
    /// If the process cannot be started. If it ends too early, the last answer is an error.
    pub(crate) fn ask<'a>(
        &self,
        file: &Path,
        arch: &str,
        svmas: Vec<u64>,
    ) -> Result<symdex_audit::PeerFrames<'a>, Error> {
        let (empty, file) = (self.links.path(), self.asked(file).map_err(failed)?);
        let debug_dirs = std::iter::once(empty).chain(self.debug_dirs.iter().map(PathBuf::as_path));
        let mut command = Command::new(&self.program);
        command
            .args(["--no-demangle", "--functions=linkage", "--print-address", "--no-debuginfod"])
            .args(["--output-style=LLVM", "--default-arch", arch, "--obj"])
            .arg(&file)
            // Otherwise it reads files of the same build id or name that are installed on this machine.
            .args([Path::new("--fallback-debug-path"), empty])
            .args(debug_dirs.flat_map(|folder| [Path::new("--debug-file-directory"), folder]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let questions = svmas.clone();
        // A thread writes the questions, because the pipes cannot hold all questions and answers.
        std::thread::spawn(move || {
            let mut stdin = BufWriter::new(stdin);
            // An error here means that the process ended. The reader of the answers reports that.
            questions.iter().try_for_each(|svma| writeln!(stdin, "{svma:#x}")).and_then(|()| stdin.flush())
        });
        Ok(Box::new(ProcessAnswers {
            child,
            stdout: BufReader::new(stdout),
            svmas: svmas.into_iter(),
            line: Vec::new(),
        }))
    }
}

fn failed(source: io::Error) -> Error {
    Error::Io { doing: "ask it", path: "llvm-symbolizer".into(), source }
}

/// The answers of a process, in the order of the questions.
struct ProcessAnswers {
    child: Child,
    stdout: BufReader<ChildStdout>,
    svmas: std::vec::IntoIter<u64>,
    line: Vec<u8>,
}

impl Iterator for ProcessAnswers {
    type Item = Result<Vec<Frame<'static>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let svma = self.svmas.next()?;
        Some(self.answer(svma).map_err(failed))
    }
}

impl ProcessAnswers {
    /// Reads one answer: the address, two lines for each frame with its name and its location, and an empty line.
    fn answer(&mut self, svma: u64) -> io::Result<Vec<Frame<'static>>> {
        let invalid = |line: &[u8]| {
            let line = String::from_utf8_lossy(line).into_owned();
            io::Error::new(io::ErrorKind::InvalidData, format!("at {svma:#x} it says {line:?}"))
        };
        self.read_line()?;
        if self.line != format!("{svma:#x}").as_bytes() {
            return Err(invalid(&self.line));
        }
        let mut frames = Vec::new();
        loop {
            self.read_line()?;
            if self.line.is_empty() {
                return Ok(frames);
            }
            let name = known(&self.line);
            self.read_line()?;
            let mut frame = location(&self.line).ok_or_else(|| invalid(&self.line))?;
            frame.name = name;
            frames.push(frame);
        }
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.stdout.read_until(b'\n', &mut self.line)?;
        match self.line.pop() {
            Some(b'\n') => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for ProcessAnswers {
    fn drop(&mut self) {
        // After the last answer it ends by itself. Before that, the remaining answers are not needed.
        if self.svmas.len() != 0 {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Parses `FILE:LINE:COLUMN`. Line 0 without a file is no line.
fn location(text: &[u8]) -> Option<Frame<'static>> {
    let mut parts = text.rsplitn(3, |byte| *byte == b':');
    let (_, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let line: u32 = std::str::from_utf8(line).ok()?.parse().ok()?;
    let file = known(file);
    let line = (file.is_some() || line != 0).then_some(line);
    Some(Frame { name: None, file, line })
}

fn known(text: &[u8]) -> Option<Cow<'static, [u8]>> {
    (text != b"??").then(|| Cow::Owned(text.to_vec()))
}
