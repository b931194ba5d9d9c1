//! `symdex minidump`, and minidumps as reports of `symdex symbolicate`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder, index_of, symdex_on};
use symdex::Index;
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};

const BASE: u64 = 0x7b_0000_0000;
const STACK: u64 = 0x7f_c000_0000;
/// An offset in the image `inline-dwarf4` where functions are inlined, and one after a call there.
const INLINED: u64 = 0x3cf;

/// Writes a minidump of an ARM64 process with the image of `index` into `folder`. A frame pointer leads to a second
/// frame.
fn dump_of(index: &Path, folder: &Path) -> PathBuf {
    let path = folder.join("crash.dmp");
    fs::write(&path, process_of(index).to_bytes()).expect("written");
    path
}

fn process_of(index: &Path) -> DumpedProcess {
    let index = Index::open(fs::read(index).expect("an index")).expect("opens");
    let words = [STACK + 0x20, BASE + INLINED + 5, 0, 0, 0, 0, 0, 0];
    let mut registers = vec![0; 33];
    (registers[29], registers[31], registers[32]) = (STACK, STACK, BASE + INLINED);
    DumpedProcess {
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
    }
}

#[test]
fn a_microdump_in_a_log_is_answered_by_both_commands() {
    let root = folder();
    let process = process_of(&index_of("inline-dwarf4", root.path()));
    let log = root.path().join("logcat.txt");
    let lines = "--------- beginning of crash\n".repeat(20);
    let text = lines + &process.to_microdump("01-25 09:57:54.139 23467 23468 F google-breakpad: ");
    fs::write(&log, &text).expect("written");
    let index = format!("--index {}", root.path().display());
    let run = symdex_on(&log, &format!("minidump {{}} {index}"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    for part in ["libgrid.so!cell", "grid.h : 9", "Found by: previous frame's frame pointer", "SIGSEGV"] {
        assert!(run.out.contains(part), "{part}\n{}", run.out);
    }
    let ours = &symdex_on(&log, &format!("symbolicate {{}} {index} --json")).json()[0];
    assert_eq!(&symdex_on(&log, &format!("minidump {{}} {index} --json")).json()[0], ours);
    assert_eq!(ours["threads"][0]["frames"][0]["functions"][0]["function"], "cell");
    let output = root.path().join("out");
    fs::create_dir(&output).expect("created");
    symdex_on(&log, &format!("symbolicate {{}} {index} -o {}", output.display()));
    assert!(output.join("logcat.txt.json").exists());
    // A log with other frames is a report, in which the microdump stays as it is.
    let with_frames = text + "01-25 09:57:54.139 1 1 F DEBUG: #00 pc 0001 /lib.so (BuildId: 00112233)\n";
    fs::write(&log, &with_frames).expect("written");
    let run = symdex_on(&log, &format!("symbolicate {{}} {index}"));
    assert_eq!(run.out, with_frames, "{}", run.err);
    let refused = symdex_on(&log, &format!("minidump {{}} {index}"));
    assert_eq!(refused.code, Some(6));
    assert!(refused.err.contains("a log with a microdump and without frames"), "{}", refused.err);
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
    assert_eq!(native, stackwalk, "its own format is that of minidump-stackwalk");
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
