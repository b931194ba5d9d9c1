//! Split DWARF: units whose debug information is in object files and packages (docs/DEBUG-INFO.md, "Split units").

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

use std::fs;

use crate::checks::{all, found};
use gimli::constants as dw;
use symdex_build::Companions;
use symdex_build::debug_files::DebugFile;
use symdex_testkit::images::debug_file::{
    BASE, Elf, ID, Unit, Value, debug_addr, image, number, object, of_skeleton, of_split, package, rnglists,
    split_unit, write,
};

#[test]
fn split_units_are_found_in_object_files() {
    for version in [4, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("liba.so");
        let (skeleton, split) = split_unit(version, 0x1000, ID, 8);
        write(&path, &image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000])));
        let rest = "1038..1040 - b.h:6".to_owned();
        let expected = [&of_split(version, 0x1000)[..], &[rest]].concat();
        let split = object(&[split]).section(".debug_rnglists.dwo", rnglists());

        let missing = found(&path, &Companions::default());
        assert_eq!(missing.0, of_skeleton(0x1000));
        assert!(missing.1[0].contains("the split unit obj/a.dwo (dwo id 0807060504030201)"), "{missing:?}");
        for place in ["obj/a.dwo", "a.dwo"] {
            let place = folder.path().join(place);
            write(&place, &split);
            assert_eq!(all(&path), expected, "version {version}");
            // A split unit of another build is not used.
            write(&place, &object(&[split_unit(version, 0x1000, [1; 8], 8).1]));
            let wrong = found(&path, &Companions::default());
            assert_eq!(wrong.0, of_skeleton(0x1000));
            let ids = ["(dwo id 0807060504030201) does not match: a.dwo has", "dwo id 0101010101010101"];
            assert!(ids.iter().all(|id| wrong.1[0].contains(id)), "{wrong:?}");
            fs::write(&place, "none").expect("written");
            assert!(found(&path, &Companions::default()).1[0].contains("cannot be read: a.dwo: "));
            fs::remove_file(&place).expect("there");
        }
    }
}

#[test]
fn split_units_are_found_in_packages() {
    for version in [4, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("liba.debug");
        let units = [split_unit(version, 0x1000, ID, 8), split_unit(version, 0x1100, [3; 8], 40)];
        let [(first, one), (second, two)] = units;
        // The range-list base of the second skeleton counts from the beginning of the section as well.
        let base = Value::Form(dw::DW_FORM_sec_offset, number(0x90, 4));
        let second = if version == 5 { second } else { second.replace(dw::DW_AT_GNU_ranges_base, base) };
        let elf = image(&[first, second]).section(".debug_addr", debug_addr(&[0x1000, 0x1100]));
        write(&path, &elf);
        let parts = [two, one].map(|unit| object(&[unit]).section(".debug_rnglists.dwo", rnglists()));
        let package = package(version, &parts);
        let rest = |start| vec![format!("{:x}..{:x} - b.h:6", start + 0x38, start + 0x40)];
        let expected =
            [&of_split(version, 0x1000)[..], &rest(0x1000), &of_split(version, 0x1100), &rest(0x1100)]
                .concat();
        assert_eq!(found(&path, &Companions::default()).1.len(), 2);
        for place in ["liba.debug.dwp", "liba.dwp"] {
            let place = folder.path().join(place);
            write(&place, &package);
            assert_eq!(all(&path), expected, "version {version}");
            fs::remove_file(&place).expect("there");
        }
        // The same package inside the debug file.
        let inside = package
            .sections
            .iter()
            .fold(elf, |elf, section| elf.section(&section.name, section.bytes.clone()));
        write(&path, &inside);
        assert_eq!(all(&path), expected, "version {version}");
    }
}

#[test]
fn packages_are_found_in_debug_folders_and_among_the_inputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: &str| folder.path().join(path);
    let split = |id| object(&[split_unit(5, 0x1000, id, 8).1]).section(".debug_rnglists.dwo", rnglists());
    let packed = |id| package(5, &[split(id)]);
    let elf = image(&[split_unit(5, 0x1000, ID, 8).0]).section(".debug_addr", debug_addr(&[0x1000]));
    write(&at("lib/liba.so"), &elf);
    let companions = || Companions::new(vec![at("debug")]);
    let by_id = format!("debug/.build-id/07/{}", "07".repeat(19));
    let below = format!("debug{}.dwp", at("lib/liba.so").display());
    for place in [&format!("{by_id}.dwp"), &format!("{by_id}.debug.dwp"), "debug/liba.so.dwp", &below] {
        write(&at(place), &packed(ID));
        assert_eq!(found(&at("lib/liba.so"), &companions()).1, [""; 0], "{place}");
        assert_eq!(found(&at("lib/liba.so"), &Companions::default()).0, of_skeleton(0x1000));
        fs::remove_file(at(place)).expect("there");
    }
    // Among the inputs, any name will do. One without the units of the image says nothing.
    for (id, missing) in [(ID, 0), ([3; 8], 1)] {
        write(&at("given"), &packed(id));
        let given = [DebugFile::of_archive(at("given"), "a.zip", "other")];
        let (_, partial) = found(&at("lib/liba.so"), &Companions::default().files(&given));
        assert_eq!(partial.len(), missing, "{partial:?}");
        assert!(partial.iter().all(|reason| reason.ends_with("is not found")), "{partial:?}");
    }
    // The debug file of a stripped binary, with the package beside the binary.
    let crc = crc32fast::hash(&elf.bytes()).to_le_bytes();
    let link = [&b"a.debug\0"[..], &crc].concat();
    write(&at("lib/liba.so"), &Elf { base: BASE, ..Elf::default() }.section(".gnu_debuglink", link));
    write(&at("debug/a.debug"), &elf);
    assert_eq!(found(&at("lib/liba.so"), &companions()).0, of_skeleton(0x1000));
    write(&at("lib/liba.so.dwp"), &packed(ID));
    assert_eq!(found(&at("lib/liba.so"), &companions()).1, [""; 0]);
}

#[test]
fn a_package_of_another_build_is_named_with_both_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    write(&path, &image(&[split_unit(5, 0x1000, ID, 8).0]).section(".debug_addr", debug_addr(&[0x1000])));
    let other = object(&[split_unit(5, 0x1000, [3; 8], 8).1]).section(".debug_rnglists.dwo", rnglists());
    write(&folder.path().join("liba.so.dwp"), &package(5, &[other]));
    let (answers, missing) = found(&path, &Companions::default());
    assert_eq!(answers, of_skeleton(0x1000));
    let ids = "(dwo id 0807060504030201) does not match: liba.so.dwp has other units, the first with the dwo id \
               0303030303030303";
    assert!(missing[0].contains(ids), "{missing:?}");
    fs::write(folder.path().join("liba.so.dwp"), "none").expect("written");
    let missing = found(&path, &Companions::default()).1;
    assert!(missing[0].contains("cannot be read: liba.so.dwp: "), "{missing:?}");
}

#[test]
fn a_split_unit_belongs_to_one_skeleton() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let skeletons: Vec<Unit> = (0..3000).map(|_| split_unit(5, 0x1000, ID, 8).0).collect();
    let split = || object(&[split_unit(5, 0x1000, ID, 8).1]).section(".debug_rnglists.dwo", rnglists());
    write(&path, &image(&skeletons).section(".debug_addr", debug_addr(&[0x1000])));
    write(&folder.path().join("a.dwo"), &split());
    let (answers, missing) = found(&path, &Companions::default());
    assert_eq!(answers[0], "1000..1010 split a.c:5");
    assert!(missing.iter().any(|missing| missing.contains("2979 more split units")), "{missing:?}");
    // In this package all units are the same bytes. One of them is used.
    let mut package = package(5, &[split(), split(), split()]);
    let index = &mut package.sections[0].bytes;
    let table = 16 + 12 * 4 + 12;
    for row in 1..3 {
        index.copy_within(table..table + 12, table + 12 * row);
    }
    write(&folder.path().join("liba.so.dwp"), &package);
    assert_eq!(found(&path, &Companions::default()).0[0], "1000..1010 split a.c:5");
}

#[test]
fn paths_of_split_units_are_searched_up_to_a_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let skeleton = |_| {
        let name = Value::Text("x".repeat(4000).leak());
        split_unit(5, 0x1000, ID, 8).0.replace(dw::DW_AT_dwo_name, name)
    };
    let skeletons: Vec<Unit> = (0..20).map(skeleton).collect();
    write(&path, &image(&skeletons).section(".debug_addr", debug_addr(&[0x1000])));
    // 20 names of 4000 bytes in 500 folders exceed `SEARCHED` of the limits in docs/SECURITY.md.
    let folders = (0..500).map(|number| folder.path().join(number.to_string())).collect();
    let (_, missing) = found(&path, &Companions::new(folders));
    assert!(missing[0].contains("is not found"), "{missing:?}");
    assert!(missing.iter().any(|missing| missing.contains("is not searched")), "{missing:?}");
}

#[test]
fn units_that_share_their_abbreviations_are_found_however_many_there_are() {
    // Link-time optimisation writes one `.dwo` file with one abbreviation table and many units.
    const COUNT: u64 = 2000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let of = |number: u64| split_unit(5, 0x1000, (number + 1).to_le_bytes(), 8);
    write(
        &path,
        &image(&(0..COUNT).map(|number| of(number).0).collect::<Vec<_>>())
            .section(".debug_addr", debug_addr(&[0x1000])),
    );
    let mut units = object(&[of(0).1]).section(".debug_rnglists.dwo", rnglists());
    for section in &mut units.sections {
        match section.name.as_str() {
            // All units refer to the table at 0. It is made as long as that of a real file.
            ".debug_info.dwo" => {
                let one = section.bytes.clone();
                section.bytes =
                    (1..=COUNT).flat_map(|id| [&one[..12], &id.to_le_bytes(), &one[20..]].concat()).collect();
            }
            ".debug_abbrev.dwo" => {
                let declaration = |code: u32| {
                    let code =
                        [0x80 | code as u8 & 0x7f, 0x80 | (code >> 7) as u8 & 0x7f, (code >> 14) as u8];
                    [&code[..], &[0x34, 0, 3, 8, 0, 0]].concat()
                };
                assert_eq!(section.bytes.pop(), Some(0));
                section.bytes.extend((20_000..20_500).flat_map(declaration).chain([0]));
            }
            _ => {}
        }
    }
    write(&folder.path().join("a.dwo"), &units);
    assert_eq!(found(&path, &Companions::default()).1, [""; 0]);
}

#[test]
fn a_split_unit_in_the_file_itself_and_one_that_is_a_skeleton_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.dwo");
    let (skeleton, split) = split_unit(5, 0x1000, ID, 8);
    let elf = image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000]));
    let own = |units: &[Unit]| {
        let own = object(units).section(".debug_rnglists.dwo", rnglists());
        own.sections
            .iter()
            .fold(elf.clone(), |elf, section| elf.section(&section.name, section.bytes.clone()))
    };
    write(&path, &own(&[split]));
    assert_eq!(all(&path)[..4], of_split(5, 0x1000));
    write(&path, &own(&[split_unit(5, 0x1000, ID, 8).0]));
    assert_eq!(found(&path, &Companions::default()).0, of_skeleton(0x1000));
}

#[test]
fn damaged_packages_and_objects_cost_no_more_than_their_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    for version in [4, 5] {
        let (skeleton, split) = split_unit(version, 0x1000, ID, 8);
        write(&path, &image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000])));
        let split = object(&[split]).section(".debug_rnglists.dwo", rnglists());
        let package = package(version, std::slice::from_ref(&split));
        for (elf, place) in [(split, "a.dwo"), (package, "liba.so.dwp")] {
            // The line tables of these files are not read.
            let sections = elf.sections.iter().enumerate();
            for (number, section) in sections.filter(|(_, section)| section.name != ".debug_line.dwo") {
                for at in 0..section.bytes.len() {
                    let mut damaged = elf.clone();
                    damaged.sections[number].bytes[at] ^= 0xff;
                    write(&folder.path().join(place), &damaged);
                    let (answers, missing) = found(&path, &Companions::default());
                    assert!(!answers.is_empty(), "{place} {} {at}: {missing:?}", section.name);
                }
            }
            fs::remove_file(folder.path().join(place)).expect("there");
        }
    }
}
