//! The answers for one report have a limit, however much text an index has at each address.

use crate::common::App;
use symdex::{ImageOffset, Table};
use symdex_report::{
    Answer, Answers, Function, Options, OutputFormat, Question, Report, Unanswered, Unresolved, most_memory,
    symbolicate,
};

/// A source whose functions all have a name of 1 MiB, which begins with the offset.
fn long_names(question: &Question<'_>) -> Result<Answers, Unanswered> {
    let Question { offsets, .. } = *question;
    let answer = |offset: &ImageOffset| {
        let name = format!("{}{}", offset.0, "x".repeat(1 << 20));
        Answer::functions(vec![Function::new(Table::Dwarf, Some(name.as_bytes()), None)])
    };
    Ok(offsets.iter().map(answer).collect::<Vec<_>>().into())
}

/// A list of the frames at these offsets.
fn list(offsets: impl Iterator<Item = u64>) -> String {
    let line = |offset| {
        format!("App {:#x} 0x100000000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0\n", 0x1_0000_0000u64 + offset)
    };
    offsets.map(line).collect()
}

/// How many frames of a list are answered, how many are marked as too large, and how many bytes are written.
fn answered(list: &str) -> (usize, usize, usize) {
    let report = Report::parse(list.as_bytes()).expect("a list");
    let symbolicated = symbolicate(&report, &mut long_names, &Options::new().output(OutputFormat::Native));
    let count = |why: Option<&Unresolved>| {
        symbolicated
            .frames()
            .filter(|(thread, frame)| symbolicated.unresolved(*thread, *frame) == why)
            .count()
    };
    let mut out = Vec::new();
    symbolicated.write(&mut out).expect("memory");
    (count(None), count(Some(&Unresolved::TooLarge)), out.len())
}

/// 64 MiB of answers are kept in memory. A demangled name is truncated after 64 KiB, so an answer has a little more
/// than 1 MiB.
#[test]
fn answers_past_the_limit_of_a_report_are_marked_and_left_out() {
    let (few, too_large, _) = answered(&list((0..60).map(|frame| frame * 16)));
    assert_eq!((few, too_large), (60, 0));
    let (some, too_large, size) = answered(&list((0..80).map(|frame| frame * 16)));
    assert_eq!((some, too_large), (60, 20));
    assert!(size < 64 << 20, "{size}");
}

/// 64 MiB of answers are written, each with 64 KiB.
#[test]
fn frames_that_repeat_an_answer_past_the_limit_are_marked() {
    let (some, too_large, size) = answered(&list((0..1500).map(|_| 16)));
    assert_eq!(some + too_large, 1500);
    assert!((1000..1024).contains(&some), "{some}");
    assert!(size < 65 << 20, "{size}");
}

/// Control characters and quotes take more bytes in an output than in an index, and JSON has each name twice.
#[test]
fn answers_are_counted_as_they_are_written() {
    for character in ["\u{1}", "\"", "x"] {
        let name = character.repeat(10_000);
        let mut source = |question: &Question<'_>| -> Result<Answers, Unanswered> {
            let function = || Function::new(Table::Dwarf, Some(name.as_bytes()), Some(name.as_bytes()));
            Ok(question
                .offsets
                .iter()
                .map(|_| Answer::functions(vec![function()]))
                .collect::<Vec<_>>()
                .into())
        };
        let list = list((0..7000).map(|_| 16));
        let report = Report::parse(list.as_bytes()).expect("a list");
        for format in [OutputFormat::Native, OutputFormat::Text, OutputFormat::Json] {
            let symbolicated = symbolicate(&report, &mut source, &Options::new().output(format));
            let mut out = Vec::new();
            match format {
                OutputFormat::Json => {
                    serde_json::to_writer(&mut out, &symbolicated.view(&[])).expect("memory")
                }
                OutputFormat::Text => symbolicated.write_text(&mut out).expect("memory"),
                OutputFormat::Native => symbolicated.write(&mut out).expect("memory"),
            }
            // The frames without an answer have about 200 bytes of JSON.
            assert!(out.len() < (64 << 20) + 7000 * 300, "{character:?} {format:?}: {}", out.len());
            assert!(out.len() > 6 << 20, "{character:?} {format:?}: {}", out.len());
        }
    }
}

/// For a larger report, the output of the answers is at most 16 times the report.
#[test]
fn the_output_of_a_large_report_is_in_proportion_to_it() {
    let list = list((0..100_000).map(|_| 16));
    let (some, too_large, size) = answered(&list);
    assert!(some > 1024 && too_large != 0, "{some}");
    assert!(size > 15 * list.len() && size < 17 * list.len(), "{size} of {}", list.len());
}

/// How many frames of `text` are read. The others are counted.
fn read(text: &str, frames: usize) -> usize {
    let report = Report::parse(text.as_bytes()).expect("a report");
    let read = report.threads().iter().map(|thread| thread.frames.len()).sum::<usize>();
    assert_eq!(read as u64 + report.unread_frames(), frames as u64);
    assert!(report.memory() <= most_memory(text.len()));
    read
}

/// Frames, stacks and images may take 256 KiB of memory, and 16 bytes for each byte of the report.
#[test]
fn frames_are_read_up_to_a_limit_of_memory_and_the_others_are_counted() {
    // A stack and its frame take 512 bytes, and a line has 11.
    let stacks = "A 0x1000 0x1000\n\n".repeat(100_000);
    let most = most_memory(stacks.len()) / 512;
    assert!((most - 5..=most).contains(&read(&stacks, 100_000)));
    assert_eq!(read("A 0x1000 0x1000\n\n", 1), 1);
    // A frame takes 128 bytes.
    let frames = "[0,1],".repeat(200_000);
    let text = format!(
        "{{\"processByPid\":{{\"1\":{{\"threadById\":{{\"1\":{{\"userFrames\":[{frames}[0,1]]}}}}}}}}}}"
    );
    let most = most_memory(text.len()) / 128;
    assert!((most - 20..=most).contains(&read(&text, 200_001)));
}

/// A frame whose image is past the limit has no image, and counts as not read.
#[test]
fn images_are_read_up_to_a_limit_of_memory() {
    let text: String = (0..100_000).map(|number| format!("#{number} pc 1 /{number}\n")).collect();
    let report = Report::parse(text.as_bytes()).expect("a report");
    let frames = report.threads().iter().flat_map(|thread| &thread.frames);
    let without = frames.filter(|frame| frame.image().is_none()).count();
    // An image and its frame take 1,152 bytes.
    let most = most_memory(text.len()) / 1152;
    assert!((most - 5..=most).contains(&report.images().len()), "{}", report.images().len());
    assert!(without != 0 && report.unread_frames() >= without as u64);
}

/// Each frame of a report in a string counts with its own text, and not with the whole string.
#[test]
fn all_frames_of_a_report_in_a_string_are_answered() {
    let frame = |offset: usize| {
        let id = crate::common::APP;
        format!(
            r#"{{\"binaryUUID\":\"{id}\",\"offsetIntoBinaryTextSegment\":{offset},\"address\":{}}}"#,
            offset + (1 << 32)
        )
    };
    let frames: Vec<_> = (0..2000).map(|number| frame(number * 8)).collect();
    let text = format!(
        r#"[{{"callStack":"{{\"callStacks\":[{{\"callStackRootFrames\":[{}]}}]}}"}}]"#,
        frames.join(",")
    );
    let report = Report::parse(text.as_bytes()).expect("a report");
    let symbolicated = symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new());
    assert!((0..2000).all(|frame| symbolicated.resolution(0, frame).is_some()));
}
