//! Images with debug information whose index exists already.

use std::path::{Path, PathBuf};

use symdex::Index;
use symdex_build::{BuildReport, Companions, Image, build, built_before, find, slices};

fn debug_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../testdata/dsyms/{name}.dSYM/Contents/Resources/DWARF/{name}"))
}

/// Calls `f` with the first image of `bytes`, whose name is `name`.
fn with_image<T>(bytes: &[u8], name: &str, f: impl FnOnce(&Image<'_>) -> T) -> T {
    let companions = Companions::default();
    f(&Image::load(&slices(bytes).expect("a debug file")[0], name, &companions).expect("loads"))
}

#[test]
fn every_whole_index_of_the_same_debug_file_is_recognised() {
    let mut recognised = 0;
    for path in find(debug_file("cxx").ancestors().nth(5).expect("testdata/dsyms")) {
        let path = path.expect("a debug file");
        let bytes = std::fs::read(&path).expect("readable");
        let companions = Companions::default();
        for slice in slices(&bytes).expect("a debug file") {
            let image = Image::load(&slice, &path, &companions).expect("loads");
            let built = build(&image).expect("builds");
            let index = Index::open(built.bytes).expect("opens");
            let found = built_before(&image, &index);
            if !index.metadata().partial.is_empty() {
                assert_eq!(found, None, "{}", path.display());
                continue;
            }
            let known = |report: &BuildReport| (report.has_dwarf, report.coverage);
            assert_eq!(found.as_ref().map(known), Some(known(&built.report)), "{}", path.display());
            recognised += 1;
        }
    }
    assert!(recognised > 15, "only {recognised}");
}

#[test]
fn the_index_of_another_file_of_the_id_and_a_damaged_one_are_not_recognised() {
    let bytes = std::fs::read(debug_file("cxx")).expect("readable");
    let index = with_image(&bytes, "cxx", |image| build(image).expect("builds").bytes);
    let open = |bytes: &[u8]| Index::open(bytes.to_vec()).expect("opens");
    with_image(&bytes, "cxx", |image| assert!(built_before(image, &open(&index)).is_some()));
    with_image(&bytes, "other", |image| assert_eq!(built_before(image, &open(&index)), None));
    let mut damaged = index.clone();
    // In the chunks, which are not read when the index is opened.
    *damaged.last_mut().expect("not empty") ^= 1;
    with_image(&bytes, "cxx", |image| assert_eq!(built_before(image, &open(&damaged)), None));
    let other = std::fs::read(debug_file("dead-strip")).expect("readable");
    with_image(&other, "cxx", |image| assert_eq!(built_before(image, &open(&index)), None));
    // The same file, with two symbols less in its symbol table.
    let mut fewer = bytes.clone();
    let command =
        fewer.windows(8).position(|command| command == [2, 0, 0, 0, 24, 0, 0, 0]).expect("LC_SYMTAB");
    fewer[command + 12] -= 2;
    with_image(&fewer, "cxx", |image| assert_eq!(built_before(image, &open(&index)), None));
}
