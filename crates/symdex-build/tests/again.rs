//! An image without debug information whose index is there already.

use symdex::write::{ChunkEncoder, ChunkRanges, EncodedStrings, Id32, Writer};
use symdex::{Index, Table};
use symdex_build::{Companions, Image, Options, build, slices};
use symdex_testimages::debug_file::{BASE, MachO, Symbol};

fn file(symbols: &[(&str, u64)]) -> Vec<u8> {
    let symbols = symbols.iter().map(|(name, offset)| Symbol::function(name, BASE + offset)).collect();
    MachO { uuid: Some([7; 16]), symbols, ..MachO::default() }.bytes()
}

const SYMBOLS: [(&str, u64); 3] = [
    ("first", 0x1000),
    ("second, to compress, to compress, to compress", 0x1400),
    ("third, to compress", 0x1800),
];

/// The index of `file`, whose name is `name`, where `existing` is there already.
fn index(file: &[u8], name: &str, existing: Option<&[u8]>) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let existing = existing.map(|bytes| {
        let path = folder.path().join("index");
        std::fs::write(&path, bytes).expect("written");
        Index::open_file(&path).expect("an index")
    });
    let companions = Companions::default();
    let image = Image::load(&slices(file).expect("a Mach-O file")[0], name, &companions).expect("loads");
    let options = Options { existing: existing.as_ref(), ..Options::default() };
    build(&image, &options, &|_, _| {}).expect("built").bytes
}

/// The same index with other bytes: it has an empty chunk behind the others.
fn otherwise_written(index: &[u8]) -> Vec<u8> {
    let file = file(&SYMBOLS);
    let companions = Companions::default();
    let image = Image::load(&slices(&file).expect("a Mach-O file")[0], "image", &companions).expect("loads");
    let index = Index::open(index).expect("an index");
    let about = index.metadata();
    let mut writer = Writer::new(image.info.clone(), about.chunk_span, std::io::Cursor::new(Vec::new()));
    let mut encoder = ChunkEncoder::new(about.chunk_span, about.image_size);
    for chunk in index.chunks(Table::SymbolTable) {
        let (number, chunk) = chunk.expect("whole");
        writer.push(encoder.encode(Table::SymbolTable, number, &chunk).expect("encodes")).expect("in order");
    }
    let empty =
        encoder.encode(Table::SymbolTable, about.chunks(Table::SymbolTable).end, &ChunkRanges::default());
    writer.push(empty.expect("encodes")).expect("in order");
    let mut strings = index.strings();
    let names: Vec<_> = (0..about.counts.names)
        .map(|number| strings.name(Id32::new(number).expect("small")).expect("whole").to_vec())
        .collect();
    let files: [Vec<u8>; 0] = [];
    let names = EncodedStrings::new(&names).expect("names");
    let files = EncodedStrings::new(&files).expect("no files");
    let mut index = Vec::new();
    let sealed = writer.seal().expect("encodes");
    sealed.finish(&names, &files, about.counts, about.partial.clone(), &mut index).expect("small");
    index
}

#[test]
fn the_very_index_is_not_made_again() {
    let file = file(&SYMBOLS);
    let made = index(&file, "image", None);
    let other = otherwise_written(&made);
    assert_ne!(made, other);
    assert_eq!(index(&file, "image", Some(&other)), other);
    assert_eq!(index(&file, "image", Some(&made)), made);
    // The same names, but the alias is another function's.
    let [one, two] =
        [SYMBOLS[0].1, SYMBOLS[1].1].map(|offset| self::file(&[SYMBOLS[0], SYMBOLS[1], ("zzz", offset)]));
    let made = index(&one, "image", None);
    assert_ne!(made, index(&two, "image", None));
    assert_eq!(index(&two, "image", Some(&made)), index(&two, "image", None));
}

#[test]
fn any_other_index_is() {
    let made = index(&file(&SYMBOLS), "image", None);
    for symbols in [
        &SYMBOLS[..2],
        &[SYMBOLS[0], SYMBOLS[1], SYMBOLS[2], ("zzz, an alias", SYMBOLS[2].1)],
        &[SYMBOLS[0], ("other", 0x1400), SYMBOLS[2]],
        &[SYMBOLS[0], (SYMBOLS[1].0, 0x1401), SYMBOLS[2]],
        &[(SYMBOLS[1].0, 0x1000), (SYMBOLS[0].0, 0x1400), SYMBOLS[2]],
    ] {
        let file = file(symbols);
        let expected = index(&file, "image", None);
        assert_eq!(index(&file, "image", Some(&made)), expected, "{symbols:?}");
    }
    let file = file(&SYMBOLS);
    assert_eq!(index(&file, "other", Some(&otherwise_written(&made))), index(&file, "other", None));
    let mut damaged = otherwise_written(&made);
    let (_, chunks, _) = Index::open(&damaged[..]).expect("whole").sections()[2];
    damaged[usize::try_from(chunks).expect("small")] ^= 1;
    assert_eq!(index(&file, "image", Some(&damaged)), made);
}
