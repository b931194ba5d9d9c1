//! Copies answer as their original, with their own names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use symdex::{Frame, ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_audit::audit;
use symdex_build::{Companions, Image, slices};

use super::layout::FileLayout;
use super::original::Original;
use super::shift::Shift;
use super::{Size, debug_file, rename, write};

const COPIES: u32 = 3;

/// dSYMs with everything that a copy changes: ranges, locations, inlining, names of Objective-C, Swift and C++, DWARF 2
/// to 4.
const DSYMS: [&str; 9] = [
    "cold-split",
    "cxx",
    "cxx-line-tables-only",
    "icf",
    "inline-dwarf2",
    "inline-dwarf3",
    "objc",
    "odd-lines",
    "swift-names",
];

fn dsym(name: &str) -> PathBuf {
    let dsyms = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/dsyms");
    debug_file(&dsyms.join(format!("{name}.dSYM"))).expect("testdata has it")
}

/// The index of the image in `bytes`. An audit has compared it with the debug file.
fn index(bytes: &[u8]) -> Index<Vec<u8>> {
    let slice = &slices(bytes).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "copied", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    assert_eq!(audit(&image, &index).expect("is read").failures(), [] as [String; 0]);
    index
}

/// The starts of the ranges of an index.
fn starts(index: &Index<Vec<u8>>) -> Vec<u64> {
    let chunks = [Table::Dwarf, Table::SymbolTable].into_iter().flat_map(|table| index.chunks(table));
    chunks.flat_map(|chunk| chunk.expect("intact").1.ranges).map(|range| range.start).collect()
}

#[test]
fn a_copy_answers_as_the_original_with_its_own_names() {
    for name in DSYMS {
        let bytes = std::fs::read(dsym(name)).expect("readable");
        let parsed = Original::parse(&bytes).expect("can be copied");
        let mut made = Vec::new();
        write(&parsed, COPIES, &mut made).expect("can be copied");
        let (original, copies) = (index(&bytes), index(&made));
        let starts = starts(&original);
        assert!(starts.len() > 5, "{name}");
        let layout = FileLayout::new(&parsed, COPIES).expect("has a layout");
        let base = original.metadata().base;
        for copy in 0..COPIES {
            let shift = Shift { copy, original: &parsed, spans: &layout.spans };
            let mut files = BTreeMap::new();
            for start in &starts {
                let shifted = shift.address(base + start).expect("code") - base;
                assert_eq!(shifted == *start, copy == 0, "{name}");
                for policy in [LinePolicy::Exact, LinePolicy::Statement] {
                    let (mut one, mut other) = (Scratch::default(), Scratch::default());
                    let one = original.lookup(ImageOffset(*start), policy, &mut one).expect("intact");
                    let other = copies.lookup(ImageOffset(shifted), policy, &mut other).expect("intact");
                    let (one, other) = (one.expect("covered"), other.expect("covered"));
                    assert_eq!(one.len(), other.len(), "{name} {start:#x}");
                    for (one, other) in one.iter().zip(other.iter()) {
                        assert_is_copy(&one, &other, &shift, base);
                        files.extend(one.file.map(<[u8]>::to_vec).zip(other.file.map(<[u8]>::to_vec)));
                    }
                }
            }
            // The folders and the file of a path are renamed separately.
            for (file, renamed) in &files {
                let is_same = copy == 0 || file.starts_with(b"<");
                assert_eq!((file == renamed, file.len()), (is_same, renamed.len()), "{name}");
            }
        }
    }
}

fn assert_is_copy(original: &Frame<'_>, copied: &Frame<'_>, shift: &Shift<'_>, base: u64) {
    let renamed = original.name.map(|name| {
        let mut name = name.to_vec();
        rename::rename(&mut name, shift.copy);
        name
    });
    assert_eq!(copied.name, renamed.as_deref());
    assert_eq!(
        (copied.line, copied.inlined, copied.table),
        (original.line, original.inlined, original.table)
    );
    let start = original.function_start.map(|start| shift.address(base + start.0).expect("code") - base);
    assert_eq!(copied.function_start.map(|start| start.0), start);
}

#[test]
fn unsupported_dsyms_are_refused() {
    let refusal = |name: &str, size: &str| {
        let bytes = std::fs::read(dsym(name)).expect("readable");
        let original = Original::parse(&bytes);
        let copies =
            original.and_then(|original| original.copies_for(Size::parse(size).expect("a size").bytes));
        copies.expect_err("cannot be copied").to_string()
    };
    assert!(refusal("inline-dwarf5", "1MB").contains("__debug_"));
    assert!(refusal("fat", "1MB").contains("one slice"));
    assert!(refusal("cxx", "4500MB").contains("too many"));
}

#[test]
fn sizes_have_decimal_units() {
    let bytes = |word| Size::parse(word).map(|size| size.bytes);
    assert_eq!(
        [bytes("12"), bytes("3kB"), bytes("4500MB"), bytes("1GiB"), bytes("GB")],
        [Some(12), Some(3000), Some(4_500_000_000), None, None]
    );
}
