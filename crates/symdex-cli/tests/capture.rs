//! `examples/capture`: programs crash, capture their stacks, and `symdex symbolicate` answers them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{folder, symdex_on};
use symdex_testkit::program;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/capture").join(name)
}

fn succeeds(mut command: Command) -> Output {
    let output = command.output().expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Compiles a program with `compile`, and indexes it. Returns the program, which `strip` has stripped.
fn built(root: &Path, mut compile: Command, strip: &str) -> PathBuf {
    let [whole, stripped, indexes] = ["demo", "app", "indexes"].map(|name| root.join(name));
    compile.arg("-o").arg(&whole);
    succeeds(compile);
    let mut strip = program(strip, "--version");
    strip.arg("-o").args([&stripped, &whole]);
    succeeds(strip);
    symdex_on(&whole, &format!("build {{}} -o {} --quiet", indexes.display())).ok();
    stripped
}

/// What `symdex symbolicate` makes of a capture, without what stands before the answers in each line.
fn symbolicated(root: &Path, capture: &[u8]) -> Vec<String> {
    let report = root.join("capture.txt");
    std::fs::write(&report, capture).expect("written");
    let options = format!("symbolicate {{}} --index {}", root.join("indexes").display());
    let run = symdex_on(&report, &options);
    // Frames of libraries, which have no index, are not found.
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.err);
    let answer = |line: &str| {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        if words[0] == "app" { words[4].to_owned() } else { line.to_owned() }
    };
    run.out.lines().map(answer).collect()
}

/// The processors that the demo of C is run on.
#[derive(Clone, Copy)]
enum Processor {
    Native,
    /// In an emulator.
    AArch64,
}

/// Runs the demo of C in the way `how`. Returns the symbolicated capture, and the signal that has ended the process.
fn of_c(processor: Processor, how: &str) -> (Vec<String>, Option<i32>) {
    use std::os::unix::process::ExitStatusExt as _;
    let root = folder();
    let (compiler, strip) = match processor {
        Processor::Native => ("cc", "strip"),
        Processor::AArch64 => ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-strip"),
    };
    let mut compile = program(compiler, "--version");
    let flags = "-std=c11 -Wall -Wextra -Werror -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wl,--build-id";
    compile.args(flags.split(' ')).args(["capture.c", "images.c", "demo.c"].map(example));
    let app = built(root.path(), compile, strip);
    let mut run = match processor {
        Processor::Native => Command::new(app),
        Processor::AArch64 => {
            let mut run = program("qemu-aarch64", "--version");
            run.args(["-L", "/usr/aarch64-linux-gnu"]).arg(app);
            run
        }
    };
    // The emulator writes its core dump there.
    let run = run.arg(how).current_dir(root.path()).output().expect("starts");
    (symbolicated(root.path(), &run.stdout), run.status.signal())
}

/// Whether the answers begin with these functions, at the lines of `demo.c` that contain these words.
fn assert_stack(answers: &[String], expected: &[(&str, &str)]) {
    let source = std::fs::read_to_string(example("demo.c")).expect("readable");
    for (answer, (function, words)) in answers.iter().zip(expected) {
        let mut lines = (1..).zip(source.lines());
        let (line, _) = lines.find(|(_, line)| line.contains(words)).expect("a line");
        let end = format!("(demo.c:{line})");
        assert!(
            answer.contains(&format!("{function} ")) && answer.contains(&end),
            "{function} {end}: {answers:#?}"
        );
    }
    assert!(answers.len() > expected.len(), "{answers:#?}");
}

const OUTER: [(&str, &str); 2] = [("outer", "return middle(how)"), ("main", "return outer(arguments")];

pub(crate) fn a_crash_is_captured_and_symbolicated() {
    assert_crashes(Processor::Native);
}

pub(crate) fn a_crash_on_aarch64_is_captured_and_symbolicated() {
    assert_crashes(Processor::AArch64);
    assert_captured_here(Processor::AArch64);
}

/// Checks the captures of two crashes.
fn assert_crashes(processor: Processor) {
    let (leaf, signal) = of_c(processor, "leaf");
    assert_eq!((signal, &leaf[0][..11], leaf[1].as_str()), (Some(11), "Signal 0xb,", "Thread 0 Crashed:"));
    let expected =
        [("write_null", "*nowhere = 1"), ("crash_in_leaf", "    write_null();"), ("middle", "\"leaf\"")];
    assert_stack(&leaf[2..], &[&expected[..], &OUTER].concat());
    let (mut trap, signal) = of_c(processor, "trap");
    // On AArch64, the link register still has the address after the call of strcmp.
    trap.retain(|answer| !answer.starts_with("maybe-the-caller"));
    assert!(signal.is_some(), "the process ends by a signal");
    assert_stack(&trap[2..], &[&[("middle", "\"trap\"")][..], &OUTER].concat());
}

pub(crate) fn a_stack_overflow_is_captured_on_another_stack() {
    let (overflow, signal) = of_c(Processor::Native, "overflow");
    assert_eq!(signal, Some(11));
    let frames = overflow.iter().filter(|line| line.contains("overflow + ")).count();
    assert!((200..=257).contains(&frames), "{overflow:#?}");
}

pub(crate) fn a_stack_is_captured_without_a_crash() {
    assert_captured_here(Processor::Native);
}

/// Checks the capture of a stack outside of a signal handler.
fn assert_captured_here(processor: Processor) {
    let (here, signal) = of_c(processor, "here");
    assert_eq!((signal, here[0].as_str()), (None, "Backtrace:"));
    assert_stack(&here[1..], &[&[("middle", "capture_here")][..], &OUTER].concat());
}

pub(crate) fn a_panic_is_captured_and_symbolicated() {
    let root = folder();
    let mut compile = program("rustc", "--version");
    compile.args(["--edition", "2024", "-O", "-g", "-D", "warnings", "-C", "link-arg=-Wl,--build-id"]);
    compile.arg(example("demo.rs"));
    let run = Command::new(built(root.path(), compile, "strip"))
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("starts");
    let answers = symbolicated(root.path(), &run.stderr);
    let source = std::fs::read_to_string(example("demo.rs")).expect("readable");
    let place = |function: &str, words: &str| {
        let mut lines = (1..).zip(source.lines());
        let (line, _) = lines.find(|(_, line)| line.contains(words)).expect("a line");
        answers
            .iter()
            .position(|answer| answer.contains(function) && answer.contains(&format!("(demo.rs:{line})")))
    };
    let places = [
        place("demo::element", "numbers[at]"),
        place("demo::sum_of_four", "element(numbers, at)"),
        place("demo::main", "sum_of_four(&numbers)"),
    ];
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} {answers:#?}");
}
