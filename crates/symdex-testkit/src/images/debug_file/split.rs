//! Split units and their skeletons.

use gimli::constants as dw;

use super::{BASE, Die, Elf, ID, Unit, Value, image, number, object};

/// A skeleton and its split unit for code from image offset `start` on. Their addresses are at `addresses` in
/// `.debug_addr`.
pub fn split_unit(version: u16, start: u64, id: [u8; 8], addresses: u64) -> (Unit, Unit) {
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
    // DW_AT_GNU_ranges_base must lead to the second list, not to the first.
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

/// A unit without a valid `DW_AT_stmt_list`.
fn without_lines() -> Unit {
    Unit::bare().replace(dw::DW_AT_stmt_list, Value::Number(0))
}

/// `unit` with three functions whose addresses are indexes in this form: one, another inlined into it, and one with
/// `ranges`.
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
pub fn debug_addr(starts: &[u64]) -> Vec<u8> {
    let table = |start: &u64| {
        let addresses = [0, 0x10, 0x30].map(|offset| number(BASE + start + offset, 8)).concat();
        [number(28, 4), vec![5, 0, 8, 0], addresses].concat()
    };
    starts.iter().flat_map(table).collect()
}

/// `.debug_rnglists.dwo`: one list, of eight bytes from address number 2 on.
pub fn rnglists() -> Vec<u8> {
    let lists = [&[5, 0, 8, 0, 1, 0, 0, 0, 4, 0, 0, 0][..], &[dw::DW_RLE_startx_length.0, 2, 8, 0]].concat();
    [number(lists.len() as u64, 4), lists].concat()
}

/// A package of the split units in these files.
pub fn package(version: u16, files: &[Elf]) -> Elf {
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
    let table = hash_table(files.iter().filter(|_| version == 5), slots);
    let columns: Vec<u8> = columns.iter().flat_map(|column| number(*column, 4)).collect();
    let index = [header, table, columns, offsets, sizes].concat();
    let package = Elf { kind: object::elf::ET_REL, code: None, build_id: None, ..Elf::default() };
    let package = package.section(".debug_cu_index", index);
    sections.into_iter().zip(names).fold(package, |elf, (bytes, name)| elf.section(name, bytes))
}

/// The ids and rows of the units in these files, of DWARF 5, by the hashes of the ids (DWARF 5, 7.3.5.3).
fn hash_table<'f>(files: impl Iterator<Item = &'f Elf>, slots: usize) -> Vec<u8> {
    let mut table = vec![(0, 0); slots];
    for (row, file) in (1..).zip(files) {
        let info = file.sections.iter().find(|section| section.name == ".debug_info.dwo").expect("a section");
        let id = u64::from_le_bytes(info.bytes[12..20].try_into().expect("8 bytes"));
        let mask = slots as u64 - 1;
        let mut slot = (id & mask) as usize;
        while table[slot].1 != 0 {
            slot = (slot + ((id >> 32 & mask) | 1) as usize) % slots;
        }
        table[slot] = (id, row);
    }
    let ids = table.iter().flat_map(|(id, _)| number(*id, 8));
    ids.chain(table.iter().flat_map(|(_, row)| number(*row, 4))).collect()
}

/// A library with one split unit for code from image offset 0x1000 on, and the package with it.
pub fn library_and_package() -> (Elf, Elf) {
    let (skeleton, split) = split_unit(5, 0x1000, ID, 8);
    let split = object(&[split]).section(".debug_rnglists.dwo", rnglists());
    (image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000])), package(5, &[split]))
}

/// The answers of the unit whose code starts at `start`.
pub fn of_split(version: u16, start: u64) -> [String; 4] {
    let caller = if version == 5 { "b.h:7" } else { "a.c:7" };
    let range = |from: u64, to: u64, answer: &str| format!("{:x}..{:x} {answer}", start + from, start + to);
    [
        range(0, 0x10, "split a.c:5"),
        range(0x10, 0x20, &format!("g b.h:6 < split {caller}")),
        range(0x20, 0x30, "split b.h:6"),
        range(0x30, 0x38, "apart b.h:6"),
    ]
}

/// The answers without the split unit.
pub fn of_skeleton(start: u64) -> [String; 2] {
    [
        format!("{:x}..{:x} - a.c:5", start, start + 0x10),
        format!("{:x}..{:x} - b.h:6", start + 0x10, start + 0x40),
    ]
}
