//! Direct lookups if the debug information states wrong ranges for its units, or none (docs/DEBUG-INFO.md, "Incomplete
//! address tables", "Code outside the ranges of its unit", "Code that several units claim"). The other tests that are
//! named after oddities compare each answer with direct lookups as well: `checks::image_answers` does.

use crate::checks::same_answers::{answer, assert_same, assert_same_everywhere, whole};
use symdex::{ImageOffset, Scratch};
use symdex_build::{Companions, DirectLookup, Image, slices};
use symdex_testkit::images::debug_file::{
    AddressSet, Die, Elf, ElfSymbol, Unit, aranges, debug_file, macho, unit_offsets,
};

fn with_image<T>(file: &[u8], check: impl FnOnce(&Image<'_>) -> T) -> T {
    let companions = Companions::default();
    let slice = slices(file).expect("an object file").remove(0);
    check(&Image::load(&slice, "made-up", &companions).expect("loads"))
}

/// Returns the name of the concrete function at `offset`. Checks that direct lookups and the index give the same
/// answers at every offset.
fn name(file: &[u8], offset: u64) -> String {
    with_image(file, |image| {
        let whole = whole(image);
        assert_same_everywhere(image, &whole);
        let mut lookup = DirectLookup::new(image).expect("reads");
        let index = lookup.answer(&[ImageOffset(offset)]).expect("answers");
        let mut scratch = Scratch::default();
        let frames = index.lookup(ImageOffset(offset), Default::default(), &mut scratch).expect("intact");
        let name = frames.and_then(|frames| frames.iter().last()?.name.map(<[u8]>::to_vec));
        String::from_utf8(name.unwrap_or_default()).expect("text")
    })
}

fn unit(name: &'static str, range: (u64, u64)) -> Unit {
    Unit::new(range).child(Die::function(name, range)).sequence(&[(range.0, 1, 2, true)], range.1)
}

#[test]
fn addresses_that_only_the_symbol_table_knows_are_answered_from_it() {
    let units = [unit("f", (0x1000, 0x1100)), unit("g", (0x1200, 0x1300))];
    let file = debug_file(&units, &[("f", 0x1000), ("plain", 0x1100), ("same", 0x1100), ("g", 0x1200)]);
    let names = [0x10ff, 0x1100, 0x11ff, 0x1200, 0x2fff, 0x3000].map(|offset| name(&file, offset));
    assert_eq!(names, ["f", "plain", "plain", "g", "g", ""]);
    // The same holds without any debug information. ELF symbols may be nested, and code between them has no answer.
    assert_eq!(name(&debug_file(&[], &[("plain", 0x1100)]), 0x1101), "plain");
    let symbols =
        vec![ElfSymbol::function("outer", 0x1000, 0x100), ElfSymbol::function("inner", 0x1040, 0x10)];
    let file = Elf { symbols, ..Elf::default() }.bytes();
    assert_eq!(
        [0x103f, 0x1040, 0x1050, 0x1100].map(|offset| name(&file, offset)),
        ["outer", "inner", "outer", ""]
    );
}

#[test]
fn tails_that_no_row_covers_are_those_of_the_index() {
    let tail = Die::function("OUTLINED_FUNCTION_0", (0x1100, 0x1140));
    let unit = Unit::new((0x1000, 0x1140)).child(Die::function("f", (0x1000, 0x1100))).child(tail);
    let rows = [(0x1000, 1, 2, true), (0x1040, 2, 7, false)];
    let file = debug_file(&[unit.sequence(&rows, 0x10f0)], &[]);
    assert_eq!([0x10ef, 0x10f0, 0x1120].map(|offset| name(&file, offset)), ["f", "f", "OUTLINED_FUNCTION_0"]);
}

/// A row of line 0 takes its line from a row before it in its own function. So the functions around the address have to
/// be known.
#[test]
fn functions_around_the_one_that_is_asked_for_decide_about_its_lines() {
    let unit = Unit::new((0x1000, 0x1200))
        .child(Die::function("outer", (0x1000, 0x1100)))
        .child(Die::function("inner", (0x1040, 0x1060)))
        .child(Die::function("apart", (0x1100, 0x1200)).child(Die::function("nested", (0x1140, 0x1160))));
    let rows = |start: u64| {
        [
            (start, 1, 2, true),
            (start + 0x40, 2, 5, true),
            (start + 0x60, 2, 0, false),
            (start + 0x80, 1, 0, false),
        ]
    };
    let file = debug_file(&[unit.sequence(&rows(0x1000), 0x1100).sequence(&rows(0x1100), 0x1200)], &[]);
    assert_eq!([0x1000, 0x1050, 0x1090].map(|offset| name(&file, offset)), ["outer", "inner", "outer"]);
    assert_eq!([0x1100, 0x1150, 0x1190].map(|offset| name(&file, offset)), ["apart", "nested", "apart"]);
}

#[test]
fn units_that_state_no_range_are_found() {
    let bare = |name, range: (u64, u64)| {
        Unit::bare().child(Die::function(name, range)).sequence(&[(range.0, 1, 2, true)], range.1)
    };
    let units =
        [bare("f", (0x1000, 0x1100)), unit("g", (0x1100, 0x1200)), bare("h", (0x1140, 0x1150)), Unit::bare()];
    let file = debug_file(&units, &[]);
    let names = [0x1000, 0x113f, 0x1140, 0x1150].map(|offset| name(&file, offset));
    assert_eq!(names, ["f", "g", "h", "g"]);
}

#[test]
fn aranges_that_miss_code_or_name_the_wrong_unit_do_no_harm() {
    let three = || {
        [
            unit("f", (0x1000, 0x1100)),
            unit("g", (0x1100, 0x1200)),
            Unit::bare().child(Die::function("h", (0x1200, 0x1300))),
        ]
    };
    let [f, g, h] = unit_offsets(&three())[..] else { panic!("three units") };
    let sets: [&[AddressSet<'_>]; 4] = [
        &[(f, &[(0x1000, 0x1100)]), (g, &[(0x1100, 0x1200)]), (h, &[(0x1200, 0x1300)])],
        // Ranges of other units, ranges that are too long, and ranges that are too short.
        &[(f, &[(0x1200, 0x1300)]), (g, &[(0x1000, 0x3000)]), (h, &[(0x1000, 0x1008)])],
        // Offsets at which no unit starts.
        &[(f + 1, &[(0x1000, 0x1100)]), (0xffff, &[(0x1100, 0x1200)])],
        &[],
    ];
    for sets in sets {
        let mut macho = macho(&three(), &[]);
        macho.debug.push(("__debug_aranges", aranges(sets)));
        let file = macho.bytes();
        let names = [0x1000, 0x1100, 0x1200, 0x12ff].map(|offset| name(&file, offset));
        assert_eq!(names, ["f", "g", "h", "h"], "{sets:x?}");
    }
}

#[test]
fn of_several_units_that_claim_an_address_the_one_answers_that_the_index_has() {
    let lines = |line| Unit::new((0x1000, 0x1400)).sequence(&[(0x1000, 1, line, true)], 0x1400);
    let units = [
        lines(1),
        unit("outer", (0x1000, 0x1200)),
        unit("inner", (0x1080, 0x1100)),
        unit("first", (0x1200, 0x1300)),
        unit("second", (0x1200, 0x1300)),
        lines(9),
    ];
    let file = debug_file(&units, &[]);
    let names = [0x1000, 0x1080, 0x1100, 0x1200, 0x1300].map(|offset| name(&file, offset));
    assert_eq!(names, ["outer", "inner", "outer", "first", ""]);
    // Of functions with the same range, the one that the symbol table names answers.
    let file = debug_file(&units, &[("second", 0x1200), ("after", 0x1300), ("alias", 0x1300)]);
    assert_eq!([0x1200, 0x1300].map(|offset| name(&file, offset)), ["second", "after"]);
}

/// All units are read if the code is outside of the ranges that its unit states.
#[test]
fn code_outside_of_what_its_unit_states_is_found() {
    let wrong = Unit::new((0x1000, 0x1100))
        .child(Die::function("f", (0x1000, 0x1100)))
        .child(Die::function("stray", (0x2000, 0x2100)))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100)
        .sequence(&[(0x2000, 1, 8, true)], 0x2100)
        .sequence(&[(0x2800, 1, 9, true)], 0x2840);
    let file = debug_file(&[wrong, unit("g", (0x1100, 0x1200))], &[("line_alone", 0x2800)]);
    let names = [0x1000, 0x1100, 0x2000, 0x20ff, 0x2100, 0x2800].map(|offset| name(&file, offset));
    assert_eq!(names, ["f", "g", "stray", "stray", "", "line_alone"]);
}

#[test]
fn a_unit_that_was_read_tells_that_what_units_state_is_wrong() {
    let honest = unit("outer", (0x1000, 0x1400));
    let wrong = Unit::new((0x2000, 0x2100))
        .child(Die::function("g", (0x2000, 0x2100)))
        .child(Die::function("inside", (0x1100, 0x1200)));
    with_image(&debug_file(&[honest, wrong], &[]), |image| {
        let whole = whole(image);
        let mut lookup = DirectLookup::new(image).expect("reads");
        // The first address makes the lookup read the second unit.
        assert_same(&mut lookup, &whole, &[0x2000, 0x1100, 0x11ff, 0x1000], 1);
    });
}

#[test]
fn answers_do_not_depend_on_what_was_asked_before() {
    let units = [unit("f", (0x1000, 0x1100)), unit("g", (0x1100, 0x1200)), unit("h", (0x1200, 0x1300))];
    with_image(&debug_file(&units, &[("plain", 0x1400)]), |image| {
        let whole = whole(image);
        let mut lookup = DirectLookup::new(image).expect("reads");
        for _ in 0..4 {
            for at_a_time in [1, 2, 5] {
                let offsets = [0x1000, 0x1400, 0x1100, 0x10ff, 0x1000, 0x0, 0x1200, u64::MAX];
                assert_same(&mut lookup, &whole, &offsets, at_a_time);
            }
        }
        // The small index answers only the addresses that were asked for.
        let index = lookup.answer(&[ImageOffset(0x1000)]).expect("answers");
        assert_eq!(answer(index, 0x1100, &mut Scratch::default()), [const { Vec::<String>::new() }; 3]);
        let (of_part, of_whole) = (lookup.index().metadata(), whole.metadata());
        assert_eq!((&of_part.id, of_part.base), (&of_whole.id, of_whole.base));
        assert_eq!((&of_part.executable, &of_part.arch), (&of_whole.executable, &of_whole.arch));
    });
}
