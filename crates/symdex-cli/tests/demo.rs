//! The frames of the demo's crash, compared with the chains that follow from its sources. llvm-symbolizer confirmed
//! them when the demo was made (`testdata/demo/demo.expected.tsv`).

use std::collections::HashMap;
use std::path::Path;

use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::{Companions, Image, build, find, slices};

/// The demo's indexes, by image name.
fn indexes() -> HashMap<String, Index<Vec<u8>>> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo");
    let mut indexes = HashMap::new();
    for path in find(&demo) {
        let path = path.expect("the demo has debug files");
        let bytes = std::fs::read(&path).expect("readable");
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        for slice in slices(&bytes).expect("a Mach-O file") {
            let companions = Companions::default();
            let image = Image::load(&slice, &name, &companions).expect("loads");
            let built = build(&image).expect("builds");
            indexes.insert(name.clone(), Index::open(built.bytes).expect("opens"));
        }
    }
    indexes
}

#[test]
fn every_frame_of_the_demo_has_the_chain_of_its_sources() {
    let expected = include_str!("../../../testdata/demo/demo.expected.tsv");
    let indexes = indexes();
    let mut scratch = Scratch::default();
    let mut compared = 0;
    for row in expected.lines().filter(|row| !row.starts_with('#')) {
        let [_, _, image, svma, depth, function, file, line] =
            row.split('\t').collect::<Vec<_>>().try_into().expect("eight columns");
        let index = &indexes[image];
        let svma = u64::from_str_radix(svma.trim_start_matches("0x"), 16).expect("hexadecimal");
        let offset = ImageOffset(svma - index.metadata().base);
        let frames = index.lookup(offset, LinePolicy::Exact, &mut scratch).expect("intact").expect(row);
        let frame = frames.iter().nth(depth.parse().expect("a number")).expect(row);
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        assert_eq!(text(frame.name), function, "{row}");
        // llvm-symbolizer prints a directory before <compiler-generated>.
        assert!(file.ends_with(&text(frame.file)), "{row}: {frame:?}");
        assert_eq!(frame.line.map_or("-".to_owned(), |line| line.to_string()), line, "{row}");
        compared += 1;
    }
    assert!(compared > 40, "only {compared} frames");
}
