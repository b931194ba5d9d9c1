//! `symdex minidump`, and minidumps as reports of `symdex symbolicate`.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{folder, index_of, symdex_on};
use symdex::Index;
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};

const BASE: u64 = 0x7b_0000_0000;
const STACK: u64 = 0x7f_c000_0000;
/// An offset in the image `inline-dwarf4` where functions are inlined, and one after a call there.
const INLINED: u64 = 0x3cf;

/// Writes a minidump of an ARM64 process with the image of `index` into `folder`. A frame pointer leads to a second
/// frame.
fn dump_of(index: &Path, folder: &Path) -> PathBuf {
    let index = Index::open(fs::read(index).expect("an index")).expect("opens");
    let words = [STACK + 0x20, BASE + INLINED + 5, 0, 0, 0, 0, 0, 0];
    let mut registers = vec![0; 33];
    (registers[29], registers[31], registers[32]) = (STACK, STACK, BASE + INLINED);
    let process = DumpedProcess {
        modules: vec![DumpedModule {
            base: BASE,
            size: 0x1_0000,
            path: "/data/app/libgrid.so".to_owned(),
            build_id: index.id().as_bytes().to_vec(),
        }],
        threads: vec![DumpedThread {
            id: 4711,
            registers,
            stack_address: STACK,
            stack: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }],
        processor: Processor::Arm64,
        ..DumpedProcess::default()
    };
    let path = folder.join("crash.dmp");
    fs::write(&path, process.to_bytes()).expect("written");
    path
}

#[test]
fn a_minidump_is_answered_in_every_format() {
    let root = folder();
    let dump = dump_of(&index_of("inline-dwarf4", root.path()), root.path());
    let index = format!("--index {}", root.path().display());
    let text = symdex_on(&dump, &format!("minidump {{}} {index}"));
    assert_eq!(text.code, Some(0), "{}", text.err);
    for part in ["libgrid.so!cell", "grid.h : 9", "Found by: previous frame's frame pointer", "SIGSEGV"] {
        assert!(text.out.contains(part), "{part}\n{}", text.out);
    }
    let stackwalk = &symdex_on(&dump, &format!("minidump {{}} {index} --format stackwalk-json")).json()[0];
    assert_eq!(stackwalk["crashing_thread"]["frames"][0]["inlines"][0]["function"], "cell");
    let ours = &symdex_on(&dump, &format!("minidump {{}} {index} --json")).json()[0];
    let frames = ours["threads"][0]["frames"].as_array().expect("frames");
    let found_by: Vec<_> = frames.iter().map(|frame| &frame["found_by"]).collect();
    assert_eq!(found_by, ["context", "frame_pointer"]);
    assert_eq!(frames[0]["functions"][0]["function"], "cell");
    assert_eq!(ours["threads"][0]["registers"].as_array().map(Vec::len), Some(33));
    let symbolicated = &symdex_on(&dump, &format!("symbolicate {{}} {index} --json")).json()[0];
    assert_eq!(symbolicated, ours, "both commands have one answer");
    let apple = symdex_on(&dump, &format!("minidump {{}} {index} --format text")).out;
    assert!(apple.contains("Thread 0 Crashed:") && apple.contains("cell (grid.h:9) [inlined]"), "{apple}");
    let native = &symdex_on(&dump, &format!("symbolicate {{}} {index}")).json()[0];
    assert_eq!(native["modules"][0]["path"], "/data/app/libgrid.so");
    assert_eq!(native["threads"][0]["frames"][0]["inlines"][0]["function"], "cell");
}

#[test]
fn missing_images_are_listed_and_files_get_an_extension() {
    let root = folder();
    let dump = dump_of(&index_of("inline-dwarf4", root.path()), root.path());
    let empty = root.path().join("empty");
    fs::create_dir(&empty).expect("created");
    let output = root.path().join("out");
    fs::create_dir(&output).expect("created");
    let run =
        symdex_on(&dump, &format!("symbolicate {{}} --store {} -o {}", empty.display(), output.display()));
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(run.err.contains("missing: libgrid.so arm64 4C4C44"), "{}", run.err);
    assert!(output.join("crash.json").exists());
    let needs = symdex_on(&dump, &format!("symbolicate {{}} --store {} --needs", empty.display()));
    assert!(needs.out.contains("2 frames  libgrid.so"), "{}", needs.out);
}

#[test]
fn a_file_that_is_no_minidump_is_refused() {
    let root = folder();
    let file = root.path().join("file");
    let code = |content: &[u8]| {
        fs::write(&file, content).expect("written");
        let run = symdex_on(&file, "minidump {}");
        (run.code, run.err)
    };
    let (refused, message) = code(b"Thread 0 Crashed:\n0   App   0x104a343d0 0x104a34000 + 976\n");
    assert_eq!(refused, Some(6));
    assert!(message.contains("not a minidump"), "{message}");
    let (damaged, message) = code(b"MDMP\x93\xa7\0\0");
    assert_eq!(damaged, Some(4), "{message}");
}
