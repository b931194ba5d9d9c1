//! Stops programs in gdb, and reads what it prints.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use symdex_testkit::program;

/// What gdb has printed of a stopped program.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) title: String,
    pub(crate) target: Target,
    /// The lines `registers` and `memory`.
    pub(crate) lines: String,
    /// The mappings of files: start, end and path.
    pub(crate) maps: Vec<(u64, u64, String)>,
    pub(crate) frames: Vec<GdbFrame>,
}

impl Capture {
    /// The value of a register.
    pub(crate) fn register(&self, name: &str) -> u64 {
        let word = |word: &str| Some(number(word.strip_prefix(name)?.strip_prefix('=')?));
        self.lines.split_whitespace().find_map(word).expect("gdb prints all registers")
    }

    /// The address and the bytes of the stack.
    pub(crate) fn memory(&self) -> (u64, Vec<u8>) {
        let line = self.lines.lines().find_map(|line| line.strip_prefix("memory "));
        let (address, digits) = line.and_then(|line| line.split_once(' ')).expect("gdb prints the stack");
        let bytes = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
        (number(address), bytes.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect())
    }
}

/// A hexadecimal number.
fn number(digits: &str) -> u64 {
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

/// A frame of gdb.
#[derive(Clone, Debug)]
pub(crate) struct GdbFrame {
    pub(crate) address: u64,
    /// Whether it returns from a signal handler.
    pub(crate) is_signal: bool,
    pub(crate) name: Option<String>,
}

/// The processor of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    X86_64,
    Arm64,
    Arm,
}

impl Target {
    /// The name.
    pub(crate) fn arch(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Arm => "arm",
        }
    }

    /// By how many bytes the walker moves a return address back into the call.
    pub(crate) fn call_size(self) -> u64 {
        match self {
            Self::X86_64 => 1,
            Self::Arm64 => 4,
            Self::Arm => 2,
        }
    }
}

/// The commands with which each script begins.
const BEGINNING: &str = "\
set pagination off
set confirm off
set debuginfod enabled off
set backtrace past-main on
set disable-randomization on
";

/// The command to run gdb on `program` with `script`.
fn gdb(name: &str, program_file: &Path, script: &str) -> Command {
    let folder = program_file.parent().expect("in a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashes/capture.py");
    let script = format!("{BEGINNING}source {}\n{script}kill\nquit\n", source.display());
    let path = folder.join("script.gdb");
    std::fs::write(&path, script).expect("written");
    let mut gdb = program(name, "--version");
    gdb.args(["--batch", "-nx", "-x"]).arg(path).arg(program_file).stdin(Stdio::null()).env("LC_ALL", "C");
    gdb
}

/// Runs `script` in gdb. The program gets its argument from the script.
pub(crate) fn capture_native(program: &Path, title: &str, script: &str) -> Vec<Capture> {
    captures(gdb("gdb", program, script), Target::X86_64, title)
}

/// An emulator that waits for gdb. It is ended when the test ends.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        // It may have ended with gdb.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `script` in gdb, on `program` with `argument` in an emulator.
pub(crate) fn capture_qemu(
    program_file: &Path,
    target: Target,
    argument: &str,
    script: &str,
) -> Vec<Capture> {
    let emulator = match target {
        Target::Arm64 => "qemu-aarch64",
        Target::Arm => "qemu-arm",
        Target::X86_64 => "qemu-x86_64",
    };
    let socket = program_file.with_file_name("gdb.socket");
    let _ = std::fs::remove_file(&socket);
    let mut run = program(emulator, "--version");
    // gdb does not read the signal frames of processors with scalable vectors.
    if let Target::Arm64 = target {
        run.args(["-cpu", "cortex-a57"]);
    }
    run.arg("-g").arg(&socket).arg(program_file).arg(argument).stdin(Stdio::null()).stdout(Stdio::null());
    let _emulator = Emulator(run.stderr(Stdio::null()).spawn().expect("the emulator starts"));
    while !socket.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let script = format!("target remote {}\n{script}", socket.display());
    captures(gdb("gdb-multiarch", program_file, &script), target, argument)
}

/// Runs gdb, and reads its output.
fn captures(mut gdb: Command, target: Target, title: &str) -> Vec<Capture> {
    let output = gdb.output().expect("gdb starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut all: Vec<Capture> = Vec::new();
    for line in text.lines() {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        if keyword == "capture" {
            let title = format!("{} {title} {}", target.arch(), all.len());
            let (lines, maps, frames) = (String::new(), Vec::new(), Vec::new());
            all.push(Capture { title, target, lines, maps, frames });
        }
        let Some(capture) = all.last_mut() else { continue };
        let words: Vec<_> = rest.splitn(3, ' ').collect();
        match (keyword, &words[..]) {
            ("registers" | "memory", _) => capture.lines += &format!("{line}\n"),
            ("map", [start, end, path]) => {
                capture.maps.push((number(start), number(end), (*path).to_owned()));
            }
            ("frame", [address, kind, name]) => capture.frames.push(GdbFrame {
                address: number(address),
                is_signal: *kind == "signal",
                name: Some((*name).to_owned()).filter(|name| name != "?"),
            }),
            _ => {}
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!all.is_empty(), "{title}: gdb has captured nothing\n{text}\n{errors}");
    all
}
