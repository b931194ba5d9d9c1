//! Inlined subroutines.

use super::*;

#[test]
fn the_outer_function_resumes_behind_the_inner_one() {
    let unit = Unit::new(whole())
        .child(Die::function("outer", (0x1000, 0x1100)))
        .child(Die::function("inner", (0x1040, 0x1080)))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 5, true), (0x1080, 1, 7, true)], 0x1100);
    let symbols = [("outer", 0x1000), ("inner", 0x1040)];
    assert_classes(&debug_file(&[unit], &symbols), &[Class::OVERLAPPING_FUNCTIONS]);
}

#[test]
fn what_an_empty_inlined_subroutine_holds_is_kept() {
    let inner = || Die::inlined("g", 3).range((0x1040, 0x1080));
    let file = |between: fn(Die) -> Die| {
        let unit = Unit::new(whole())
            .child(Die::function("f", (0x1000, 0x1100)).child(between(inner())))
            .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
            .sequence(&[(0x1000, 1, 2, true), (0x1040, 2, 5, true), (0x1080, 1, 7, true)], 0x1100);
        debug_file(&[unit], &[("f", 0x1000)])
    };
    assert_classes(&file(|inner| Die::new(dw::DW_TAG_lexical_block).child(inner)), &[]);
    assert_classes(
        &file(|inner| Die::inlined("g", 2).range((0x1040, 0x1040)).child(inner)),
        &[Class::EMPTY_INLINED],
    );
}

#[test]
fn of_inlined_subroutines_that_overlap_the_innermost_counts() {
    let inlined = |name| Die::new(dw::DW_TAG_subprogram).name(name).label(name);
    let unit = Unit::new(whole())
        .child(
            Die::function("f", (0x1000, 0x1100))
                .child(Die::inlined("g", 3).range((0x1010, 0x10f0)))
                .child(Die::inlined("h", 4).range((0x1040, 0x1050))),
        )
        .child(inlined("g"))
        .child(inlined("h"))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 2, 5, true), (0x1080, 1, 7, true)], 0x1100);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    let report = audited(&file, &file);
    // Behind the inner one, addr2line may not find the outer one. No class explains this, because compilers do not
    // write it.
    assert!(report.unexplained.iter().all(|difference| difference.what.starts_with("addr2line")), "{report}");
    assert_eq!(report.coverage.ours_function, report.coverage.expected_function);
}

#[test]
fn an_inlined_subroutine_goes_on_where_the_one_around_it_ends() {
    let outer =
        Die::inlined("g", 3).range((0x1040, 0x1080)).child(Die::inlined("h", 4).range((0x1060, 0x10a0)));
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)).child(outer))
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
        .child(Die::new(dw::DW_TAG_subprogram).name("h").label("h"))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 2, 5, true), (0x1080, 1, 7, true)], 0x1100);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    assert_classes(&file, &[Class::INLINED_OUTSIDE]);
    assert_eq!(innermost_names(&file), "1000:f 1040:g 1060:h 1080:h 10a0:f");
}

#[test]
fn of_inlined_subroutines_that_overlap_the_one_whose_code_starts_last_counts() {
    let inlined = |name| Die::new(dw::DW_TAG_subprogram).name(name).label(name);
    let file = |first: Die, second: Die| {
        let function = Die::function("f", (0x1020, 0x1100)).child(first).child(second);
        let unit = Unit::new(whole()).child(function).child(inlined("g")).child(inlined("h"));
        debug_file(&[unit.child(inlined("i")).sequence(&[(0x1020, 1, 2, true)], 0x1100)], &[("f", 0x1020)])
    };
    let names = |file: &[u8]| {
        let report = audited(file, file);
        let differs = |d: &symdex_audit::Difference| d.what.starts_with("symdex");
        assert!(!report.unexplained.iter().any(differs), "{report}");
        innermost_names(file)
    };
    // h starts after both g and i, although i is nested deeper.
    let deep =
        Die::inlined("g", 3).range((0x1030, 0x10f0)).child(Die::inlined("i", 5).range((0x1030, 0x10f0)));
    let late = Die::inlined("h", 4).range((0x1040, 0x1050));
    assert_eq!(names(&file(deep, late)), "1020:f 1030:i 1040:h 1050:i 10f0:f");
    // Code that g and h state outside of f is ignored. So both start with f, and h is shorter.
    let wide = Die::inlined("g", 3).range((0x1018, 0x1080));
    let wider = Die::inlined("h", 4).range((0x1010, 0x1050));
    assert_eq!(names(&file(wide, wider)), "1020:h 1050:g 1080:f");
}
