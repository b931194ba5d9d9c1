//! Partial units and supplementary files of dwz (docs/DEBUG-INFO.md, "Split and companion files"). The tests of split
//! units are in `split.rs`.

use std::fs;

use crate::checks::{all, answers, built, found};
use gimli::constants as dw;
use symdex::Table::Dwarf;
use symdex_build::Companions;
use symdex_build::debug_files::DebugFile;
use symdex_testkit::images::debug_file::{
    BASE, Die, Elf, ID, Unit, Value, debug_addr, debug_sections, debug_sup, image, number, object,
    of_skeleton, referring, rnglists, split_unit, supplementary, supplementary_units, unit_offsets, write,
};

/// A set of `.debug_aranges` for a unit with code at this image offset.
fn aranges_set(unit: u64, start: u64, size: u64) -> Vec<u8> {
    let set = [number(2, 2), number(unit, 4), vec![8, 0, 0, 0, 0, 0]];
    let set = [set.concat(), number(BASE + start, 8), number(size, 8), vec![0; 16]].concat();
    [number(set.len() as u64, 4), set].concat()
}

#[test]
fn aranges_may_name_the_root_entry_of_any_kind_of_unit() {
    let skeleton =
        Unit::new((0x1000, 0x1100)).version(5).kind(dw::DW_TAG_skeleton_unit, dw::DW_UT_skeleton, &ID);
    let type_id = [&ID[..], &[0; 4]].concat();
    let types = Unit::new((0x1100, 0x1200)).version(5).kind(dw::DW_TAG_type_unit, dw::DW_UT_type, &type_id);
    let old = Unit::new((0x1200, 0x1300));
    let units = [skeleton, types, old];
    let offsets = unit_offsets(&units);
    let warnings = |roots: [u64; 3]| {
        let sets =
            (0..3).map(|unit| aranges_set(offsets[unit] + roots[unit], 0x1000 + unit as u64 * 0x100, 0x100));
        let file = image(&units).section(".debug_aranges", sets.collect::<Vec<_>>().concat());
        built(&file.bytes()).warnings
    };
    assert_eq!(warnings([0, 0, 0]), [""; 0]);
    assert_eq!(warnings([12 + 8, 12 + 12, 11]), [""; 0]);
    // Type units have no code and are not read.
    assert_eq!(warnings([12, 12, 12]), [".debug_aranges misses 2 units with code"]);
}

#[test]
fn partial_units_name_functions_and_have_no_lines_of_their_own() {
    let function =
        Die::new(dw::DW_TAG_subprogram).refers(dw::DW_AT_abstract_origin, "f").range((0x1000, 0x1020));
    let inlined = Die::inlined("g", 7).range((0x1010, 0x1020));
    let unit = Unit::new((0x1000, 0x1020)).child(function.child(inlined));
    let unit = unit.sequence(&[(0x1000, 1, 5, true), (0x1010, 2, 6, true)], 0x1020);
    let namespace = Die::new(dw::DW_TAG_namespace).name("ns");
    let abstract_function = |name| Die::new(dw::DW_TAG_subprogram).name(name).label(name);
    let namespace = namespace.child(abstract_function("f")).child(abstract_function("g"));
    let partial = Unit::bare().kind(dw::DW_TAG_partial_unit, dw::DW_UT_partial, &[]).child(namespace);
    let file = image(&[unit, partial.lines_of(0)]);
    let expected = ["1000..1010 ns::f a.c:5", "1010..1020 ns::g b.h:6 < ns::f a.c:7"];
    assert_eq!(answers(&file.bytes(), Dwarf), expected);
}

#[test]
fn lines_of_partial_units_are_not_read_again() {
    let unit = |start| {
        let unit = Unit::new((start, start + 0x20)).child(Die::function("f", (start, start + 0x20)));
        unit.sequence(&[(start, 1, 5, true)], start + 0x20)
    };
    let partial = || Unit::bare().kind(dw::DW_TAG_partial_unit, dw::DW_UT_partial, &[]).lines_of(0);
    let mut units = vec![unit(0x1000)];
    units.extend(std::iter::repeat_with(partial).take(20_000));
    units.push(unit(0x1100));
    assert_eq!(answers(&image(&units).bytes(), Dwarf), ["1000..1020 f a.c:5", "1100..1120 f a.c:5"]);
}

const WITH_SUPPLEMENTARY: [&str; 3] =
    ["1000..1010 ns::f a.c:5", "1010..1020 ns::g b.h:6 < ns::f a.c:7", "1020..1030 strung b.h:6"];

#[test]
fn what_dwz_moved_to_a_supplementary_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lib/liba.so");
    let id = vec![9; 20];
    let sup = supplementary(&id);
    let link = |name: &str| [name.as_bytes(), &[0], &id].concat();
    let file = referring(dw::DW_FORM_GNU_ref_alt, dw::DW_FORM_GNU_strp_alt);

    write(&path, &file.clone().section(".gnu_debugaltlink", link(".dwz/../../.dwz/common")));
    let missing = found(&path, &Companions::default());
    assert_eq!(missing.0[0], "1000..1010 - a.c:5");
    let id_text = "09".repeat(20);
    assert!(missing.1[0].contains("the supplementary file .dwz/../../.dwz/common"), "{missing:?}");
    assert!(missing.1[0].contains(&id_text), "{missing:?}");

    let at = folder.path().join(".dwz/common");
    write(&at, &Elf { build_id: Some(vec![8; 20]), ..sup.clone() });
    let wrong = found(&path, &Companions::default());
    assert_eq!(wrong.0, missing.0);
    let ids = format!("(build id {id_text}) does not match: common has the build id {}", "08".repeat(20));
    assert!(wrong.1[0].contains(&ids), "{wrong:?}");

    write(&at, &sup);
    assert_eq!(all(&path), WITH_SUPPLEMENTARY);
    // An absolute path that does not exist is searched in the debug folders.
    write(&path, &file.clone().section(".gnu_debugaltlink", link("/nowhere/.dwz/a/common")));
    assert!(!found(&path, &Companions::default()).1.is_empty());
    for place in [format!("debug/.build-id/09/{}.debug", "09".repeat(19)), "debug/.dwz/a/common".to_owned()] {
        let place = folder.path().join(place);
        write(&place, &sup);
        let companions = Companions::new(vec![folder.path().join("debug")]);
        assert_eq!(found(&path, &companions), (WITH_SUPPLEMENTARY.map(str::to_owned).into(), Vec::new()));
        fs::remove_file(&place).expect("there");
    }
    // In an unpacked package, the path that is installed is below another root.
    write(&path, &file.clone().section(".gnu_debugaltlink", link("/usr/lib/debug/.dwz/machine/common")));
    let unpacked = folder.path().join(".dwz/machine/common");
    write(&unpacked, &sup);
    assert_eq!(all(&path), WITH_SUPPLEMENTARY);
    fs::remove_file(&unpacked).expect("there");
    // Among the inputs, any name will do.
    let given = folder.path().join("given/other");
    write(&given, &Elf { build_id: Some(vec![8; 20]), ..sup.clone() });
    let companions = Companions::default().files(&[DebugFile::on_disk(&given)]);
    let missing = found(&path, &companions).1;
    assert!(missing[0].ends_with("is not found"), "{missing:?}");
    write(&given, &sup);
    assert_eq!(found(&path, &companions).1, [""; 0]);
}

#[test]
fn supplementary_files_of_dwarf_5_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let sup = Elf { build_id: None, code: None, ..Elf::default() }
        .debug(debug_sections(&supplementary_units()))
        .section(".debug_str", b"\0strung\0".to_vec());
    write(&folder.path().join("common"), &sup.clone().section(".debug_sup", debug_sup(1, b"", b"checksum")));
    for reference in [dw::DW_FORM_ref_sup4, dw::DW_FORM_ref_sup8] {
        let file = referring(reference, dw::DW_FORM_strp_sup);
        write(&path, &file.clone().section(".debug_sup", debug_sup(0, b"common", b"checksum")));
        assert_eq!(all(&path), WITH_SUPPLEMENTARY);
        write(&path, &file.section(".debug_sup", debug_sup(0, b"common", b"other")));
        assert!(!found(&path, &Companions::default()).1.is_empty());
    }
}

#[test]
fn files_elsewhere_are_not_read_because_a_debug_file_names_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("up/liba.so");
    let elsewhere = |name: &str| folder.path().join("elsewhere").join(name);
    write(&elsewhere("common"), &supplementary(&[9; 20]));
    let split = split_unit(5, 0x1000, ID, 8).1;
    write(&elsewhere("a.dwo"), &object(&[split]).section(".debug_rnglists.dwo", rnglists()));
    let debug_dir = || Companions::new(vec![folder.path().into()]);

    let absolute = |name: &str| elsewhere(name).to_string_lossy().into_owned();
    let relative = |name: &str| format!("../up/../elsewhere/{name}");
    for place in [&absolute as &dyn Fn(&str) -> String, &relative] {
        let link = [place("common").as_bytes(), &[0], &[9; 20]].concat();
        let referring = referring(dw::DW_FORM_GNU_ref_alt, dw::DW_FORM_GNU_strp_alt);
        write(&path, &referring.section(".gnu_debugaltlink", link));
        let (_, missing) = found(&path, &Companions::default());
        assert!(missing[0].ends_with("is not found"), "{missing:?}");
        assert_eq!(found(&path, &debug_dir()).1, [""; 0]);

        let name = [place("a.dwo").as_bytes(), &[0]].concat();
        let name = Value::Form(dw::DW_FORM_string, name);
        let skeleton = split_unit(5, 0x1000, ID, 8).0.replace(dw::DW_AT_dwo_name, name);
        // Without a compilation directory, the path is relative to the debug file's folder.
        let skeleton = skeleton.replace(dw::DW_AT_comp_dir, Value::Text(""));
        write(&path, &image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000])));
        let (answers, missing) = found(&path, &Companions::default());
        assert_eq!(answers, of_skeleton(0x1000));
        assert!(missing[0].ends_with("is not found"), "{missing:?}");
        assert_eq!(found(&path, &debug_dir()).1, [""; 0]);
    }
}

#[test]
fn a_file_that_is_its_own_supplementary_file_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let link = [&b"liba.so\0"[..], &[7; 20]].concat();
    write(
        &path,
        &referring(dw::DW_FORM_GNU_ref_alt, dw::DW_FORM_GNU_strp_alt).section(".gnu_debugaltlink", link),
    );
    assert_eq!(found(&path, &Companions::default()).0[0], "1000..1010 - a.c:5");
}
