//! Oddities of references and names (docs/DEBUG-INFO.md, "Names").

use crate::checks::{answers, built, peer};
use gimli::constants as dw;
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_testkit::images::debug_file::{BASE, CODE, Die, MachO, Symbol, Unit, Value, debug_file, macho};

fn whole() -> Unit {
    Unit::new((CODE.start, CODE.end))
}

fn dwarf(file: &[u8]) -> Vec<String> {
    answers(file, Table::Dwarf)
}

fn subprogram() -> Die {
    Die::new(dw::DW_TAG_subprogram)
}

/// A function at 0x1000 whose name is in the entry with the label `origin`.
fn concrete(origin: &'static str) -> Die {
    subprogram().range((0x1000, 0x1100)).refers(dw::DW_AT_abstract_origin, origin)
}

/// An inlined call at 0x1040 in the function `f` at 0x1000.
fn caller(inlined: Die) -> Die {
    Die::function("f", (0x1000, 0x1100)).child(inlined.range((0x1040, 0x1080)))
}

#[test]
fn names_are_found_through_origins_and_specifications_in_every_version() {
    for version in 2..=5 {
        let file = debug_file(
            &[
                // In the same unit, by a reference within it and by one across units.
                whole()
                    .version(version)
                    .child(concrete("abstract"))
                    .child(
                        subprogram()
                            .range((0x1100, 0x1200))
                            .with(dw::DW_AT_abstract_origin, Value::DieOfUnit("abstract")),
                    )
                    .child(subprogram().label("abstract").refers(dw::DW_AT_specification, "declared")),
                // In another unit that comes later.
                Unit::bare()
                    .version(version)
                    .child(subprogram().label("declared").name("m").linkage_name("_Z1mv")),
            ],
            &[],
        );
        assert_eq!(dwarf(&file), ["1000..1100 _Z1mv -", "1100..1200 _Z1mv -"], "DWARF {version}");
    }
}

/// In DWARF 2 a reference across units is as wide as an address.
#[test]
fn references_of_dwarf_2_are_as_wide_as_addresses() {
    for (address_size, cpu, base) in [(4, (12, 9), 0), (8, (0x0100_000c, 0), BASE)] {
        let unit = whole()
            .version(2)
            .address_size(address_size)
            .child(concrete("named"))
            .child(subprogram().label("named").name("n"));
        let file = MachO { cpu, base, ..macho(&[unit], &[]) };
        assert_eq!(dwarf(&file.bytes()), ["1000..1100 n -"], "{address_size}");
    }
}

#[test]
fn circles_and_long_chains_of_origins_end() {
    let lost = |file: &[u8]| {
        let index = Index::open(built(file).bytes).expect("just written");
        index.metadata().partial.iter().map(|p| format!("{}: {}", p.reason, p.count)).collect::<Vec<_>>()
    };
    let too_long = ["names whose origins form a circle or a long chain: 1"];
    let itself = whole().child(concrete("self").label("self"));
    let file = debug_file(&[itself], &[]);
    assert_eq!(
        (dwarf(&file), lost(&file)),
        (vec!["1000..1100 - -".to_owned()], too_long.map(String::from).to_vec())
    );

    let around = whole()
        .child(concrete("a"))
        .child(subprogram().label("a").name("named").refers(dw::DW_AT_abstract_origin, "b"))
        .child(subprogram().label("b").refers(dw::DW_AT_specification, "a"));
    let file = debug_file(&[around], &[]);
    assert_eq!(
        (dwarf(&file), lost(&file)),
        (vec!["1000..1100 named -".to_owned()], too_long.map(String::from).to_vec())
    );

    // 16 entries are read. A name in the last of them is found, a name after it is not.
    const LABELS: [&str; 16] =
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"];
    let chain = |len: usize| {
        let unit = LABELS[1..len - 1].iter().zip(&LABELS).fold(
            whole().child(concrete("1")),
            |unit, (next, label)| {
                unit.child(subprogram().label(label).refers(dw::DW_AT_abstract_origin, next))
            },
        );
        debug_file(&[unit.child(subprogram().label(LABELS[len - 2]).linkage_name("end"))], &[])
    };
    assert_eq!((dwarf(&chain(16)), lost(&chain(16))), (vec!["1000..1100 end -".to_owned()], vec![]));
    assert_eq!(
        (dwarf(&chain(17)), lost(&chain(17))),
        (vec!["1000..1100 - -".to_owned()], too_long.map(String::from).to_vec())
    );
}

#[test]
fn references_to_nowhere_cost_the_name_alone() {
    for nowhere in [0, 0x0b, 3, 0xffff_fff0] {
        let f = subprogram().range((0x1000, 0x1100)).with(dw::DW_AT_abstract_origin, Value::DieAt(nowhere));
        let unit = whole().child(f).child(Die::function("g", (0x1100, 0x1200)));
        let unit = unit.sequence(&[(0x1000, 1, 2, true)], 0x1200);
        let file = debug_file(&[unit], &[]);
        let found = dwarf(&file);
        assert!(
            found[0].ends_with(" a.c:2") && found[0].starts_with("1000..1100 "),
            "{nowhere:#x}: {found:?}"
        );
        assert_eq!(found[1..], ["1100..1200 g a.c:2"], "{nowhere:#x}");
    }
}

#[test]
fn a_concrete_function_has_its_linkage_name_then_its_symbol_then_its_qualified_name() {
    let named = |die: Die, with_scope: bool| {
        let unit = whole().language(dw::DW_LANG_C_plus_plus_14).child(concrete("m"));
        let scope = |tag, name, child| Die::new(tag).name(name).child(child);
        let die = die.label("m");
        if with_scope {
            unit.child(scope(dw::DW_TAG_namespace, "ns", scope(dw::DW_TAG_class_type, "Class", die)))
        } else {
            unit.child(die)
        }
    };
    let m = || subprogram().name("m");
    let name = |unit, symbols: &[(&str, u64)]| dwarf(&debug_file(&[unit], symbols)).remove(0);
    let symbol = [("_ZN2ns5Class1mEv", 0x1000)];
    assert_eq!(name(named(m().linkage_name("_Z1mv"), true), &symbol), "1000..1100 _Z1mv -");
    assert_eq!(name(named(m(), true), &symbol), "1000..1100 _ZN2ns5Class1mEv -");
    // A symbol at another address does not count, and two symbols at the entry do not either.
    assert_eq!(name(named(m(), true), &[("other", 0x1004)]), "1000..1100 ns::Class::m -");
    assert_eq!(name(named(m(), true), &[("a", 0x1000), ("b", 0x1000)]), "1000..1100 ns::Class::m -");
    assert_eq!(name(named(m(), true), &[]), "1000..1100 ns::Class::m -");
    assert_eq!(name(named(m(), false), &[]), "1000..1100 m -");
    assert_eq!(name(whole().child(subprogram().range((0x1000, 0x1100))), &[]), "1000..1100 - -");
    assert_eq!(name(whole().child(subprogram().range((0x1000, 0x1100))), &[("s", 0x1000)]), "1000..1100 s -");
}

/// The name of a function at 0x1000 in the namespace `ns`, with these symbols there.
fn name_among(function: Die, symbols: &[&str]) -> String {
    let unit = whole().language(dw::DW_LANG_C_plus_plus_14);
    let unit = unit.child(Die::new(dw::DW_TAG_namespace).name("ns").child(function.range((0x1000, 0x1100))));
    let symbols: Vec<_> = symbols.iter().map(|name| (*name, 0x1000)).collect();
    dwarf(&debug_file(&[unit], &symbols)).remove(0).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn of_several_symbols_at_an_entry_those_that_read_alike_or_end_with_the_plain_name_count() {
    let name = |plain, symbols: &[&str]| name_among(subprogram().name(plain), symbols);
    assert_eq!(name("Foo", &["_ZN2ns3FooC2Ev", "_ZN2ns3FooC1Ev"]), "_ZN2ns3FooC1Ev");
    assert_eq!(name("~Foo", &["_ZN2ns3FooD0Ev", "_ZN2ns3FooD2Ev"]), "_ZN2ns3FooD0Ev");
    // Folded with others.
    let folded = ["_ZN2ns3FooC1Ev", "_ZN2ns3BarC1Ev", "_ZN2ns3BarC2Ev", "_ZN2ns3barEv", "read", "__read"];
    assert_eq!(name("Foo", &folded), "_ZN2ns3FooC1Ev");
    assert_eq!(name("Bar", &folded), "_ZN2ns3BarC1Ev");
    assert_eq!(name("bar<int>", &folded), "_ZN2ns3barEv");
    assert_eq!(name("__read", &folded), "__read");
    assert_eq!(name("other", &folded), "ns::other");
    // Two functions have the plain name.
    assert_eq!(name("f", &["_ZN1a1fEv", "_ZN1b1fEv"]), "ns::f");
    // Without a name, only one symbol counts.
    assert_eq!(name_among(subprogram(), &["a", "b"]), "-");
}

#[test]
fn a_linkage_name_that_is_the_plain_name_and_no_symbol_states_nothing() {
    let name = |linkage, symbols: &[&str]| name_among(subprogram().name("go").linkage_name(linkage), symbols);
    assert_eq!(name("go", &["_ZN2ns1A2goEi"]), "_ZN2ns1A2goEi");
    assert_eq!(name("go", &["*Foo(Int32)@Foo(T)#go:Int32"]), "*Foo(Int32)@Foo(T)#go:Int32");
    assert_eq!(name("go", &["a", "b"]), "ns::go");
    assert_eq!(name("go", &["a", "go"]), "go");
    assert_eq!(name("go", &[]), "go");
    // Any other linkage name counts.
    assert_eq!(name("_ZN2ns2goEv", &["_ZN2ns2goEv.resume"]), "_ZN2ns2goEv");
    // In the entry of the declaration, too.
    let file = |linkage| {
        let origin = subprogram().name("go").linkage_name(linkage).label("go");
        debug_file(&[whole().child(concrete("go")).child(origin)], &[("symbol", 0x1000)])
    };
    assert_eq!(dwarf(&file("go")), ["1000..1100 symbol -"]);
    assert_eq!(dwarf(&file("_Z2gov")), ["1000..1100 _Z2gov -"]);
}

#[test]
fn more_symbols_at_an_entry_than_the_limit_decide_nothing() {
    let all: Vec<String> =
        (0..256).map(|number| format!("_ZN1a{}{number}Ev", number.to_string().len())).collect();
    let symbols = |count: usize| {
        let folded = all[..count].iter().map(String::as_str);
        folded.chain(["_ZN1a1fEv"]).collect::<Vec<_>>()
    };
    assert_eq!(name_among(subprogram().name("f"), &symbols(255)), "_ZN1a1fEv");
    assert_eq!(name_among(subprogram().name("f"), &symbols(256)), "ns::f");
}

#[test]
fn the_scopes_of_a_name_are_those_of_the_entry_that_states_it() {
    let scope = |tag, child| Die::new(tag).child(child);
    let origin = Die::new(dw::DW_TAG_subprogram).name("m").label("m");
    let origin = scope(dw::DW_TAG_namespace, scope(dw::DW_TAG_class_type, origin).name("Class")).name("ns");
    // GCC's link-time optimisation writes the namespace around the concrete function without its name.
    let unit = whole().language(dw::DW_LANG_C_plus_plus_14);
    let unit = unit.child(scope(dw::DW_TAG_namespace, concrete("m"))).child(origin);
    assert_eq!(dwarf(&debug_file(&[unit], &[])), ["1000..1100 ns::Class::m -"]);
}

#[test]
fn template_arguments_are_not_added_to_a_name_without_them() {
    let parameter = |name| Die::new(dw::DW_TAG_template_type_parameter).name(name);
    let name = |stated: &'static str| {
        let function = Die::function(stated, (0x1000, 0x1100)).child(parameter("T"));
        let scope = Die::new(dw::DW_TAG_structure_type).name("Class").child(parameter("U")).child(function);
        dwarf(&debug_file(&[whole().language(dw::DW_LANG_C_plus_plus_14).child(scope)], &[])).remove(0)
    };
    assert_eq!(name("m"), "1000..1100 Class::m -");
    assert_eq!(name("m<int>"), "1000..1100 Class::m<int> -");
}

/// The names of the ranges of one function without a linkage name, which has code at 0x1000, 0x1200 and 0x1400.
fn names_of_parts(function: Die) -> Vec<String> {
    let symbols = [("low", 0x1000), ("mid", 0x1200), ("inside", 0x1210), ("high", 0x1400)];
    let unit = whole().language(dw::DW_LANG_C99).child(function.name("plain"));
    let ranges = dwarf(&debug_file(&[unit], &symbols));
    ranges.iter().map(|range| range.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_function_of_several_ranges_is_named_by_the_symbol_at_its_entry_alone() {
    let parts = |ranges: &[(u64, u64)]| subprogram().ranges(ranges);
    let (low, mid, high) = ((0x1000, 0x1080), (0x1200, 0x1280), (0x1400, 0x1480));
    // The entry is where the first listed range starts, in any order of the addresses.
    assert_eq!(names_of_parts(parts(&[low, mid, high])), ["low", "low", "low"]);
    assert_eq!(names_of_parts(parts(&[mid, low, high])), ["mid", "mid", "mid"]);
    assert_eq!(names_of_parts(parts(&[high, mid, low])), ["high", "high", "high"]);
    // DW_AT_low_pc counts before that, and DW_AT_entry_pc before both: an address, or a distance from the other one.
    let low_pc = |die: Die, at| die.with(dw::DW_AT_low_pc, Value::Address(BASE + at));
    let entry_pc = |die: Die, value| die.with(dw::DW_AT_entry_pc, value);
    assert_eq!(names_of_parts(low_pc(parts(&[mid, low]), 0x1000)), ["low", "low"]);
    assert_eq!(names_of_parts(entry_pc(parts(&[mid, low]), Value::Address(BASE + 0x1000))), ["low", "low"]);
    assert_eq!(names_of_parts(entry_pc(parts(&[low, mid]), Value::Number(0x200))), ["mid", "mid"]);
    let both = entry_pc(low_pc(parts(&[low, high]), 0x1200), Value::Number(0x10));
    assert_eq!(names_of_parts(both), ["inside", "inside"]);
    assert_eq!(names_of_parts(entry_pc(subprogram().range(mid), Value::Number(0x10))), ["inside"]);
    // No other symbol counts, if the code at the entry was dropped or has no symbol.
    assert_eq!(names_of_parts(parts(&[(0x9000, 0x9100), low])), ["plain"]);
    assert_eq!(names_of_parts(parts(&[(0x1300, 0x1310), low])), ["plain", "plain"]);
    assert_eq!(names_of_parts(entry_pc(parts(&[low]), Value::Number(u64::MAX))), ["plain"]);
}

#[test]
fn a_linkage_name_behind_a_plain_one_counts() {
    let unit = whole()
        .child(concrete("near"))
        .child(subprogram().label("near").name("m").refers(dw::DW_AT_specification, "far"))
        .child(subprogram().label("far").linkage_name("_ZN2ns1mEv"));
    let file = debug_file(&[unit], &[]);
    assert_eq!(dwarf(&file), ["1000..1100 _ZN2ns1mEv -"]);
    // addr2line stops at the plain name.
    assert_eq!(peer(&file, 0x1000), "m:-");
}

#[test]
fn inlined_functions_have_their_linkage_name_then_their_qualified_name() {
    let file = |origin: Die| {
        let scope = Die::new(dw::DW_TAG_namespace).name("ns").child(origin.label("g"));
        // The symbol at the first address of the inlined code does not name the inlined function.
        debug_file(&[whole().child(caller(Die::inlined("g", 3))).child(scope)], &[("s", 0x1040)])
    };
    let inner = |file: &[u8]| dwarf(file).remove(1);
    assert_eq!(
        inner(&file(subprogram().name("g").linkage_name("_ZN2ns1gEv"))),
        "1040..1080 _ZN2ns1gEv - < f a.c:3"
    );
    assert_eq!(inner(&file(subprogram().name("g"))), "1040..1080 ns::g - < f a.c:3");
    assert_eq!(inner(&file(subprogram())), "1040..1080 - - < f a.c:3");
}

#[test]
fn objc_methods_have_a_plain_name_that_says_their_class() {
    for language in [dw::DW_LANG_ObjC, dw::DW_LANG_ObjC_plus_plus] {
        let method = Die::function("-[Car drive:]", (0x1000, 0x1100));
        let unit =
            whole().language(language).child(Die::new(dw::DW_TAG_structure_type).name("Car").child(method));
        assert_eq!(dwarf(&debug_file(&[unit], &[])), ["1000..1100 -[Car drive:] -"]);
    }
}

#[test]
fn call_files_are_of_the_unit_that_holds_the_call() {
    let inlining = whole()
        .files(&["caller.c", "caller.h"])
        .child(caller(Die::inlined("g", 0)))
        .sequence(&[(0x1000, 2, 2, true)], 0x1100);
    let origin = Unit::bare().files(&["origin.c"]).child(subprogram().name("g").label("g"));
    // The call has line 0, which is kept.
    let expected =
        ["1000..1040 f caller.h:2", "1040..1080 g caller.h:2 < f caller.c:0", "1080..1100 f caller.h:2"];
    assert_eq!(dwarf(&debug_file(&[inlining, origin], &[])), expected);
}

#[test]
fn a_call_without_a_file_has_its_line_alone() {
    for version in [4, 5] {
        let inlined = Die::new(dw::DW_TAG_inlined_subroutine).refers(dw::DW_AT_abstract_origin, "g");
        let inlined = inlined.with(dw::DW_AT_call_line, Value::Number(7));
        let unit = whole().version(version).child(caller(inlined)).child(subprogram().name("g").label("g"));
        let file = debug_file(&[unit.sequence(&[(0x1000, 1, 2, true)], 0x1100)], &[]);
        let (index, mut scratch) =
            (Index::open(built(&file).bytes).expect("just written"), Scratch::default());
        let frames = index.lookup(ImageOffset(0x1050), LinePolicy::Exact, &mut scratch).expect("whole");
        let frames = frames.expect("code").iter().map(|frame| (frame.file.is_some(), frame.line));
        assert_eq!(frames.collect::<Vec<_>>(), [(true, Some(2)), (false, Some(7))], "DWARF {version}");
    }
}

#[test]
fn the_language_of_a_unit_does_not_touch_mangled_names() {
    for language in [dw::DW_LANG_Swift, dw::DW_LANG_C99, dw::DW_LANG_Rust, dw::DW_LANG_C_plus_plus] {
        let names = ["_ZN2ns1fEv", "$s4main1fyyF", "_RNvC4main1f", "-[Car drive]"];
        let unit = names.iter().zip(0x10..).fold(whole().language(language), |unit, (name, at)| {
            unit.child(Die::function("f", (at << 8, (at + 1) << 8)).linkage_name(name))
        });
        assert_eq!(
            dwarf(&debug_file(&[unit], &[])),
            [
                "1000..1100 _ZN2ns1fEv -",
                "1100..1200 $s4main1fyyF -",
                "1200..1300 _RNvC4main1f -",
                "1300..1400 -[Car drive] -"
            ]
        );
    }
}

#[test]
fn names_are_bytes_with_spaces_and_without_an_encoding() {
    let name: &[u8] = b"operator new \xff\xfe \xc3\xbcber \x01";
    let unit = whole().child(
        subprogram()
            .range((0x1000, 0x1100))
            .with(dw::DW_AT_linkage_name, Value::Bytes(b"operator new \xff\xfe \xc3\xbcber \x01")),
    );
    let symbols = vec![Symbol::raw(&[b"_", name].concat(), BASE + 0x1100)];
    let file = MachO { symbols, ..macho(&[unit], &[]) }.bytes();
    assert_eq!(dwarf(&file), [format!("1000..1100 {} -", name.escape_ascii())]);
    assert_eq!(answers(&file, Table::SymbolTable), [format!("1100..3000 {}", name.escape_ascii())]);
}

#[test]
fn paths_are_bytes_too() {
    let unit = whole().files(&["my file \u{fc}ber.c"]).directory("/Users/J\u{f6}rg/my app");
    let unit = unit.child(Die::function("f", (0x1000, 0x1100))).sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let mut file = debug_file(&[unit], &[]);
    // The second byte of a letter of two bytes is replaced.
    let letter = file.windows(2).rposition(|pair| pair == "\u{fc}".as_bytes()).expect("the file name");
    file[letter + 1] = b'?';
    assert_eq!(dwarf(&file), ["1000..1100 f /Users/J\\xc3\\xb6rg/my app/my file \\xc3?ber.c:2"]);
}
