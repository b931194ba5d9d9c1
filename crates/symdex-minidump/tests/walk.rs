//! Stacks without unwind rows: frame pointers, searches, and hostile files.

use symdex::{ImageOffset, Table};
use symdex_minidump::{Error, is_process, walk};
use symdex_report::{Answer, Answers, FoundBy, Function, Options, Question, Source, Unanswered, symbolicate};
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};

const BASE: u64 = 0x55_0000_0000;
const STACK: u64 = 0x7ffd_0000_0000;
/// The code of the only module; the rest of it is data.
const CODE: std::ops::Range<u64> = 0x1000..0x3000;

/// A source of functions of 256 bytes.
fn code(question: &Question<'_>) -> Result<Answers, Unanswered> {
    let answer = |offset: &ImageOffset| {
        if !CODE.contains(&offset.0) {
            return Answer::NoFunction;
        }
        let start = offset.0 & !0xff;
        let named = |name: &str| Function::new(Table::Dwarf, Some(name.as_bytes()), Some(b"/src/f.c"));
        let mut function = named(&format!("f{start:x}"));
        (function.line, function.start) = (u32::try_from(offset.0 - start).ok(), Some(ImageOffset(start)));
        let mut inlined = named("inlined");
        inlined.line = Some(1);
        Answer::functions(if start == 0x2000 { vec![inlined, function] } else { vec![function] })
    };
    Ok(question.offsets.iter().map(answer).collect::<Vec<_>>().into())
}

fn missing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    Err(Unanswered::Missing)
}

/// A process with one module and one thread, whose stack has `words`.
fn process(processor: Processor, registers: Vec<u64>, words: &[u64]) -> DumpedProcess {
    let stack = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    DumpedProcess {
        modules: vec![DumpedModule {
            base: BASE,
            size: 0x1_0000,
            path: "/data/app/libgame.so".to_owned(),
            build_id: (1..=20).collect(),
        }],
        threads: vec![DumpedThread { id: 77, registers, stack_address: STACK, stack }],
        processor,
        ..DumpedProcess::default()
    }
}

/// A thread of x86_64 at `pc`, with the stack pointer at the start of the stack.
fn x86_64(pc: u64, frame_pointer: u64, words: &[u64]) -> DumpedProcess {
    let mut registers = vec![0; 17];
    (registers[4], registers[5], registers[16]) = (STACK, frame_pointer, pc);
    process(Processor::X86_64, registers, words)
}

/// The frames of the first thread: offset in the module, and how it was found.
fn frames(file: &[u8], source: &mut (impl Source + Send)) -> Vec<(u64, FoundBy)> {
    let walked = walk(file, source).expect("a minidump").expect("intact");
    let report = &walked.report;
    let thread = &report.threads()[0];
    assert_eq!(thread.frames.len(), thread.found_by.len());
    let offset = |address: u64| address.wrapping_sub(BASE);
    thread.frames.iter().map(|frame| offset(frame.address)).zip(thread.found_by.iter().copied()).collect()
}

#[test]
fn a_chain_of_frame_pointers_is_walked_to_its_end() {
    let words = [7, 8, STACK + 0x28, BASE + 0x1234, 9, STACK + 0x40, BASE + 0x2345, 0, 0, 0];
    let dump = x86_64(BASE + 0x1100, STACK + 0x10, &words).to_bytes();
    let expected =
        [(0x1100, FoundBy::Context), (0x1233, FoundBy::FramePointer), (0x2344, FoundBy::FramePointer)];
    assert_eq!(frames(&dump, &mut code), expected);
    assert_eq!(frames(&dump, &mut missing), expected, "frame pointers need no symbols");
}

#[test]
fn a_search_takes_code_with_a_function_only() {
    // Data of the module, an address of no module, and code.
    let words = [BASE + 0x8000, 0x1234, BASE + 0x1234, 0, 0, BASE + 0x2222, 0, 0];
    // At the first instruction of a function, too, the top of the stack is not taken for a return address.
    let dump = x86_64(BASE + 0x1100, 0, &words).to_bytes();
    let expected = [(0x1100, FoundBy::Context), (0x1233, FoundBy::Scan), (0x2221, FoundBy::Scan)];
    assert_eq!(frames(&dump, &mut code), expected);
    assert_eq!(
        frames(&dump, &mut missing)[1],
        (0x7fff, FoundBy::Scan),
        "without symbols, data looks like code"
    );
}

#[test]
fn arm64_frame_pointers_may_be_signed() {
    let signature = 0x003c_0000_0000_0000;
    let words = [STACK + 0x20, (BASE + 0x1234) | signature, 0, 0, 0, (BASE + 0x2344) | signature, 0, 0];
    let mut registers = vec![0; 33];
    (registers[29], registers[31], registers[32]) = (STACK, STACK, BASE + 0x1100);
    let found = frames(&process(Processor::Arm64, registers, &words).to_bytes(), &mut code);
    assert_eq!(found[1], (0x1230, FoundBy::FramePointer));
    assert_eq!(found[2].0, 0x2340);
}

#[test]
fn minidump_stackwalks_text_and_json_have_the_answers() {
    let words = [STACK + 0x18, BASE + 0x2045, 0, 0, 0, 0];
    let dump = x86_64(BASE + 0x1107, STACK, &words).to_bytes();
    let mut walked = walk(&dump, &mut code).expect("a minidump").expect("intact");
    let report = &walked.report;
    assert_eq!(report.images()[0].path, "/data/app/libgame.so");
    assert_eq!(
        report.images()[0].id.as_ref().map(ToString::to_string).as_deref(),
        Some("0102030405060708090a0b0c0d0e0f1011121314")
    );
    assert!(report.threads()[0].crashed && report.threads()[0].id == Some(77));
    let rip = report.threads()[0].registers.iter().find(|register| register.name == "rip");
    assert_eq!(rip.map(|register| register.value), Some(BASE + 0x1107));
    let symbolicated = symbolicate(report, &mut code, &Options::new());
    let mut text = Vec::new();
    walked.process.write_text(&symbolicated, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("UTF-8");
    for line in [
        "Crash reason:  SIGSEGV",
        " 0  libgame.so!f1100 [f.c : 7",
        " 1  libgame.so!inlined [f.c : 1",
        " 2  libgame.so!f2000 [f.c : 68",
        "Found by: previous frame's frame pointer",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let mut json = Vec::new();
    walked.process.write_json(&symbolicated, &mut json).expect("memory");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let frame = &json["crashing_thread"]["frames"][1];
    assert_eq!(frame["function"], "f2000");
    assert_eq!(frame["inlines"][0]["function"], "inlined");
    assert_eq!(json["modules"][0]["loaded_symbols"], true);
}

#[test]
fn endless_chains_and_shared_stacks_end_at_the_limits() {
    // Each word of the stack points to the next one: a frame for every 8 bytes, in no module.
    let chain: Vec<u64> = (1..100_000).map(|number| STACK + 8 * number).collect();
    let mut registers = vec![0; 33];
    (registers[29], registers[31], registers[32]) = (STACK, STACK, BASE + 0x1100);
    let outside = process(Processor::Arm64, registers, &chain);
    assert_eq!(counts(&outside), (4096, 1));
    // 99 threads more, with the same stack.
    let mut shared = outside.clone();
    shared.threads[0].stack.truncate(200 << 10);
    shared.threads = vec![shared.threads[0].clone(); 100];
    let (total, unread) = counts(&shared);
    assert!((16_000..=16_384).contains(&total) && unread > 90, "{total} {unread}");
    // Frame pointers between the words.
    let mut unaligned = x86_64(1, STACK + 3, &[]);
    let records = (0..100_000).flat_map(|number| [STACK + 3 + 16 * (number + 1), 0x1_0000]);
    unaligned.threads[0].stack = [0; 3].into_iter().chain(records.flat_map(u64::to_le_bytes)).collect();
    assert_eq!(counts(&unaligned), (4096, 1));
    // Frames of 16 bytes in a module.
    let words = (0..100_000).flat_map(|number| [STACK + 16 * (number + 1), BASE + 0x1500]);
    let deep = x86_64(BASE + 0x1100, STACK, &words.collect::<Vec<_>>());
    assert_eq!(counts(&deep), (4096, 1));
    // A thousand threads that are all as deep.
    let mut many = deep.clone();
    many.threads[0].stack.truncate(200 << 10);
    many.threads = vec![many.threads[0].clone(); 100];
    let (total, unread) = counts(&many);
    assert!((16_000..=16_384).contains(&total) && unread > 90, "{total} {unread}");
}

/// The number of frames that are found, and of parts that are left out.
fn counts(process: &DumpedProcess) -> (usize, u64) {
    let walked = walk(&process.to_bytes(), &mut code).expect("a minidump").expect("intact");
    let report = &walked.report;
    (report.threads().iter().map(|thread| thread.frames.len()).sum(), report.unread_frames())
}

#[test]
fn stacks_whose_bytes_are_shared_are_read_once() {
    // 2,000 threads whose stacks are the same bytes of the file at other addresses.
    let mut process = x86_64(1, 0, &[0; 16_384]);
    process.threads[0].registers[4] = STACK + 64;
    let dump = process.to_bytes();
    let mut many = dump.clone();
    let entry = dump.windows(8).rposition(|bytes| bytes == STACK.to_le_bytes()).expect("the thread") - 24;
    let at = u32::try_from(many.len()).expect("small");
    many.extend(2000u32.to_le_bytes());
    for number in 0..2000u64 {
        let mut thread = dump[entry..entry + 48].to_vec();
        thread[24..32].copy_from_slice(&(STACK - 8 * number).to_le_bytes());
        many.extend(thread);
    }
    let directory = 32 + 12;
    many[directory + 4..directory + 8].copy_from_slice(&(4 + 2000 * 48u32).to_le_bytes());
    many[directory + 8..directory + 12].copy_from_slice(&at.to_le_bytes());
    let walked = walk(&many, &mut code).expect("a minidump").expect("intact");
    let report = &walked.report;
    // The file has 230 kB: three stacks are read.
    assert_eq!((report.threads().len(), report.unread_frames()), (2000, 1997));
}

#[test]
fn unloaded_modules_are_named_up_to_a_limit() {
    let words = (0..4096).flat_map(|number| [STACK + 16 * (number + 1), 0x1_0000]);
    let mut process = x86_64(0x1_0000, STACK, &words.collect::<Vec<_>>());
    let module = |number: u64| DumpedModule {
        base: 0x8000 + number,
        size: 0x10_0000,
        path: format!("old{number}.dll"),
        ..DumpedModule::default()
    };
    process.unloaded_modules = (0..3).map(module).collect();
    assert_eq!(counts(&process), (4096, 0));
    process.unloaded_modules = (0..1000).map(module).collect();
    assert_eq!(counts(&process), (4096, 1), "names are left out, frames are not");
    let mut walked = walk(&process.to_bytes(), &mut code).expect("a minidump").expect("intact");
    let symbolicated = symbolicate(&walked.report, &mut missing, &Options::new());
    let mut json = Vec::new();
    walked.process.write_json(&symbolicated, &mut json).expect("memory");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let frames = json["threads"][0]["frames"].as_array().expect("frames").iter();
    let names: usize = frames.filter_map(|frame| frame["unloaded_modules"].as_array()).map(Vec::len).sum();
    assert_eq!(names, 16_384);
}

#[test]
fn names_are_printed_on_one_line_and_repeated_in_part() {
    let mut process = x86_64(BASE + 0x1107, STACK, &[STACK + 0x18, BASE + 0x2045, 0, 0, 0, 0]);
    process.modules[0].path = format!("/data/\n 9  evil!injected\u{1b}[31m{}", "x".repeat(300_000));
    process.thread_names = vec![(77, format!("T\n\nThread 7 (crashed){}", "y".repeat(300_000)))];
    process.unloaded_modules =
        vec![DumpedModule { base: 1, size: 1, path: "u\r\n".to_owned(), ..DumpedModule::default() }];
    process.threads = vec![process.threads[0].clone(); 1000];
    let mut walked = walk(&process.to_bytes(), &mut code).expect("a minidump").expect("intact");
    let report = &walked.report;
    assert_eq!(report.images()[0].path, process.modules[0].path);
    let symbolicated = symbolicate(report, &mut code, &Options::new());
    let mut json = Vec::new();
    walked.process.write_json(&symbolicated, &mut json).expect("memory");
    assert!(json.len() < 4 << 20, "{} bytes", json.len());
    let mut text = Vec::new();
    walked.process.write_text(&symbolicated, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!text.contains("\n 9  evil") && !text.contains("\nThread 7 (crashed)"), "{}", &text[..4000]);
    assert!(text.contains(" 0  \u{240a} 9  evil!injected\u{241b}[31mxxx"), "{}", &text[..4000]);
    assert!(
        text.contains("xxx...!f1100 [f.c : 7") && text.contains("T\u{240a}\u{240a}Thread 7 (crashed)yyy")
    );
}

#[test]
fn a_microdump_has_the_frames_of_the_minidump_of_the_same_process() {
    let mut arm64 = vec![0; 33];
    (arm64[29], arm64[31], arm64[32]) = (STACK, STACK, BASE + 0x1100);
    let words = [STACK + 0x20, BASE + 0x1234, 0, 0, 0, BASE + 0x2344, 0, 0];
    let mut arm = process(Processor::Arm, vec![0; 16], &[0, 0, 0x40_2045, 0, 0, 0]);
    (arm.modules[0].base, arm.threads[0].stack_address) = (0x40_0000, 0x7000);
    (arm.threads[0].registers[13], arm.threads[0].registers[15]) = (0x7000, 0x40_1100);
    let long = [&[STACK + 0x18, BASE + 0x2045][..], &[0; 200]].concat();
    for process in [process(Processor::Arm64, arm64, &words), arm, x86_64(BASE + 0x1107, STACK, &long)] {
        let of_minidump = frames(&process.to_bytes(), &mut code);
        assert!(of_minidump.len() > 1, "{:?}", process.processor);
        for prefix in ["", "01-25 09:57:54.139 F/google-breakpad(23467): "] {
            let text = format!("a line of the log\n{}another\n", process.to_microdump(prefix));
            assert!(is_process(text.as_bytes()));
            assert_eq!(frames(text.as_bytes(), &mut code), of_minidump, "{:?}", process.processor);
            let walked = walk(text.as_bytes(), &mut code).expect("a microdump").expect("intact");
            let report = &walked.report;
            let image = &report.images()[0];
            let id = image.id.as_ref().map(ToString::to_string);
            assert_eq!(id.as_deref(), Some("0102030405060708090a0b0c0d0e0f10"));
            assert!(image.is_id_cut && image.name == "libgame.so" && report.threads()[0].crashed);
            assert_eq!(report.unread_frames(), 0);
        }
    }
}

#[test]
fn what_a_microdump_lacks_is_counted() {
    let process = x86_64(BASE + 0x1107, STACK, &[STACK + 0x18, BASE + 0x2045, 0, 0, 0, 0]);
    let text = process.to_microdump("google-breakpad: ");
    let unread = |text: &str| {
        let walked = walk(text.as_bytes(), &mut code).expect("a microdump")?;
        Ok::<_, Error>(walked.report.unread_frames())
    };
    assert_eq!(unread(&text), Ok(0));
    assert_eq!(unread(&text.repeat(3)), Ok(2), "two other microdumps");
    assert_eq!(unread(text.split_once("google-breakpad: M").expect("modules").0), Ok(1));
    assert_eq!(unread(text.split_once("google-breakpad: -----END").expect("the end").0), Ok(1));
    let error = unread(&text.replace("O A x86_64", "O A mips")).expect_err("unsupported");
    assert!(
        !error.cause().is_damage() && error.to_string().contains("processor `mips`; expected x86"),
        "{error}"
    );
    let error = unread(&text.replace(": C ", ": c ")).expect_err("no registers");
    assert!(error.cause().is_damage(), "{error}");
    for at in (0..text.len()).step_by(7) {
        let _ = unread(&text[..at.max(text.find("\n").unwrap_or_default())]);
    }
}

#[test]
fn lists_and_names_are_counted_before_they_are_read() {
    let mut process = x86_64(BASE + 0x1100, STACK, &[0; 8]);
    let error = |process: &DumpedProcess, stream: u32, at: usize, size: usize, count: u32| {
        let dump = process.to_bytes();
        let mut many = [&dump[..], &count.to_le_bytes()].concat();
        (0..count).for_each(|_| many.extend_from_slice(&dump[at..at + size]));
        let directory = (32..).step_by(12).find(|at| dump[*at..*at + 4] == stream.to_le_bytes());
        let directory = directory.expect("the stream");
        let sizes = [4 + count as usize * size, dump.len()].map(|size| u32::try_from(size).expect("small"));
        many[directory + 4..directory + 12].copy_from_slice(&sizes.map(u32::to_le_bytes).concat());
        walk(&many, &mut missing).expect("a minidump").map(|_| ()).map_err(|error| match error {
            Error::TooLarge { what, count, limit } => format!("{count} {what} > {limit}"),
            other => other.to_string(),
        })
    };
    let module = |process: &DumpedProcess| {
        let dump = process.to_bytes();
        dump.windows(8).rposition(|bytes| bytes == BASE.to_le_bytes()).expect("the module")
    };
    let at = module(&process);
    assert_eq!(error(&process, 4, at, 108, 8192), Ok(()));
    assert_eq!(error(&process, 4, at, 108, 8193), Err("8193 modules > 8192".to_owned()));
    // Any 16 bytes are a range of memory.
    assert_eq!(error(&process, 24, at, 16, 262_145), Err("349526 names of threads > 8192".to_owned()));
    process.modules[0].path = "x".repeat(1 << 20);
    let at = module(&process);
    let too_long = error(&process, 4, at, 108, 1000).expect_err("too large");
    assert!(too_long.ends_with("bytes of names of modules > 4194304"), "{too_long}");
}

#[test]
fn truncated_and_changed_minidumps_do_not_panic() {
    let words = [7, 8, STACK + 0x28, BASE + 0x1234, 9, STACK + 0x40, BASE + 0x2345, 0, 0, 0];
    let dump = x86_64(BASE + 0x1100, STACK + 0x10, &words).to_bytes();
    for len in (0..dump.len()).step_by(5) {
        let _ = walk(&dump[..len], &mut code);
    }
    // Most of a minidump are registers that are 0.
    for at in (0..dump.len()).filter(|at| dump[*at] != 0) {
        for bits in [0x80, 0xff] {
            let mut changed = dump.clone();
            changed[at] ^= bits;
            let _ = walk(&changed, &mut code);
        }
    }
    assert!(walk(b"MDMP", &mut code).expect("a minidump").expect_err("too short").cause().is_damage());
    assert!(walk(b"PMDM", &mut code).is_none());
}
