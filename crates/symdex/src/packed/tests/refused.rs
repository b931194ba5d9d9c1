//! Invalid numbers, one by one.

use super::super::contexts::{
    Caller, FILE, FUNCTION, GAP, ID, LINE, MORE_HEAD, NAME, NEW_LINE, OTHER_FILE, OTHER_LINE, answer, length,
    source,
};
use super::super::{FLAGS, FUNCTION_CODE, GAP_CODE, HEADS, MAX_BLOCK_RANGES, MAX_STEPS};
use super::*;
use crate::ranges::Range;
use crate::write::tokens::{BLOCK, FIRST_SOURCE, SOURCES, Tokens};
use crate::write::{Encoder, SymbolCounts, encode_chunk, encode_codes};

const SPAN: u64 = 1 << 20;

/// Numbers with their contexts.
type Numbers = Vec<(u8, u64)>;

/// The parts of a chunk.
struct Parts {
    /// Where each block starts, the first source location that it is the first to use, and its numbers.
    blocks: Vec<(u64, u64, Numbers)>,
    /// What the id of the first new name counts from, and the numbers of the source locations.
    sources: (u64, Numbers),
    /// How many source locations the head says there are.
    len: usize,
}

/// An answer that defines one inline frame, without a caller and of a new source location.
fn defines_one() -> Numbers {
    vec![(answer(0), FLAGS), (source(None, Caller::None), 0)]
}

/// The numbers of a source location with a new name: name 1, in file 0, line 9.
fn new_name() -> Numbers {
    vec![(NAME, 0), (ID, 4), (FILE, 3), (NEW_LINE + 1, 10)]
}

/// One range, which answers name 1, and a gap behind it.
fn good() -> Parts {
    let mut block = defines_one();
    block.extend([(length(1), 16), (answer(FLAGS), GAP_CODE), (GAP, SPAN - 16)]);
    Parts { blocks: vec![(0, 0, block)], sources: (0, new_name()), len: 1 }
}

/// An index of this one chunk, changed after it was encoded.
fn sections(parts: &Parts, change: impl FnOnce(&mut Vec<u8>)) -> Sections {
    let range = Range { start: 0, end: 16, function_start: None, exact: 0, statement: 0 };
    let made = ChunkRanges { ranges: vec![range], locs: vec![loc(None, 1, None, None)] };
    let metadata = Sections::of(&image_of(made, 3)).metadata;
    let mut tokens = Tokens::default();
    let put = |tokens: &mut Tokens, numbers: &Numbers| {
        numbers.iter().for_each(|(context, number)| tokens.number(*context, *number));
    };
    for (start, source, numbers) in &parts.blocks {
        tokens.number(BLOCK, *start);
        tokens.number(FIRST_SOURCE, *source);
        put(&mut tokens, numbers);
    }
    tokens.number(SOURCES, parts.sources.0);
    put(&mut tokens, &parts.sources.1);
    let mut counts = SymbolCounts::default();
    tokens.count(&mut counts);
    let (encoder, codes) = Encoder::new(&counts);
    let mut chunks = encode_chunk(&tokens.0, parts.len, &encoder);
    change(&mut chunks);
    let codes = encode_codes(&codes, 4, &[[0], [chunks.len() as u64]]);
    Sections { metadata, chunks, codes }
}

/// Whether a chunk of the good parts, changed, decodes.
fn decodes(change: impl FnOnce(&mut Parts)) -> bool {
    let mut parts = good();
    change(&mut parts);
    sections(&parts, |_| ()).is_whole()
}

/// Likewise, with other numbers in place of the answer of the range.
fn block(numbers: &[(u8, u64)]) -> bool {
    let last = numbers.iter().rev().find(|(context, _)| (answer(0)..=answer(u64::MAX)).contains(context));
    let last = last.map_or(0, |(_, code)| *code);
    decodes(|parts| {
        let rest = [(length(last % HEADS / FLAGS), 16), (answer(last), GAP_CODE), (GAP, SPAN - 16)];
        parts.blocks[0].2 = [numbers, &rest].concat();
    })
}

#[test]
fn what_makes_sense_decodes() {
    assert!(decodes(|_| ()));
    let sections = sections(&good(), |_| ());
    sections.read(|reader| {
        let chunk = reader.expect("as made").chunk(Table::Dwarf, 0).expect("as made").expect("not empty");
        let mut frames = Vec::new();
        let found = chunk.find(15, false, usize::MAX, &mut PackedScratch::default(), &mut frames);
        assert!(found.expect("as made"));
        assert_eq!(answer_of(&frames), (None, vec![loc(None, 1, Some(0), Some(9))]));
        let gap = chunk.find(16, false, usize::MAX, &mut PackedScratch::default(), &mut frames);
        assert!(!gap.expect("as made"));
    });
}

#[test]
fn ranges_that_make_no_sense_are_refused() {
    let lengths = |range: u64, gap: u64| {
        decodes(|parts| {
            parts.blocks[0].2[2].1 = range;
            parts.blocks[0].2[4].1 = gap;
        })
    };
    assert!(lengths(1, SPAN - 1) && lengths(SPAN - 1, 1));
    assert!(!lengths(0, SPAN), "an empty range");
    assert!(!lengths(16, SPAN - 15) && !lengths(16, SPAN - 17), "a block that ends elsewhere");
    assert!(!lengths(16, (1 << 32) + SPAN - 16) && !lengths((1 << 47) + 16, SPAN - 16), "more than 32 bits");
    assert!(!decodes(|parts| parts.blocks[0].2.truncate(3)), "no range at the end");
    let function = |number: u64, code: u64| {
        let change = [(answer(0), FUNCTION_CODE), (FUNCTION, number), (answer(FUNCTION_CODE), code)];
        block(&[&change, &defines_one()[1..]].concat())
    };
    assert!(function(0, FLAGS) && function(1, FLAGS));
    assert!(!function(2, FLAGS) && !function(1 << 47, FLAGS), "a function that starts below 0");
    assert!(!function(0, FUNCTION_CODE), "two functions of a range");
    let many = |len: usize| {
        decodes(|parts| {
            let mut numbers = defines_one();
            numbers.extend([(length(1), 16)]);
            let again = [(answer(FLAGS), HEADS), (length(0), 1)];
            let and_again = [(answer(HEADS), HEADS), (length(0), 1)];
            numbers.extend(again);
            (3..len).for_each(|_| numbers.extend(and_again));
            numbers.extend([(answer(HEADS), GAP_CODE), (GAP, SPAN - 16 - (len as u64 - 2))]);
            parts.blocks[0].2 = numbers;
        })
    };
    assert!(many(MAX_BLOCK_RANGES) && !many(MAX_BLOCK_RANGES + 1), "ranges of a block");
}

#[test]
fn answers_that_make_no_sense_are_refused() {
    let define = (source(None, Caller::None), 0);
    assert!(block(&[(answer(0), FLAGS), define]));
    assert!(!block(&[(answer(0), 2)]), "no inline frame");
    assert!(!block(&[(answer(0), HEADS)]), "the answer before the first");
    assert!(!block(&[(answer(0), 2 * HEADS)]), "the most recent inline frame before the first");
    assert!(!block(&[(answer(0), 2 * HEADS + FLAGS), define]), "one inlined into that");
    assert!(block(&[(answer(0), HEADS + FLAGS), define]), "one inlined into none before the first");
    assert!(!block(&[(answer(0), (2 * MAX_STEPS as u64 + 3) * HEADS + FLAGS), define]), "too many steps up");
    assert!(!block(&[(answer(0), (1 << 48) - 1), (MORE_HEAD, 0)]), "a link beyond all inline frames");
    for more in [(1 << 48) - 1, 1 << 40] {
        assert!(!block(&[(answer(0), HEADS - 1), (MORE_HEAD, more), define]), "a head of {more} more");
    }
    assert!(!block(&[(answer(0), FLAGS + 1), define]), "the statement answer before the first");
    let follows = (answer(0), FLAGS + 2);
    assert!(block(&[follows, define, (answer(FLAGS + 2), HEADS)]), "the same once more");
    assert!(!block(&[follows, define, (answer(FLAGS + 2), 0)]), "no inline frame for statement");
    for flag in [1, 2] {
        let nested = [follows, define, (answer(FLAGS + 2), HEADS + flag), (answer(HEADS + flag), HEADS)];
        assert!(!block(&nested), "a statement answer to a statement answer");
    }
    for step in [1, 2, 3, (1 << 48) - 1] {
        assert!(!block(&[(answer(0), FLAGS), (define.0, step)]), "source {step}, which is not there yet");
    }
}

/// All symbols are alone in their contexts, so that no number takes a bit.
#[test]
fn what_takes_no_bits_is_bounded_all_the_same() {
    let chain = |len: u64| {
        let others = (1..len).map(|n| (source(Some(if n == 1 { 0 } else { 2 }), Caller::New), 2));
        let first =
            [(answer(0), HEADS - 1), (MORE_HEAD, len * FLAGS + 1 - HEADS), (source(None, Caller::None), 0)];
        let numbers: Numbers = first.into_iter().chain(others).collect();
        decodes(|parts| {
            let rest = [(length(len), 16), (answer(HEADS - 1), GAP_CODE), (GAP, SPAN - 16)];
            parts.blocks[0].2 = [&numbers[..], &rest].concat();
        })
    };
    let most = u64::from(MAX_FRAMES);
    assert!(chain(most), "as long as a chain may be");
    assert!(!chain(most + 1), "a chain that is too long");
}

#[test]
fn source_locations_that_make_no_sense_are_refused() {
    let sources = |numbers: &[(u8, u64)]| decodes(|parts| parts.sources.1 = numbers.to_vec());
    assert!(sources(&new_name()));
    for step in [1, 2, 1 << 40] {
        assert!(!sources(&[(NAME, step), (LINE + 1, 1)]), "the name of a source location that is not there");
    }
    for id in [1, 3, 1 << 34] {
        assert!(!sources(&[(NAME, 0), (ID, id), (FILE, 0), (NEW_LINE, 0)]), "an id below 0 or too large");
    }
    assert!(sources(&[(NAME, 0), (ID, 0), (FILE, 0), (NEW_LINE, 0)]), "no name, no file, no line");
    assert!(!sources(&[(NAME, 0), (ID, 4), (FILE, 2), (NEW_LINE + 1, 1)]), "a file below 0");
    assert!(!sources(&[(NAME, 0), (ID, 4), (FILE, 0), (NEW_LINE, 1)]), "a line below 0");
    assert!(
        !sources(&[(NAME, 0), (ID, 4), (FILE, 3), (NEW_LINE + 1, 1 << 32)]),
        "a line of more than 32 bits"
    );
    let two = |numbers: &[(u8, u64)]| {
        decodes(|parts| {
            let first = defines_one();
            let second = [(answer(FLAGS), FLAGS), first[1]];
            let rest = [(length(1), 16), (answer(FLAGS), GAP_CODE), (GAP, SPAN - 32)];
            parts.blocks[0].2 = [&first[..], &[(length(1), 16)], &second, &rest].concat();
            parts.sources.1 = [&new_name(), numbers].concat();
            parts.len = 2;
        })
    };
    assert!(two(&[(NAME, 1), (LINE, 7)]) && two(&[(NAME, 1), (LINE, 0), (OTHER_FILE, 1), (OTHER_LINE, 0)]));
    assert!(
        !two(&[(NAME, 1), (LINE, 200)]) || two(&[(NAME, 1), (LINE, 199)]),
        "a line below 0, or one above"
    );
    assert!(!two(&[(NAME, 1), (LINE, 22)]), "a line below 0");
    assert!(
        !two(&[(NAME, 1), (LINE, 0), (OTHER_FILE, 1 << 32), (OTHER_LINE, 0)]),
        "a file of more than 32 bits"
    );
    assert!(
        !two(&[(NAME, 2), (LINE + 1, 7)]) && !two(&[(NAME, 3), (LINE + 1, 7)]),
        "not the first of its name"
    );
    assert!(!decodes(|parts| parts.len = 2) && !decodes(|parts| parts.len = 0), "another number of them");
    assert!(!decodes(|parts| parts.sources.0 = 1 << 33), "an id that counts from more than 32 bits");
}

#[test]
fn heads_and_rows_that_make_no_sense_are_refused() {
    // Varints: blocks, source locations, bytes of the blocks; five widths, all 0.
    let head = |at: usize, byte: u8| sections(&good(), |chunk| chunk[at] = byte).is_whole();
    assert!(head(0, 1) && head(1, 1));
    for (at, invalid) in [(0, &[0u8, 2, 0x80, 0xff][..]), (1, &[0, 2, 0xff]), (2, &[0, 1, 2, 100, 0xff])] {
        let own = sections(&good(), |_| ()).chunks[at];
        for byte in invalid.iter().filter(|byte| **byte != own) {
            assert!(!head(at, *byte), "byte {at} is {byte:#x}");
        }
    }
    for width in 3..8 {
        for bits in [58, 64, 255] {
            assert!(!head(width, bits), "a column of {bits} bits");
        }
    }
    assert!(!decodes(|parts| parts.blocks[0].0 = 1), "a first block that starts later");
    assert!(!decodes(|parts| parts.blocks[0].0 = SPAN), "a block beyond the chunk");
    assert!(!decodes(|parts| parts.blocks[0].1 = 1), "source locations that are not there");
    let two = |start: u64, source: u64| {
        decodes(|parts| {
            let first = [&defines_one()[..], &[(length(1), 16)]].concat();
            let second = [(answer(0), GAP_CODE), (GAP, SPAN - 16)];
            parts.blocks = vec![(0, 0, first), (start, source, second.to_vec())];
        })
    };
    assert!(two(16, 1));
    assert!(!two(15, 1) && !two(17, 1) && !two(0, 1) && !two(SPAN, 1), "a block that starts elsewhere");
    assert!(!two(16, 0) && !two(16, 2), "a block that has other source locations");
}

#[test]
fn codes_that_make_no_sense_are_refused() {
    let good = sections(&good(), |_| ());
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut sections = good.clone();
        change(&mut sections.codes);
        sections.is_whole()
    };
    assert!(changed(&|_| ()));
    assert!(!changed(&|codes| codes.clear()) && !changed(&|codes| codes.truncate(2)), "cut");
    assert!(!changed(&|codes| codes.push(0)), "a byte too many");
    assert!(!changed(&|codes| codes[0] += 1) && !changed(&|codes| codes[1] = 0xff), "another size");
    // Context 0 has one symbol.
    assert_eq!(good.codes[2], 1);
    assert!(!changed(&|codes| codes[3] = 210) && !changed(&|codes| codes[3] = 255), "a symbol that is none");
    assert!(!changed(&|codes| codes[2] = 0) && !changed(&|codes| codes[2] = 2), "another number of symbols");
    // With several symbols there are words.
    let words = [(answer(0), 3), (answer(0), 4), (answer(0), 5)];
    let mut counts = SymbolCounts::default();
    let mut tokens = Tokens::default();
    words.iter().for_each(|(context, number)| tokens.number(*context, *number));
    tokens.count(&mut counts);
    let (_, codes) = Encoder::new(&counts);
    let at = usize::from(answer(0));
    assert_eq!(codes[at..][..13], [3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 5, 3, 4]);
    let valid = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut sections = good.clone();
        let mut codes = codes.clone();
        change(&mut codes);
        sections.codes = encode_codes(&codes, 4, &[[0], [good.chunks.len() as u64]]);
        sections.read(|reader| reader.is_ok())
    };
    assert!(valid(&|_| ()));
    assert!(
        !valid(&|codes| codes[at + 1] = 2) && !valid(&|codes| codes[at + 1] = 0),
        "words that are left or too many"
    );
    assert!(
        !valid(&|codes| codes[at + 2] = 1) && !valid(&|codes| codes[at + 2] = 3),
        "other symbols than words"
    );
    assert!(!valid(&|codes| codes[at + 12] = 210), "a symbol that is none");
}
