//! The answers for one report have a limit, however much text an index has at each address.

mod common;

use symdex::{ImageOffset, Table};
use symdex_report::{
    Answer, Answers, Function, Options, Question, Report, Unanswered, Unresolved, symbolicate,
};

/// A source whose functions all have a name of 1 MiB, which begins with the offset.
fn long_names(question: &Question<'_>) -> Result<Answers, Unanswered> {
    let Question { offsets, .. } = *question;
    let answer = |offset: &ImageOffset| {
        let mut function = Function::new(Table::Dwarf);
        function.name = Some(format!("{}{}", offset.0, "x".repeat(1 << 20)).into_bytes());
        Answer::Functions(vec![function])
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
    let symbolicated = symbolicate(&report, &mut long_names, &Options::new());
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

/// For a larger report, the output of the answers is at most 16 times the report.
#[test]
fn the_output_of_a_large_report_is_in_proportion_to_it() {
    let list = list((0..100_000).map(|_| 16));
    let (some, too_large, size) = answered(&list);
    assert!(some > 1024 && too_large != 0, "{some}");
    assert!(size > 15 * list.len() && size < 17 * list.len(), "{size} of {}", list.len());
}

/// A report of more than 10 MB may have one frame for every 30 bytes of text.
#[test]
fn frames_of_a_large_report_are_read_up_to_a_limit_and_the_others_are_counted() {
    let line = format!("App 0x100001010 0x100000000 {}\n", common::APP);
    let short = "App 0x100001010 0x100000000\n";
    let large = line.clone() + &short.repeat(10_000_000 / short.len());
    let report = Report::parse(large.as_bytes()).expect("a report");
    let read = report.threads().iter().map(|thread| thread.frames.len()).sum::<usize>();
    // The stack counts as a frame.
    assert_eq!(read, large.len() / 30 - 1);
    assert_eq!(report.unread_frames(), (large.lines().count() - read) as u64);
    let whole = line + &short.repeat(100);
    assert_eq!(Report::parse(whole.as_bytes()).expect("a report").unread_frames(), 0);
}

/// The limit of frames holds in all formats: in JSON, too.
#[test]
fn frames_of_a_large_json_report_are_read_up_to_a_limit() {
    let frame = "{\"address\":4294971408},";
    let frames = frame.repeat(10_000_000 / frame.len() + 1);
    let text = format!("{{\"callStacks\":[{{\"callStackRootFrames\":[{frames}{{}}]}}]}}");
    let report = Report::parse(text.as_bytes()).expect("a report");
    let read = report.threads()[0].frames.len();
    assert_eq!(read, text.len() / 30 - 1);
    let all = frames.len() / frame.len();
    assert_eq!(report.unread_frames(), (all - read) as u64);
}
