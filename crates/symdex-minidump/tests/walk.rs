//! Stacks without unwind rows: frame pointers, searches, and hostile files.

use symdex::{ImageOffset, Table};
use symdex_minidump::{Error, WalkedProcess, walk};
use symdex_report::{
    Answer, Answers, FoundBy, Function, Options, Question, Report, Source, Unanswered, symbolicate,
};
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
    let report = Report::parse(&walked.report).expect("a report");
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
    let report = Report::parse(&walked.report).expect("a report");
    assert_eq!(report.images()[0].path, "/data/app/libgame.so");
    assert_eq!(
        report.images()[0].id.as_ref().map(ToString::to_string).as_deref(),
        Some("0102030405060708090a0b0c0d0e0f1011121314")
    );
    assert!(report.threads()[0].crashed && report.threads()[0].id == Some(77));
    let rip = report.threads()[0].registers.iter().find(|register| register.name == "rip");
    assert_eq!(rip.map(|register| register.value), Some(BASE + 0x1107));
    let symbolicated = symbolicate(&report, &mut code, &Options::new());
    let process = &mut walked.process;
    process.answer(&symbolicated);
    let written = |write: fn(&WalkedProcess, &mut Vec<u8>) -> std::io::Result<()>| {
        let mut out = Vec::new();
        write(process, &mut out).expect("memory");
        String::from_utf8(out).expect("UTF-8")
    };
    let text = written(|process, out| process.write_text(out));
    for line in [
        "Crash reason:  SIGSEGV",
        " 0  libgame.so!f1100 [f.c : 7",
        " 1  libgame.so!inlined [f.c : 1",
        " 2  libgame.so!f2000 [f.c : 68",
        "Found by: previous frame's frame pointer",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&written(|process, out| process.write_json(out))).expect("JSON");
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
    let outside = frames(&process(Processor::Arm64, registers, &chain).to_bytes(), &mut missing);
    assert!((4_000..20_000).contains(&outside.len()), "{}", outside.len());
    // Frames of 16 bytes in a module.
    let words = (0..100_000).flat_map(|number| [STACK + 16 * (number + 1), BASE + 0x1500]);
    let deep = x86_64(BASE + 0x1100, STACK, &words.collect::<Vec<_>>());
    let walked = walk(&deep.to_bytes(), &mut code).expect("a minidump").expect("intact");
    let report = Report::parse(&walked.report).expect("a report");
    assert_eq!((report.threads()[0].frames.len(), report.unread_frames()), (4096, 1));
    // A thousand threads that are all as deep.
    let mut many = deep.clone();
    many.threads[0].stack.truncate(200 << 10);
    many.threads = vec![many.threads[0].clone(); 100];
    let walked = walk(&many.to_bytes(), &mut code).expect("a minidump").expect("intact");
    let report = Report::parse(&walked.report).expect("a report");
    let total: usize = report.threads().iter().map(|thread| thread.frames.len()).sum();
    assert!((16_000..17_000).contains(&total), "{total}");
    assert!(report.unread_frames() > 90, "{}", report.unread_frames());
}

#[test]
fn names_that_many_modules_share_are_counted_before_they_are_copied() {
    let mut process = x86_64(BASE + 0x1100, STACK, &[0; 8]);
    process.modules[0].path = "x".repeat(1 << 20);
    let dump = process.to_bytes();
    // The list of modules is the stream before the last one: repeat its entry.
    let entry = dump.windows(8).rposition(|bytes| bytes == BASE.to_le_bytes()).expect("the module");
    let mut many = dump.clone();
    let at = many.len();
    many.extend(1000u32.to_le_bytes());
    (0..1000).for_each(|_| many.extend_from_slice(&dump[entry..entry + 108]));
    let directory = 32 + 2 * 12;
    let (size, at) = (u32::try_from(4 + 1000 * 108).expect("small"), u32::try_from(at).expect("small"));
    many[directory + 4..directory + 8].copy_from_slice(&size.to_le_bytes());
    many[directory + 8..directory + 12].copy_from_slice(&at.to_le_bytes());
    let error = walk(&many, &mut missing).expect("a minidump").expect_err("too large");
    assert!(matches!(error, Error::TooLarge { what: "names of modules", .. }), "{error}");
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
            if let Some(Ok(walked)) = walk(&changed, &mut code) {
                let _ = Report::parse(&walked.report);
            }
        }
    }
    assert!(walk(b"MDMP", &mut code).expect("a minidump").expect_err("too short").is_damage());
    assert!(walk(b"PMDM", &mut code).is_none());
}
