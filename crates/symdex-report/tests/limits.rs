//! The answers for one report have a limit, however much text an index has at each address.

mod common;

use symdex::{ImageOffset, LinePolicy, Table};
use symdex_report::{
    Answer, Answers, Function, Image, Options, Report, Source, Unanswered, Unresolved, symbolicate,
};

/// A source whose functions all have a name of 1 MiB.
struct LongNames;

impl Source for LongNames {
    fn answer(&mut self, _: &Image, offsets: &[ImageOffset], _: LinePolicy) -> Result<Answers, Unanswered> {
        let mut function = Function::new(Table::Dwarf);
        function.name = Some(vec![b'x'; 1 << 20]);
        Ok(vec![Answer::Functions(vec![function]); offsets.len()].into())
    }
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
    let symbolicated = symbolicate(&report, &mut LongNames, &Options::new());
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

#[test]
fn answers_past_the_limit_of_a_report_are_marked_and_left_out() {
    // A demangled name is cut after 64 KiB, so that an answer has a little more than 1 MiB.
    let (few, too_large, _) = answered(&list((0..15).map(|frame| frame * 16)));
    assert_eq!((few, too_large), (15, 0));
    let (some, too_large, size) = answered(&list((0..64).map(|frame| frame * 16)));
    assert_eq!((some, too_large), (30, 34));
    assert!(size < 64 << 20, "{size}");
}

#[test]
fn frames_that_repeat_an_answer_past_the_limit_are_marked() {
    let (some, too_large, size) = answered(&list((0..64).map(|_| 16)));
    assert_eq!((some, too_large), (30, 34));
    assert!(size < 64 << 20, "{size}");
}

/// A report of more than 10 MB may have one frame for every 30 bytes of text.
#[test]
fn frames_of_a_large_report_are_read_up_to_a_limit_and_the_others_are_counted() {
    let line = format!("App 0x100001010 0x100000000 {}\n", common::APP);
    let short = "App 0x100001010 0x100000000\n";
    let large = line.clone() + &short.repeat(10_000_000 / short.len());
    let report = Report::parse(large.as_bytes()).expect("a report");
    let read = report.threads().iter().map(|thread| thread.frames.len()).sum::<usize>();
    assert_eq!(read, large.len() / 30);
    assert_eq!(report.unread_frames(), (large.lines().count() - read) as u64);
    let whole = line + &short.repeat(100);
    assert_eq!(Report::parse(whole.as_bytes()).expect("a report").unread_frames(), 0);
}
