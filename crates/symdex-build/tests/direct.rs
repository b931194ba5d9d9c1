//! Direct lookups in every debug file of testdata give the answers of the index.

mod checks;

use std::path::{Path, PathBuf};

use checks::same_answers::{assert_same, boundaries, random, whole};
use symdex_build::{Companions, DirectLookup, Image, find, slices};

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

fn every_answer_for_testdata_is_that_of_the_index() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    assert!(each_image(&testdata, compare) > 20);
}

fn every_answer_for_the_shared_corpora_is_that_of_the_index() {
    for folder in ["small", "swift"] {
        assert!(each_image(&symdex_testkit::corpora().join(folder), compare) > 0, "{folder}");
    }
}

/// `SYMDEX_DIRECT_INPUT=FOLDER cargo test --release -p symdex-build --test direct -- --ignored --nocapture`
fn random_answers_for_a_large_debug_file_are_those_of_the_index() {
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

symdex_testkit::main! {
    every_answer_for_testdata_is_that_of_the_index,
    every_answer_for_the_shared_corpora_is_that_of_the_index;
    on request: random_answers_for_a_large_debug_file_are_those_of_the_index
}
