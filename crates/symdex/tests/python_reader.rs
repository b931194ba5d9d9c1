//! `docs/reader.py` returns the same answers as this crate. It is written from `docs/FORMAT.md` alone.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use symdex::{Frame, ImageOffset, Index, LinePolicy, Scratch, UnwindRow, UnwindRule, UnwindValue};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn python3() -> Command {
    symdex_testkit::program("python3", "--version")
}

/// The output of `reader.py` for a file, with these options and offsets.
fn python(options: &[&str], file: &Path, offsets: &[u64]) -> String {
    let mut command = python3();
    command.arg(format!("{ROOT}/docs/reader.py")).args(options).arg(file);
    let output = command.args(offsets.iter().map(u64::to_string)).output().expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", file.display());
    String::from_utf8(output.stdout).expect("it prints ASCII")
}

fn hex(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "-".to_owned(),
        Some([]) => "''".to_owned(),
        Some(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn line(offset: u64, frame: &Frame<'_>) -> String {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let (name, file, readable) = (hex(frame.name), hex(frame.file), hex(frame.readable));
    let (line, inlined) = (number(frame.line.map(u64::from)), if frame.inlined { "inlined" } else { "" });
    let (start, table) = (number(frame.function_start.map(|start| start.0)), frame.table.name());
    format!("{offset}\t{name}\t{file}\t{line}\t{inlined}\t{start}\t{table}\t{readable}")
}

/// One address of the code in this many is compared, and both ends of each range of code.
const SAMPLE: usize = 17;

/// The addresses that are compared.
fn sample(index: &Index<Vec<u8>>) -> Vec<u64> {
    let of_range = |(start, end): &(u64, u64)| (*start..*end).step_by(SAMPLE).chain([*end - 1, *end]);
    index.metadata().executable.iter().flat_map(of_range).collect()
}

/// The expected output of `reader.py`: the frames at each of `offsets`, and how many they are.
fn expected(index: &Index<Vec<u8>>, policy: LinePolicy, offsets: &[u64]) -> (String, usize) {
    let (mut text, mut scratch, mut frames) = (String::new(), Scratch::default(), 0);
    for &offset in offsets {
        let answer = index.lookup(ImageOffset(offset), policy, &mut scratch).expect("intact");
        if answer.is_none() {
            writeln!(text, "{offset}").expect("a string takes all");
        }
        for frame in answer.iter().flat_map(symdex::Frames::iter) {
            writeln!(text, "{}", line(offset, &frame)).expect("a string takes all");
            frames += 1;
        }
    }
    (text, frames)
}

/// An unwind row as `reader.py` prints it.
fn row_text(row: &UnwindRow<'_>) -> String {
    let flags = [row.is_signal_frame(), row.is_return_address_signed(), row.holds_at_calls_only()];
    let flags: u8 = flags.iter().zip([1, 2, 4]).map(|(is_set, flag)| if *is_set { flag } else { 0 }).sum();
    let (start, end) = (row.range().start.0, row.range().end.0);
    let mut text = format!("{start}\t{end}\t{}\t{}\t{flags}", value_text(row.cfa()), row.return_register());
    for (register, rule) in row.rules() {
        let rule = match rule {
            UnwindRule::Undefined => "undefined".to_owned(),
            UnwindRule::SameValue => "same".to_owned(),
            UnwindRule::Stored(value) => format!("[{}]", value_text(value)),
            UnwindRule::Value(value) => value_text(value),
            _ => panic!("an unknown rule: {rule:?}"),
        };
        write!(text, "\t{register}={rule}").expect("a string takes all");
    }
    text
}

fn value_text(value: UnwindValue<'_>) -> String {
    match value {
        UnwindValue::Cfa(offset) => format!("cfa{offset:+}"),
        UnwindValue::Register { register, offset } => format!("r{register}{offset:+}"),
        UnwindValue::Loaded { register, offset, add } => format!("[r{register}{offset:+}]{add:+}"),
        UnwindValue::Expression(bytes) => format!("expression({})", hex(Some(bytes))),
        UnwindValue::Unknown => "unknown".to_owned(),
        _ => panic!("an unknown value: {value:?}"),
    }
}

pub(crate) fn the_reader_in_python_has_the_unwind_rows_of_this_one() {
    let path = Path::new(ROOT).join("testdata/golden/v1/unwind-rows-1.symdex");
    let index = Index::open(std::fs::read(&path).expect("readable")).expect("a golden index");
    let (mut rows, mut offsets, mut found) = (String::new(), Vec::new(), String::new());
    for row in index.unwind_rows().expect("intact") {
        let row = row.expect("intact");
        writeln!(rows, "{}", row_text(&row)).expect("a string takes all");
        offsets.extend([
            row.range().start.0 - 1,
            row.range().start.0,
            row.range().end.0 - 1,
            row.range().end.0,
        ]);
    }
    assert!(offsets.len() > 100, "{} offsets", offsets.len());
    offsets.push(u64::MAX);
    for offset in &offsets {
        let row = index.unwind_row(ImageOffset(*offset)).expect("intact");
        let row = row.map_or(String::new(), |row| format!("\t{}", row_text(&row)));
        writeln!(found, "{offset}{row}").expect("a string takes all");
    }
    assert_eq!(python(&["--unwind"], &path, &[]), rows);
    assert_eq!(python(&["--unwind"], &path, &offsets), found);
}

pub(crate) fn the_reader_in_python_answers_addresses_of_the_golden_indexes_as_this_one() {
    let (mut files, mut all_frames, mut names) = (0, 0, 0);
    let golden =
        std::fs::read_dir(format!("{ROOT}/testdata/golden/v1")).expect("testdata/golden/v1 is there");
    for path in golden.map(|entry| entry.expect("readable").path()) {
        if path.extension().is_none_or(|extension| extension != "symdex") {
            continue;
        }
        let index = Index::open(std::fs::read(&path).expect("readable")).expect("a golden index");
        let offsets = sample(&index);
        for (policy, arguments) in [(LinePolicy::Exact, &["--exact"][..]), (LinePolicy::Statement, &[])] {
            let (expected, frames) = expected(&index, policy, &offsets);
            assert!(python(arguments, &path, &offsets) == expected, "{}, {policy:?}", path.display());
            all_frames += frames;
        }
        let mut scratch = Scratch::default();
        let chunks = index.chunks(symdex::Table::SymbolTable).map(|chunk| chunk.expect("intact").1.ranges);
        let starts: Vec<u64> = chunks.flatten().filter_map(|range| range.function_start).collect();
        for &start in starts.iter().step_by(starts.len() / 4 + 1) {
            let own = index.function_names(ImageOffset(start), &mut scratch).expect("intact");
            let own: String = own.map(|name| hex(Some(name)) + "\n").collect();
            assert_eq!(python(&["--names"], &path, &[start]), own, "{}, {start:#x}", path.display());
            names += own.lines().count();
        }
        files += 1;
    }
    assert!(
        files >= 4 && all_frames > 1_000 && names > 5,
        "{files} files, {all_frames} frames, {names} names"
    );
}
