//! What exceeds a limit is given up with a reason, and work grows no faster than the debug file.

use crate::checks::{answers, built};
use gimli::constants as dw;
use symdex::{Index, Table};
use symdex_build::{BuildOptions, Companions, Error, Image, slices};
use symdex_testkit::images::debug_file::{Die, Unit, Value, debug_file};

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
    type Make = fn(usize) -> Vec<Unit>;
    let files: [(&str, Make, usize); 7] = [
        ("attributes without size", |n| vec![with_attributes(n, n)], 500),
        ("attributes of few entries", |n| vec![with_attributes(n, 4)], 500),
        ("rows", |n| vec![with_rows(n)], 100_000),
        ("files", |n| vec![with_files(n)], 10_000),
        ("entries", |n| vec![with_attributes(0, n)], 10_000),
        ("units", |n| (0..n).map(|_| other()).collect(), 500),
        ("functions in deep scopes", |n| vec![in_scopes(200, n)], 1000),
    ];
    for (what, units, n) in files {
        let all = |n| units(n).into_iter().chain([other()]).collect::<Vec<_>>();
        let steps = |n| built(&debug_file(&all(n), &[])).report.steps;
        let (once, twice) = (steps(n), steps(2 * n));
        assert!(once >= n as u64, "{what}: {once} steps are not all of the work");
        assert!(twice <= 2 * once + 1000, "{what}: {once} steps, and {twice} for twice as much");
    }
}

/// `count` functions in `depth` namespaces, one in the other.
fn in_scopes(depth: usize, count: usize) -> Unit {
    let functions = Die::function("f", (0x1000, 0x1100)).copies(count);
    let around = |inner: Die, _| Die::new(dw::DW_TAG_namespace).name("n").child(inner);
    Unit::new((0x1000, 0x1100)).child((0..depth).fold(functions, around))
}

/// A function of `count` ranges, and as many subroutines that are inlined into all of them.
fn in_ranges(copies: usize) -> Unit {
    let count = copies as u64;
    let ranges: Vec<_> = (0..count).map(|number| (0x1000 + 4 * number, 0x1002 + 4 * number)).collect();
    let whole = (0x1000, 0x1002 + 4 * count);
    Unit::new(whole).child(Die::new(dw::DW_TAG_subprogram).name("callee").label("callee")).child(
        Die::function("f", whole)
            .ranges(&ranges)
            .child(Die::inlined("callee", 3).range(whole).copies(copies)),
    )
}

#[test]
fn ranges_that_inlined_subroutines_share_count_as_range_list_entries() {
    assert_eq!(reasons(&debug_file(&[in_ranges(100)], &[])), [""; 0]);
    let reasons = reasons(&debug_file(&[in_ranges(1200)], &[]));
    assert!(matches!(&reasons[..], [reason] if reason.starts_with("unreadable range lists")), "{reasons:?}");
}

/// The index of `file`, built with `max_memory` on that many threads.
fn built_within(file: &[u8], max_memory: usize, threads: usize) -> Result<Vec<u8>, Error> {
    let companions = Companions::default();
    let slice = slices(file).expect("a Mach-O file").remove(0);
    let image = Image::load(&slice, "made-up", &companions).expect("loads");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let built = pool.install(|| BuildOptions::new().max_memory(max_memory).build(&image));
    built.map(|built| built.bytes)
}

#[test]
fn a_build_that_needs_too_much_memory_fails_and_names_the_option() {
    let rows = debug_file(&[with_rows(1 << 20), other()], &[]);
    let units: Vec<Unit> = (0..200).map(|_| with_attributes(0, 1000)).collect();
    let (units, names) = (debug_file(&units, &[]), debug_file(&[in_scopes(0, 100), other()], &[]));
    for threads in [1, 4] {
        let error = built_within(&rows, 64_000_000, threads).expect_err("a million rows");
        assert!(matches!(error, Error::TooLarge { limit: 64_000_000, .. }), "{error}");
        assert!(
            error.to_string().contains("64 MB, the limit of `max_memory`, for one of its units"),
            "{error}"
        );
        // Units that do not fit ahead of their turn are read in their turn.
        let expected = built_within(&units, 1 << 30, threads).expect("builds");
        assert!(built_within(&units, 32_000_000, threads).expect("builds") == expected);
        assert!(built_within(&names, 32_000_000, threads).is_ok());
    }
    let error = built_within(&names, 1 << 20, 1).expect_err("less than any build needs");
    assert!(matches!(error, Error::TooLittleMemory { limit: 1_048_576, least: 32_000_000 }), "{error}");
}

/// Units with a table of abbreviations each. A function of each has a subroutine of the next unit inlined, and one of
/// itself.
fn that_refer_to_each_other(count: u64) -> Vec<u8> {
    let label = |number: u64| &*format!("callee {}", number % count).leak();
    let unit = |number: u64| {
        let range = (0x1000 + 8 * number, 0x1008 + 8 * number);
        let flag =
            |die: Die, _| die.with(dw::DW_AT_external, Value::Form(dw::DW_FORM_flag_present, Vec::new()));
        let callee = Die::new(dw::DW_TAG_subprogram).name(label(number)).label(label(number));
        let calls = [(number, 2), (number + 1, 4)];
        let calls = calls.map(|(to, at)| Die::inlined(label(to), 3).range((range.0 + at, range.0 + at + 2)));
        let function = calls.into_iter().fold(Die::function("f", range), Die::child);
        Unit::new(range).child((0..1000).fold(callee, flag)).child(function)
    };
    debug_file(&(0..count).map(unit).collect::<Vec<_>>(), &[])
}

#[test]
fn functions_of_units_whose_abbreviations_are_not_kept_have_their_names() {
    // The tables of 24 kB each are more than the 16 MiB that are kept.
    let count = 1000;
    let expected = (0..count).flat_map(|number: u64| {
        let (at, next) = (0x1000 + 8 * number, (number + 1) % count);
        [
            format!("{at:x}..{:x} f -", at + 2),
            format!("{:x}..{:x} callee {number} - < f a.c:3", at + 2, at + 4),
            format!("{:x}..{:x} callee {next} - < f a.c:3", at + 4, at + 6),
            format!("{:x}..{:x} f -", at + 6, at + 8),
        ]
    });
    let answers = answers(&that_refer_to_each_other(count), Table::Dwarf);
    assert_eq!(answers, expected.collect::<Vec<_>>());
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
    assert!(error.to_string().contains("`max_seconds`"), "{error}");
    assert!(of(Some(3600)).is_ok());
}
