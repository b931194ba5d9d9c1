//! `docs/reader.py` returns the same answers as this crate. It is written from `docs/FORMAT.md` alone.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use symdex::{Frame, ImageOffset, Index, LinePolicy, Scratch};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn python3() -> Command {
    symdex_testkit::program("python3", "--version")
}

/// The output of `reader.py` for a file.
fn python(arguments: &[&str], file: &Path) -> String {
    let output = python3().arg(format!("{ROOT}/docs/reader.py")).args(arguments).arg(file).output();
    let output = output.expect("python3 runs");
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

/// The expected output of `reader.py`: the frames at each address of the code.
fn expected(index: &Index<Vec<u8>>, policy: LinePolicy) -> (String, usize) {
    let (mut text, mut scratch, mut frames) = (String::new(), Scratch::default(), 0);
    for (start, end) in &index.metadata().executable {
        for offset in *start..*end {
            let answer = index.lookup(ImageOffset(offset), policy, &mut scratch).expect("intact");
            if answer.is_none() {
                writeln!(text, "{offset}").expect("a string takes all");
            }
            for frame in answer.iter().flat_map(symdex::Frames::iter) {
                writeln!(text, "{}", line(offset, &frame)).expect("a string takes all");
                frames += 1;
            }
        }
    }
    (text, frames)
}

fn the_reader_in_python_answers_every_address_of_the_golden_indexes_as_this_one() {
    let (mut files, mut all_frames, mut names) = (0, 0, 0);
    let golden =
        std::fs::read_dir(format!("{ROOT}/testdata/golden/v1")).expect("testdata/golden/v1 is there");
    for path in golden.map(|entry| entry.expect("readable").path()) {
        if path.extension().is_none_or(|extension| extension != "symdex") {
            continue;
        }
        let index = Index::open(std::fs::read(&path).expect("readable")).expect("a golden index");
        for (policy, arguments) in [(LinePolicy::Exact, &["--exact"][..]), (LinePolicy::Statement, &[])] {
            let (expected, frames) = expected(&index, policy);
            assert!(python(arguments, &path) == expected, "{}, {policy:?}", path.display());
            all_frames += frames;
        }
        let mut scratch = Scratch::default();
        for chunk in index.chunks(symdex::Table::SymbolTable) {
            for start in
                chunk.expect("intact").1.ranges.iter().filter_map(|range| range.function_start).step_by(5)
            {
                let own = index.function_names(ImageOffset(start), &mut scratch).expect("intact");
                let own: String = own.map(|name| hex(Some(name)) + "\n").collect();
                let mut command = python3();
                let command = command.arg(format!("{ROOT}/docs/reader.py")).arg("--names").arg(&path);
                let output = command.arg(start.to_string()).output().expect("python3 runs");
                assert_eq!(String::from_utf8_lossy(&output.stdout), own, "{}, {start:#x}", path.display());
                names += own.lines().count();
            }
        }
        files += 1;
    }
    assert!(
        files >= 4 && all_frames > 10_000 && names > 5,
        "{files} files, {all_frames} frames, {names} names"
    );
}

symdex_testkit::main! {
    the_reader_in_python_answers_every_address_of_the_golden_indexes_as_this_one
}
