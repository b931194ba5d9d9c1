//! Programs that run llvm-symbolizer or addr2line, unchanged, with a link to symdex in the place of the tool.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use symdex_testkit::{Need, ignore, program};

use crate::common::folder;

const OVERFLOW: &str = "\
#include <stdlib.h>
static inline __attribute__((always_inline)) int peek(int *p) { return p[10]; }
__attribute__((noinline)) int reads(int *p) { return peek(p); }
int main(int c, char **v) { int *p = malloc(40); int r = reads(p); free(p); return r + c; }
";

const UNDEFINED: &str = "\
namespace ns { struct S { int f(int x); }; }
int ns::S::f(int x) { return x + 2147483647; }
int main(int c, char **) { ns::S s; return s.f(c) == 3; }
";

const LOOP: &str = "\
static inline __attribute__((always_inline)) unsigned step(unsigned x) { return x * 1664525u + 1013904223u; }
__attribute__((noinline)) unsigned spin(unsigned n) {
  unsigned x = 1;
  for (unsigned i = 0; i < n; i++) x = step(x) ^ i;
  return x;
}
int main(int c, char **v) { return spin(200000000u + c) == 7; }
";

/// The main thread waits for the other one in a way that the sanitizer does not see, so that each run reports the same
/// thread first.
const RACE: &str = "\
#include <pthread.h>
#include <sched.h>
#define UNSEEN __attribute__((no_sanitize(\"thread\"), noinline)) static void
static volatile int is_bumped;
int shared_count[4];
UNSEEN set_bumped(void) { is_bumped = 1; }
UNSEEN wait_for_bump(void) { while (!is_bumped) sched_yield(); }
static void *bump(void *p) { shared_count[1]++; set_bumped(); return p; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, bump, 0);
  wait_for_bump();
  shared_count[1]++;
  pthread_join(t, 0);
  return 0;
}
";

const OVERFLOW_IN_RUST: &str = "\
#[inline(always)]
fn peek(values: &[u32]) -> u32 { unsafe { *values.as_ptr().add(12) } }
#[inline(never)]
fn reads(values: &[u32]) -> u32 { peek(values) ^ 1 }
fn main() { let values = vec![1u32; 10]; std::process::exit(reads(&values) as i32 & 1); }
";

/// A link to symdex named `tool`, in a folder of its own below `folder`.
fn link(folder: &Path, tool: &str) -> PathBuf {
    let bin = folder.join(format!("bin-{tool}"));
    std::fs::create_dir(&bin).expect("created");
    symlink(env!("CARGO_BIN_EXE_symdex"), bin.join(tool)).expect("linked");
    bin.join(tool)
}

/// The program that `compiler` makes of `source`, in a file with this extension.
fn compiled(
    mut compiler: Command,
    folder: &Path,
    extension: &str,
    source: &str,
    options: &[&str],
) -> PathBuf {
    let name = format!("source.{extension}");
    std::fs::write(folder.join(&name), source).expect("written");
    let path = folder.join("program");
    let status = compiler.args(options).arg("-g").arg(name).arg("-o").arg(&path).current_dir(folder).status();
    if !status.expect("the compiler starts").success() {
        ignore(Need::Programs, "the compiler has no libraries of sanitizers (libclang-rt-19-dev)");
    }
    path
}

/// What the command prints on standard output and standard error.
fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The functions and places of the stack frames that a sanitizer has printed, with columns if it has them, without
/// addresses and the frames of the C library.
fn frames(report: &str) -> Vec<String> {
    let frame = regex::Regex::new(r"#\d+ (?:0x[0-9a-f]+ in )?(\S.*source\.\w+:\d+(?::\d+)?)").expect("valid");
    frame.captures_iter(report).map(|frame| frame[1].to_owned()).collect()
}

/// A link to LLVM's program. Its name decides how a sanitizer talks to it.
fn link_to_llvm(folder: &Path) -> PathBuf {
    _ = program("llvm-symbolizer-19", "--version");
    let path =
        Command::new("sh").args(["-c", "command -v llvm-symbolizer-19"]).output().expect("sh runs").stdout;
    let bin = folder.join("bin-theirs");
    std::fs::create_dir(&bin).expect("created");
    symlink(String::from_utf8(path).expect("a path").trim(), bin.join("llvm-symbolizer")).expect("linked");
    bin.join("llvm-symbolizer")
}

pub(crate) fn sanitizers_print_the_frames_of_llvm_symbolizer() {
    let folder = folder();
    let [theirs, ours] = [link_to_llvm(folder.path()), link(folder.path(), "llvm-symbolizer")];
    for (compiler, (extension, source), sanitizer, variable, count) in [
        ("clang-19", ("c", OVERFLOW), "-fsanitize=address", "ASAN", 4),
        ("clang++-19", ("cpp", UNDEFINED), "-fsanitize=undefined", "UBSAN", 2),
        // It asks for the global variable, too.
        ("clang-19", ("c", RACE), "-fsanitize=thread", "TSAN", 3),
        // rustc has the library of the sanitizer, and takes the option only as a compiler of the nightly channel.
        ("rustc", ("rs", OVERFLOW_IN_RUST), "-Zsanitizer=address", "ASAN", 3),
    ] {
        let mut command = program(compiler, "--version");
        command.env("RUSTC_BOOTSTRAP", "1");
        let optimization = if compiler == "rustc" { "-Copt-level=1" } else { "-O1" };
        let program = compiled(command, folder.path(), extension, source, &[optimization, sanitizer]);
        let [theirs, ours] = [&theirs, &ours].map(|symbolizer| {
            let mut run = Command::new(&program);
            run.env(format!("{variable}_SYMBOLIZER_PATH"), symbolizer);
            printed(run.env(format!("{variable}_OPTIONS"), "print_stacktrace=1"))
        });
        assert_eq!(frames(&ours), frames(&theirs), "{ours}");
        assert!(frames(&ours).len() >= count, "{ours}");
        assert!(!ours.contains("symdex:"), "{ours}");
        let global = "Location is global 'shared_count' of size 16 at";
        assert_eq!(
            (ours.contains(global), theirs.contains(global)),
            (variable == "TSAN", variable == "TSAN")
        );
    }
}

pub(crate) fn asan_symbolize_reads_llvm_symbolizer() {
    let folder = folder();
    let [theirs, ours] = [link_to_llvm(folder.path()), link(folder.path(), "llvm-symbolizer")];
    let compiler = program("clang-19", "--version");
    let path = compiled(compiler, folder.path(), "c", OVERFLOW, &["-O1", "-fsanitize=address"]);
    let report = printed(Command::new(&path).env("ASAN_OPTIONS", "symbolize=0"));
    let report_path = folder.path().join("report");
    std::fs::write(&report_path, &report).expect("written");
    let [theirs, ours] = [&theirs, &ours].map(|symbolizer| {
        let mut script = program("asan_symbolize-19", "--help");
        let path = std::env::var("PATH").unwrap_or_default();
        script.env("PATH", format!("{}:{path}", symbolizer.parent().expect("a folder").display()));
        printed(script.arg("--logfile").arg(&report_path))
    });
    assert_eq!(frames(&ours), frames(&theirs), "{ours}");
    assert_eq!(frames(&ours).len(), 4, "{ours}");
}

pub(crate) fn the_address_sanitizer_reads_addr2line_too() {
    let folder = folder();
    let addr2line = link(folder.path(), "addr2line");
    let compiler = program("clang-19", "--version");
    let program = compiled(compiler, folder.path(), "c", OVERFLOW, &["-O1", "-fsanitize=address"]);
    let report = printed(Command::new(&program).env("ASAN_SYMBOLIZER_PATH", addr2line));
    let source = folder.path().join("source.c");
    let expected = ["peek", "reads", "main", "main"].into_iter().zip([2, 3, 4, 4]);
    let expected: Vec<_> =
        expected.map(|(name, line)| format!("{name} {}:{line}", source.display())).collect();
    assert_eq!(frames(&report), expected, "{report}");
}

pub(crate) fn perf_prints_the_source_lines_of_addr2line() {
    let folder = folder();
    let program_path = compiled(program("cc", "--version"), folder.path(), "c", LOOP, &["-O2"]);
    let data = folder.path().join("perf.data");
    let mut record = program("perf", "--version");
    record.args(["record", "-q", "-e", "cpu-clock:u", "-o"]).arg(&data).arg(&program_path);
    let recorded = printed(&mut record);
    if !data.exists() {
        ignore(Need::Programs, &format!("perf cannot record on this machine: {recorded}"));
    }
    let bin = link(folder.path(), "addr2line");
    let path = |first: &Path| format!("{}:{}", first.display(), std::env::var("PATH").unwrap_or_default());
    let lines = |path: String| {
        let mut script = program("perf", "--version");
        // The C library is left out: several units name its lines.
        script
            .args(["script", "-F", "ip,sym,srcline", "--dsos", "program", "-i"])
            .arg(&data)
            .env("PATH", path);
        printed(&mut script)
    };
    let theirs = lines(std::env::var("PATH").unwrap_or_default());
    assert!(theirs.contains("source.c:"), "{theirs}");
    assert_eq!(lines(path(bin.parent().expect("a folder"))), theirs);
}

pub(crate) fn pprof_reads_llvm_symbolizer() {
    let mut go = program("go", "version");
    let folder = folder();
    let spinning = compiled(program("cc", "--version"), folder.path(), "c", LOOP, &["-O2"]);
    let bytes = std::fs::read(&spinning).expect("readable");
    let spin = {
        use object::{Object as _, ObjectSymbol as _};
        let file = object::File::parse(&*bytes).expect("ELF");
        let spin = file.symbols().find(|symbol| symbol.name() == Ok("spin"));
        spin.expect("a function").address()
    };
    // A profile in the old text format: a count, a stack, and the memory map.
    let base = 0x5555_5555_4000_u64;
    let (text, code) = (spinning.display(), base + (spin & !0xfff));
    let profile = format!(
        "goroutine profile: total 3\n3 @ 0x{:x}\n\n--- Memory map: ---\n{base:x}-{code:x} r--p 00000000 00:00 0 \
         {text}\n{code:x}-{:x} r-xp {:08x} 00:00 0 {text}\n",
        base + spin + 1,
        code + 0x1000,
        spin & !0xfff,
    );
    let profile_path = folder.path().join("profile");
    std::fs::write(&profile_path, profile).expect("written");
    let ours = link(folder.path(), "llvm-symbolizer");
    let tools = ours.parent().expect("a folder");
    go.args(["tool", "pprof", "-traces", "-lines"]).arg(&profile_path).current_dir(folder.path());
    let printed = printed(go.env("PPROF_TOOLS", tools).env("PPROF_TMPDIR", folder.path()));
    assert!(printed.contains("3   spin") && printed.contains("source.c:"), "{printed}");
}
