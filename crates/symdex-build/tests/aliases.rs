//! Other names of functions that the linker folded (docs/DEBUG-INFO.md, "Folded functions"). An index keeps them. No
//! answer of a lookup depends on them.

use std::path::Path;

use crate::checks::{answers, built};
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{Companions, DirectLookup, Image, slices};
use symdex_testkit::images::debug_file::{BASE, CODE_FLAGS, Die, MachO, Section, Symbol, Unit, debug_file};

/// The Mach-O symbol type of a symbol that is not external.
const LOCAL: u8 = 0x0e;

fn index(file: &[u8]) -> Index<Vec<u8>> {
    let index = Index::open(built(file).bytes).expect("just written");
    index.verify().expect("whole");
    index
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names of the function that starts at an image offset.
fn names(index: &Index<Vec<u8>>, start: u64) -> Vec<String> {
    let mut scratch = Scratch::default();
    let names = index.function_names(ImageOffset(start), &mut scratch).expect("whole");
    names.map(text).collect()
}

/// The names of the frames at an image offset.
fn frames(index: &Index<Vec<u8>>, offset: u64) -> Vec<String> {
    let mut scratch = Scratch::default();
    let frames = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch).expect("whole");
    frames.expect("known").iter().map(|frame| text(frame.name.unwrap_or_default())).collect()
}

fn has_feature(index: &Index<Vec<u8>>) -> bool {
    index.as_bytes()[16] & 1 == 1
}

#[test]
fn every_name_at_one_address_is_kept_the_better_ones_first() {
    let local = |name, offset| Symbol { kind: LOCAL, ..Symbol::function(name, BASE + offset) };
    let mut symbols = vec![
        local("a_local", 0x1000),
        Symbol::function("g", BASE + 0x1000),
        Symbol::function("f", BASE + 0x1000),
        // The same name twice counts as one.
        Symbol::function("g", BASE + 0x1000),
        Symbol::function("alone", BASE + 0x1100),
    ];
    let file = |symbols: &[Symbol]| {
        MachO { uuid: Some([7; 16]), symbols: symbols.to_vec(), ..MachO::default() }.bytes()
    };
    let with_aliases = file(&symbols);
    assert_eq!(answers(&with_aliases, Table::SymbolTable), ["1000..1100 f", "1100..3000 alone"]);
    let index = index(&with_aliases);
    assert_eq!(names(&index, 0x1000), ["f", "g", "a_local"]);
    assert_eq!(names(&index, 0x1100), ["alone"]);
    assert_eq!(names(&index, 0x1001), [""; 0], "no function starts there");
    assert_eq!(names(&index, 0x10), [""; 0]);
    // Aliases are not frames.
    assert_eq!(frames(&index, 0x1000), ["f"]);
    assert_eq!(frames(&index, 0x10ff), ["f"]);
    assert!(has_feature(&index) && index.metadata().partial.is_empty());
    assert_eq!(index.metadata().counts.symbols, 2);
    // The order of the symbol table does not matter.
    symbols.reverse();
    assert!(built(&file(&symbols)).bytes == index.as_bytes());
}

#[test]
fn without_aliases_an_index_needs_no_new_reader() {
    let index = index(&debug_file(&[], &[("f", 0x1000), ("g", 0x1100)]));
    assert!(!has_feature(&index));
    assert_eq!(names(&index, 0x1000), ["f"]);
}

#[test]
fn functions_of_the_debug_information_and_lines_without_one_have_aliases_too() {
    let unit = Unit::new((0x1000, 0x3000))
        .child(Die::function("second", (0x1000, 0x1100)).linkage_name("second"))
        .sequence(&[(0x1000, 1, 2, true)], 0x1300);
    let symbols = [("first", 0x1000), ("second", 0x1000), ("line", 0x1200), ("same_line", 0x1200)];
    let index = index(&debug_file(&[unit], &symbols));
    assert_eq!(frames(&index, 0x1080), ["second"]);
    assert_eq!(names(&index, 0x1000), ["first", "second"]);
    assert_eq!(frames(&index, 0x1280), ["line"]);
    assert_eq!(names(&index, 0x1200), ["line", "same_line"]);
}

/// One function with `aliases` other names that covers three chunks.
fn long_function(aliases: usize) -> Vec<u8> {
    let symbols = (0..=aliases).map(|n| Symbol::function(&format!("f{n:05}"), BASE + 0x1000)).collect();
    let text =
        vec![Section { name: "__text", range: 0x1000..0x2_8000, flags: CODE_FLAGS, ..Section::default() }];
    MachO { symbols, text, ..MachO::default() }.bytes()
}

#[test]
fn a_function_in_many_chunks_states_its_aliases_in_the_first() {
    let index = index(&long_function(100));
    assert_eq!(names(&index, 0x1000).len(), 101);
    let frames_of_chunk = |chunk| index.chunk(Table::SymbolTable, chunk).expect("whole").frames.len();
    assert_eq!([0, 1, 2].map(frames_of_chunk), [101, 1, 1]);
    assert_eq!([0x1000, 0x1_0000, 0x2_7fff].map(|offset| frames(&index, offset)), [["f00000"]; 3]);
    assert_eq!((index.metadata().counts.symbols, names(&index, 0x1_0000).len()), (1, 0));
}

#[test]
fn more_names_than_a_chain_may_have_are_left_out_and_counted() {
    let whole = index(&long_function(1023));
    assert_eq!((names(&whole, 0x1000).len(), whole.metadata().partial.len()), (1024, 0));
    let partial = index(&long_function(2000));
    let kept = names(&partial, 0x1000);
    assert_eq!((kept.len(), kept[0].as_str(), kept[1023].as_str()), (1024, "f00000", "f01023"));
    let [lost] = &partial.metadata().partial[..] else { panic!("{:?}", partial.metadata().partial) };
    assert_eq!((lost.count, lost.reason.contains("other names")), (977, true));
}

/// Each function is within the limit of a function, but all functions of the chunk exceed the limit of a chunk.
fn many_names() -> Vec<u8> {
    let names_at = |offset: u64| (0..=1000).map(move |n| (format!("f{n:04}_{offset:x}"), offset));
    let symbols = (0..40).flat_map(|function| names_at(0x1000 + 16 * function));
    let symbols: Vec<Symbol> = symbols.map(|(name, offset)| Symbol::function(&name, BASE + offset)).collect();
    MachO { symbols, ..MachO::default() }.bytes()
}

#[test]
fn so_are_more_names_than_a_chunk_is_to_have() {
    let index = index(&many_names());
    assert_eq!([0x1000, 0x1100, 0x1270].map(|start| names(&index, start).len()), [1001, 385, 1]);
    assert_eq!(index.metadata().partial[0].count, 40 * 1000 - (1 << 14));
    assert_eq!(frames(&index, 0x1270), ["f0000_1270"]);
}

#[test]
fn direct_lookups_leave_out_the_aliases_that_an_index_leaves_out() {
    let file = many_names();
    let slice = &slices(&file).expect("an object file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, Path::new("many"), &companions).expect("loads");
    let mut lookup = DirectLookup::new(&image).expect("reads");
    for (start, count) in [(0x1270, 1), (0x1100, 385), (0x1000, 1001)] {
        let answer = lookup.answer(&[ImageOffset(start)]).expect("reads");
        assert_eq!(names(answer, start).len(), count, "{start:x}");
    }
}
