//! Images without debug information whose index exists already.

use std::path::Path;

use symdex::Index;
use symdex::write::split;
use symdex_build::{BuildReport, Built, Companions, Image, SymbolMap, build, slices, up_to_date};
use symdex_testkit::images::debug_file::{BASE, Elf, ElfSymbol, MachO, Symbol};

fn file(symbols: &[(&str, u64)]) -> Vec<u8> {
    let symbols = symbols.iter().map(|(name, offset)| Symbol::function(name, BASE + offset)).collect();
    MachO { uuid: Some([7; 16]), symbols, ..MachO::default() }.bytes()
}

const SYMBOLS: [(&str, u64); 4] =
    [("_first", 0x1000), ("_second", 0x1400), ("_third", 0x1800), ("__hidden#1_", 0x1900)];

/// Calls `f` with the first image of `file`, whose name is `name`.
fn with_image<T>(file: &[u8], name: &str, f: impl FnOnce(Image<'_>) -> T) -> T {
    let companions = Companions::default();
    f(Image::load(&slices(file).expect("a debug file")[0], name, &companions).expect("loads"))
}

fn built(image: &Image<'_>) -> Built {
    build(image).expect("builds")
}

fn compare(image: &Image<'_>, index: &[u8]) -> Option<BuildReport> {
    up_to_date(image, &Index::open(index).expect("an index"))
}

#[test]
fn the_index_of_the_same_input_is_up_to_date_and_has_the_report_of_its_build() {
    with_image(&file(&SYMBOLS), "image", |image| {
        let built = built(&image);
        assert_eq!((built.report.hidden_names, built.report.has_dwarf), (1, false));
        assert_eq!(compare(&image, &built.bytes), Some(built.report));
    });
}

#[test]
fn the_report_counts_the_code_of_overlapping_symbols_once() {
    let symbols = [("outer", 0x1000, 0x100), ("inner", 0x1040, 0x20), ("after", 0x1180, 0x10)];
    let symbols = symbols.map(|(name, start, size)| ElfSymbol::function(name, start, size)).to_vec();
    with_image(&Elf { symbols, ..Elf::default() }.bytes(), "library", |image| {
        let built = built(&image);
        assert_eq!(built.report.coverage.symbol_table, 0x110);
        assert_eq!(compare(&image, &built.bytes), Some(built.report));
    });
}

#[test]
fn an_index_of_other_symbols_is_not_up_to_date() {
    let index = with_image(&file(&SYMBOLS), "image", |image| built(&image).bytes);
    let [one, two, three, hidden] = SYMBOLS;
    for symbols in [
        &SYMBOLS[..3],
        &[one, two, three, hidden, ("_alias", three.1)],
        &[one, ("_other", two.1), three, hidden],
        &[one, (two.0, two.1 + 1), three, hidden],
        &[(two.0, one.1), (one.0, two.1), three, hidden],
    ] {
        with_image(&file(symbols), "image", |image| {
            assert_eq!(compare(&image, &index), None, "{symbols:?}");
            assert!(compare(&image, &built(&image).bytes).is_some(), "{symbols:?}");
        });
    }
    // The same symbols, but the alias belongs to another function.
    let [a, b] = [one.1, two.1].map(|offset| file(&[one, two, ("_zzz", offset)]));
    let index = with_image(&a, "image", |image| built(&image).bytes);
    assert_eq!(with_image(&b, "image", |image| compare(&image, &index)), None);
}

#[test]
fn an_index_of_another_image_name_or_without_the_symbol_map_is_not_up_to_date() {
    let file = file(&SYMBOLS);
    let index = with_image(&file, "image", |image| built(&image).bytes);
    assert_eq!(with_image(&file, "other", |image| compare(&image, &index)), None);
    let map = SymbolMap::parse(b"BCSymbolMap Version: 2.0\n_zero\n_one\n".to_vec()).expect("a symbol map");
    with_image(&file, "image", |image| assert_eq!(compare(&image.with_symbol_map(&map), &index), None));
}

#[test]
fn a_damaged_index_is_not_up_to_date() {
    with_image(&file(&SYMBOLS), "image", |image| {
        let index = built(&image).bytes;
        for symdex::SectionInfo { name, offset, size, .. } in
            Index::open(&index[..]).expect("whole").sections()
        {
            let mut damaged = index.clone();
            damaged[usize::try_from(offset + size - 1).expect("small")] ^= 1;
            let found = Index::open(&damaged[..]).ok().and_then(|index| up_to_date(&image, &index));
            assert!(size == 0 || found.is_none(), "{name}");
        }
    });
}

#[test]
fn an_index_without_a_digest_of_its_input_is_not_up_to_date() {
    with_image(&file(&SYMBOLS), "image", |image| {
        let index = built(&image).bytes;
        let index = Index::open(&index[..]).expect("an index");
        assert!(index.metadata().input_digest.is_some() && up_to_date(&image, &index).is_some());
        let part = split(&index).next().expect("a part").expect("splits").bytes;
        assert_eq!(Index::open(&part[..]).expect("an index").metadata().input_digest, None);
        assert_eq!(compare(&image, &part), None);
    });
    let dsym = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
    let dsym = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(dsym)).expect("testdata has it");
    with_image(&dsym, "inline-dwarf4", |image| {
        let index = built(&image).bytes;
        assert_eq!(Index::open(&index[..]).expect("an index").metadata().input_digest, None);
        assert_eq!(compare(&image, &index), None, "an image with debug information is always built");
    });
}
