//! Small indexes for tests.

use symdex::write::{EncodedStrings, ImageInfo, Writer};
use symdex::{Arch, Counts, ImageId, Index};

/// An index without chunks, with this id and these counts.
pub(crate) fn index(id: u8, functions: u64, ranges: u64, builder_name: &str) -> Index<Vec<u8>> {
    with_counts(id, Counts { functions, ranges, ..Counts::default() }, builder_name)
}

pub(crate) fn with_counts(id: u8, counts: Counts, builder_name: &str) -> Index<Vec<u8>> {
    let id = ImageId::new(&[id; 16]).expect("16 bytes are an id");
    let image = ImageInfo::new(id.clone(), builder_name, Arch::from_macho(0x0100_000c, 0));
    let none: [&str; 0] = [];
    let names = EncodedStrings::new(&none).expect("no names");
    let files = EncodedStrings::new(&none).expect("no files");
    let writer = Writer::new(image, 0x1_0000, std::io::empty());
    let mut index = Vec::new();
    let sealed = writer.seal().expect("encodes");
    sealed.finish(&names, &files, counts, Vec::new(), &mut index).expect("small");
    Index::open(index).expect("as written")
}
