//! Whole stacks of programs without frame pointers, walked by unwind rows, compared with those of gdb.
//!
//! gdb stops the programs in a leaf function, in a signal handler, below a callback of the C library, and before each
//! instruction of a prologue and of a call through the PLT. It prints the registers and the stack, from which the test
//! makes a minidump, and its own frames.

mod captures;
mod peer;
mod programs;

use std::collections::HashMap;

use captures::{Capture, Target, capture_native, capture_qemu};
use programs::Indexes;
use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_minidump::walk;
use symdex_report::{Answers, FoundBy, Options, Question, Source, Unanswered, symbolicate};
use symdex_testkit::{Need, ignore};

symdex_testkit::main!(
    x86_64_stacks_are_those_of_gdb,
    arm64_stacks_are_those_of_gdb,
    thumb_stacks_are_those_of_gdb,
    indexes_and_debug_files_have_unwind_rows,
    real_minidumps_have_the_frames_of_rust_minidump,
);

/// The functions of the program.
const FUNCTIONS: [&str; 7] = ["leaf", "in_handler", "handler", "middle", "outer", "compare", "main"];

/// A frame: the address of the instruction, and the name of the function if it is known.
type Frame = (u64, Option<String>);

/// The frames that symdex finds in a capture, and how.
fn walked(capture: &Capture, indexes: &mut Indexes) -> Vec<(Frame, FoundBy)> {
    frames_of(&indexes.minidump(capture), indexes)
}

/// The frames that symdex finds in a minidump, and how.
fn frames_of(dump: &[u8], source: &mut (impl Source + Send)) -> Vec<(Frame, FoundBy)> {
    let walked = walk(dump, source).expect("a minidump").expect("intact");
    let report = walked.report;
    let symbolicated = symbolicate(&report, source, &Options::new());
    let thread = &report.threads()[0];
    let frame = |depth: usize| {
        let concrete = symbolicated.resolution(0, depth).and_then(|resolution| resolution.frames.last());
        let name = concrete.and_then(|function| function.name().map(str::to_owned));
        ((thread.frames[depth].address, name), thread.found_by[depth])
    };
    (0..thread.frames.len()).map(frame).collect()
}

/// The frames that gdb finds. Return addresses are moved back into the call, as the walker moves them.
fn of_gdb(capture: &Capture) -> Vec<Frame> {
    let mut is_interrupted = true;
    let frames = capture.frames.iter().map(|frame| {
        // Neither a signal handler nor the code that a signal interrupts has made a call.
        let is_exact = std::mem::replace(&mut is_interrupted, frame.is_signal) || frame.is_signal;
        (frame.address - if is_exact { 0 } else { capture.target.call_size() }, frame.name.clone())
    });
    frames.collect()
}

/// Checks that the addresses of all frames are those of gdb, and so are the names of the program's functions. Returns
/// how many frames were compared.
fn check(capture: &Capture, indexes: &mut Indexes) -> usize {
    let (found, expected) = (walked(capture, indexes), of_gdb(capture));
    let show = |frames: &mut dyn Iterator<Item = &Frame>| {
        let lines = frames.map(|(address, name)| format!("{address:#x} {}", name.as_deref().unwrap_or("?")));
        lines.collect::<Vec<_>>().join("\n")
    };
    let same = found.iter().map(|(frame, _)| frame.0).eq(expected.iter().map(|frame| frame.0));
    // A function of the C library has several names. Those of the program have one.
    let is_of_program = |name: &Option<String>| name.as_deref().is_some_and(|name| FUNCTIONS.contains(&name));
    let names_agree = found
        .iter()
        .zip(&expected)
        .all(|(((_, ours), _), (_, theirs))| ours == theirs || !is_of_program(theirs));
    let how: Vec<_> = found.iter().map(|(_, way)| way.name()).collect();
    assert!(
        same && names_agree,
        "{}: symdex found\n{}\n{how:?}\ngdb found\n{}",
        capture.title,
        show(&mut found.iter().map(|(frame, _)| frame)),
        show(&mut expected.iter()),
    );
    assert!(
        found.iter().skip(1).all(|(_, way)| matches!(way, FoundBy::UnwindInfo)),
        "{}: {how:?}",
        capture.title
    );
    found.len()
}

/// Checks all captures. Each of `functions` must be in one of them.
fn check_all(captures: &[Capture], indexes: &mut Indexes, functions: &[&str]) {
    let frames: usize = captures.iter().map(|capture| check(capture, indexes)).sum();
    for function in functions {
        let has =
            |capture: &Capture| capture.frames.iter().any(|frame| frame.name.as_deref() == Some(*function));
        assert!(captures.iter().any(has), "no capture is in {function}");
    }
    println!("{} stacks with {frames} frames", captures.len());
}

fn x86_64_stacks_are_those_of_gdb() {
    let program = programs::compile("cc", &["-O1", "-g", "-fomit-frame-pointer", "-Wl,-z,lazy"]);
    let captures = [
        capture_native(&program, "leaf", "run leaf\npython capture()\n"),
        capture_native(&program, "callback", "run callback\npython capture()\n"),
        capture_native(
            &program,
            "handler",
            "handle SIGSEGV nostop noprint pass\nbreak in_handler\nrun handler\npython steps(20)\n",
        ),
        // The prologue of the function, the stub of the PLT and the resolver of the dynamic linker.
        capture_native(&program, "prologue", "break *middle\nrun leaf\npython steps(120)\n"),
    ]
    .concat();
    let mut indexes = Indexes::of(&captures);
    check_all(&captures, &mut indexes, &["leaf", "middle", "compare", "in_handler", "main", "_start"]);
}

fn arm64_stacks_are_those_of_gdb() {
    let program =
        programs::compile("aarch64-linux-gnu-gcc", &["-O1", "-g", "-fomit-frame-pointer", "-static"]);
    let captures = [
        capture_qemu(&program, Target::Arm64, "leaf", "continue\npython capture()\n"),
        capture_qemu(&program, Target::Arm64, "callback", "continue\npython capture()\n"),
        capture_qemu(
            &program,
            Target::Arm64,
            "handler",
            "handle SIGSEGV nostop noprint pass\nbreak *in_handler\ncontinue\npython steps(12)\n",
        ),
        capture_qemu(&program, Target::Arm64, "leaf", "break *middle\ncontinue\npython steps(40)\n"),
    ]
    .concat();
    let mut indexes = Indexes::of_static(&program);
    check_all(&captures, &mut indexes, &["leaf", "middle", "compare", "in_handler", "main"]);
}

fn thumb_stacks_are_those_of_gdb() {
    // Without -g there is no .debug_frame: the unwind rows come from .ARM.exidx, and hold at calls only.
    let program = programs::compile(
        "arm-linux-gnueabihf-gcc",
        &["-O1", "-mthumb", "-fomit-frame-pointer", "-funwind-tables", "-static"],
    );
    let captures = [
        capture_qemu(&program, Target::Arm, "leaf", "continue\npython capture()\n"),
        capture_qemu(&program, Target::Arm, "callback", "continue\npython capture()\n"),
    ]
    .concat();
    let mut indexes = Indexes::of_static(&program);
    check_all(&captures, &mut indexes, &["leaf", "middle", "compare", "main"]);
    // gdb does not find the way out of a signal handler here.
    let script = "handle SIGSEGV nostop noprint pass\nbreak *in_handler\ncontinue\npython capture()\n";
    let in_handler = capture_qemu(&program, Target::Arm, "handler", script);
    let found = walked(&in_handler[0], &mut indexes);
    let names: Vec<_> = found.iter().map(|((_, name), _)| name.as_deref().unwrap_or("?")).collect();
    let expected = ["in_handler", "handler", "__default_sa_restorer", "leaf", "middle", "outer", "main"];
    assert_eq!(names.get(..expected.len()), Some(&expected[..]), "{names:?}");
}

/// The sources that answer reports are also those of unwind rows.
fn indexes_and_debug_files_have_unwind_rows() {
    let program = programs::compile("cc", &["-O1", "-g", "-fomit-frame-pointer", "-Wl,-z,lazy"]);
    let captures = capture_native(&program, "callback", "run callback\npython capture()\n");
    let mut indexes = Indexes::of(&captures);
    let dump = indexes.minidump(&captures[0]);
    let expected = frames_of(&dump, &mut indexes);
    let folder = tempfile::tempdir().expect("created");
    indexes.put_into(folder.path());
    let files = indexes.paths().fold(SymbolicatorOptions::new(), SymbolicatorOptions::debug_files);
    for options in [files, SymbolicatorOptions::new().index(folder.path())] {
        let symbolicator = Symbolicator::open(&options, &mut |skipped| panic!("{skipped}"));
        let symbolicator = symbolicator.expect("opens");
        assert_eq!(frames_of(&dump, &mut symbolicator.session(&|_| ())), expected);
    }
}

/// The environment variable that names a folder of real minidumps, such as the test data of rust-minidump.
const MINIDUMPS: &str = "SYMDEX_TEST_MINIDUMPS";

/// Without symbols, every frame of a real minidump is the one that rust-minidump finds, and found in the same way.
fn real_minidumps_have_the_frames_of_rust_minidump() {
    let Some(folder) = std::env::var_os(MINIDUMPS) else {
        ignore(Need::Corpora, &format!("{MINIDUMPS} names no folder of minidumps"));
    };
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        let dump = std::fs::read(&path).expect("readable");
        let mut missing = |_: &Question<'_>| Err::<Answers, _>(Unanswered::Missing);
        let Some(Ok(walked)) = walk(&dump, &mut missing) else {
            println!("{}: refused", path.display());
            continue;
        };
        let report = walked.report;
        let ours = report.threads().iter().map(|thread| {
            let ways = thread.found_by.iter().map(|way| way.name());
            thread.frames.iter().map(|frame| frame.address).zip(ways).collect::<Vec<_>>()
        });
        let theirs = peer::stacks(&dump, HashMap::new()).expect("read by both").into_iter();
        let theirs =
            theirs.map(|frames| frames.into_iter().map(|(at, how, _)| (at, how)).collect::<Vec<_>>());
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.collect(), theirs.collect());
        assert_eq!(ours, theirs, "{}", path.display());
        compared += ours.iter().map(Vec::len).sum::<usize>();
    }
    println!("{compared} frames");
    assert!(compared > 0, "no minidump in the folder");
}
