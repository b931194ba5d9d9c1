//! What compilers write for coroutines, modules, calls and thunks (docs/DEBUG-INFO.md), in debug files of testdata.
//!
//! llvm-symbolizer 19 gives the same answers, but for the names that the tests state as its own.

use std::path::Path;

use crate::checks::image_answers;
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{Companions, Image, build, slices};

/// Calls `check` with the image of a debug file.
fn with_image<T>(path: &str, check: impl FnOnce(&Image<'_>) -> T) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
    let bytes = std::fs::read(&path).expect("readable");
    let companions = Companions::default();
    check(&Image::load(&slices(&bytes).expect("a debug file")[0], &path, &companions).expect("loads"))
}

fn dsym(name: &str) -> String {
    format!("dsyms/{name}.dSYM/Contents/Resources/DWARF/{name}")
}

/// The answers of the debug information for the ranges from `start` to `end`. The sources are in /src/symdex/modern.
fn ranges(path: &str, start: u64, end: u64) -> Vec<String> {
    let all = with_image(path, |image| image_answers(image, Table::Dwarf));
    let range_start = |line: &String| u64::from_str_radix(line.split("..").next().expect("a start"), 16);
    let of_part = all.into_iter().filter(|line| (start..end).contains(&range_start(line).expect("a number")));
    of_part.map(|line| line.replace("symdex/modern/", "")).collect()
}

/// The name that the symbol table has at the start of each function of the debug information, and the name that answers
/// there.
fn names(path: &str) -> Vec<(String, String)> {
    with_image(path, |image| {
        let index = Index::open(build(image).expect("builds").bytes).expect("opens");
        let mut scratch = Scratch::default();
        let mut names = Vec::new();
        for symbol in image.symbols().iter() {
            let frames = index.lookup(ImageOffset(symbol.start), LinePolicy::Exact, &mut scratch);
            let frames = frames.expect("intact").expect("a function");
            let concrete = frames.iter().last().expect("a frame");
            assert_eq!(concrete.function_start, Some(ImageOffset(symbol.start)));
            if concrete.table == Table::SymbolTable {
                continue;
            }
            let text = |name: Option<&[u8]>| String::from_utf8_lossy(name.expect("a name")).into_owned();
            names.push((text(symbol.name), text(concrete.name)));
        }
        names
    })
}

/// The functions whose names are not those of the symbol table.
fn renamed(path: &str) -> Vec<(String, String)> {
    names(path).into_iter().filter(|(symbol, name)| symbol != name).collect()
}

fn owned(names: &[(&str, &str)]) -> Vec<(String, String)> {
    names.iter().map(|(symbol, name)| ((*symbol).to_owned(), (*name).to_owned())).collect()
}

/// llvm-symbolizer has the names of the symbol table.
#[test]
fn parts_of_clangs_coroutines_have_the_linkage_name_of_the_coroutine() {
    let (plain, optimised) = ("_ZN5plain5countEi", "_ZN9optimised5countEi");
    let parts = [
        ("_ZN5plain5countEi.resume", plain),
        ("_ZN5plain5countEi.destroy", plain),
        ("_ZN5plain5countEi.cleanup", plain),
        ("_ZN9optimised5countEi.resume", optimised),
        ("_ZN9optimised5countEi.destroy", optimised),
    ];
    assert_eq!(renamed(&dsym("cxx20")), owned(&parts));
}

/// llvm-symbolizer has the names of the symbol table, and `count` for the inlined function.
#[test]
fn parts_of_gccs_coroutines_have_the_names_of_their_symbols() {
    let (library, actor) =
        ("elf/gcc-names.so", "_ZN5plain5countEPZNS_5countEiE23_ZN5plain5countEi.Frame.actor");
    let all = names(library);
    let symbols: Vec<_> = all.iter().filter(|(symbol, _)| symbol.contains("plain")).collect();
    let destroy = actor.replace("actor", "destroy");
    let expected = owned(&[
        (&format!("{actor}.cold"), actor),
        (actor, actor),
        (&destroy, &destroy),
        ("_ZN5plain5countEi", "_ZN5plain5countEi"),
    ]);
    assert_eq!(symbols, expected.iter().collect::<Vec<_>>());
}

/// llvm-symbolizer and addr2line have `painted` and `operator()`.
#[test]
fn inlined_functions_without_a_linkage_name_have_a_qualified_name() {
    let found = with_image("elf/gcc-names.so", |image| image_answers(image, Table::Dwarf));
    let mut inlined: Vec<_> = found
        .iter()
        .filter(|line| line.contains(" < _ZN4park"))
        .filter_map(|line| line.split_once(' ')?.1.rsplit_once(" symdex")?.0.split(" symdex").next())
        .collect();
    inlined.sort_unstable();
    inlined.dedup();
    let expected = [
        "(anonymous)::operator()",
        "_ZN4park4GateC4Ei",
        "_ZN4park4GateD4Ev",
        "_ZNK4park4PathIiE6walkedEv",
        "park::(anonymous namespace)::Fence::painted",
    ];
    assert_eq!(inlined, expected);
}

#[test]
fn functions_of_modules_have_names_that_state_the_module() {
    assert_eq!(
        ranges(&dsym("cxx20"), 0x1834, 0x1890),
        [
            "1834..1840 _ZNK3geoW8geometry6Square5twiceEv geometry.cppm:16",
            "1840..1844 _ZN3geoW8geometry6scaledEi geometry.cppm:5 < _ZN3geoW8geometry4areaEii geometry.cppm:8",
            "1844..1850 _ZN3geoW8geometry4areaEii geometry.cppm:8",
            "1850..1864 _ZN3geoW8geometry9perimeterEi geometry.cppm:18",
            "1864..1868 _ZN3geoW8geometry9perimeterEi geometry.cppm:19",
            "1868..1870 _ZN3geoW8geometry9perimeterEi geometry.cppm:20",
            "1870..1878 _ZN3geoW8geometry6scaledEi geometry.cppm:5 < _ZN3geoW8geometry9perimeterEi geometry.cppm:20",
            "1878..188c _ZN3geoW8geometry9perimeterEi geometry.cppm:20",
            "188c..1890 _ZGIW8geometry - [statement geometry.cppm:20]",
        ]
    );
}

/// Four call sites state return addresses: the ends of three functions, and 0x40c. The bytes before them belong to the
/// callers.
#[test]
fn call_sites_are_no_functions_and_a_call_at_the_end_belongs_to_its_function() {
    assert_eq!(
        ranges(&dsym("calls"), 0x380, 0x414),
        [
            "380..388 _ZN6ending14before_paddingEi no_return.cpp:6",
            "388..38c _ZN6ending14before_paddingEi no_return.cpp:7",
            "3c0..3cc _ZN6ending7alignedEi no_return.cpp:11",
            "3cc..3d4 _ZN6ending15before_functionEi no_return.cpp:14",
            "3d4..3dc _ZN6ending15before_functionEi no_return.cpp:15",
            "3dc..3e4 _ZN6ending9followingEi no_return.cpp:19",
            "3e4..3ec _ZN6ending3sumERKNS_7CheckedES2_ no_return.cpp:32",
            "3ec..3fc _ZN6ending7Checked3getERKS0_ no_return.cpp:26 \
             < _ZN6ending3sumERKNS_7CheckedES2_ no_return.cpp:33",
            "3fc..408 _ZN6ending3sumERKNS_7CheckedES2_ no_return.cpp:33",
            "408..414 _ZN6ending7Checked3getERKS0_ no_return.cpp:27 \
             < _ZN6ending3sumERKNS_7CheckedES2_ no_return.cpp:33",
        ]
    );
    // The symbol table names the padding. A return address less one is in the function of the call.
    let symbols = with_image(&dsym("calls"), |image| image_answers(image, Table::SymbolTable));
    assert_eq!(symbols[0], "380..3c0 _ZN6ending14before_paddingEi");
}

#[test]
fn a_trampoline_is_a_function_of_its_own() {
    assert_eq!(
        ranges(&dsym("calls"), 0x414, 0x430),
        [
            "414..418 $s4main6targetyS2iF thunk.swift:2",
            "418..41c $s4main6targetyS2iF thunk.swift:3",
            "41c..430 $s4main6targetyS2iFTo /<compiler-generated>:0",
        ]
    );
}
