//! Direct lookups in every debug file of testdata give the answers of the index.

use std::path::{Path, PathBuf};

use crate::checks::same_answers::{assert_same, boundaries, random, whole};
use gimli::constants as dw;
use symdex::{Frame, ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::{Companions, DirectLookup, Image, find, slices, split_column};
use symdex_testkit::images::debug_file::{Die, Unit, Value, debug_file};

/// Calls `each` with every image of the debug files below `path`. Returns the number of images.
fn each_image(path: &Path, each: impl Fn(&Path, &Image<'_>)) -> usize {
    let mut count = 0;
    for path in find(path).into_iter().map(|file| file.expect("a debug file")) {
        let bytes = symdex::map_file(&path).expect("readable");
        for slice in slices(&bytes).expect("an object file") {
            let companions = Companions::default();
            each(&path, &Image::load(&slice, &path, &companions).expect("loads"));
            count += 1;
        }
    }
    count
}

/// The lines and columns of the frames at `offset`.
fn places(index: &Index<Vec<u8>>, offset: u64) -> Vec<(Option<u32>, u32)> {
    let mut scratch = Scratch::default();
    let frames = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch).expect("intact");
    let frames = frames.into_iter().flat_map(|frames| frames.iter().collect::<Vec<_>>());
    let place = |frame: Frame<'_>| {
        let (path, column) = split_column(frame.file.expect("has a file"));
        assert_eq!(path, b"/src/a.c");
        (frame.line, column)
    };
    frames.map(place).collect()
}

/// Code whose rows, and whose calls, differ in nothing but the column.
pub(crate) fn columns_are_those_of_the_row_and_of_the_calls() {
    let called = |range, column| {
        let call = Die::inlined("inner", 3).with(dw::DW_AT_call_column, Value::Number(column));
        call.range(range)
    };
    let inner = Die::new(dw::DW_TAG_subprogram).name("inner").label("inner");
    let outer = Die::function("outer", (0x1000, 0x1040));
    let outer = outer.child(called((0x1010, 0x1020), 9)).child(called((0x1020, 0x1030), 300));
    let [column, copy, advance] =
        [dw::DW_LNS_set_column, dw::DW_LNS_copy, dw::DW_LNS_advance_pc].map(|opcode| opcode.0);
    // Columns have 16 bits, as in llvm-symbolizer: the last one is 0x1_0007.
    let program = [column, 5, advance, 8, copy, column, 6, advance, 0x18, copy];
    let rest = [column, 0x87, 0x80, 0x04, advance, 0x10, copy, advance, 0x10];
    let unit = Unit::new((0x1000, 0x1040)).child(inner).child(outer);
    let unit = unit.sequence_of_bytes(0x1000, &[&program[..], &rest].concat());
    let file = debug_file(&[unit], &[]);
    let companions = Companions::default();
    let slice = slices(&file).expect("a Mach-O file").remove(0);
    let image = Image::load(&slice, "made-up", &companions).expect("loads");
    let one = Some(1);
    let expected = [
        (0x1000, vec![(one, 0)]),
        (0x1008, vec![(one, 5)]),
        (0x1010, vec![(one, 5), (Some(3), 9)]),
        (0x1020, vec![(one, 6), (Some(3), 300)]),
        (0x1030, vec![(one, 7)]),
    ];
    let mut lookup = DirectLookup::new(&image).expect("reads");
    // Without columns, and with the unit in the cache.
    for _ in 0..2 {
        let index = lookup.answer(&[ImageOffset(0x1020)]).expect("answers");
        assert_eq!(places(index, 0x1020), [(one, 0), (Some(3), 0)]);
    }
    let mut lookup = DirectLookup::new(&image).expect("reads");
    lookup.state_columns();
    // At first a part of the unit is read, then the whole unit, and in the end an index is built.
    for round in 0..4 {
        for (offset, expected) in &expected {
            let index = lookup.answer(&[ImageOffset(*offset)]).expect("answers");
            assert_eq!(places(index, *offset), *expected, "{round} {offset:#x}");
        }
        let offsets: Vec<_> = expected.iter().map(|(offset, _)| ImageOffset(*offset)).collect();
        let index = lookup.answer(&offsets).expect("answers");
        expected.iter().for_each(|(offset, expected)| assert_eq!(places(index, *offset), *expected));
        lookup.state_columns();
    }
    // An index has none.
    assert_eq!(places(&whole(&image), 0x1020), [(one, 0), (Some(3), 0)]);
}

/// Compares the answers at all boundaries of ranges and at some random offsets. One lookup answers all of them at once,
/// one answers random offsets one by one, and a new lookup for each answers some of them.
fn compare(path: &Path, image: &Image<'_>) {
    let index = whole(image);
    let mut offsets = boundaries(&index);
    offsets.extend(random(image, 200, 1));
    println!("{}: {} offsets", path.display(), offsets.len());
    assert_same(&mut DirectLookup::new(image).expect("reads"), &index, &offsets, usize::MAX);
    let mut lookup = DirectLookup::new(image).expect("reads");
    assert_same(&mut lookup, &index, &random(image, 30, 2), 1);
    let every = offsets.len() / 25 + 1;
    for offset in offsets.iter().step_by(every) {
        let mut lookup = DirectLookup::new(image).expect("reads");
        assert_same(&mut lookup, &index, &[*offset], 1);
    }
}

pub(crate) fn every_answer_for_testdata_is_that_of_the_index() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    assert!(each_image(&testdata, compare) > 20);
}

pub(crate) fn every_answer_for_the_shared_corpora_is_that_of_the_index() {
    for folder in ["small", "swift"] {
        assert!(each_image(&symdex_testkit::corpora().join(folder), compare) > 0, "{folder}");
    }
}

/// `SYMDEX_DIRECT_INPUT=FOLDER cargo test --release -p symdex-build --test needs direct -- --ignored --nocapture`
pub(crate) fn random_answers_for_a_large_debug_file_are_those_of_the_index() {
    let input = std::env::var_os("SYMDEX_DIRECT_INPUT").map(PathBuf::from).expect("SYMDEX_DIRECT_INPUT");
    let compare = |path: &Path, image: &Image<'_>| {
        let index = whole(image);
        println!("{}: 2,500 random offsets together, 500 one after the other, 100 apart", path.display());
        assert_same(&mut DirectLookup::new(image).expect("reads"), &index, &random(image, 2500, 1), 2500);
        let mut lookup = DirectLookup::new(image).expect("reads");
        assert_same(&mut lookup, &index, &random(image, 500, 2), 1);
        for offset in random(image, 100, 3) {
            assert_same(&mut DirectLookup::new(image).expect("reads"), &index, &[offset], 1);
        }
    };
    assert!(each_image(&input, compare) > 0);
}
