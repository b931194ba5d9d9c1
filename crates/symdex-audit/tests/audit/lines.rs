//! Rows of line programs: order, overlaps, and what their addresses belong to.

use super::*;

#[test]
fn of_rows_at_one_address_the_last_counts() {
    let unit = Unit::new(whole()).child(Die::function("f", (0x1000, 0x1100))).sequence(
        &[(0x1000, 1, 2, true), (0x1040, 1, 5, true), (0x1040, 1, 6, false), (0x1080, 1, 7, true)],
        0x1100,
    );
    assert_classes(&debug_file(&[unit], &[("f", 0x1000)]), &[]);
}

#[test]
fn line_zero_is_a_line() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 0, false)], 0x1100);
    assert_classes(&debug_file(&[unit], &[("f", 0x1000)]), &[Class::LINE_ZERO]);
}

#[test]
fn file_0_is_the_units_and_one_behind_the_last_is_none() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 0, 2, true), (0x1040, 9, 3, true)], 0x1100);
    assert_classes(&debug_file(&[unit], &[("f", 0x1000)]), &[]);
}

#[test]
fn one_sequence_that_ends_below_its_start_costs_that_sequence() {
    let unit = || {
        let unit = Unit::new(whole()).child(Die::function("f", (0x1000, 0x1100)));
        unit.child(Die::function("g", (0x1100, 0x1200)))
    };
    let [broken, whole] = [[(0x1000, 1, 2, true)], [(0x1100, 1, 5, true)]];
    let first = unit().sequence_that_ends_below(&broken, 0x40).sequence(&whole, 0x1200);
    let last = unit().sequence(&whole, 0x1200).sequence_that_ends_below(&broken, 0x40);
    for unit in [first, last] {
        let file = debug_file(&[unit], &[("f", 0x1000), ("g", 0x1100)]);
        assert_classes(&file, &[Class::BROKEN_UNIT]);
    }
}

#[test]
fn of_sequences_that_overlap_the_innermost_counts() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 1, 2, true), (0x1020, 1, 3, true)], 0x1100)
        .sequence(&[(0x1040, 1, 5, true)], 0x1080);
    assert_classes(&debug_file(&[unit], &[("f", 0x1000)]), &[Class::OVERLAPPING_SEQUENCES]);
}

#[test]
fn rows_that_are_set_to_a_lower_address_are_sorted_in() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 1, 2, true), (0x1080, 1, 5, true), (0x1040, 2, 0, false)], 0x1100);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    assert_eq!(ranges(&file, LinePolicy::Exact), "1000-1040:2 1040-1080:0 1080-1100:5");
    assert_eq!(ranges(&file, LinePolicy::Statement), "1000-1040:2 1040-1080:2 1080-1100:5");
    assert_classes(&file, &[Class::BACKWARD_ROWS]);
}

#[test]
fn a_sequence_that_ends_in_dropped_code_keeps_its_rows_to_itself() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .child(Die::function("g", (0x1100, 0x1200)))
        // The end is set to SVMA 0, where linkers put what they drop.
        .sequence(&[(0x1000, 1, 2, true), (0x1080, 1, 3, true), (0x1100, 1, 4, true)], 0)
        .sequence(&[(0x1180, 1, 7, true)], 0x1200);
    let file = debug_file(&[unit], &[("f", 0x1000), ("g", 0x1100)]);
    let expected = "1000-1080:2 1080-1100:3 1100-1180:- 1180-1200:7";
    assert_eq!(ranges(&file, LinePolicy::Exact), expected);
    assert_classes(&file, &[Class::BACKWARD_ROWS]);
}

#[test]
fn code_without_a_function_behind_rows_that_go_backwards_is_covered() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1100, 1, 9, true)], 0x1180)
        // addr2line joins this sequence and the next one, and skips both in its search.
        .sequence(&[(0x1000, 1, 2, true), (0x1100, 1, 4, true)], 0)
        .sequence(&[(0x1180, 1, 7, true)], 0x1200);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    assert_eq!(ranges(&file, LinePolicy::Exact), "1000-1100:2 1100-1180:9 1180-1200:7");
    assert_classes(&file, &[Class::LINE_WITHOUT_FUNCTION, Class::BACKWARD_ROWS]);
    let backward = &audited(&file, &file).peers[ADDR2LINE].classes[&Class::BACKWARD_ROWS];
    assert_eq!(backward.example.theirs, "nothing");
}

#[test]
fn a_function_that_states_its_sequence_has_the_rows_of_that_one() {
    // DW_AT_LLVM_stmt_sequence
    let stated = |offset: u32| {
        let value = Value::Form(dw::DW_FORM_sec_offset, offset.to_le_bytes().to_vec());
        let function = Die::function("f", (0x1000, 0x1100)).with(gimli::DwAt(0x3e0c), value);
        let unit = Unit::new(whole())
            .child(function)
            .sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 3, true)], 0x1100)
            .sequence(&[(0x1000, 1, 7, true), (0x1080, 1, 8, true)], 0x1100);
        debug_file(&[unit], &[("f", 0x1000)])
    };
    let (first, second) = ("1000-1040:2 1040-1100:3", "1000-1080:7 1080-1100:8");
    let mut found = Vec::new();
    for offset in 0..200 {
        let file = stated(offset);
        let exact = ranges(&file, LinePolicy::Exact);
        assert!(exact == first || exact == second, "{exact}");
        found.extend((exact == second).then_some(offset));
        // The audit finds out on its own which sequence is stated. addr2line takes any.
        let report = audited(&file, &file);
        assert_eq!((report.wrong(), report.unexplained_len), (Vec::new(), 0), "{report}");
    }
    assert_eq!(found.len(), 1, "{found:?}");
    let report = audited(&stated(0), &stated(found[0]));
    assert_ne!(report.unexplained_len, 0, "{report}");
}

#[test]
fn a_row_that_resumes_behind_an_inner_sequence_keeps_its_statement() {
    // The row at 0x1030 lies in f itself; where it resumes, g is inlined.
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)).child(Die::inlined("g", 3).range((0x1080, 0x10c0))))
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
        .sequence(&[(0x1000, 1, 2, true), (0x1030, 1, 0, false), (0x10d0, 1, 4, false)], 0x1100)
        .sequence(&[(0x1040, 1, 5, true)], 0x1080);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    let exact = "1000-1030:2 1030-1040:0 1040-1080:5 1080-10c0:0 10c0-10d0:0 10d0-1100:4";
    assert_eq!(ranges(&file, LinePolicy::Exact), exact);
    let statement = "1000-1030:2 1030-1040:2 1040-1080:5 1080-10c0:0 10c0-10d0:2 10d0-1100:4";
    assert_eq!(ranges(&file, LinePolicy::Statement), statement);
    assert_classes(&file, &[Class::LINE_ZERO, Class::OVERLAPPING_SEQUENCES]);
}

#[test]
fn functions_keep_their_names_where_the_line_program_is_damaged() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)).child(Die::inlined("g", 3).range((0x1040, 0x1080))))
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let mut file = debug_file(&[unit], &[("f", 0x1000)]);
    let table = file.windows(9).position(|bytes| bytes == b"a.c\0\0\0\0b.").expect("the file table");
    // The table no longer ends within its header.
    file[table..table + 14].fill(b'x');
    assert_classes(&file, &[Class::BROKEN_UNIT]);
}

#[test]
fn an_empty_part_of_a_path_adds_a_separator() {
    let unit = Unit::new(whole()).version(5).files(&["a.c", ""]).child(Die::function("f", (0x1000, 0x1100)));
    let file = debug_file(&[unit.sequence(&[(0x1000, 1, 2, true)], 0x1100)], &[]);
    assert_classes(&file, &[]);
}
