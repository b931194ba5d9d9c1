use std::io::Cursor;

use super::*;
use crate::format::{Counts, MAX_FRAMES};
use crate::image::{Arch, ImageId};
use crate::names::GROUP_LEN;
use crate::ranges::{CodeRange, InlineFrame};
use crate::write::bits::{BitWriter, put_varint};
use crate::write::{ChunkEncoder, EncodedStrings, ImageInfo, Writer};

const SPAN: u32 = 1 << 16;

/// An index whose symbol table has these ranges and frames.
fn index(names: &EncodedStrings, ranges: Vec<CodeRange>, frames: Vec<InlineFrame>) -> Index<Vec<u8>> {
    let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
    let mut image = ImageInfo::new(id, "demo", Arch::from_name("arm64").expect("known"));
    image.image_size = u64::from(SPAN);
    let mut encoder = ChunkEncoder::new(SPAN, image.image_size);
    let mut writer = Writer::new(image, SPAN, Cursor::new(Vec::new()));
    let chunk = encoder.encode(Table::SymbolTable, 0, &ChunkRanges { ranges, frames }).expect("valid");
    writer.push(chunk).expect("in order");
    let files = EncodedStrings::new::<&str>(&[]).expect("none");
    let mut bytes = Vec::new();
    let sealed = writer.seal().expect("encodes");
    sealed.finish(names, &files, Counts::default(), Vec::new(), &mut bytes).expect("an index");
    Index::open(bytes).expect("as written")
}

fn range(start: u64, function_start: u64, answer: u32) -> CodeRange {
    let function_start = Some(function_start);
    CodeRange { start, end: start + 1, function_start, exact: answer, statement: answer }
}

fn frame(parent: Option<u64>, name: u64) -> InlineFrame {
    InlineFrame {
        parent: parent.and_then(NonMaxU32::new),
        name: NonMaxU32::new(name),
        file: None,
        line: None,
    }
}

/// `groups` groups of names that share their symbols. Each name is 15 times the letter x, 2^12 times: 61,440 bytes.
fn long_names(groups: u32) -> EncodedStrings {
    const RULES: u32 = 12;
    const WIDTH: u32 = 4;
    const SYMBOLS: u32 = GROUP_LEN * 15;
    let bits = |numbers: &mut dyn Iterator<Item = u32>| {
        let mut out = BitWriter::default();
        numbers.for_each(|number| out.put(number.into(), WIDTH));
        out.finish()
    };
    let mut section = Vec::new();
    put_varint(&mut section, RULES.into());
    put_varint(&mut section, SYMBOLS.into());
    // The width, the longest terminal, and how many terminals have one byte.
    section.extend([4, 1, 1]);
    // Each group begins with symbol 0, and its names have 15 symbols each.
    (0..groups).for_each(|_| section.extend([0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]));
    // Terminal 0 is x, and each rule doubles the symbol before it.
    section.extend(bits(&mut (0..RULES).flat_map(|n| [n, n])));
    section.extend(bits(&mut (0..SYMBOLS).map(|_| RULES)));
    section.push(b'x');
    EncodedStrings { len: u64::from(groups * GROUP_LEN), section }
}

#[test]
fn names_that_stand_for_far_more_bytes_than_the_index_has_are_not_read_in_full() {
    let index = index(&long_names(1000), vec![range(0x10, 0x10, 0)], vec![frame(None, 0)]);
    assert!(index.as_bytes().len() < 14_000, "for a gigabyte of names");
    let mut long = vec![b'x'; 15 << 12];
    assert_eq!(index.function_start(&long).expect("the first name"), Some(ImageOffset(0x10)));
    // All names differ from it in their first byte, or after it.
    for other in ["y", "", "x"] {
        assert_eq!(index.function_start(other.as_bytes()).expect("few steps"), None);
    }
    // All names differ from it in the last byte.
    long.pop();
    long.push(b'y');
    let error = index.function_start(&long).expect_err("a gigabyte");
    assert!(matches!(error, Error::SearchTooLong) && !error.cause().is_damage());
}

#[test]
fn ranges_and_frames_are_steps_however_many_share_a_chain() {
    // One function has as many names as an answer can have frames, and all ranges have all of them.
    let frames: Vec<_> = (0..u64::from(MAX_FRAMES)).map(|n| frame(n.checked_sub(1), n)).collect();
    let ranges: Vec<_> = (0..500).map(|at| range(at, 0, MAX_FRAMES - 1)).collect();
    let names: Vec<_> = (0..MAX_FRAMES).map(|n| format!("f{n}")).collect();
    let index = index(&EncodedStrings::new(&names).expect("short"), ranges, frames);
    for name in [&names[0], &names[500], &names[1023]] {
        assert_eq!(index.function_start(name.as_bytes()).expect("intact"), Some(ImageOffset(0)));
    }
    let (id, chunk) =
        (NonMaxU32::new(0).expect("small"), index.chunk(Table::SymbolTable, 0).expect("intact"));
    let read = (chunk.ranges.len() + chunk.frames.len()) as u64;
    assert!(index.start_of(id, &mut Steps(read)).is_ok());
    assert!(matches!(index.start_of(id, &mut Steps(read - 1)), Err(Error::SearchTooLong)));
}
