//! Local variables in made-up and damaged debug files. The command's tests compare real ones with llvm-symbolizer.

use std::path::Path;

use gimli::constants as dw;
use symdex_build::{Companions, Image, Local, Locals, slices};
use symdex_testkit::images::debug_file::{BASE, Die, Unit, Value, debug_file};

/// The local variables at these addresses, or none if the file cannot be read.
fn locals(file: &[u8], svmas: &[u64]) -> Vec<Local> {
    let companions = Companions::default();
    let image = slices(file).ok().and_then(|slices| Image::load(&slices[0], "made-up", &companions).ok());
    let Some(image) = image else { return Vec::new() };
    let Ok(locals) = Locals::of(&image) else { return Vec::new() };
    svmas.iter().flat_map(|svma| locals.at(*svma)).collect()
}

/// The local variables of a function with these children, beside which its unit has `types`.
fn of_function(children: Vec<Die>, types: Vec<Die>) -> Vec<Local> {
    let range = (0x1000, 0x1100);
    let function = children.into_iter().fold(Die::function("f", range), Die::child);
    let unit = types.into_iter().fold(Unit::new(range).child(function), Unit::child);
    locals(&debug_file(&[unit], &[]), &[BASE + 0x1080])
}

fn variable(ty: &'static str) -> Die {
    Die::new(dw::DW_TAG_variable).name("v").refers(dw::DW_AT_type, ty)
}

/// A type that refers to `target`.
fn derived(tag: gimli::DwTag, label: &'static str, target: &'static str) -> Die {
    Die::new(tag).label(label).refers(dw::DW_AT_type, target)
}

#[test]
fn sizes_are_those_of_the_types_behind_names_and_arrays() {
    let dimension = |count| Die::new(dw::DW_TAG_subrange_type).with(dw::DW_AT_count, Value::Number(count));
    let int = Die::new(dw::DW_TAG_base_type).label("int").with(dw::DW_AT_byte_size, Value::Number(4));
    let types = vec![
        int,
        derived(dw::DW_TAG_const_type, "const", "int"),
        derived(dw::DW_TAG_array_type, "array", "const").child(dimension(3)).child(dimension(5)),
        derived(dw::DW_TAG_typedef, "grid", "array"),
        derived(dw::DW_TAG_pointer_type, "pointer", "array"),
        derived(dw::DW_TAG_ptr_to_member_type, "member", "int"),
        Die::new(dw::DW_TAG_structure_type).label("incomplete"),
        derived(dw::DW_TAG_typedef, "loop", "back"),
        derived(dw::DW_TAG_array_type, "back", "loop").child(dimension(2)),
    ];
    let names = ["int", "grid", "pointer", "member", "incomplete", "loop"];
    let found = of_function(names.map(variable).into(), types);
    let sizes: Vec<_> = found.iter().map(|local| local.size).collect();
    assert_eq!(sizes, [Some(4), Some(60), Some(8), Some(8), None, None]);
    assert!(found.iter().all(|local| local.function.as_deref() == Some(b"f")));
}

#[test]
fn variables_of_inlined_functions_have_the_attributes_of_their_origins() {
    let abstract_variable = Die::new(dw::DW_TAG_variable).label("x").name("x");
    let callee = Die::new(dw::DW_TAG_subprogram).label("callee").name("g");
    let concrete = Die::new(dw::DW_TAG_variable).refers(dw::DW_AT_abstract_origin, "x");
    let looping = Die::new(dw::DW_TAG_variable).label("y").refers(dw::DW_AT_abstract_origin, "y");
    let call = Die::inlined("callee", 7).range((0x1010, 0x1020)).child(concrete).child(looping);
    let after = Die::new(dw::DW_TAG_formal_parameter).name("after");
    let found = of_function(vec![call, after], vec![callee.child(abstract_variable)]);
    let text = |part: &Option<Vec<u8>>| String::from_utf8(part.clone().unwrap_or_default()).expect("text");
    let names: Vec<_> = found.iter().map(|local| (text(&local.function), text(&local.name))).collect();
    let pair = |function: &str, name: &str| (function.to_owned(), name.to_owned());
    assert_eq!(names, [pair("g", "x"), pair("g", ""), pair("f", "after")]);
}

#[test]
fn a_list_with_much_text_is_cut() {
    let long = Die::new(dw::DW_TAG_variable).with(dw::DW_AT_name, Value::TextAt(0));
    let found = of_function(vec![long.copies(10_000)], Vec::new());
    let size: usize = found.iter().map(|local| local.name.as_ref().map_or(0, Vec::len)).sum();
    assert!((15 << 20..=16 << 20).contains(&size), "{size} bytes of {} variables", found.len());
}

#[test]
fn a_damaged_file_has_other_variables_or_none() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/elf/gcc-parts.so");
    let intact = std::fs::read(path).expect("readable");
    let functions = [0x1160, 0x1180, 0x10e0];
    let of_intact = locals(&intact, &functions);
    assert!(of_intact.iter().any(|local| local.frame_offset.is_some()), "{of_intact:?}");
    let section = |name: &str| {
        use object::{Object as _, ObjectSection as _};
        let file = object::File::parse(&*intact).expect("an ELF file");
        let (start, size) = file.section_by_name(name).expect("there").file_range().expect("stored");
        usize::try_from(start).expect("small")..usize::try_from(start + size).expect("small")
    };
    let mut differing = 0;
    for at in section(".debug_info").chain(section(".debug_abbrev")).step_by(3) {
        let mut damaged = intact.clone();
        damaged[at] ^= [0xff, 1, 0x40][at % 3];
        differing += usize::from(locals(&damaged, &functions) != of_intact);
    }
    assert!(differing > 50, "{differing}");
}
