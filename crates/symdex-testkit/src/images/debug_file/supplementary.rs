//! Supplementary files, as dwz makes them, and files that refer to one.

use gimli::constants as dw;

use super::{Die, Elf, Unit, Value, debug_sections, die_offset, image, number, unit_offsets};

/// The units of a supplementary file: one is empty, one declares the functions `f` and `g` of a namespace.
pub fn supplementary_units() -> Vec<Unit> {
    let abstract_function = |name| Die::new(dw::DW_TAG_subprogram).name(name).label(name);
    let namespace = Die::new(dw::DW_TAG_namespace).name("ns");
    let namespace = namespace.child(abstract_function("f")).child(abstract_function("g"));
    let other = Unit::bare().kind(dw::DW_TAG_partial_unit, dw::DW_UT_partial, &[]);
    let unit = Unit::bare().kind(dw::DW_TAG_partial_unit, dw::DW_UT_partial, &[]).child(namespace);
    vec![other, unit]
}

/// The supplementary file with this build id.
pub fn supplementary(id: &[u8]) -> Elf {
    let sup = Elf { kind: object::elf::ET_REL, code: None, build_id: Some(id.to_vec()), ..Elf::default() };
    sup.debug(debug_sections(&supplementary_units())).section(".debug_str", b"\0strung\0".to_vec())
}

/// A file whose functions are named in the supplementary file.
pub fn referring(reference: dw::DwForm, string: dw::DwForm) -> Elf {
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

/// A file whose functions are named in the supplementary file with this id, which is installed at `path`.
pub fn referring_to(path: &str, id: &[u8]) -> Elf {
    let link = [path.as_bytes(), &[0], id].concat();
    referring(dw::DW_FORM_GNU_ref_alt, dw::DW_FORM_GNU_strp_alt).section(".gnu_debugaltlink", link)
}

/// The section `.debug_sup` of a supplementary file, or of a file that refers to one.
pub fn debug_sup(is_supplementary: u8, name: &[u8], id: &[u8]) -> Vec<u8> {
    [&[5, 0, is_supplementary][..], name, &[0, id.len() as u8], id].concat()
}
