//! `symdex inspect` and `symdex verify`, compared with the committed snapshots.

use std::fs;
use std::path::Path;

use crate::common::{debug_file, dsym, folder, index_of, symdex, symdex_on};

/// Compares `text` with `tests/snapshots/NAME`. With `SYMDEX_SNAPSHOTS=write` in the environment, writes the file
/// instead.
#[track_caller]
fn assert_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("SYMDEX_SNAPSHOTS").is_some_and(|value| value == "write") {
        fs::write(&path, text).expect("written");
    }
    let expected = fs::read_to_string(&path).expect("a snapshot; make it with SYMDEX_SNAPSHOTS=write");
    assert_eq!(
        text, expected,
        "{name}; where this is right, SYMDEX_SNAPSHOTS=write and look at the difference"
    );
}

#[test]
fn the_ranges_of_a_chunk_equal_the_snapshot() {
    let root = folder();
    for name in ["inline-dwarf4", "outliner", "swift-names", "icf"] {
        let index = index_of(name, root.path());
        assert_snapshot(&format!("{name}.dwarf.txt"), &symdex_on(&index, "inspect {} --chunk 0").ok());
        let symbols = symdex_on(&index, "inspect {} --chunk 0 --table symbol_table").ok();
        assert_snapshot(&format!("{name}.symbol_table.txt"), &symbols);
    }
}

#[test]
fn the_overview_adds_up() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let overview = symdex_on(&index, "inspect {}").ok();
    let id = index.file_stem().expect("a name").to_string_lossy();
    for line in [
        "image         inline-dwarf4",
        &format!("id            {id}"),
        "arch          arm64 (cputype 0x100000c, cpusubtype 0x0)",
        "base          0x100000000",
        "executable    0x378..0x738",
        &format!("size          {} bytes", fs::metadata(&index).expect("there").len()),
        "dwarf: 1 chunk",
        "symbol_table: 1 chunk",
    ] {
        assert!(overview.lines().any(|found| found == line), "{line:?} in\n{overview}");
    }
    let rows = |heading: &'static str| {
        let lines = overview.lines().skip_while(move |line| !line.starts_with(heading)).skip(1);
        lines.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect::<Vec<_>>())
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    // Sections follow each other without gaps, the chunks fill their section, and the number of ranges is the stated
    // one.
    let mut end = 140;
    for section in rows("section") {
        assert_eq!(number(section[1]), end, "{section:?}");
        end += number(section[2]);
    }
    let chunks: Vec<_> =
        rows("dwarf: ").chain(rows("symbol_table: ")).filter(|row| row[0] != "chunk").collect();
    let stored: u64 = chunks.iter().map(|chunk| number(chunk[2])).sum();
    let section = rows("section").find(|section| section[0] == "chunks").expect("there");
    assert_eq!(stored, number(section[2]));
    let counted = |what: &str| number(rows("what").find(|row| row[0] == what).expect("there")[1]);
    assert_eq!(
        chunks.iter().map(|chunk| number(chunk[3])).sum::<u64>(),
        counted("ranges") + counted("symbols")
    );
    let verified = symdex_on(&index, "verify {}").ok();
    let expected = format!(": whole: 2 chunks, {} ranges, ", counted("ranges") + counted("symbols"));
    assert!(verified.contains(&expected), "{verified}");
}

#[test]
fn a_missing_chunk_names_the_existing_chunks() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let finished = symdex_on(&index, "inspect {} --chunk 7");
    assert_eq!((finished.code, finished.out.as_str()), (Some(3), ""));
    assert!(finished.err.contains("no chunk 7; the table dwarf has 0 to 0"), "{}", finished.err);
}

#[test]
fn verify_compares_with_a_debug_file() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let against = |against: &Path| {
        symdex(["verify".as_ref(), index.as_os_str(), "--against".as_ref(), against.as_os_str()])
    };
    for same in [dsym("inline-dwarf4"), debug_file("inline-dwarf4")] {
        let report = against(&same).ok();
        assert!(report.contains("unexplained  0"), "{report}");
        let verdict =
            ": every answer of the index equals what the debug file says (496 addresses, both line policies)";
        assert!(report.lines().next().is_some_and(|line| line.ends_with(verdict)), "{report}");
        let reason = "addr2line has no line where the debug information has line 0";
        assert!(report.contains(reason), "{report}");
    }
    let other = against(&dsym("inline-dwarf5"));
    assert_eq!(other.code, Some(3), "{}", other.err);
    assert!(other.err.contains("no image"), "{}", other.err);

    // Another program with the same id.
    let id = |path: &Path| fs::read(path).map(|bytes| uuid_at(&bytes)).expect("readable");
    let (from, to) = (id(&debug_file("cxx")), id(&debug_file("inline-dwarf4")));
    let mut bytes = fs::read(debug_file("cxx")).expect("readable");
    let wanted = fs::read(debug_file("inline-dwarf4")).expect("readable")[to..to + 16].to_vec();
    bytes[from..from + 16].copy_from_slice(&wanted);
    let patched = root.path().join("patched");
    fs::write(&patched, bytes).expect("writable");
    let wrong = against(&patched);
    assert_eq!(wrong.code, Some(1), "{}", wrong.err);
    assert!(wrong.err.contains("answers are not those of the debug file"), "{}", wrong.err);
    assert!(wrong.out.contains("symdex does not answer as the rules say"), "{}", wrong.out);
    let verdict = wrong.out.lines().next().expect("a line");
    assert!(verdict.ends_with(" answers differ from what the debug file says"), "{verdict}");
}

/// The offset of the UUID in a thin 64-bit Mach-O file.
fn uuid_at(file: &[u8]) -> usize {
    let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().expect("4 bytes")) as usize;
    let mut command = 32;
    while word(command) != 0x1b {
        command += word(command + 4);
    }
    command + 8
}
