//! The answers for one report have a limit, however much text an index has at each address.

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
