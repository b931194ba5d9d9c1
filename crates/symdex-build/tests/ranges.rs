//! Oddities of units, functions and their ranges (docs/DEBUG-INFO.md, "Units and functions").

use crate::checks::{answers, built, peer};
use gimli::constants as dw;
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_testkit::images::debug_file::{
    AddressSet, BASE, CODE, Die, MachO, Unit, Value, aranges, debug_file, macho, unit_offsets,
};

fn whole() -> Unit {
    Unit::new((CODE.start, CODE.end))
}

fn dwarf(file: &[u8]) -> Vec<String> {
    answers(file, Table::Dwarf)
}

/// Returns what the build dropped, as `reason: count`. Checks that the index is not partial.
fn dropped(file: &[u8]) -> Vec<String> {
    let built = built(file);
    let index = Index::open(built.bytes).expect("just written");
    assert_eq!(index.metadata().partial, [], "nothing is lost");
    built.report.dropped.iter().map(|(reason, count)| format!("{reason}: {count}")).collect()
}

const OUTSIDE: &str = "ranges of functions outside of the executable sections";
const OUTSIDE_LINES: &str = "line sequences outside of the executable sections";

/// A function, and a dropped function whose debug information the linker left at `svma`. Both have lines.
fn with_dead_code(svma: u64) -> Unit {
    whole()
        .child(Die::new(dw::DW_TAG_subprogram).name("dead").svma_and_size(svma, 0))
        .child(Die::new(dw::DW_TAG_subprogram).name("dead").with_end(svma, svma.wrapping_add(0x2000)))
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(svma.wrapping_sub(BASE), 1, 9, true)], svma.wrapping_sub(BASE).wrapping_add(0x2000))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100)
}

#[test]
fn dead_stripped_code_at_0_1_or_below_0_is_no_code() {
    for svma in [0, 1, u64::MAX - 1, u64::MAX] {
        let file = debug_file(&[with_dead_code(svma)], &[("f", 0x1000)]);
        assert_eq!(dwarf(&file), ["1000..1100 f a.c:2"], "{svma:#x}");
        let dropped = dropped(&file);
        assert!(dropped.contains(&"empty ranges of functions: 1".to_owned()), "{svma:#x}: {dropped:?}");
        assert_eq!(dropped.len(), 3, "{svma:#x}: {dropped:?}");
    }
    assert_eq!(
        dropped(&debug_file(&[with_dead_code(1)], &[])),
        ["empty ranges of functions: 1".to_owned(), format!("{OUTSIDE_LINES}: 1"), format!("{OUTSIDE}: 1")]
    );
}

/// The addresses of a dylib count from 0, where the Mach-O header is.
#[test]
fn dead_stripped_code_of_32_bits_is_no_code_in_a_dylib() {
    for svma in [0, 1, 0xffff_fffe, 0xffff_ffff] {
        let unit = with_dead_code(svma).address_size(4);
        let armv7 = MachO { cpu: (12, 9), base: 0, ..macho(&[unit], &[]) };
        assert_eq!(dwarf(&armv7.bytes()), ["1000..1100 f a.c:2"], "{svma:#x}");
    }
}

#[test]
fn a_lone_end_sequence_at_0_is_dropped() {
    let code = whole().child(Die::function("f", (0x1000, 0x1100))).sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let file = debug_file(&[Unit::bare().sequence(&[], 0), code, Unit::bare().sequence(&[], 0)], &[]);
    assert_eq!(dwarf(&file), ["1000..1100 f a.c:2"]);
    assert_eq!(dropped(&file), ["empty line sequences: 2"]);
    // An empty sequence inside the code is dropped too.
    let file = debug_file(&[whole().sequence(&[], 0x1080)], &[]);
    assert_eq!((dwarf(&file), dropped(&file)), (vec![], vec!["empty line sequences: 1".to_owned()]));
}

#[test]
fn units_without_a_single_entry_are_no_loss() {
    let code = whole().child(Die::function("f", (0x1000, 0x1100))).sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let mut file = macho(&[code], &[]);
    let info = file.debug.iter_mut().find(|(name, _)| *name == "__debug_info").expect("the section");
    let empty = [7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8];
    info.1 = [&empty[..], &info.1, &empty].concat();
    let file = file.bytes();
    assert_eq!(dwarf(&file), ["1000..1100 f a.c:2"]);
    assert_eq!((dropped(&file), built(&file).report.failed_units), (Vec::new(), 0));
}

#[test]
fn empty_inverted_and_wrapping_ranges_are_dropped_and_their_children_visited() {
    let with_child = |die: Die, at: u64| die.child(Die::function("inner", (at, at + 0x10)));
    let function = || Die::new(dw::DW_TAG_subprogram).name("none");
    let unit = whole()
        .child(with_child(function().range((0x1000, 0x1000)), 0x1000))
        .child(with_child(function().with_end(BASE + 0x1200, BASE + 0x1100), 0x1100))
        .child(with_child(function().svma_and_size(BASE + 0x1200, u64::MAX - 7), 0x1200))
        .child(with_child(function().ranges(&[(0x1310, 0x1300), (0x1320, 0x1320)]), 0x1300))
        .child(function().ranges(&[(0x1410, 0x1400), (0x1440, 0x1450), (0x1420, 0x1420)]));
    let file = debug_file(&[unit], &[]);
    assert_eq!(
        dwarf(&file),
        [
            "1000..1010 inner -",
            "1100..1110 inner -",
            "1200..1210 inner -",
            "1300..1310 inner -",
            "1440..1450 none -"
        ]
    );
    assert_eq!(
        dropped(&file),
        [
            "empty ranges of functions: 1",
            "inverted ranges of functions: 2",
            "range-list entries that state no code: 4"
        ]
    );
}

#[test]
fn inlined_calls_outside_of_their_parents_count_where_nothing_else_does() {
    let call = |name, range| Die::inlined(name, 3).range(range);
    let callees = |unit: Unit| {
        let callee = |unit: Unit, name| unit.child(Die::new(dw::DW_TAG_subprogram).name(name).label(name));
        ["a", "b", "c", "d"].into_iter().fold(unit, callee)
    };
    let frames = |function: Die| dwarf(&debug_file(&[callees(whole().child(function))], &[]));
    // b lies outside of a, c in the part of b outside, and d outside of all of them.
    let d = call("d", (0x1060, 0x1070));
    let c = call("c", (0x1044, 0x1048)).child(d);
    let b = call("b", (0x1018, 0x1050)).child(c);
    let a = call("a", (0x1010, 0x1020)).child(b);
    let of_f = |inner: Die| Die::function("f", (0x1000, 0x1100)).child(inner);
    let (in_a, in_b) = ("a - < f a.c:3", "b - < a a.c:3 < f a.c:3");
    let in_c = format!("c - < {}", in_b.replace("b -", "b a.c:3"));
    let expected = [
        "1000..1010 f -".to_owned(),
        format!("1010..1018 {in_a}"),
        format!("1018..1044 {in_b}"),
        format!("1044..1048 {in_c}"),
        format!("1048..1050 {in_b}"),
        "1050..1060 f -".to_owned(),
        format!("1060..1070 d - < {}", in_c.replace("c -", "c a.c:3")),
        "1070..1100 f -".to_owned(),
    ];
    assert_eq!(frames(of_f(a)), expected);
    // What another call claims inside of its parent is that call's, in any order. Code outside of the function is not
    // its.
    let outside = || call("a", (0x1010, 0x1020)).child(call("b", (0x1018, 0x1200)));
    let other = || call("c", (0x1030, 0x1040));
    let expected = [
        "1000..1010 f -".to_owned(),
        format!("1010..1018 {in_a}"),
        format!("1018..1030 {in_b}"),
        "1030..1040 c - < f a.c:3".to_owned(),
        format!("1040..1100 {in_b}"),
    ];
    assert_eq!(frames(of_f(outside()).child(other())), expected);
    assert_eq!(frames(of_f(other()).child(outside())), expected);
    // Calls in one that lies outside of the function.
    let beyond = call("a", (0x1200, 0x1210)).child(call("b", (0x1020, 0x1030)));
    assert_eq!(frames(of_f(beyond)), ["1000..1020 f -", &format!("1020..1030 {in_b}"), "1030..1100 f -"]);
}

#[test]
fn an_outer_function_resumes_behind_an_inner_one() {
    let rows = [(0x1000, 1, 2, true), (0x1040, 1, 5, true), (0x1050, 1, 7, true)];
    let unit = whole()
        .child(Die::function("outer", (0x1000, 0x1100)))
        .child(Die::function("inner", (0x1040, 0x1050)))
        .sequence(&rows, 0x1100);
    let file = debug_file(&[unit], &[]);
    assert_eq!(dwarf(&file), ["1000..1040 outer a.c:2", "1040..1050 inner a.c:5", "1050..1100 outer a.c:7"]);
    // addr2line finds the function that starts last, which has ended, and does not search further.
    assert_eq!(peer(&file, 0x1050), "-:7");
    let shorter = whole()
        .child(Die::function("short", (0x1000, 0x1020)))
        .child(Die::function("long", (0x1000, 0x1100)))
        .child(Die::function("crossing", (0x10f0, 0x1200)));
    assert_eq!(
        dwarf(&debug_file(&[shorter], &[])),
        ["1000..1020 short -", "1020..10f0 long -", "10f0..1200 crossing -"]
    );
    // They may come from different units, in any order.
    let of_unit = |name, range| Unit::new(range).child(Die::function(name, range));
    let units = || [of_unit("outer", (0x1000, 0x1100)), of_unit("inner", (0x1040, 0x1050))];
    let expected = ["1000..1040 outer -", "1040..1050 inner -", "1050..1100 outer -"];
    assert_eq!(dwarf(&debug_file(&units(), &[])), expected);
    let [outer, inner] = units();
    assert_eq!(dwarf(&debug_file(&[inner, outer], &[])), expected);
}

#[test]
fn of_folded_functions_the_symbol_decides_and_else_the_first_die() {
    let file = |symbols: &[(&str, u64)], units: usize| {
        let names = ["b", "c", "a"];
        let function = |name: &&'static str| Die::function("plain", (0x1000, 0x1100)).linkage_name(name);
        let units: Vec<Unit> = match units {
            1 => vec![names.iter().fold(whole(), |unit, name| unit.child(function(name)))],
            _ => names.iter().map(|name| whole().child(function(name))).collect(),
        };
        debug_file(&units, symbols)
    };
    for units in [1, 3] {
        assert_eq!(dwarf(&file(&[], units)), ["1000..1100 b -"]);
        assert_eq!(dwarf(&file(&[("a", 0x1000)], units)), ["1000..1100 a -"]);
        assert_eq!(dwarf(&file(&[("c", 0x1000)], units)), ["1000..1100 c -"]);
        // If two symbols are there, neither counts.
        assert_eq!(dwarf(&file(&[("c", 0x1000), ("a", 0x1000)], units)), ["1000..1100 b -"]);
        assert_eq!(dwarf(&file(&[("other", 0x1000)], units)), ["1000..1100 b -"]);
    }
}

#[test]
fn range_lists_count_from_the_low_pc_of_a_unit_with_gaps() {
    let relative = |die: Die, ranges: &[(u64, u64)]| {
        let ranges = ranges.iter().map(|(start, end)| (start - 0x1000, end - 0x1000)).collect();
        die.with(dw::DW_AT_ranges, Value::RelativeRanges(ranges))
    };
    let inlined = relative(Die::inlined("g", 3), &[(0x1010, 0x1020), (0x1210, 0x1220)]);
    // A subprogram in two parts, as in ELF files, has the low_pc of the first part beside the list.
    let f = Die::new(dw::DW_TAG_subprogram).name("f");
    let f = f.with(dw::DW_AT_low_pc, Value::Address(BASE + 0x1000));
    let f = relative(f, &[(0x1000, 0x1100), (0x1200, 0x1300)]).child(inlined);
    let unit = Unit::with_gaps(0x1000, &[(0x1000, 0x1100), (0x1200, 0x1300)])
        .child(f)
        .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g"))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100)
        .sequence(&[(0x1200, 1, 5, true)], 0x1300);
    assert_eq!(
        dwarf(&debug_file(&[unit], &[])),
        [
            "1000..1010 f a.c:2",
            "1010..1020 g a.c:2 < f a.c:3",
            "1020..1100 f a.c:2",
            "1200..1210 f a.c:5",
            "1210..1220 g a.c:5 < f a.c:3",
            "1220..1300 f a.c:5",
        ]
    );
}

#[test]
fn outlined_functions_have_no_rows_and_names_that_repeat() {
    let unit = |start: u64, line| {
        let outlined = Die::function("OUTLINED_FUNCTION_0", (start + 0x100, start + 0x110));
        Unit::new((start, start + 0x110))
            .child(Die::function("f", (start, start + 0x100)))
            .child(outlined.linkage_name("_OUTLINED_FUNCTION_0"))
            .sequence(&[(start, 2, line, true)], start + 0x100)
    };
    assert_eq!(
        dwarf(&debug_file(&[unit(0x1000, 3), unit(0x2000, 5)], &[])),
        [
            "1000..1100 f b.h:3",
            "1100..1110 OUTLINED_FUNCTION_0 - [statement b.h:3]",
            "2000..2100 f b.h:5",
            "2100..2110 OUTLINED_FUNCTION_0 - [statement b.h:5]",
        ]
    );
}

#[test]
fn split_off_parts_are_functions_with_names_of_their_own() {
    let names = ["_Z3hotv", "_Z3hotv.cold.1", "coroutine.resume.0", "local.llvm.123"];
    let parts = names.iter().zip([0x1000, 0x2000, 0x1100, 0x1200]);
    let unit = parts.fold(whole(), |unit, (name, at)| {
        unit.child(Die::function("hot", (at, at + 0x10)).linkage_name(name))
    });
    assert_eq!(
        dwarf(&debug_file(&[unit], &[])),
        [
            "1000..1010 _Z3hotv -",
            "1100..1110 coroutine.resume.0 -",
            "1200..1210 local.llvm.123 -",
            "2000..2010 _Z3hotv.cold.1 -",
        ]
    );
}

#[test]
fn call_sites_of_gcc_are_no_functions() {
    // In DWARF 4 a call site has the attributes of a function. The second call is inlined.
    let call = |at: u64| {
        let call = Die::new(dw::DW_TAG_GNU_call_site).refers(dw::DW_AT_abstract_origin, "called");
        call.with(dw::DW_AT_low_pc, Value::Address(BASE + at))
    };
    let function = Die::function("f", (0x1000, 0x1100));
    let inlined = Die::inlined("g", 3).range((0x1040, 0x1080)).child(call(0x1060));
    let unit = whole()
        .child(function.child(call(0x1020)).child(inlined))
        .child(Die::new(dw::DW_TAG_subprogram).label("g").name("g"))
        .child(Die::new(dw::DW_TAG_subprogram).label("called").name("called"));
    let file = debug_file(&[unit], &[]);
    assert_eq!(dwarf(&file), ["1000..1040 f -", "1040..1080 g - < f a.c:3", "1080..1100 f -"]);
    assert_eq!((peer(&file, 0x1020), peer(&file, 0x1060)), ("f:-".to_owned(), "g:- < f:3".to_owned()));
}

#[test]
fn labels_of_assembler_units_are_no_functions_and_symbols_name_them() {
    let label = |svma| {
        let label = Die::new(dw::DW_TAG_label).name("label");
        label.with(dw::DW_AT_low_pc, Value::Address(svma))
    };
    let unit = whole().language(dw::DW_LANG_Mips_Assembler).child(label(0)).child(label(BASE + 0x1010));
    let file = debug_file(&[unit], &[("start", 0x1000), ("stop", 0x1100)]);
    assert_eq!(dwarf(&file), [""; 0]);
    assert_eq!(answers(&file, Table::SymbolTable), ["1000..1100 start", "1100..3000 stop"]);
}

#[test]
fn functions_without_debug_information_inside_a_unit_come_from_the_symbol_table() {
    let unit = whole()
        .child(Die::function("f", (0x1000, 0x1100)))
        .child(Die::function("g", (0x1200, 0x1300)))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100)
        .sequence(&[(0x1200, 1, 5, true)], 0x1300);
    let file = debug_file(&[unit], &[("f", 0x1000), ("plain", 0x1100), ("g", 0x1200)]);
    assert_eq!(dwarf(&file), ["1000..1100 f a.c:2", "1200..1300 g a.c:5"]);
    let index = Index::open(built(&file).bytes).expect("just written");
    let mut scratch = Scratch::default();
    let mut at = |offset| {
        let frames = index.lookup(ImageOffset(offset), LinePolicy::Statement, &mut scratch);
        let frame = frames.expect("whole").expect("code").iter().next().expect("a frame");
        (String::from_utf8_lossy(frame.name.expect("a name")).into_owned(), frame.table, frame.line)
    };
    assert_eq!(at(0x10ff), ("f".to_owned(), Table::Dwarf, Some(2)));
    assert_eq!(at(0x1100), ("plain".to_owned(), Table::SymbolTable, None));
    assert_eq!(at(0x11ff), ("plain".to_owned(), Table::SymbolTable, None));
    assert_eq!(at(0x1200), ("g".to_owned(), Table::Dwarf, Some(5)));
}

/// Three units with one function each.
fn three() -> [Unit; 3] {
    [("f", 0x1000), ("g", 0x1100), ("h", 0x1200)].map(|(name, start)| {
        let range = (start, start + 0x100);
        Unit::new(range).child(Die::function(name, range)).sequence(&[(start, 1, 2, true)], range.1)
    })
}

fn with_aranges(units: &[Unit], sets: &[AddressSet<'_>]) -> Vec<u8> {
    let mut macho = macho(units, &[]);
    macho.debug.push(("__debug_aranges", aranges(sets)));
    macho.bytes()
}

const THREE: [&str; 3] = ["1000..1100 f a.c:2", "1100..1200 g a.c:2", "1200..1300 h a.c:2"];

#[test]
fn units_that_aranges_miss_or_misplace_keep_their_answers() {
    let [f, g, h] = unit_offsets(&three())[..] else { panic!("three units") };
    let misses: [(&[AddressSet<'_>], &[&str]); 5] = [
        (&[(f, &[(0x1000, 0x1100)]), (g, &[(0x1100, 0x1200)]), (h, &[(0x1200, 0x1300)])], &[]),
        (&[(g, &[(0x1100, 0x1200)])], &[".debug_aranges misses 2 units with code"]),
        // A set with the range of another unit, and a set that is longer than its unit.
        (&[(f, &[(0x1200, 0x1300)]), (g, &[(0x1000, 0x3000)]), (h, &[(0x1000, 0x1008)])], &[]),
        // Offsets at which no unit starts.
        (
            &[(f + 1, &[(0x1000, 0x1100)]), (0xffff, &[(0x1100, 0x1200)])],
            &[".debug_aranges misses 3 units with code"],
        ),
        (&[(f, &[]), (g, &[]), (h, &[])], &[".debug_aranges misses 3 units with code"]),
    ];
    for (sets, warnings) in misses {
        let file = with_aranges(&three(), sets);
        assert_eq!(dwarf(&file), THREE, "{sets:?}");
        let built = built(&file);
        let found: Vec<_> =
            built.warnings.iter().filter(|warning| warning.starts_with(".debug_aranges")).collect();
        assert_eq!(found, warnings, "{sets:?}");
    }
}

#[test]
fn aranges_may_name_a_unit_by_its_root_entry() {
    let bare = |version: u16, dwarf64: bool| {
        three().map(|unit| {
            // DWARF 5 counts files from 0.
            let unit = unit.version(version).files(&["a.c", "a.c"]);
            if dwarf64 { unit.dwarf64() } else { unit }
        })
    };
    for (version, dwarf64, header) in
        [(2, false, 0xb), (4, false, 0xb), (5, false, 0xc), (4, true, 0x17), (5, true, 0x18)]
    {
        let offsets = unit_offsets(&bare(version, dwarf64));
        let ranges = [[(0x1000, 0x1100)], [(0x1100, 0x1200)], [(0x1200, 0x1300)]];
        for shift in [0, header] {
            let sets: Vec<AddressSet<'_>> =
                offsets.iter().zip(&ranges).map(|(offset, ranges)| (offset + shift, &ranges[..])).collect();
            let file = with_aranges(&bare(version, dwarf64), &sets);
            assert_eq!(dwarf(&file), THREE, "DWARF {version}, + {shift:#x}");
            assert_eq!(built(&file).warnings, Vec::<String>::new(), "DWARF {version}, + {shift:#x}");
        }
    }
}
