//! Invalid numbers are refused: each test writes a valid index, changes one field, corrects the checksums, and expects
//! one error.
//!
//! The indexes are so small that most contexts have one symbol. The only symbol of a context takes no bits in a chunk.
//! So a test changes a number by changing the symbol in the codes (docs/FORMAT.md, "Codes").

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use symdex::write::{ChunkRanges, CodeRange, InlineFrame, NonMaxU32};
use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_testkit::images::Image;
use symdex_testkit::images::seal::{page_checksum, seal};

/// The contexts of coded numbers.
const GAP: usize = 0;
const FIRST_FUNCTION: usize = 1;
/// The length of a range whose answer defines one inline frame.
const LENGTH: usize = 5;
/// The code of the first answer of a block. The context of a later answer is this plus the previous answer's code, at
/// most 11.
const ANSWER: usize = 8;
const SOURCE: usize = 20;
const NAME: usize = 25;
const NAME_ID: usize = 27;
const FILE: usize = 28;
const LINE_IN_OTHER_FILE: usize = 30;
const LINE_AFTER_SAME_NAME: usize = 31;
const OTHER_FILE: usize = 33;

/// The codes of answers.
const GAP_CODE: u8 = 0;
const FUNCTION_CODE: u8 = 1;
/// Defines one inline frame without a caller. This frame is the answer under both policies.
const DEFINES: u8 = 3;
/// Like `DEFINES`, but a separate answer under `statement` follows.
const DEFINES_AND_FOLLOWS: u8 = 5;
/// The answer of the previous range.
const SAME_ANSWER: u8 = 12;
/// The most recent inline frame.
const RECENT: u8 = 24;

/// The largest symbol: numbers from 3 x 2^46 on.
const HUGE: u8 = 209;

const INVALID_BLOCK: &str = "dwarf chunk 0: a block is invalid";
const INVALID_SOURCE: &str = "dwarf chunk 0: a source location is invalid";
const INVALID_HEAD: &str = "dwarf chunk 0: its head is invalid";
const INVALID_CODE: &str = "code page 0: a code is invalid";

fn frame(parent: Option<u64>, name: u64, line: u64) -> InlineFrame {
    InlineFrame {
        parent: parent.and_then(NonMaxU32::new),
        name: NonMaxU32::new(name),
        file: NonMaxU32::new(0),
        line: NonMaxU32::new(line),
    }
}

fn range(start: u64, end: u64, answer: u32) -> CodeRange {
    CodeRange { start, end, function_start: None, exact: answer, statement: answer }
}

/// A valid index of one chunk of `span` bytes.
fn index(span: u32, ranges: Vec<CodeRange>, frames: Vec<InlineFrame>) -> Patched {
    let mut image = Image::random(0);
    image.chunk_span = span;
    image.names = ["a", "b", "c"].map(|name| name.as_bytes().to_vec()).into();
    image.files = ["/src/a", "/src/b"].map(|path| path.as_bytes().to_vec()).into();
    image.tables = [ChunkRanges { ranges, frames }, ChunkRanges::default()];
    patched(&image)
}

fn patched(image: &Image) -> Patched {
    let bytes = image.index();
    let opened = Index::open(&bytes[..]).expect("as written");
    opened.verify().expect("as written");
    let sections = opened.sections().into_iter();
    let sections =
        sections.map(|section| (section.name, section.offset as usize, section.size as usize)).collect();
    let id = opened.id().as_bytes().to_vec();
    Patched { bytes, sections, id }
}

/// An index of one range of 16 bytes and a gap of 48 bytes. The range has name 1 and line 9.
fn one_range() -> Patched {
    index(64, vec![range(0, 16, 0)], vec![frame(None, 1, 9)])
}

/// An index of two ranges with the same name and the lines 9 and 12.
fn two_lines() -> Patched {
    index(64, vec![range(0, 16, 0), range(16, 32, 1)], vec![frame(None, 1, 9), frame(None, 1, 12)])
}

/// An index of 400 ranges in several blocks.
fn blocks() -> Patched {
    let ranges = (0..400u64).map(|n| range(10 * n, 10 * n + 10, n as u32)).collect();
    index(4000, ranges, (0..400u64).map(|n| frame(None, n % 3, 1 + n)).collect())
}

/// An index of 70 names, of which all but the first and every fifth have readable names.
fn readable() -> Patched {
    let mut image = Image::random(0);
    image.names = (0..70).map(|n| format!("_Z{n}").into_bytes()).collect();
    image.readable = (0..70).map(|n| (n % 5 != 0).then(|| format!("name {n}").into_bytes())).collect();
    image.tables = [
        ChunkRanges { ranges: vec![range(0, 16, 0)], frames: vec![frame(None, 1, 9)] },
        ChunkRanges::default(),
    ];
    patched(&image)
}

/// An index whose fields a test changes.
#[derive(Clone)]
struct Patched {
    bytes: Vec<u8>,
    /// Names, starts and sizes.
    sections: Vec<(&'static str, usize, usize)>,
    id: Vec<u8>,
}

impl Patched {
    fn section(&self, name: &str) -> (usize, usize) {
        let (_, start, size) = self.sections.iter().find(|section| section.0 == name).expect("a section");
        (*start, *size)
    }

    /// The position of the code of `context`. The code begins with its number of symbols. If it has several, the number
    /// of code words of each length follows.
    fn code(&self, context: usize) -> usize {
        let size = |at: usize| match self.bytes[at] {
            symbols @ 0..=1 => 1 + usize::from(symbols),
            symbols => 10 + usize::from(symbols),
        };
        (0..context).fold(self.section("codes").0 + 2, |at, _| at + size(at))
    }

    /// Replaces the symbol `from` of `context` by `to`.
    fn number(mut self, context: usize, from: u8, to: u8) -> Self {
        let at = self.code(context);
        let symbols = usize::from(self.bytes[at]);
        let first = at + if symbols > 1 { 10 } else { 1 };
        let own = &mut self.bytes[first..first + symbols];
        let symbol = own.iter_mut().find(|symbol| **symbol == from);
        *symbol.unwrap_or_else(|| panic!("context {context} has no {from}")) = to;
        self
    }

    /// Sets the byte at offset `at` of a section to `value`, which must differ from the old value.
    fn byte(mut self, section: &str, at: usize, value: u8) -> Self {
        let start = self.section(section).0;
        assert_ne!(std::mem::replace(&mut self.bytes[start + at], value), value, "nothing changes");
        self
    }

    /// Flips the lowest bit of the column `column` in the second row of the chunk. This row describes the second block.
    fn second_row(mut self, column: usize) -> Self {
        let mut at = self.section("chunks").0;
        for _ in 0..3 {
            at += self.bytes[at..].iter().position(|byte| byte & 0x80 == 0).expect("an end of a varint") + 1;
        }
        let widths = self.bytes[at..at + 3].iter().map(|width| usize::from(*width));
        let bit = widths.clone().sum::<usize>() + widths.take(column + 1).sum::<usize>() - 1;
        self.bytes[at + 5 + bit / 8] ^= 0x80 >> (bit % 8);
        self
    }

    /// The bytes with correct checksums of the header and of all pages, and a correct digest.
    fn sealed(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut checksum = self.section("checksums").0;
        for (number, name) in (2u32..).zip(["codes", "files", "names", "chunks"]) {
            let (start, size) = self.section(name);
            for (page, index) in self.bytes[start..start + size].chunks(512).zip(0u32..) {
                let sum = page_checksum(&self.id, number, index, page);
                bytes[checksum..checksum + 4].copy_from_slice(&sum);
                checksum += 4;
            }
        }
        if let Some((_, start, size)) = self.sections.get(6) {
            let contents = u64::from_le_bytes(bytes[*start..start + 8].try_into().expect("8 bytes")) as usize;
            let (contents, mut checksum) = (start + 8..start + 8 + contents, start + 8 + contents);
            for (page, index) in self.bytes[contents].chunks(512).zip(0u32..) {
                let sum = page_checksum(&self.id, 9, index, page);
                bytes[checksum..checksum + 4].copy_from_slice(&sum);
                checksum += 4;
            }
            assert_eq!(checksum, start + size);
        }
        seal(&mut bytes);
        bytes
    }

    /// Fails unless the index is refused with the error `expected`. Lookups answer or fail; they do not panic.
    #[track_caller]
    fn is_refused(&self, expected: &str) {
        let bytes = self.sealed();
        let verified = Index::open(&bytes[..]).and_then(|index| {
            let mut scratch = Scratch::default();
            for (offset, policy) in
                (0..64).flat_map(|at| [LinePolicy::Exact, LinePolicy::Statement].map(|policy| (at, policy)))
            {
                if let Err(error) = index.lookup(ImageOffset(offset), policy, &mut scratch) {
                    assert!(error.cause().is_damage(), "{error}");
                }
            }
            index.verify()
        });
        let error = verified.expect_err("invalid");
        assert_eq!(error.to_string(), format!("damaged index: {expected}; build or copy it again"));
    }

    /// Fails unless the index is valid.
    #[track_caller]
    fn is_valid(&self) {
        Index::open(&self.sealed()[..]).and_then(|index| index.verify()).expect("valid");
    }
}

#[test]
fn an_index_with_corrected_checksums_is_valid() {
    for index in [one_range(), two_lines(), blocks(), readable()] {
        assert_eq!(index.sealed(), index.bytes);
    }
    // A range of 15 bytes and a gap of 49.
    one_range().number(LENGTH, 16, 15).number(GAP, 48, 49).is_valid();
}

#[test]
fn ranges_must_not_be_empty_and_must_end_where_the_block_does() {
    one_range().number(LENGTH, 16, 0).is_refused(INVALID_BLOCK);
    one_range().number(LENGTH, 16, 15).is_refused(INVALID_BLOCK);
    one_range().number(LENGTH, 16, 17).is_refused(INVALID_BLOCK);
    one_range().number(LENGTH, 16, HUGE).is_refused(INVALID_BLOCK);
    one_range().number(GAP, 48, 0).is_refused(INVALID_BLOCK);
    one_range().number(GAP, 48, 49).is_refused(INVALID_BLOCK);
}

#[test]
fn a_function_must_not_start_below_0_nor_follow_another_without_a_range() {
    let of_function = CodeRange { function_start: Some(0), ..range(0, 16, 0) };
    let function = index(64, vec![of_function], vec![frame(None, 1, 9)]);
    function.clone().number(FIRST_FUNCTION, 0, 1).is_valid();
    function.clone().number(FIRST_FUNCTION, 0, 2).is_refused(INVALID_BLOCK);
    function.clone().number(FIRST_FUNCTION, 0, HUGE).is_refused(INVALID_BLOCK);
    let after_function = ANSWER + usize::from(FUNCTION_CODE);
    function.number(after_function, DEFINES, FUNCTION_CODE).is_refused(INVALID_BLOCK);
}

#[test]
fn an_answer_must_be_an_inline_frame_that_is_defined() {
    let first_answer = |code: u8| one_range().number(ANSWER, DEFINES, code);
    // A gap replaces the answer and shifts all numbers after it.
    first_answer(GAP_CODE).is_refused(INVALID_BLOCK);
    // A function replaces the answer. The contexts of a function have no codes.
    first_answer(FUNCTION_CODE).is_refused(INVALID_BLOCK);
    first_answer(SAME_ANSWER).is_refused(INVALID_BLOCK);
    first_answer(RECENT).is_refused(INVALID_BLOCK);
    first_answer(HUGE).is_refused(INVALID_BLOCK);
    // The caller of the inline frame is not defined.
    first_answer(RECENT + DEFINES).is_refused(INVALID_BLOCK);
    // The code refers to a caller further out than the outermost frame of the previous answer.
    two_lines().number(ANSWER + usize::from(DEFINES), DEFINES, 3 * SAME_ANSWER).is_refused(INVALID_BLOCK);
}

#[test]
fn an_answer_under_statement_must_be_defined_and_must_not_have_another() {
    // The code refers to the previous range, but the first range has none.
    one_range().number(ANSWER, DEFINES, DEFINES + 1).is_refused(INVALID_BLOCK);
    let both = CodeRange { statement: 1, ..range(0, 16, 0) };
    let two_policies = index(64, vec![both], vec![frame(None, 1, 9), frame(None, 1, 12)]);
    let follows = ANSWER + usize::from(DEFINES_AND_FOLLOWS);
    two_policies.number(follows, DEFINES, GAP_CODE).is_refused(INVALID_BLOCK);
    // The answer is the third most recent inline frame. Such an answer must have no code for `statement`.
    let third = 3 * RECENT;
    let ranges = vec![range(0, 16, 0), range(16, 32, 1), CodeRange { statement: 0, ..range(32, 48, 2) }];
    let old_answer = index(64, ranges, vec![frame(None, 1, 9), frame(None, 1, 12), frame(None, 1, 15)]);
    old_answer.clone().number(follows, third, third + 1).is_refused(INVALID_BLOCK);
    old_answer.number(follows, third, third + 2).is_refused(INVALID_BLOCK);
}

#[test]
fn a_block_has_at_most_255_ranges_though_they_take_no_bits() {
    let ranges = vec![range(0, 1, 0), range(1, 2, 0)];
    let same_twice = index(4096, ranges, vec![frame(None, 1, 9)]);
    // The gap and everything after it become ranges of one byte with the same answer.
    let after_same = ANSWER + usize::from(SAME_ANSWER.min(11));
    same_twice.number(after_same, GAP_CODE, SAME_ANSWER).is_refused(INVALID_BLOCK);
}

#[test]
fn a_chain_has_at_most_1024_frames_though_they_take_no_bits() {
    // All frames of the recursion have the same source location.
    let frames: Vec<InlineFrame> = (0..1024u64).map(|n| frame(n.checked_sub(1), 1, 9)).collect();
    let chain = index(64, vec![range(0, 16, 1023)], frames);
    // The answer's head is 3 per frame: 3 x 1024 = 3072 = 11 + 3061. The symbol of 3061 stands for 2048. The
    // remaining 1013 takes ten bits, and the block has no other bits.
    let block = chain.section("chunks").0 + 8;
    assert_eq!(chain.bytes[block..][..2], [0b1111_1101, 0b0100_0000]);
    // 11 + 3064 = 3 x 1025: one frame too many.
    chain.byte("chunks", 8, 0b1111_1110).byte("chunks", 9, 0).is_refused(INVALID_BLOCK);
}

#[test]
fn an_inline_frame_must_have_a_source_location_of_the_chunk() {
    for step in [1, 2, 3, HUGE] {
        one_range().number(SOURCE, 0, step).is_refused(INVALID_BLOCK);
    }
    // The number of source locations is one larger, then one smaller, than the ranges use.
    one_range().byte("chunks", 1, 2).is_refused("dwarf chunk 0: its blocks do not use all of it");
    two_lines().byte("chunks", 1, 1).is_refused(INVALID_BLOCK);
}

#[test]
fn a_source_location_must_have_a_name_a_file_and_a_line_that_numbers_can_have() {
    one_range().number(NAME, 0, 1).is_refused(INVALID_SOURCE);
    one_range().number(NAME, 0, 2).is_refused(INVALID_SOURCE);
    // These folded numbers make ids, files and lines negative.
    one_range().number(NAME_ID, 4, 1).is_refused(INVALID_SOURCE);
    one_range().number(NAME_ID, 4, 3).is_refused(INVALID_SOURCE);
    one_range().number(FILE, 3, 2).is_refused(INVALID_SOURCE);
    two_lines().number(LINE_AFTER_SAME_NAME, 7, 22).is_refused(INVALID_SOURCE);
    two_lines().number(NAME, 1, 3).is_refused(INVALID_SOURCE);
    // Ids, files and lines have 32 bits.
    for (context, number) in [(NAME_ID, 4), (FILE, 3), (LINE_IN_OTHER_FILE, 10)] {
        one_range().number(context, number, HUGE).is_refused(INVALID_SOURCE);
    }
    let second = InlineFrame { file: NonMaxU32::new(1), ..frame(None, 1, 9) };
    let two_files = index(64, vec![range(0, 16, 0), range(16, 32, 1)], vec![frame(None, 1, 9), second]);
    two_files.number(OTHER_FILE, 2, HUGE).is_refused(INVALID_SOURCE);
    // Changing the line to another valid line is not an error.
    one_range().number(LINE_IN_OTHER_FILE, 10, 11).is_valid();
}

#[test]
fn the_head_of_a_chunk_must_fit_the_chunk() {
    // The fields are the number of blocks, the number of source locations, the size of the blocks, and the widths of
    // the columns.
    for (at, value) in
        [(0, 65), (0, 0xff), (1, 0xff), (2, 100), (3, 58), (4, 64), (5, 255), (6, 58), (7, 255)]
    {
        one_range().byte("chunks", at, value).is_refused(INVALID_HEAD);
    }
    one_range().byte("chunks", 0, 0).is_refused("dwarf chunk 0: its blocks do not use all of it");
    one_range().byte("chunks", 0, 2).is_refused("dwarf chunk 0: a block lies outside the chunk");
}

#[test]
fn blocks_must_follow_each_other() {
    let out_of_order = "dwarf chunk 0: blocks do not follow each other";
    // The columns are the start of the block, the position of its bits, and the first unused source location.
    for (column, expected) in [(0, INVALID_BLOCK), (1, INVALID_BLOCK), (2, out_of_order)] {
        blocks().second_row(column).is_refused(expected);
    }
    // The answers of the two ranges differ, and take one bit each.
    let bits = index(64, vec![range(0, 16, 0), range(32, 48, 0)], vec![frame(None, 1, 9)]);
    bits.byte("chunks", 2, 0).is_refused("dwarf chunk 0: a block has other bits than its ranges");
}

#[test]
fn codes_must_have_their_size_valid_symbols_and_complete_words() {
    let at = |context: usize| one_range().code(context) - one_range().section("codes").0;
    for (at, value) in [(at(LENGTH) + 1, 210), (at(LENGTH) + 1, 255), (at(LENGTH), 0), (at(LENGTH), 2)] {
        one_range().byte("codes", at, value).is_refused(INVALID_CODE);
    }
    let size = one_range().bytes[one_range().section("codes").0];
    one_range().byte("codes", 0, size + 1).is_refused(INVALID_CODE);
    one_range().byte("codes", 0, size - 1).is_refused(INVALID_CODE);
    one_range().byte("codes", 1, 0xff).is_refused("code page 0: its codes are larger than the format allows");
    // The context has two symbols, and the code word of each has one bit.
    let names = two_lines();
    let at = names.code(NAME) - names.section("codes").0;
    assert_eq!(names.bytes[names.code(NAME)..][..3], [2, 2, 0]);
    for (at, value) in [(at + 1, 1), (at + 1, 3), (at + 2, 1), (at, 3), (at, 1)] {
        names.clone().byte("codes", at, value).is_refused(INVALID_CODE);
    }
}

#[test]
fn each_readable_name_belongs_to_a_name() {
    // After the size of the contents: the number of readable names, then two entries: their number before, and bits.
    let index = readable();
    let start = index.section("readable names").0;
    assert_eq!(index.bytes[start + 8..][..8], [0, 0, 0, 56, 0, 0, 0, 0]);
    assert_eq!(index.bytes[start + 16..][..4], [0b0111_1011, 0b1101_1110, 0b1111_0111, 0b1011_1101]);
    let other = |at: usize, value: u8| readable().byte("readable names", at, value);
    other(15, 1).is_refused("readable name page 0: the readable names before some names are counted wrong");
    other(27, 50).is_refused("readable name page 0: the readable names before some names are counted wrong");
    other(35, 1).is_refused("readable name page 0: a readable name of no name");
    other(28, 0b0011_1100).is_refused("readable name page 0: readable names that belong to no name");
    other(28, 0b1111_1100).is_refused("readable name page 0: readable names that belong to no name");
    other(11, 71).is_refused("readable name page 0: more readable names than names");
    let numbers = "readable name page 0: its numbers of names and symbols are invalid";
    let size = "readable name page 0: its size differs from what its head says";
    other(11, 16).is_refused(size);
    other(38, 0).is_refused(numbers);
}
