//! What exceeds a limit is given up with a reason, and work grows no faster than the debug file.

mod checks;

use checks::{answers, built};
use gimli::constants as dw;
use symdex::{Index, Table};
use symdex_build::{BuildOptions, Companions, Error, Image, slices};
use symdex_testimages::debug_file::{Die, Unit, Value, debug_file};

/// The reasons why the index of `file` is partial.
fn reasons(file: &[u8]) -> Vec<String> {
    let index = Index::open(built(file).bytes).expect("just written");
    index.metadata().partial.iter().map(|partial| partial.reason.clone()).collect()
}

/// A unit with code of its own, beside one that is given up.
fn other() -> Unit {
    Unit::new((0x2000, 0x2100))
        .child(Die::function("g", (0x2000, 0x2100)))
        .sequence(&[(0x2000, 1, 7, true)], 0x2100)
}

const OTHER: &str = "2000..2100 g a.c:7";

/// A unit with `copies` functions, each of which has `attributes` attributes that take no bytes. gimli reads them,
/// because the name is in the entry.
fn with_attributes(attributes: usize, copies: usize) -> Unit {
    let flag = |die: Die, _| die.with(dw::DW_AT_external, Value::Form(dw::DW_FORM_flag_present, Vec::new()));
    let function = (0..attributes).fold(Die::function("f", (0x1000, 0x1100)), flag);
    Unit::new((0x1000, 0x1100)).child(function.copies(copies))
}

/// A unit whose line program has `rows` rows, each of which has one byte.
fn with_rows(rows: usize) -> Unit {
    // Opcode 33 advances the address by 1 and the line by 1.
    Unit::new((0x1000, 0x1100))
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence_of_bytes(0x1000, &vec![33; rows])
}

fn with_files(files: usize) -> Unit {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    unit.files(&vec!["x"; files]).sequence(&[(0x1000, 1, 2, true)], 0x1100)
}

#[test]
fn a_unit_with_an_abbreviation_of_too_many_attributes_is_given_up() {
    let of = |attributes| debug_file(&[with_attributes(attributes, 1), other()], &[]);
    // A function has three more attributes.
    assert_eq!(reasons(&of(1021)), [""; 0]);
    assert_eq!(reasons(&of(1022)), ["unit at 0x0: an abbreviation has 1025 attributes, the limit is 1024"]);
    assert_eq!(answers(&of(1022), Table::Dwarf), [OTHER]);
}

#[test]
fn a_unit_whose_entries_have_too_many_attributes_is_given_up_at_the_limit() {
    let file = debug_file(&[with_attributes(1000, 1000), other()], &[]);
    let reason = "unit at 0x0: its entries have more attributes than the limit of 4096 and 16 for each byte";
    assert_eq!(reasons(&file), [reason]);
    assert_eq!(answers(&file, Table::Dwarf), ["1000..1100 f -", OTHER]);
}

#[test]
fn a_unit_with_too_many_line_rows_has_no_lines() {
    let file = debug_file(&[with_rows((4 << 20) + 1), other()], &[]);
    assert_eq!(reasons(&file), ["unit at 0x0: its line table: it has more than 4194304 rows"]);
    assert_eq!(answers(&file, Table::Dwarf), ["1000..1100 f -", OTHER]);
}

#[test]
fn a_unit_with_too_many_files_has_no_lines() {
    let file = debug_file(&[with_files((1 << 17) + 1), other()], &[]);
    let reason = "unit at 0x0: its line table: its header lists more than 131072 directories and files";
    assert_eq!(reasons(&file), [reason]);
    assert_eq!(answers(&file, Table::Dwarf), ["1000..1100 f -", OTHER]);
}

/// A parameter of a file that asks for much work, and twice that parameter, ask for at most about twice the work.
#[test]
fn work_grows_no_faster_than_the_parameter_of_a_hostile_file() {
    type Make = fn(usize) -> Unit;
    let files: [(&str, Make, usize); 5] = [
        ("attributes without size", |n| with_attributes(n, n), 500),
        ("attributes of few entries", |n| with_attributes(n, 4), 500),
        ("rows", with_rows, 100_000),
        ("files", with_files, 10_000),
        ("entries", |n| with_attributes(0, n), 10_000),
    ];
    for (what, unit, n) in files {
        let steps = |n| built(&debug_file(&[unit(n), other()], &[])).report.steps;
        let (once, twice) = (steps(n), steps(2 * n));
        assert!(once >= n as u64, "{what}: {once} steps are not all of the work");
        assert!(twice <= 2 * once + 1000, "{what}: {once} steps, and {twice} for twice as much");
    }
}

#[test]
fn a_build_that_takes_too_long_fails_and_names_the_option() {
    let file = debug_file(&[other()], &[]);
    let companions = Companions::default();
    let slice = slices(&file).expect("a Mach-O file").remove(0);
    let image = Image::load(&slice, "made-up", &companions).expect("loads");
    let of = |max_seconds| BuildOptions::new().max_seconds(max_seconds).build(&image);
    let error = of(Some(0)).expect_err("takes longer than no time");
    assert!(matches!(error, Error::TooSlow { seconds: 0 }), "{error}");
    assert!(error.to_string().contains("--max-seconds"), "{error}");
    assert!(of(Some(3600)).is_ok());
}
