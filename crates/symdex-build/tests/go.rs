//! Go programs without DWARF (docs/DEBUG-INFO.md).

use symdex::Table::{Dwarf, SymbolTable};
use symdex::{Grade, Index, build_id};
use symdex_audit::audit;
use symdex_build::{BuildOptions, Built, Companions, Identity, Image, build, slices, up_to_date};
use symdex_testkit::images::debug_file::{
    BASE, Die, Elf, ElfSection, ElfSymbol, MachO, Section, Unit, Value, debug_sections,
};
use symdex_testkit::images::go::{GoFunction, GoProgram};

use crate::checks;
use crate::checks::same_answers::assert_same_everywhere;

/// The answers of the program of [`GoProgram::default`].
const ANSWERS: [&str; 6] = [
    "1000..1010 main.outer main.go:10",
    "1010..1020 main.mid[go.shape.int] inlined.go:21 < main.outer main.go:10",
    "1020..1030 main.leaf inlined.go:30 < main.mid[go.shape.int] inlined.go:21 < main.outer main.go:10",
    "1030..1040 main.outer main.go:12",
    "1040..1070 main.plain main.go:40",
    "1070..1078 main.plain main.go:41",
];

fn answers(program: &GoProgram) -> Vec<String> {
    checks::answers(&program.elf().bytes(), Dwarf)
}

fn with_image<T>(file: &[u8], check: impl FnOnce(&Image<'_>) -> T) -> T {
    let companions = Companions::default();
    check(&Image::load(&slices(file).expect("a debug file")[0], "program", &companions).expect("loads"))
}

fn built(file: &[u8]) -> Built {
    with_image(file, |image| build(image).expect("builds"))
}

/// The reasons why the index of a file is partial.
fn lost(file: &[u8]) -> Vec<String> {
    let index = Index::open(checks::built(file).bytes).expect("opens");
    index.metadata().partial.iter().map(|partial| partial.reason.clone()).collect()
}

/// The default program in each layout that answers alike: the versions of Go, 32 and 64 bits, and where pointers are.
fn alike() -> Vec<GoProgram> {
    let newest = GoProgram::default();
    let mut programs = vec![
        GoProgram { tree_pointer: 40, states_text: true, ..newest.clone() },
        GoProgram { magic: 0xf0, tree_pointer: 38, ..newest.clone() },
        GoProgram { magic: 0xfa, ..newest.clone() },
        GoProgram { is_relocated: true, ..newest.clone() },
        GoProgram { section: ".data.rel.ro", ..newest.clone() },
        GoProgram { section: ".data.rel.ro.gopclntab", ..newest.clone() },
        newest,
    ];
    let narrow = |program: &GoProgram| GoProgram { is_64_bit: false, ..program.clone() };
    programs.extend(programs.iter().filter(|program| !program.is_relocated).map(narrow).collect::<Vec<_>>());
    programs
}

#[test]
fn a_program_of_every_layout_answers_functions_lines_and_inlined_calls() {
    for program in alike() {
        let what = (program.magic, program.is_64_bit, program.section);
        assert_eq!(answers(&program), ANSWERS, "{what:?}");
        let file = program.elf().bytes();
        assert_eq!(lost(&file), Vec::<String>::new(), "{what:?}");
        assert!(
            Identity::of(&slices(&file).expect("an ELF file")[0])
                .is_ok_and(|one| one.has_lines && !one.has_dwarf)
        );
        with_image(&file, |image| {
            let index = Index::open(build(image).expect("builds").bytes).expect("opens");
            assert_eq!((index.metadata().grade(), index.metadata().counts.units), (Grade::Lines, 1));
            let report = audit(image, &index).expect("compares");
            assert_eq!(report.failures(), Vec::<String>::new(), "{report}");
        });
    }
}

#[test]
fn the_audit_finds_answers_of_another_program() {
    let mut other = GoProgram::default();
    other.functions[1].lines[0].1 = 43;
    let index = built(&other.elf().bytes()).bytes;
    let index = Index::open(index).expect("opens");
    with_image(&GoProgram::default().elf().bytes(), |image| {
        assert!(!audit(image, &index).expect("compares").failures().is_empty());
    });
}

#[test]
fn the_index_of_the_same_program_is_up_to_date() {
    let file = GoProgram::default().elf().bytes();
    let first = built(&file);
    let index = Index::open(&first.bytes[..]).expect("opens");
    let report = with_image(&file, |image| up_to_date(image, &index)).expect("it is");
    assert_eq!((report.has_dwarf, report.coverage), (true, first.report.coverage));
    let mut other = GoProgram::default();
    other.functions[1].lines[0].1 = 43;
    assert_eq!(with_image(&other.elf().bytes(), |image| up_to_date(image, &index)), None);
}

#[test]
fn a_program_without_another_id_has_that_of_its_go_build_id() {
    let id = |build_id: Option<Vec<u8>>, text: &[u8]| {
        let size = u8::try_from(text.len()).expect("short");
        let note = [&[4, 0, 0, 0, size, 0, 0, 0, 4, 0, 0, 0][..], b"Go\0\0", text, &[0; 4]].concat();
        let mut elf = Elf { build_id, ..GoProgram::default().elf() };
        elf.sections.push(ElfSection {
            name: ".note.go.buildid".to_owned(),
            kind: object::elf::SHT_NOTE.0,
            bytes: note[..note.len() / 4 * 4].to_vec(),
            ..ElfSection::default()
        });
        with_image(&elf.bytes(), |image| image.info().id.clone())
    };
    assert_eq!(Some(id(None, b"ab/cd/ef/gh")), build_id::parse("ab/cd/ef/gh"));
    assert_eq!(id(Some(vec![9; 20]), b"ab/cd/ef/gh").as_bytes(), [9; 20]);
    let [one, other] = [b"redacted", b"REDACTED"].map(|text| id(None, text));
    assert!(one.is_hash() && one == other, "a hash of the code");
}

#[test]
fn a_mach_o_program_answers_as_well() {
    for is_relocated in [false, true] {
        let file = GoProgram { is_relocated, ..GoProgram::default() }.macho().bytes();
        assert_eq!(
            (checks::answers(&file, Dwarf), lost(&file)),
            (ANSWERS.map(str::to_owned).to_vec(), Vec::new())
        );
    }
    // A dSYM states the sections of its binary and does not have their bytes.
    let table = Section { name: "__gopclntab", range: 0x3000..0x3400, ..Section::default() };
    let mut file = MachO::default();
    file.text.push(table);
    with_image(&file.bytes(), |image| assert!(!image.has_lines()));
}

#[test]
fn debug_information_of_go_counts_alone_and_that_of_c_beside_the_tables() {
    let unit = |producer| {
        let unit = Unit::new((0x1800, 0x1900)).root(gimli::DW_AT_producer, Value::Text(producer));
        unit.child(Die::function("of_dwarf", (0x1800, 0x1900)))
    };
    let program = GoProgram { text: BASE + 0x1000, ..GoProgram::default() };
    let elf = Elf { base: BASE, ..program.elf() };
    let file = |producer| elf.clone().debug(debug_sections(&[unit(producer)])).bytes();
    assert_eq!(checks::answers(&file("Go cmd/compile go1.27"), Dwarf), ["1800..1900 of_dwarf -"]);
    let both = checks::answers(&file("clang"), Dwarf);
    assert_eq!(
        (&both[..6], &both[6..]),
        (&ANSWERS.map(str::to_owned)[..], &["1800..1900 of_dwarf -".to_owned()][..])
    );
    with_image(&file("clang"), |image| {
        let index = Index::open(build(image).expect("builds").bytes).expect("opens");
        assert_eq!(audit(image, &index).expect("compares").failures(), Vec::<String>::new());
        assert!(symdex_build::built_before(image, &index).is_some());
    });
}

#[test]
fn symbols_answer_for_code_that_is_not_go() {
    let symbols =
        vec![ElfSymbol::function("in_c", 0x1800, 0x20), ElfSymbol::function("main.outer", 0x1000, 0x40)];
    let file = Elf { symbols, ..GoProgram::default().elf() }.bytes();
    assert_eq!(checks::answers(&file, Dwarf), ANSWERS);
    assert_eq!(checks::answers(&file, SymbolTable).len(), 2);
}

#[test]
fn calls_whose_tree_is_not_there_have_no_lines_of_their_own() {
    let mut elf = GoProgram::default().elf();
    elf.sections.retain(|section| section.name != ".rodata");
    let expected = [
        "1000..1010 main.outer main.go:10",
        "1010..1030 main.outer -",
        "1030..1040 main.outer main.go:12",
        "1040..1070 main.plain main.go:40",
        "1070..1078 main.plain main.go:41",
    ];
    assert_eq!(checks::answers(&elf.bytes(), Dwarf), expected);
    assert_eq!(lost(&elf.bytes()), ["functions of Go whose inlined calls are not found"]);
    elf.sections.retain(|section| section.name != ".noptrdata");
    // Without the module data, the code begins with `.text`.
    assert_eq!(checks::answers(&elf.bytes(), Dwarf), expected);
}

#[test]
fn a_program_whose_code_was_removed_has_the_code_that_the_tables_state() {
    let mut file = GoProgram::default().elf().bytes();
    let headers =
        usize::try_from(u64::from_le_bytes(file[0x28..0x30].try_into().expect("8 bytes"))).expect("small");
    // The segment is left of `.text`.
    assert_eq!(std::mem::replace(&mut file[headers + 64 + 8], 2), 6, "the flags of the first section");
    assert_eq!(checks::answers(&file, Dwarf), ANSWERS);
    with_image(&file, |image| assert_eq!(image.info().executable, [(0x1000, 0x1080)]));
}

#[test]
fn tables_of_another_version_are_lost() {
    let file = GoProgram { magic: 0xf7, ..GoProgram::default() }.elf().bytes();
    assert_eq!(checks::answers(&file, Dwarf), Vec::<String>::new());
    assert!(lost(&file)[0].starts_with("the tables of the Go runtime are not read: their layout"));
}

#[test]
fn trees_that_form_circles_end() {
    let mut program = GoProgram::default();
    // Each is inlined into the other.
    program.functions[0].tree = vec![("main.mid[go.shape.int]", 0x24), ("main.leaf", 0x14)];
    assert_eq!(
        answers(&program)[2],
        "1020..1030 main.leaf inlined.go:30 < main.mid[go.shape.int] inlined.go:21 < main.outer inlined.go:30"
    );
    assert_eq!(lost(&program.elf().bytes()), ["inlined calls of Go that cannot be read"]);
}

#[test]
fn functions_with_more_code_than_the_file_are_left_out() {
    let large = GoFunction {
        name: "main.outer",
        size: 0x10_0000,
        lines: vec![(0x10_0000, 1)],
        ..GoFunction::default()
    };
    let functions = vec![large; 4];
    let mut elf = GoProgram { functions, ..GoProgram::default() }.elf();
    elf.sections.push(ElfSection {
        name: ".more".to_owned(),
        kind: object::elf::SHT_NOBITS.0,
        flags: 6,
        address: 0x3000,
        bytes: vec![0; 0x50_0000],
        link: 0,
    });
    assert!(
        lost(&elf.bytes())
            .contains(&"functions of Go left out: they have more code than the file".to_owned())
    );
}

/// Every fifth byte of the tables, of the trees and of the module data, with three wrong values.
#[test]
fn wrong_bytes_cost_no_more_than_their_functions() {
    let program = GoProgram::default();
    let file = program.elf().bytes();
    let start =
        file.windows(6).position(|window| window == [0xf1, 0xff, 0xff, 0xff, 0, 0]).expect("the tables");
    // The trees and the module data follow the tables.
    for at in (start..start + program.tables().len() + 0x200).step_by(5) {
        for wrong in [0, 0xff, file[at] ^ 1] {
            let mut file = file.clone();
            file[at] = wrong;
            let companions = Companions::default();
            let Ok(slices) = slices(&file) else { continue };
            if let Some(image) =
                slices.first().and_then(|slice| Image::load(slice, "program", &companions).ok())
            {
                let built = BuildOptions::new().allow_empty(true).build(&image);
                let index = built.ok().map(|built| Index::open(built.bytes).expect("just written"));
                index.iter().for_each(|index| assert_same_everywhere(&image, index));
            }
        }
    }
}
