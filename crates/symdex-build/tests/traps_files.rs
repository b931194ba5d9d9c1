//! The traps of TRAPS.md about debug information in several files: partial units, dwz, split DWARF.

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

mod debug_file;

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use debug_file::{
    BASE, Die, Elf, Unit, Value, answers, built, debug_sections, die_offset, found, unit_offsets,
};
use gimli::constants as dw;
use symdex::Table::Dwarf;
use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::audit::{Class, Frame, LlvmAnswers, Options, Peer, audit_with};
use symdex_build::{Companions, Image, slices};

const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn number(number: u64, size: usize) -> Vec<u8> {
    number.to_le_bytes()[..size].to_vec()
}

fn image(units: &[Unit]) -> Elf {
    Elf { base: BASE, ..Elf::default() }.debug(debug_sections(units))
}

/// A file of the debug sections of `units`, each name with `.dwo` behind it.
fn object(units: &[Unit]) -> Elf {
    let mut elf = Elf { kind: object::elf::ET_REL, build_id: None, ..Elf::default() };
    elf = elf.debug(debug_sections(units));
    elf.sections.iter_mut().for_each(|section| section.name.push_str(".dwo"));
    elf
}

fn write(path: &Path, elf: &Elf) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, elf.bytes()).expect("written");
}

/// What the file answers, where nothing may be missing; addr2line and the rules answer the same.
fn all(path: &Path) -> Vec<String> {
    let (answers, missing) = found(path, &Companions::default());
    assert_eq!(missing, [""; 0]);
    assert_eq!(classes(path, &index(path)), []);
    answers
}

fn index(path: &Path) -> Index<Vec<u8>> {
    let (file, companions) = (fs::read(path).expect("there"), Companions::default());
    let image = Image::load(&slices(&file).expect("an ELF file")[0], path, &companions).expect("loads");
    let built = symdex_build::build(&image, &Default::default(), &|_, _| {}).expect("builds");
    Index::open(built.bytes).expect("just written")
}

/// What explains where llvm-symbolizer differs from the index of the file at `path`, if it answers as `theirs`. Nothing else may differ.
fn classes(path: &Path, theirs: &Index<Vec<u8>>) -> Vec<Class> {
    let (file, companions) = (fs::read(path).expect("there"), Companions::default());
    let image = Image::load(&slices(&file).expect("an ELF file")[0], path, &companions).expect("loads");
    let owned = |text: Option<&[u8]>| text.map(|text| Cow::Owned(text.to_vec()));
    let answer = |svma: u64| {
        let mut scratch = Scratch::default();
        let found = theirs.lookup(ImageOffset(svma - BASE), LinePolicy::Exact, &mut scratch).expect("whole");
        let frame = |f: symdex::Frame<'_>| Frame { name: owned(f.name), file: owned(f.file), line: f.line };
        found.map_or(vec![Frame::default()], |frames| frames.iter().map(frame).collect())
    };
    let ask = |svmas: Vec<u64>| {
        let answers: Vec<_> = svmas.into_iter().map(|svma| Ok(answer(svma))).collect();
        Ok(Box::new(answers.into_iter()) as LlvmAnswers<'_>)
    };
    let options = Options { llvm_symbolizer: Some(&ask), ..Options::default() };
    let report = audit_with(&image, &index(path), &options).expect("is read");
    let mut failures = report.failures();
    // In a small file no class is rare.
    failures.retain(|failure| !failure.starts_with("the class"));
    assert_eq!(failures, [""; 0], "{report}");
    assert!(report.peers[&Peer::Addr2line].agreements > 0);
    let ours = report.peers.get(&Peer::LlvmSymbolizer);
    ours.map_or(Vec::new(), |report| report.classes.keys().copied().collect())
}

/// A set of `.debug_aranges` for a unit with code at this image offset.
fn aranges_set(unit: u64, start: u64, size: u64) -> Vec<u8> {
    let set = [number(2, 2), number(unit, 4), vec![8, 0, 0, 0, 0, 0]];
    let set = [set.concat(), number(BASE + start, 8), number(size, 8), vec![0; 16]].concat();
    [number(set.len() as u64, 4), set].concat()
}

#[test]
fn trap_12_aranges_may_name_the_root_entry_of_any_kind_of_unit() {
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
    assert_eq!(warnings([12, 12, 12]), [".debug_aranges misses 3 units with code"]);
}

#[test]
fn trap_17_partial_units_name_functions_and_have_no_lines_of_their_own() {
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
fn trap_17_lines_of_partial_units_are_not_read_again() {
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

/// A supplementary file: a partial unit with the functions `f` and `g` of a namespace, and strings.
fn supplementary_units() -> Vec<Unit> {
    let abstract_function = |name| Die::new(dw::DW_TAG_subprogram).name(name).label(name);
    let namespace = Die::new(dw::DW_TAG_namespace).name("ns");
    let namespace = namespace.child(abstract_function("f")).child(abstract_function("g"));
    let other = Unit::bare().kind(dw::DW_TAG_partial_unit, dw::DW_UT_partial, &[]);
    let unit = Unit::bare().kind(dw::DW_TAG_partial_unit, dw::DW_UT_partial, &[]).child(namespace);
    vec![other, unit]
}

/// A file whose functions are named in the supplementary file.
fn referring(reference: dw::DwForm, string: dw::DwForm) -> Elf {
    let sup = supplementary_units();
    let size = if reference == dw::DW_FORM_ref_sup8 { 8 } else { 4 };
    let origin = |name| Value::Form(reference, number(die_offset(&sup, name), size));
    let function = Die::new(dw::DW_TAG_subprogram).with(dw::DW_AT_abstract_origin, origin("f"));
    let inlined = Die::new(dw::DW_TAG_inlined_subroutine).with(dw::DW_AT_abstract_origin, origin("g"));
    let inlined =
        inlined.with(dw::DW_AT_call_file, Value::Number(1)).with(dw::DW_AT_call_line, Value::Number(7));
    let function = function.range((0x1000, 0x1020)).child(inlined.range((0x1010, 0x1020)));
    let text = Value::Form(string, number(1, 4));
    let named = Die::new(dw::DW_TAG_subprogram).with(dw::DW_AT_name, text).range((0x1020, 0x1030));
    let import = Value::Form(reference, number(unit_offsets(&sup)[1], size));
    let import = Die::new(dw::DW_TAG_imported_unit).with(dw::DW_AT_import, import);
    let unit = Unit::new((0x1000, 0x1030)).child(import).child(function).child(named);
    image(&[unit.sequence(&[(0x1000, 1, 5, true), (0x1010, 2, 6, true)], 0x1030)])
}

/// `.debug_sup` of a file that is supplementary, or that refers to one.
fn debug_sup(is_supplementary: u8, name: &[u8], id: &[u8]) -> Vec<u8> {
    [&[5, 0, is_supplementary][..], name, &[0, id.len() as u8], id].concat()
}

const WITH_SUPPLEMENTARY: [&str; 3] =
    ["1000..1010 ns::f a.c:5", "1010..1020 ns::g b.h:6 < ns::f a.c:7", "1020..1030 strung b.h:6"];

#[test]
fn trap_17_what_dwz_moved_to_a_supplementary_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lib/liba.so");
    let id = vec![9; 20];
    let sup = Elf { base: 0, build_id: Some(id.clone()), code: None, ..Elf::default() };
    let sup = sup.debug(debug_sections(&supplementary_units())).section(".debug_str", b"\0strung\0".to_vec());
    let link = |name: &str| [name.as_bytes(), &[0], &id].concat();
    let file = referring(dw::DW_FORM_GNU_ref_alt, dw::DW_FORM_GNU_strp_alt);

    write(&path, &file.clone().section(".gnu_debugaltlink", link(".dwz/../../.dwz/common")));
    let missing = found(&path, &Companions::default());
    assert_eq!(missing.0[0], "1000..1010 - a.c:5");
    let id_text = "09".repeat(20);
    assert!(missing.1[0].contains("the supplementary file .dwz/../../.dwz/common"), "{missing:?}");
    assert!(missing.1[0].contains(&id_text), "{missing:?}");
    let without = index(&path);

    let at = folder.path().join(".dwz/common");
    write(&at, &Elf { build_id: Some(vec![8; 20]), ..sup.clone() });
    let wrong = found(&path, &Companions::default());
    assert_eq!(wrong.0, missing.0);
    assert!(wrong.1[0].contains(&"08".repeat(20)) && wrong.1[0].contains(&id_text), "{wrong:?}");

    write(&at, &sup);
    assert_eq!(all(&path), WITH_SUPPLEMENTARY);
    assert_eq!(classes(&path, &without), [Class::SupplementaryFile]);
    // By an absolute path that is not there, in the debug folders, too.
    write(&path, &file.clone().section(".gnu_debugaltlink", link("/nowhere/.dwz/a/common")));
    assert!(!found(&path, &Companions::default()).1.is_empty());
    for place in [format!("debug/.build-id/09/{}.debug", "09".repeat(19)), "debug/.dwz/a/common".to_owned()] {
        let place = folder.path().join(place);
        write(&place, &sup);
        let companions = Companions::new(vec![folder.path().join("debug")]);
        assert_eq!(found(&path, &companions), (WITH_SUPPLEMENTARY.map(str::to_owned).into(), Vec::new()));
        fs::remove_file(&place).expect("there");
    }
}

#[test]
fn trap_17_supplementary_files_of_dwarf_5_are_found() {
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
    let sup = Elf { base: 0, build_id: Some(vec![9; 20]), code: None, ..Elf::default() };
    let sup = sup.debug(debug_sections(&supplementary_units())).section(".debug_str", b"\0strung\0".to_vec());
    write(&elsewhere("common"), &sup);
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
        assert!(missing[0].ends_with("is not found: give its folder with --debug-dir"), "{missing:?}");
        assert_eq!(found(&path, &debug_dir()).1, [""; 0]);

        let name = [place("a.dwo").as_bytes(), &[0]].concat();
        let name = Value::Form(dw::DW_FORM_string, name);
        let skeleton = split_unit(5, 0x1000, ID, 8).0.replace(dw::DW_AT_dwo_name, name);
        // Without a folder of its own, the name counts from the debug file's.
        let skeleton = skeleton.replace(dw::DW_AT_comp_dir, Value::Text(""));
        write(&path, &image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000])));
        let (answers, missing) = found(&path, &Companions::default());
        assert_eq!(answers, of_skeleton(0x1000));
        assert!(missing[0].ends_with("give its folder with --debug-dir"), "{missing:?}");
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

/// A unit in two parts for code from image offset `start` on, whose addresses are at `addresses` in `.debug_addr`: the skeleton, and
/// what is to be put into `.debug_info.dwo`.
fn split_unit(version: u16, start: u64, id: [u8; 8], addresses: u64) -> (Unit, Unit) {
    let (end, first) = (start + 0x40, if version == 5 { 0 } else { 1 });
    let skeleton = Unit::new((start, end)).version(version);
    let skeleton = skeleton.sequence(&[(start, first, 5, true), (start + 0x10, first + 1, 6, true)], end);
    let offset = |offset| Value::Form(dw::DW_FORM_sec_offset, number(offset, 4));
    let id_value = || Value::Form(dw::DW_FORM_data8, id.to_vec());
    let name = Value::Text("obj/a.dwo");
    if version == 5 {
        let skeleton = skeleton.root(dw::DW_AT_dwo_name, name).root(dw::DW_AT_addr_base, offset(addresses));
        let split = without_lines().version(5).kind(dw::DW_TAG_compile_unit, dw::DW_UT_split_compile, &id);
        let ranges = Value::Form(dw::DW_FORM_rnglistx, vec![0]);
        return (
            skeleton.kind(dw::DW_TAG_skeleton_unit, dw::DW_UT_skeleton, &id),
            with_functions(split, dw::DW_FORM_addrx, ranges),
        );
    }
    // One list that is not meant, and the one that the base leads to.
    let list = |start| {
        let ranges = Value::Ranges(vec![(BASE + start, BASE + start + 8)]);
        Die::new(dw::DW_TAG_lexical_block).with(dw::DW_AT_ranges, ranges)
    };
    let skeleton = skeleton.root(dw::DW_AT_GNU_dwo_name, name).root(dw::DW_AT_GNU_dwo_id, id_value());
    let skeleton = skeleton.root(dw::DW_AT_GNU_addr_base, offset(addresses));
    let skeleton = skeleton.root(dw::DW_AT_GNU_ranges_base, offset(0x30));
    let skeleton = skeleton.child(list(start + 0x38)).child(list(start + 0x30));
    let split = without_lines().root(dw::DW_AT_GNU_dwo_id, id_value());
    (skeleton, with_functions(split, dw::DW_FORM_GNU_addr_index, offset(0)))
}

/// A unit whose `DW_AT_stmt_list` is none.
fn without_lines() -> Unit {
    Unit::bare().replace(dw::DW_AT_stmt_list, Value::Number(0))
}

/// `unit` with functions whose addresses are numbers of this form: one, inlined into it another, and one with these ranges.
fn with_functions(unit: Unit, form: dw::DwForm, ranges: Value) -> Unit {
    let at = |die: Die, address, size| {
        let die = die.with(dw::DW_AT_low_pc, Value::Form(form, vec![address]));
        die.with(dw::DW_AT_high_pc, Value::Number(size))
    };
    let function = |name| Die::new(dw::DW_TAG_subprogram).name(name);
    let split = at(function("split"), 0, 0x30).child(at(Die::inlined("g", 7), 1, 0x10));
    unit.child(function("g").label("g")).child(split).child(function("apart").with(dw::DW_AT_ranges, ranges))
}

/// `.debug_addr` for units with code from these image offsets on.
fn debug_addr(starts: &[u64]) -> Vec<u8> {
    let table = |start: &u64| {
        let addresses = [0, 0x10, 0x30].map(|offset| number(BASE + start + offset, 8)).concat();
        [number(28, 4), vec![5, 0, 8, 0], addresses].concat()
    };
    starts.iter().flat_map(table).collect()
}

/// `.debug_rnglists.dwo`: one list, of eight bytes from address number 2 on.
fn rnglists() -> Vec<u8> {
    let lists = [&[5, 0, 8, 0, 1, 0, 0, 0, 4, 0, 0, 0][..], &[dw::DW_RLE_startx_length.0, 2, 8, 0]].concat();
    [number(lists.len() as u64, 4), lists].concat()
}

/// The answers of the unit whose code starts at `start`.
fn of_split(version: u16, start: u64) -> [String; 4] {
    let caller = if version == 5 { "b.h:7" } else { "a.c:7" };
    let range = |from: u64, to: u64, answer: &str| format!("{:x}..{:x} {answer}", start + from, start + to);
    [
        range(0, 0x10, "split a.c:5"),
        range(0x10, 0x20, &format!("g b.h:6 < split {caller}")),
        range(0x20, 0x30, "split b.h:6"),
        range(0x30, 0x38, "apart b.h:6"),
    ]
}

/// What there is without the split unit.
fn of_skeleton(start: u64) -> [String; 2] {
    [
        format!("{:x}..{:x} - a.c:5", start, start + 0x10),
        format!("{:x}..{:x} - b.h:6", start + 0x10, start + 0x40),
    ]
}

#[test]
fn trap_17_split_units_are_found_in_object_files() {
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
        let without = index(&path);
        for place in ["obj/a.dwo", "a.dwo"] {
            let place = folder.path().join(place);
            write(&place, &split);
            assert_eq!(all(&path), expected, "version {version}");
            assert_eq!(classes(&path, &without), [Class::SplitUnit]);
            // One of another build.
            write(&place, &object(&[split_unit(version, 0x1000, [1; 8], 8).1]));
            let wrong = found(&path, &Companions::default());
            assert_eq!(wrong.0, of_skeleton(0x1000));
            assert!(wrong.1[0].contains("a.dwo has no such unit"), "{wrong:?}");
            fs::write(&place, "none").expect("written");
            assert!(found(&path, &Companions::default()).1[0].contains("a.dwo: "));
            fs::remove_file(&place).expect("there");
        }
    }
}

/// A package of the units of these files.
fn package(version: u16, files: &[Elf]) -> Elf {
    let names = [".debug_info.dwo", ".debug_abbrev.dwo", ".debug_rnglists.dwo"];
    let columns = if version == 5 { &[1, 3, 8][..] } else { &[1, 3] };
    let mut sections = vec![Vec::new(); columns.len()];
    let (mut offsets, mut sizes) = (Vec::new(), Vec::new());
    for file in files {
        for (section, name) in sections.iter_mut().zip(names) {
            let part = file.sections.iter().find(|section| section.name == name).expect("a section");
            offsets.extend(number(section.len() as u64, 4));
            sizes.extend(number(part.bytes.len() as u64, 4));
            section.extend(&part.bytes);
        }
    }
    let slots = (files.len() + 1).next_power_of_two();
    let version = if version == 5 { 5 } else { 2 };
    let header = [version, columns.len(), files.len(), slots].map(|field| number(field as u64, 4)).concat();
    let columns: Vec<u8> = columns.iter().flat_map(|column| number(*column, 4)).collect();
    let index = [header, vec![0; 12 * slots], columns, offsets, sizes].concat();
    let package = Elf { build_id: None, ..Elf::default() }.section(".debug_cu_index", index);
    sections.into_iter().zip(names).fold(package, |elf, (bytes, name)| elf.section(name, bytes))
}

#[test]
fn trap_17_split_units_are_found_in_packages() {
    for version in [4, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("liba.debug");
        let units = [split_unit(version, 0x1000, ID, 8), split_unit(version, 0x1100, [3; 8], 40)];
        let [(first, one), (second, two)] = units;
        // What the second skeleton says of its ranges counts from the section's beginning, too.
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
        // A package that was put into the debug file.
        let inside = package
            .sections
            .iter()
            .fold(elf, |elf, section| elf.section(&section.name, section.bytes.clone()));
        write(&path, &inside);
        assert_eq!(all(&path), expected, "version {version}");
    }
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
    // A package whose units all are the same bytes has room for one.
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
fn units_that_share_their_abbreviations_are_found_however_many_there_are() {
    // As link-time optimisation writes them: one `.dwo` file, one table, and many units.
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
            // All refer to the table at 0, which is made as long as that of a real file.
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
            // Of these the line tables are not read.
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
