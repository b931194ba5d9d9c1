//! Where the names of functions come from.

use super::*;

#[test]
fn names_come_from_where_they_are_best() {
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)).child(Die::inlined("g", 3).range((0x1040, 0x1080))))
        .child(
            Die::new(dw::DW_TAG_namespace).name("space").child(
                Die::new(dw::DW_TAG_class_type)
                    .name("Class")
                    .child(Die::new(dw::DW_TAG_subprogram).name("g").label("g")),
            ),
        )
        .child(Die::function("outlined", (0x1100, 0x1200)).linkage_name("_OUTLINED_FUNCTION_0"))
        .child(Die::function("plain", (0x1200, 0x1300)))
        .child(
            Die::new(dw::DW_TAG_subprogram).range((0x1300, 0x1400)).refers(dw::DW_AT_abstract_origin, "mid"),
        )
        .child(Die::new(dw::DW_TAG_subprogram).name("h").label("mid").refers(dw::DW_AT_specification, "far"))
        .child(Die::new(dw::DW_TAG_subprogram).name("h").linkage_name("_Z1hv").label("far"))
        .sequence(&[(0x1000, 1, 2, true)], 0x1400);
    let symbols = [("f", 0x1000), ("OUTLINED_FUNCTION_0", 0x1100), ("_Z5plainv", 0x1200), ("_Z1hv", 0x1300)];
    let classes =
        [Class::UNDERSCORE, Class::SYMBOL_NAME, Class::QUALIFIED_NAME, Class::LINKAGE_NAME_BEHIND_NAME];
    assert_classes(&debug_file(&[unit], &symbols), &classes);
}

#[test]
fn of_several_symbols_at_an_entry_those_that_read_alike_count() {
    let file = |symbols: &[(&str, u64)]| {
        let function = |name, range| Die::function(name, range);
        let unit = Unit::new(whole()).child(function("Foo", (0x1000, 0x1100)));
        let unit =
            unit.child(function("get<int>", (0x1100, 0x1200))).child(function("put", (0x1200, 0x1300)));
        debug_file(&[unit.sequence(&[(0x1000, 1, 2, true)], 0x1300)], symbols)
    };
    let mut symbols = vec![
        ("_ZN2ns3FooI4VEC2Li3EEC1Ev", 0x1000),
        ("_ZN2ns3FooI4VEC2Li3EEC2Ev", 0x1000),
        ("_ZN2ns3getIiEEvv", 0x1100),
        ("_ZN2ns5otherEv", 0x1100),
        ("put", 0x1200),
        ("__put", 0x1200),
    ];
    assert_classes(&file(&symbols), &[Class::SYMBOL_NAME]);
    let right = file(&symbols);
    symbols.truncate(3);
    symbols.push(("_ZN2ns3getIjEEvv", 0x1100));
    assert_ne!(audited(&file(&symbols), &right).unexplained_len, 0, "the index has the plain name");
}

#[test]
fn a_linkage_name_that_states_nothing_gives_way_to_the_symbol() {
    let unit = Unit::new(whole()).child(Die::function("go", (0x1000, 0x1100)).linkage_name("go"));
    let unit = unit.sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let file = |symbols: &[(&str, u64)]| debug_file(std::slice::from_ref(&unit), symbols);
    assert_classes(&file(&[("*A#go:Nil", 0x1000)]), &[Class::PLAIN_LINKAGE_NAME]);
    assert_classes(&file(&[("*A#go:Nil", 0x1000), ("go", 0x1000)]), &[]);
    assert_classes(&file(&[]), &[]);
}

#[test]
fn a_symbol_names_a_function_only_at_its_entry() {
    assert_classes(&function_with_a_part("f", 0x1100), &[]);
    assert_classes(&function_with_a_part("f.isra.0", 0x1100), &[Class::SYMBOL_NAME]);
    // No symbol is at the entry.
    assert_classes(&function_with_a_part("f.isra.0", 0x1110), &[]);
    // An index in which the symbol of the part names the function.
    let wrong = {
        let unit = Unit::new(whole())
            .child(Die::new(dw::DW_TAG_subprogram).name("f").ranges(&[(0x1000, 0x1040), (0x1100, 0x1200)]))
            .sequence(&[(0x1000, 1, 9, true)], 0x1040)
            .sequence(&[(0x1100, 1, 2, true)], 0x1200);
        debug_file(&[unit], &[("f", 0x1100), ("f.cold", 0x1000)])
    };
    let right = function_with_a_part("f", 0x1100);
    let report = audited(&wrong, &right);
    assert_ne!(report.wrong_len, 0, "{report}");
    assert_eq!(report.wrong_len, report.unexplained_len, "{report}");
}

#[test]
fn a_line_without_a_function_has_the_symbols_name() {
    let unit = Unit::new(whole()).sequence(&[(0x1000, 1, 2, true), (0x1040, 1, 3, true)], 0x1100);
    assert_classes(&debug_file(&[unit], &[("f", 0x1000)]), &[Class::LINE_WITHOUT_FUNCTION]);
}

#[test]
fn of_aliases_the_one_the_symbol_table_names_counts() {
    let names = ["a", "b", "c", "d"];
    let file = |symbols: &[(&str, u64)]| {
        let unit = names.iter().fold(Unit::new(whole()), |unit, name| {
            unit.child(Die::function("plain", (0x1000, 0x1100)).linkage_name(name))
        });
        debug_file(&[unit.sequence(&[(0x1000, 1, 2, true)], 0x1100)], symbols)
    };
    for name in names {
        let report = audited(&file(&[(name, 0x1000)]), &file(&[(name, 0x1000)]));
        assert_eq!(report.failures(), Vec::<String>::new(), "{report}");
        assert!(classes_of(&report).iter().all(|class| *class == Class::ALIASES), "{report}");
    }
    let report = audited(&file(&[("c", 0x1000)]), &file(&[("b", 0x1000)]));
    assert_ne!(report.unexplained_len, 0, "{report}");
}

#[test]
fn the_scopes_of_a_name_are_those_of_the_entry_that_states_it() {
    let scope = |tag, name, child: Die| Die::new(tag).name(name).child(child);
    let origin = Die::new(dw::DW_TAG_subprogram).name("m").label("m");
    let concrete =
        Die::new(dw::DW_TAG_subprogram).range((0x1000, 0x1100)).refers(dw::DW_AT_abstract_origin, "m");
    let unit = Unit::new(whole())
        .child(Die::new(dw::DW_TAG_namespace).child(concrete))
        .child(scope(dw::DW_TAG_namespace, "ns", scope(dw::DW_TAG_class_type, "Class", origin)))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100);
    assert_classes(&debug_file(&[unit], &[]), &[Class::QUALIFIED_NAME]);
}

#[test]
fn unnamed_scopes_are_written_as_demanglers_write_them() {
    let scope = |tag, child| Die::new(tag).child(child);
    let g = Die::new(dw::DW_TAG_subprogram).name("g").label("g");
    let unit = Unit::new(whole())
        .child(Die::function("f", (0x1000, 0x1100)).child(Die::inlined("g", 3).range((0x1040, 0x1080))))
        .child(scope(dw::DW_TAG_namespace, scope(dw::DW_TAG_structure_type, g)))
        .sequence(&[(0x1000, 1, 2, true)], 0x1100);
    let file = debug_file(&[unit], &[("f", 0x1000)]);
    assert_classes(&file, &[Class::QUALIFIED_NAME]);
    let slice = &slices(&file).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    let mut scratch = symdex::Scratch::default();
    let frames = index.lookup(symdex::ImageOffset(0x1050), symdex::LinePolicy::Exact, &mut scratch);
    let innermost = frames.expect("whole").expect("code").iter().next().and_then(|frame| frame.name);
    assert_eq!(innermost, Some(&b"(anonymous namespace)::(anonymous)::g"[..]));
}
