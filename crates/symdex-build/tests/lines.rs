//! Oddities of line tables (docs/DEBUG-INFO.md, "Lines").

use std::path::Path;

use crate::checks::{answers, built, image_answers, peer};
use gimli::constants as dw;
use symdex::{Index, Table};
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{BASE, CODE, Die, Unit, Value, debug_file, debug_sections};

/// A unit with a function that has 256 bytes.
fn with_function() -> Unit {
    Unit::new((CODE.start, CODE.end)).child(Die::function("f", (0x1000, 0x1100)))
}

fn dwarf(file: &[u8]) -> Vec<String> {
    answers(file, Table::Dwarf)
}

#[test]
fn files_count_from_1_up_to_dwarf_4_and_from_0_in_dwarf_5() {
    for (version, expected) in [
        (2, ["a.c:2", "a.c:3", "b.h:4", "-"]),
        (3, ["a.c:2", "a.c:3", "b.h:4", "-"]),
        (4, ["a.c:2", "a.c:3", "b.h:4", "-"]),
        (5, ["a.c:2", "b.h:3", "-", "-"]),
    ] {
        let rows = [(0x1000, 0, 2, true), (0x1040, 1, 3, true), (0x1080, 2, 4, true), (0x10c0, 3, 5, true)];
        let unit = with_function().version(version).sequence(&rows, 0x1100);
        let found = dwarf(&debug_file(&[unit], &[]));
        let expected = expected.iter().zip([0x1000, 0x1040, 0x1080, 0x10c0]);
        let lines: Vec<_> =
            expected.map(|(place, at)| format!("{at:x}..{:x} f {place}", at + 0x40)).collect();
        // A row whose file is not in the table has a line and no file. Equal neighbours are merged.
        assert_eq!(found[..2], lines[..2], "DWARF {version}");
        assert_eq!(
            found.iter().any(|line| line.contains("b.h:4")),
            version < 5,
            "DWARF {version}: {found:?}"
        );
    }
}

/// The same sources, compiled with each version of DWARF, have the same answers.
#[test]
fn every_version_of_dwarf_gives_the_same_answers() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dsyms");
    let of_version = |version: u16| {
        let name = format!("inline-dwarf{version}");
        let path = testdata.join(format!("{name}.dSYM/Contents/Resources/DWARF/{name}"));
        let bytes = std::fs::read(path).expect("in testdata");
        let slice = slices(&bytes).expect("a Mach-O file").remove(0);
        let companions = Companions::default();
        image_answers(&Image::load(&slice, &name, &companions).expect("loads"), Table::Dwarf)
    };
    let four = of_version(4);
    assert!(four.len() > 50);
    for version in [2, 3, 5] {
        assert_eq!(of_version(version), four, "DWARF {version}");
    }
}

#[test]
fn counts_of_files_that_the_table_has_no_room_for_cost_the_units_lines() {
    let unit = || with_function().version(5).sequence(&[(0x1000, 0, 2, true)], 0x1100);
    let other = Unit::new((0x2000, 0x2100))
        .child(Die::function("g", (0x2000, 0x2100)))
        .sequence(&[(0x2000, 1, 7, true)], 0x2100);
    let mut file = debug_file(&[unit(), other], &[]);
    // One directory, then formats and a count of two files.
    let formats = file.windows(7).position(|bytes| bytes == b"/src\0\x02\x01").expect("the table") + 5;
    let count = formats + 5;
    assert_eq!(file[count], 2);
    // The count becomes a number of ten bytes, larger than the rest of the table has room for.
    file[count..count + 9].fill(0xff);
    file[count + 9] = 1;
    assert_eq!(dwarf(&file), ["1000..1100 f -", "2000..2100 g a.c:7"]);
    assert_eq!(built(&file).report.failed_units, 1);
}

#[test]
fn files_that_the_program_itself_defines_come_behind_those_of_the_table() {
    let define = [&[0, 8, dw::DW_LNE_define_file.0][..], b"d.c\0", &[0, 0, 0]].concat();
    let use_it = [dw::DW_LNS_set_file.0, 3, dw::DW_LNS_advance_pc.0, 0x40, dw::DW_LNS_copy.0];
    let program = [&define[..], &use_it, &[dw::DW_LNS_advance_pc.0, 0x40]].concat();
    let unit = with_function().sequence_of_bytes(0x1000, &program);
    assert_eq!(dwarf(&debug_file(&[unit], &[]))[..2], ["1000..1040 f a.c:1", "1040..1080 f d.c:1"]);
}

#[test]
fn sequences_come_in_any_order_and_addresses_may_go_backwards() {
    let first = [(0x1000, 1, 2, true), (0x1020, 1, 3, true)];
    let second = [(0x1080, 1, 5, true)];
    let forwards = with_function().sequence(&first, 0x1080).sequence(&second, 0x1100);
    let backwards = with_function().sequence(&second, 0x1100).sequence(&first, 0x1080);
    let expected = ["1000..1020 f a.c:2", "1020..1080 f a.c:3", "1080..1100 f a.c:5"];
    assert_eq!(dwarf(&debug_file(&[forwards], &[])), expected);
    assert_eq!(dwarf(&debug_file(&[backwards], &[])), expected);
    let within = [(0x1080, 1, 5, true), (0x1000, 1, 2, true), (0x1020, 1, 3, true)];
    let file = debug_file(&[with_function().sequence(&within, 0x1100)], &[]);
    assert_eq!(dwarf(&file), expected);
    // gimli, and with it addr2line, takes a lower address for dropped code.
    assert_eq!(peer(&file, 0x1010), "f:-");
    let slice = slices(&file).expect("a Mach-O file").remove(0);
    let companions = Companions::default();
    let image = Image::load(&slice, "made-up", &companions).expect("loads");
    let index = Index::open(built(&file).bytes).expect("just written");
    let report = symdex_audit::audit(&image, &index).expect("compared");
    assert_eq!((report.wrong(), report.unexplained_len), (Vec::new(), 0), "{report}");
}

#[test]
fn of_rows_at_one_address_the_last_counts() {
    let rows = [(0x1000, 1, 2, true), (0x1040, 1, 5, true), (0x1040, 2, 6, true), (0x1040, 1, 7, true)];
    let file = debug_file(&[with_function().sequence(&rows, 0x1100)], &[]);
    assert_eq!(dwarf(&file), ["1000..1040 f a.c:2", "1040..1100 f a.c:7"]);
    assert_eq!(peer(&file, 0x1040), "f:7");
    // The last row also decides under the policy `statement`.
    let rows = [(0x1000, 1, 2, true), (0x1040, 1, 5, true), (0x1040, 2, 0, false), (0x1080, 1, 7, true)];
    let file = debug_file(&[with_function().sequence(&rows, 0x1100)], &[]);
    assert_eq!(
        dwarf(&file),
        ["1000..1040 f a.c:2", "1040..1080 f b.h:0 [statement a.c:2]", "1080..1100 f a.c:7"]
    );
    // Behind two sequences that end at one address, the last one decides.
    let [outer, inner] = [[(0x1000, 1, 2, true)], [(0x1040, 2, 9, true)]];
    for (first, last, end) in [(outer, inner, "b.h:9"), (inner, outer, "a.c:2")] {
        let file = debug_file(&[with_function().sequence(&first, 0x1080).sequence(&last, 0x1080)], &[]);
        assert_eq!(dwarf(&file).last(), Some(&format!("1080..1100 f - [statement {end}]")));
    }
}

#[test]
fn line_0_is_a_line_and_compiler_generated_is_no_file_of_a_folder() {
    let rows = [(0x1000, 1, 2, true), (0x1020, 2, 0, true), (0x1040, 1, 3, true), (0x1060, 1, 0, false)];
    let unit = with_function().files(&["main.swift", "<compiler-generated>"]).sequence(&rows, 0x1080);
    let file = debug_file(&[unit], &[]);
    assert_eq!(
        dwarf(&file),
        [
            "1000..1020 f main.swift:2",
            "1020..1040 f <compiler-generated>:0 [statement main.swift:2]",
            "1040..1060 f main.swift:3",
            "1060..1080 f main.swift:0 [statement main.swift:3]",
            "1080..1100 f - [statement main.swift:0]",
        ]
    );
    // addr2line does not tell line 0 from a missing line.
    assert_eq!((peer(&file, 0x1020), peer(&file, 0x1080)), ("f:-".to_owned(), "f:-".to_owned()));
}

#[test]
fn compiler_generated_keeps_the_directory_that_the_line_table_lists_for_it() {
    for version in [4, 5] {
        let first = u64::from(version < 5);
        let rows = [(0x1000, first, 2, true), (0x1020, first + 1, 0, true)];
        let files = ["main.swift", "<compiler-generated>"];
        let unit =
            |unit: Unit| debug_file(&[unit.version(version).files(&files).sequence(&rows, 0x1100)], &[]);
        let generated = |file: &[u8]| dwarf(file).remove(1);
        assert_eq!(
            generated(&unit(with_function())),
            "1020..1100 f <compiler-generated>:0 [statement main.swift:2]"
        );
        // As Swift 6 writes it.
        assert_eq!(
            generated(&unit(with_function().file_directory("/"))),
            "1020..1100 f /<compiler-generated>:0 [statement /main.swift:2]"
        );
    }
}

#[test]
fn behind_the_end_of_a_sequence_there_is_no_line() {
    let rows = [(0x1000, 1, 2, true), (0x1040, 1, 3, true)];
    let unit = with_function()
        .child(Die::function("g", (0x1100, 0x1200)))
        .sequence(&rows, 0x1080)
        .sequence(&[(0x1100, 2, 7, true)], 0x1180);
    assert_eq!(
        dwarf(&debug_file(&[unit], &[])),
        [
            "1000..1040 f a.c:2",
            "1040..1080 f a.c:3",
            "1080..1100 f - [statement a.c:3]",
            "1100..1180 g b.h:7",
            "1180..1200 g - [statement b.h:7]",
        ]
    );
    // Before the first sequence of a unit there is no row to take a line from.
    let late = with_function().sequence(&rows[1..], 0x1100);
    assert_eq!(dwarf(&debug_file(&[late], &[])), ["1000..1040 f -", "1040..1100 f a.c:3"]);
}

#[test]
fn rows_of_a_sequence_that_does_not_end_are_none() {
    let whole = || with_function().sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 3, true)], 0x1100);
    let expected = dwarf(&debug_file(&[whole()], &[]));
    assert_eq!(expected, ["1000..1040 f a.c:2", "1040..1100 f a.c:3"]);
    // In the code of a function, outside of all code, at SVMA 0, and at the end of the address space.
    for start in [0x1020, CODE.end + 0x100, 0, u64::MAX - 0x80 - BASE] {
        let rows = [0, 0x10, 0x20].map(|at| (start + at, 2, 7, true));
        // The program ends after the rows, or with half an opcode. gimli reports the latter as an error.
        for more in [&[][..], &[0, 9, 2]] {
            let unit = whole().rows_without_end(&rows, more);
            assert_eq!(dwarf(&debug_file(&[unit], &[])), expected, "{start:x}");
            let alone = with_function().rows_without_end(&rows, more);
            assert_eq!(dwarf(&debug_file(&[alone], &[])), ["1000..1100 f -"], "{start:x}");
        }
    }
}

/// The policy `statement` takes lines only from rows in the same inline instance that begin a statement.
#[test]
fn and_statements_stay_in_their_inline_instance() {
    let unit = Unit::new((CODE.start, CODE.end))
        .child(Die::function("f", (0x1000, 0x1100)).child(Die::inlined("g", 9).range((0x1040, 0x1080))))
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"));
    let rows = [
        (0x1000, 1, 2, true),
        (0x1040, 2, 0, false),
        (0x1050, 2, 6, true),
        (0x1060, 2, 7, false),
        (0x1070, 2, 0, true),
        (0x1080, 1, 0, false),
    ];
    assert_eq!(
        dwarf(&debug_file(&[unit.sequence(&rows, 0x1100)], &[])),
        [
            "1000..1040 f a.c:2",
            "1040..1050 g b.h:0 < f a.c:9",
            "1050..1060 g b.h:6 < f a.c:9",
            "1060..1070 g b.h:7 < f a.c:9",
            "1070..1080 g b.h:0 [statement b.h:6] < f a.c:9",
            "1080..1100 f a.c:0 [statement a.c:2]",
        ]
    );
}

/// A row that covers several inlined subroutines does not show a line of the first one in the others.
#[test]
fn a_row_is_cut_where_the_inline_instance_changes() {
    let inlined = |name| Die::new(dw::DW_TAG_subprogram).name(name).label(name);
    let f = Die::function("f", (0x1000, 0x1100))
        .child(Die::inlined("g", 9).range((0x1010, 0x1040)))
        .child(Die::inlined("h", 10).range((0x1040, 0x1080)));
    let unit = Unit::new((CODE.start, CODE.end)).child(f).child(inlined("g")).child(inlined("h"));
    let rows = [
        (0x1000, 1, 2, true),
        // In f, g and h.
        (0x1008, 2, 0, false),
        // In h and f.
        (0x1060, 2, 7, true),
        // In f alone.
        (0x1090, 2, 0, false),
    ];
    assert_eq!(
        dwarf(&debug_file(&[unit.sequence(&rows, 0x1100)], &[])),
        [
            "1000..1008 f a.c:2",
            "1008..1010 f b.h:0 [statement a.c:2]",
            "1010..1040 g b.h:0 < f a.c:9",
            "1040..1060 h b.h:0 < f a.c:10",
            "1060..1080 h b.h:7 < f a.c:10",
            "1080..1090 f b.h:7",
            "1090..1100 f b.h:0 [statement b.h:7]",
        ]
    );
}

#[test]
fn advances_count_in_instructions() {
    let (advance, line, copy) = (dw::DW_LNS_advance_pc.0, dw::DW_LNS_advance_line.0, dw::DW_LNS_copy.0);
    // Advance by 16, a row, advance by 48.
    let program = [advance, 16, line, 4, copy, advance, 48];
    let file = |size, operations| {
        let unit = with_function().instructions(size, operations);
        debug_file(&[unit.sequence_of_bytes(0x1000, &program)], &[])
    };
    assert_eq!(dwarf(&file(1, 1))[..2], ["1000..1010 f a.c:1", "1010..1040 f a.c:5"]);
    assert_eq!(dwarf(&file(4, 1)), ["1000..1040 f a.c:1", "1040..1100 f a.c:5"]);
    // With four operations in an instruction of 16 bytes, 16 operations are 64 bytes.
    assert_eq!(dwarf(&file(16, 4)), ["1000..1040 f a.c:1", "1040..1100 f a.c:5"]);
    let special = [dw::DW_LNS_const_add_pc.0, dw::DW_LNS_fixed_advance_pc.0, 0x20, 0, line, 1, copy];
    let unit = with_function().instructions(4, 1).sequence_of_bytes(0x1000, &special);
    // const_add_pc advances by (255 - 13) / 14 instructions, fixed_advance_pc by a number of bytes.
    let built = built(&debug_file(&[unit.sequence_of_bytes(0x1090, &[advance, 4])], &[]));
    let index = Index::open(built.bytes).expect("just written");
    assert_eq!(index.metadata().partial, []);
}

#[test]
fn the_lines_that_a_partial_unit_names_are_of_another() {
    let rows = [(0x1000, 1, 5, true), (0x1070, 1, 0, false)];
    let partial = Unit::bare().partial().sequence(&rows, 0x1100);
    let unit = Unit::new((0x1000, 0x1080)).child(Die::function("f", (0x1000, 0x1080))).lines_of(0);
    // Behind the function the row is in no inline instance and keeps its own line.
    let expected = ["1000..1070 f a.c:5", "1070..1080 f a.c:0 [statement a.c:5]", "1080..1100 - a.c:0"];
    assert_eq!(answers(&debug_file(&[partial, unit], &[]), Table::Dwarf), expected);
}

/// The line sequence of a function (`DW_AT_LLVM_stmt_sequence`), which LLVM writes from version 20 on.
const STMT_SEQUENCE: gimli::DwAt = gimli::DwAt(0x3e0c);

/// A unit with two functions that the linker merged. `f` states the sequence at `offsets[0]`, `g` the one at
/// `offsets[1]`.
fn merged(version: u16, offsets: [u32; 2]) -> Unit {
    let form = if version < 4 { dw::DW_FORM_data4 } else { dw::DW_FORM_sec_offset };
    let function = |name, offset: u32| {
        // Without linkage names, or with one that is the plain name, the symbol names both.
        let function = Die::function("plain", (0x1000, 0x1100)).linkage_name(name);
        function.with(STMT_SEQUENCE, Value::Form(form, offset.to_le_bytes().to_vec()))
    };
    Unit::new((CODE.start, CODE.end))
        .version(version)
        .child(function("f", offsets[0]))
        .child(function("g", offsets[1]))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 3, true)], 0x1100)
        .sequence(&[(0x1000, 1, 7, true), (0x1080, 1, 0, true)], 0x1100)
}

/// The offsets of the two sequences of [`merged`] in `.debug_line`.
fn sequence_offsets(version: u16) -> [u32; 2] {
    let sections = debug_sections(&[merged(version, [0; 2])]);
    let (_, line) = sections.iter().find(|(name, _)| *name == "__debug_line").expect("has lines");
    // Each begins with a set_address to the start of the functions.
    let begin = [&[0, 9, dw::DW_LNE_set_address.0][..], &(BASE + 0x1000).to_le_bytes()].concat();
    let mut begins = (0u32..).zip(line.windows(begin.len())).filter(|(_, bytes)| *bytes == begin);
    [(); 2].map(|()| begins.next().expect("two sequences").0)
}

#[test]
fn functions_that_the_linker_merged_have_the_rows_of_the_sequence_that_they_state() {
    let of_f = ["1000..1040 f a.c:2", "1040..1100 f a.c:3"];
    let of_g = ["1000..1080 g a.c:7", "1080..1100 g a.c:0 [statement a.c:7]"];
    for version in [3, 4] {
        let offsets = sequence_offsets(version);
        let file = |symbol| debug_file(&[merged(version, offsets)], &[(symbol, 0x1000)]);
        assert_eq!(dwarf(&file("f")), of_f, "DWARF {version}");
        assert_eq!(dwarf(&file("g")), of_g, "DWARF {version}");
    }
}

#[test]
fn a_stated_sequence_that_does_not_exist_is_ignored() {
    let [first, second] = sequence_offsets(4);
    let lines = |file: &[u8]| -> Vec<_> {
        dwarf(file).iter().filter_map(|line| line.split("a.c:").nth(1).map(str::to_owned)).collect()
    };
    // Of sequences with one range, the first counts.
    let unstated = ["2", "3"];
    for offset in (0..second + 60).chain([u32::MAX - 1, u32::MAX]) {
        let expected = if offset == second { vec!["7", "0 [statement "] } else { unstated.to_vec() };
        let found = lines(&debug_file(&[merged(4, [offset, first])], &[("f", 0x1000)]));
        assert_eq!(found, expected, "{offset:#x}");
    }
    // A sequence of other code.
    let function = Die::function("f", (0x1000, 0x1100));
    let states = Value::Form(dw::DW_FORM_sec_offset, second.to_le_bytes().to_vec());
    let unit = Unit::new((CODE.start, CODE.end))
        .child(function.with(STMT_SEQUENCE, states))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 3, true)], 0x1100)
        .sequence(&[(0x1100, 1, 7, true)], 0x1180)
        .sequence(&[(0x1100, 1, 8, true)], 0x1180);
    assert_eq!(lines(&debug_file(&[unit], &[])), ["2", "3", "7"]);
}

#[test]
fn clang_states_the_sequences_of_functions_that_lld_merged() {
    let mut file = include_bytes!("data/merged.so").to_vec();
    let lines = |file: &[u8]| -> Vec<_> {
        let line = |line: String| line.split("merged.c:").nth(1).and_then(|line| line.parse::<u32>().ok());
        dwarf(file).into_iter().map(line).collect()
    };
    assert_eq!(lines(&file), [8, 9, 10].map(Some));
    // The entry of `first`: address, size, and the offset of its sequence. That of `second` is 0x47.
    let entry = [&0x12f0u64.to_le_bytes()[..], &[0x1b, 0, 0, 0], &[0x2a, 0, 0, 0]].concat();
    let at = file.windows(entry.len()).position(|bytes| bytes == entry).expect("the entry");
    file[at + 12] = 0x47;
    assert_eq!(lines(&file), [12, 13, 14].map(Some));
}
