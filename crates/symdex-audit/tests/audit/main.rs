//! The audit passes correct answers even if addr2line has others, names the reasons for differences, and fails wrong
//! answers.

mod inlined;
mod lines;
mod names;

use std::time::Duration;

use gimli::constants as dw;
use symdex::{ImageOffset, Index, LinePolicy};
use symdex_audit::{ADDR2LINE, AuditOptions, AuditReport, Class, Coverage, audit};
use symdex_build::{BuildOptions, Companions, Error, Image, slices};
use symdex_testkit::images::debug_file::{BASE, Die, Unit, Value, debug_file, whole};
use symdex_testkit::indexes::index_of;

/// The index of an image, even an empty one.
fn built_index(image: &Image<'_>) -> Vec<u8> {
    BuildOptions::new().allow_empty(true).build(image).expect("builds").bytes
}

/// The report of an audit of the index of `built` against the debug file `against`.
fn audited(built: &[u8], against: &[u8]) -> AuditReport {
    let image = |file: &'_ [u8]| -> Vec<u8> {
        let slice = &slices(file).expect("a Mach-O file")[0];
        let companions = Companions::default();
        let image = Image::load(slice, "made-up", &companions).expect("loads");
        built_index(&image)
    };
    let index = Index::open(image(built)).expect("just written");
    let slice = &slices(against).expect("a Mach-O file")[0];
    let companions = Companions::default();
    audit(&Image::load(slice, "made-up", &companions).expect("loads"), &index).expect("is read")
}

/// Checks that the index of `file` is correct, and that addr2line differs for exactly these reasons.
fn assert_classes(file: &[u8], classes: &[Class]) {
    let report = audited(file, file);
    assert_eq!(report.failures(), Vec::<String>::new(), "{report}");
    let mut classes = classes.to_vec();
    classes.sort();
    assert_eq!(classes_of(&report), classes, "{report}");
    assert!(report.addresses >= 8);
}

fn classes_of(report: &AuditReport) -> Vec<Class> {
    report.peers[ADDR2LINE].classes.keys().copied().collect()
}

/// The error of an audit of `file` with these options.
fn error(file: &[u8], options: AuditOptions<'_>) -> Error {
    let slice = &slices(file).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "made-up", &companions).expect("loads");
    let index = Index::open(built_index(&image)).expect("just written");
    options.audit(&image, &index).expect_err("past a limit")
}

#[test]
fn a_file_past_a_limit_of_the_builder_is_not_compared() {
    let flag = |die: Die, _| die.with(dw::DW_AT_external, Value::Form(dw::DW_FORM_flag_present, Vec::new()));
    let attributes = (0..2000).fold(Die::function("f", (0x1000, 0x1100)), flag);
    let file = debug_file(&[Unit::new((0x1000, 0x1100)).child(attributes)], &[]);
    let error = error(&file, AuditOptions::new()).to_string();
    assert!(error.contains("not compared: unit at 0x0: an abbreviation has 2003 attributes"), "{error}");
}

#[test]
fn a_file_whose_entries_are_nested_too_deeply_is_not_compared() {
    let nested = |depth| {
        let around = |inner: Die, _| Die::new(dw::DW_TAG_lexical_block).child(inner);
        let inner = (0..depth).fold(Die::new(dw::DW_TAG_lexical_block), around);
        debug_file(&[Unit::new((0x1000, 0x1100)).child(inner)], &[])
    };
    let error = error(&nested(1100), AuditOptions::new()).to_string();
    assert!(error.contains("its entries are nested more than 1024 deep"), "{error}");
    audited(&nested(900), &nested(900));
}

#[test]
fn an_audit_that_takes_too_long_fails_and_names_the_option() {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    let options = AuditOptions::new().max_seconds(Some(60)).time_spent(Duration::from_secs(61));
    let error = error(&debug_file(&[unit], &[]), options);
    assert!(matches!(error, Error::TooSlow { seconds: 60 }), "{error}");
}

#[test]
fn a_plain_file_has_no_differences() {
    let unit = Unit::new(whole())
        .child(
            Die::function("f", (0x1000, 0x1100))
                .label("f")
                .child(Die::inlined("g", 3).range((0x1040, 0x1080))),
        )
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 2, 7, true), (0x1080, 1, 4, true)], 0x1100);
    assert_classes(&debug_file(&[unit], &[("f", 0x1000), ("h", 0x1200)]), &[]);
}

/// A function without a linkage name that is listed with its part below it, and the symbols of both.
fn function_with_a_part(symbol: &'static str, entry: u64) -> Vec<u8> {
    let unit = Unit::new(whole())
        .child(Die::new(dw::DW_TAG_subprogram).name("f").ranges(&[(0x1100, 0x1200), (0x1000, 0x1040)]))
        .sequence(&[(0x1000, 1, 9, true)], 0x1040)
        .sequence(&[(0x1100, 1, 2, true)], 0x1200);
    debug_file(&[unit], &[(symbol, entry), ("f.cold", 0x1000)])
}

#[test]
fn code_outside_of_what_its_unit_declares_has_answers() {
    let unit = Unit::new((0x1000, 0x1100))
        .child(Die::function("f", (0x1000, 0x1100)))
        .child(Die::function("g", (0x1100, 0x1200)))
        .sequence(&[(0x1000, 1, 2, true)], 0x1200);
    let file = debug_file(&[unit], &[("f", 0x1000), ("g", 0x1100)]);
    assert_classes(&file, &[Class::UNDECLARED_CODE]);
}

#[test]
fn a_unit_with_lines_alone_does_not_hide_the_function_of_another() {
    let lines = Unit::new((0x1000, 0x1100)).sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let function = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 1, 7, true)], 0x1100);
    assert_classes(&debug_file(&[lines, function], &[("f", 0x1000)]), &[Class::OTHER_UNIT]);
}

#[test]
fn dead_code_has_no_answers() {
    // The linker left both at SVMA 0. They are long enough to reach the code of the image.
    let dead = Die::new(dw::DW_TAG_subprogram).name("dead").svma_and_size(0, BASE + 0x2000);
    let unit = Unit::new(whole())
        .child(dead)
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0, 1, 2, true), (0x1080, 1, 3, true)], 0x2000)
        .sequence(&[(0x1000, 1, 4, true)], 0x1100);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    assert_classes(&file, &[]);
}

#[test]
fn a_range_that_leaves_the_address_space_is_dropped() {
    let unit = Unit::new(whole())
        .child(Die::new(dw::DW_TAG_subprogram).name("endless").svma_and_size(BASE + 0x1000, u64::MAX - 7))
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100);
    assert_classes(&debug_file(&[unit], &[("f", 0x1000)]), &[]);
}

/// The ranges of the index of `file`: start, end, and the line of the innermost frame under `policy`.
fn ranges(file: &[u8], policy: LinePolicy) -> String {
    let line = |start, end, frame: symdex::Frame<'_>| {
        format!("{start:x}-{end:x}:{}", frame.line.map_or("-".to_owned(), |line| line.to_string()))
    };
    each_range(file, policy, line).join(" ")
}

/// The offsets at which the innermost function changes in the index of `file`, with its name.
fn innermost_names(file: &[u8]) -> String {
    let name = |start, _, frame: symdex::Frame<'_>| {
        format!("{start:x}:{}", String::from_utf8_lossy(frame.name.expect("has a name")))
    };
    each_range(file, LinePolicy::Exact, name).join(" ")
}

fn each_range(
    file: &[u8],
    policy: LinePolicy,
    text: impl Fn(u64, u64, symdex::Frame<'_>) -> String,
) -> Vec<String> {
    let slice = &slices(file).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    let mut scratch = symdex::Scratch::default();
    let mut ranges = Vec::new();
    for chunk in index.chunks(symdex::Table::Dwarf) {
        for range in chunk.expect("whole").1.ranges {
            let frames = index.lookup(ImageOffset(range.start), policy, &mut scratch).expect("whole");
            let innermost = frames.expect("covered").iter().next().expect("a frame");
            ranges.push(text(range.start, range.end, innermost));
        }
    }
    ranges
}

/// A file with a function into which another one is inlined twice. It has rows with line 0, and code without rows at
/// its end. `line` is the line of one row, and `end` is the end of the inlined code.
fn changeable(line: i64, end: u64) -> Vec<u8> {
    let unit = Unit::new(whole())
        .child(
            Die::function("f", (0x1000, 0x1100))
                .child(Die::inlined("g", 3).ranges(&[(0x1040, end), (0x10a0, 0x10c0)])),
        )
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
        .child(Die::function("tail", (0x1100, 0x1120)))
        .sequence(
            &[
                (0x1000, 1, 2, true),
                (0x1040, 2, 5, true),
                (0x1060, 2, 6, false),
                (0x1080, 1, 0, false),
                (0x10a0, 2, line, false),
                (0x10c0, 1, 9, true),
            ],
            0x1100,
        );
    debug_file(&[unit], &[("f", 0x1000), ("tail", 0x1100)])
}

#[test]
fn another_line_another_range_and_another_file_fail() {
    let right = changeable(7, 0x1080);
    let report = audited(&right, &right);
    assert_eq!((report.failures(), classes_of(&report)), (Vec::new(), vec![Class::LINE_ZERO]), "{report}");
    assert_ne!(report.statement_differs, 0);

    let line = audited(&changeable(8, 0x1080), &right);
    assert_eq!(
        line.unexplained.iter().map(|d| d.offset).collect::<Vec<_>>(),
        [0x10a0, 0x10a1, 0x10be, 0x10bf]
    );
    assert_eq!(line.failures().len(), 1);
    let range = audited(&changeable(7, 0x1081), &right);
    // Now only the first byte of the row at 0x1080 is in the inlined subroutine. The other bytes are a separate part.
    assert_eq!(range.unexplained.iter().map(|d| d.offset).collect::<Vec<_>>(), [0x1080]);
    let empty = audited(&debug_file(&[], &[("f", 0x1000), ("tail", 0x1100)]), &right);
    assert_eq!(empty.failures().len(), 2, "{empty}");
    assert_eq!((empty.coverage.ours, empty.coverage.expected), (0, 0x120));
    let more = audited(&right, &debug_file(&[], &[]));
    assert_eq!((more.coverage.ours, more.failures().len()), (0x120, 2), "{more}");
}

#[test]
fn a_comparison_of_nothing_fails_and_says_what_the_file_has() {
    let elsewhere = (0x9_0000, 0x9_0100);
    let unit = Unit::new(elsewhere).child(Die::function("f", elsewhere));
    let file = debug_file(&[unit.sequence(&[(0x9_0000, 1, 2, true)], 0x9_0100)], &[]);
    let slice = &slices(&file).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "made-up", &companions).expect("loads");
    let empty = Index::open(index_of(image.info().id.clone(), 0)).expect("whole");
    let report = audit(&image, &empty).expect("is read");
    let why = "nothing was compared: the debug file has code (units: 1, ranges of functions and inlined calls: 1, \
               addresses of line rows: 2, functions in its symbol table: 0), but its executable sections \
               (0x1000..0x3000, as image offsets) hold none of it";
    assert_eq!(report.failures(), [why], "{report}");
}

#[test]
fn addr2line_takes_the_lines_of_a_partial_unit_for_its_own() {
    let partial = Unit::bare().partial().sequence(&[(0x1000, 1, 5, true)], 0x1100);
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100))).lines_of(0);
    assert_classes(&debug_file(&[partial, unit], &[("f", 0x1000)]), &[Class::PARTIAL_UNIT]);
}

#[test]
fn samples_are_the_same_every_time_and_lie_in_code() {
    let unit = Unit::new(whole()).child(Die::function("f", (0x1000, 0x1100)));
    let file = debug_file(&[unit.sequence(&[(0x1000, 1, 2, true)], 0x1100)], &[("f", 0x1000)]);
    let slice = &slices(&file).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    let report = |random, seed, every| {
        AuditOptions::new().random(random, seed).every(every).audit(&image, &index).expect("is read")
    };
    let (none, some) = (report(0, 1, 1), report(500, 1, 1));
    assert!(some.addresses > none.addresses + 400);
    assert_eq!(some, report(500, 1, 1));
    assert_ne!(some.addresses, report(500, 2, 1).addresses);
    assert_eq!(some.failures(), Vec::<String>::new());
    // The sample is the first of two blocks, and the first block has all addresses.
    assert_eq!(report(0, 1, 2).addresses, none.addresses);
    assert_eq!(report(0, 1, 2).coverage, Coverage::default());
}

#[test]
fn options_and_reports_can_be_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<AuditOptions<'_>>();
    is_shared::<AuditReport>();
}
