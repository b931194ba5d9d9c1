//! Numbers that make no sense, one by one.

use super::super::body::{FLAGS, HEADS};
use super::super::chunk::{Lens, encode_chunk};
use super::super::codes::{Counts, Decoder, Encoder};
use super::super::contexts::{
    FUNCTION, GAP_SPAN, ID, LINE, MORE_HEAD, NEW_TRIPLES, OTHER_FILE, OTHER_LINE, Parent, RANGES, RUN_SPAN,
    answer, length, name, triple,
};
use super::super::origins::{Origin, Origins, encode_origins};
use super::super::shared::encode_shared;
use super::super::tokens::{self, BODY, FIRST_TRIPLE, RUN, RUN_GROUP, TRIPLES, Tokens};
use super::super::{MAX_STEPS, bits::encode_rows};
use super::*;
use crate::chunk::Range;
use crate::format::{Cursor, MAX_CHUNK_LOCS, MAX_RUN_RANGES, put_varint};

const SPAN: u64 = 1 << 20;
/// Names of the index that chunks are put into.
const NAMES: usize = 3;

/// Numbers with their contexts.
type Numbers = Vec<(u8, u64)>;

/// What a chunk is made of: runs with their bodies, triples, names.
struct Parts {
    runs: Vec<(Numbers, Numbers)>,
    triples: Numbers,
    names: Numbers,
}

fn gap(span: u64) -> (Numbers, Numbers) {
    (vec![(FUNCTION, 0), (GAP_SPAN, span)], Vec::new())
}

fn run(function: u64, span: u64, ranges: u64, new_triples: u64, body: Numbers) -> (Numbers, Numbers) {
    (vec![(FUNCTION, function), (RUN_SPAN, span), (RANGES, ranges - 1), (NEW_TRIPLES, new_triples)], body)
}

/// An answer that defines one loc, inlined into none and of a new triple.
fn defines_one() -> Numbers {
    vec![(answer(0), FLAGS), (triple(None, Parent::None, true), 0)]
}

/// One run of one range, which answers name 1, three lines behind its origin.
fn good() -> Parts {
    Parts {
        runs: vec![run(1, 16, 1, 1, defines_one())],
        triples: vec![(name(0), 0), (LINE + 1, 7)],
        names: vec![(ID, 4)],
    }
}

/// A chunk of these parts, and the codes it needs.
fn encode(parts: &Parts) -> (Vec<u8>, Encoder, Vec<u8>, Tokens) {
    let mut tokens = Tokens::default();
    let put = |tokens: &mut Tokens, numbers: &Numbers| {
        numbers.iter().for_each(|(context, number)| tokens.number(*context, *number));
    };
    tokens.number(RUN_GROUP, 0);
    tokens.number(FIRST_TRIPLE, 0);
    for (run, body) in &parts.runs {
        if run.iter().any(|(context, _)| *context == RANGES) {
            tokens.number(BODY, 0);
            put(&mut tokens, body);
        }
        tokens.number(RUN, 0);
        put(&mut tokens, run);
    }
    tokens.number(TRIPLES, 0);
    put(&mut tokens, &parts.triples);
    tokens.number(tokens::NAMES, 0);
    put(&mut tokens, &parts.names);
    let mut counts = Counts::default();
    tokens.count(&mut counts);
    let mut origins = Origins::default();
    origins.of(2, Origin { file: 1, line: 10 });
    let origins = origins.tokens(NAMES, &mut counts);
    let (encoder, codes) = Encoder::new(&counts);
    let lens = Lens {
        triples: parts.triples.iter().filter(|(context, _)| (name(0)..LINE).contains(context)).count(),
        names: parts.names.len(),
        plain: parts.triples.iter().all(|(context, _)| *context < LINE),
    };
    let chunk = encode_chunk(&tokens.0, lens, &encoder);
    (chunk, encoder, codes, origins)
}

/// An index of this one chunk.
fn sections(parts: &Parts) -> Sections {
    let range = Range { start: 0, end: 16, function_start: None, exact: 0, statement: 0 };
    let made = ChunkRanges { ranges: vec![range], locs: vec![loc(None, 1, None, None)] };
    let metadata = Sections::of(&image_of(made, NAMES)).metadata;
    let (chunks, encoder, codes, origins) = encode(parts);
    let shared = encode_shared(&[[0], [chunks.len() as u64]], &codes, encode_origins(&origins, &encoder));
    Sections { metadata, chunks, shared }
}

/// Whether a chunk of the good parts, changed, decodes.
fn decodes(change: impl FnOnce(&mut Parts)) -> bool {
    let mut parts = good();
    change(&mut parts);
    sections(&parts).is_whole()
}

/// Likewise, with another body.
fn body(numbers: &[(u8, u64)]) -> bool {
    decodes(|parts| parts.runs[0].1 = numbers.to_vec())
}

#[test]
fn what_makes_sense_decodes() {
    assert!(decodes(|_| ()));
    let sections = sections(&good());
    sections.read(|reader| {
        let reader = reader.expect("as made");
        let chunk = reader.chunk(&sections.metadata, Table::Dwarf, 0).expect("as made").expect("not empty");
        let mut locs = Vec::new();
        let found = chunk.find(15, false, usize::MAX, &mut PackedScratch::default(), &mut locs);
        assert_eq!(found.expect("as made"), Some(None));
        assert_eq!(locs, [loc(None, 1, Some(0), Some(12))]);
    });
    assert!(decodes(|parts| parts.runs.insert(0, gap(16))), "behind a gap");
    assert!(decodes(|parts| parts.runs.push(gap(SPAN - 16))), "before one");
    assert!(decodes(|parts| parts.runs[0].0[0].1 = 3), "with a function");
    assert!(decodes(|parts| parts.triples = vec![(name(0), 0)]), "with a name alone");
}

#[test]
fn runs_that_make_no_sense_are_refused() {
    let number = |at: usize, number: u64| decodes(|parts| parts.runs[0].0[at].1 = number);
    assert!(!number(1, 0), "a run without a span");
    assert!(number(1, SPAN) && !number(1, SPAN + 1), "a run beyond the chunk");
    assert!(!number(1, (1 << 32) + 16) && !number(1, u64::MAX), "a span of more than 32 bits");
    for span in [0, SPAN - 15, u64::MAX - 15, u64::MAX] {
        assert!(!decodes(|parts| parts.runs.insert(0, gap(span))), "a gap of {span} bytes before a run");
    }
    assert!(!number(0, 2), "the function before the first");
    assert!(!number(0, 4) && !number(0, u64::MAX), "a function that starts below 0");
    assert!(!number(2, 1), "two ranges, and a body of one");
    assert!(!number(2, MAX_RUN_RANGES.into()) && !number(2, u64::MAX), "too many ranges");
    assert!(!number(3, 0), "fewer new triples than the body uses");
    assert!(!number(3, 2) && !number(3, 1 << 32) && !number(3, u64::MAX), "more than there are");
    let unused = |parts: &mut Parts| {
        parts.runs[0].0[3].1 = 2;
        parts.triples.extend([(name(0), 1), (LINE, 1)]);
    };
    assert!(!decodes(unused), "a triple that its run does not use");
    assert!(!decodes(|parts| parts.triples.extend([(name(0), 1), (LINE, 1)])), "a triple that no run uses");
    let again = |parts: &mut Parts| {
        parts.runs.push(run(2, 16, 1, 1, defines_one()));
        parts.triples.extend([(name(0), 1), (LINE, 1)]);
    };
    assert!(decodes(again), "the function of the run before");
}

#[test]
fn answers_that_make_no_sense_are_refused() {
    let define = (triple(None, Parent::None, true), 0);
    assert!(body(&[(answer(0), FLAGS), define]));
    assert!(!body(&[(answer(0), 0)]), "no loc");
    assert!(!body(&[(answer(0), HEADS)]), "the answer before the first");
    assert!(!body(&[(answer(0), 2 * HEADS)]), "the last loc before the first");
    assert!(!body(&[(answer(0), 2 * HEADS + FLAGS), define]), "a loc inlined into that");
    assert!(body(&[(answer(0), HEADS + FLAGS), define]), "a loc inlined into none before the first");
    assert!(!body(&[(answer(0), (2 * MAX_STEPS as u64 + 3) * HEADS + FLAGS), define]), "too many steps up");
    assert!(!body(&[(answer(0), u64::MAX), (MORE_HEAD, 0)]), "a link beyond all locs");
    for more in [u64::MAX, u64::MAX - 8, 1 << 40] {
        assert!(!body(&[(answer(0), HEADS - 1), (MORE_HEAD, more), define]), "a head of {more} more");
    }
    assert!(!body(&[(answer(0), FLAGS + 1), define]), "the statement answer before the first");
    let follows = (answer(0), FLAGS + 2);
    assert!(body(&[follows, define, (answer(FLAGS + 2), HEADS)]), "the same once more");
    assert!(!body(&[follows, define, (answer(FLAGS + 2), 0)]), "no loc for statement");
    for flag in [1, 2] {
        let nested = [follows, define, (answer(FLAGS + 2), HEADS + flag), (answer(HEADS + flag), HEADS)];
        assert!(!body(&nested), "a statement answer to a statement answer");
    }
    for step in [1, 2, 3, u64::MAX] {
        assert!(!body(&[(answer(0), FLAGS), (define.0, step)]), "triple {step}, which is not there yet");
    }
    let two = |first: u64| {
        decodes(|parts| {
            let before = [(length(0), first)].into_iter().chain(defines_one());
            parts.runs = vec![run(1, 16, 2, 1, before.chain([(answer(FLAGS), HEADS)]).collect())];
        })
    };
    assert!(two(1) && two(15));
    assert!(!two(0) && !two(16) && !two(17) && !two(1 << 32) && !two(u64::MAX), "lengths of a range");
}

/// All symbols are alone in their contexts: however much a chunk says, it takes no bits.
#[test]
fn what_takes_no_bits_is_bounded_all_the_same() {
    let chain = |len: u64| {
        let first = (triple(None, Parent::None, true), 0);
        let others = (1..len).map(|n| (triple(Some(if n == 1 { 0 } else { 2 }), Parent::New, true), 2));
        let answer = [(answer(0), HEADS - 1), (MORE_HEAD, len * FLAGS + 1 - HEADS), first];
        run(1, 16, 1, 1, answer.into_iter().chain(others).collect())
    };
    let most = u64::from(MAX_FRAMES);
    assert!(decodes(|parts| parts.runs = vec![chain(most)]));
    assert!(!decodes(|parts| parts.runs = vec![chain(most + 1)]), "a chain that is too long");
    let grown = |len: u64| {
        decodes(|parts| {
            let mut numbers = chain(len).1;
            numbers.insert(0, (length(0), 1));
            numbers.extend([(answer(HEADS - 1), HEADS + FLAGS), (triple(None, Parent::New, true), 2)]);
            parts.runs = vec![run(1, 16, 2, 1, numbers)];
        })
    };
    assert!(grown(most - 1) && !grown(most), "a chain that grows too long with a second range");

    // As many runs of such chains as there are locs at the most, and one more.
    let parts = Parts { runs: vec![chain(most)], ..good() };
    let (one, _, codes, _) = encode(&parts);
    let runs = MAX_CHUNK_LOCS as u64 / most + 1;
    let rows: Vec<[u64; 4]> = (0..runs.div_ceil(16)).map(|n| [n * 16 * 16, n * 16 * 4, 0, n * 16]).collect();
    let (widths, rows) = encode_rows(&rows);
    let chunk = with_head(&one, |head| {
        head.counts[0] = runs;
        head.counts[1] = runs;
        head.widths[..4].copy_from_slice(&widths);
        head.parts = [rows, vec![0; runs.div_ceil(2) as usize], Vec::new()];
    });
    let decoder = Decoder::new(&codes).expect("as written");
    let codes = decoder.codes(&codes);
    let chunk = PackedChunk::new(&chunk, 0, SPAN as u32, codes).expect("so far it makes sense");
    let mut given = 0;
    let walked = chunk.walk(&mut PackedScratch::default().run, |walked| {
        given += u64::from(matches!(walked, super::super::chunk::Walked::Run(_)));
        Some(())
    });
    assert_eq!((walked, given), (None, runs - 1));
}

/// What stands before the parts of a chunk, and the first of them.
struct Head {
    counts: [u64; 7],
    widths: [u8; 8],
    /// Rows of the runs, which the chunk has none of, the runs, and rows of the triples.
    parts: [Vec<u8>; 3],
}

/// `chunk` with another head. Its rows take no bits.
fn with_head(chunk: &[u8], change: impl FnOnce(&mut Head)) -> Vec<u8> {
    let mut cursor = Cursor::new(chunk);
    let counts: [u64; 7] = std::array::from_fn(|_| cursor.varint().expect("as written"));
    let widths: [u8; 8] = cursor.array().expect("as written");
    assert_eq!(widths, [0; 8]);
    let runs = cursor.bytes(counts[4] as usize).expect("as written").to_vec();
    let rest = &chunk[cursor.position(chunk)..];
    let mut head = Head { counts, widths, parts: [Vec::new(), runs, Vec::new()] };
    let runs = head.parts[1].len();
    change(&mut head);
    if head.parts[1].len() != runs {
        head.counts[4] = head.parts[1].len() as u64;
    }
    let mut out = Vec::new();
    head.counts.into_iter().for_each(|count| put_varint(&mut out, count));
    out.extend(head.widths);
    head.parts.iter().for_each(|part| out.extend(part));
    out.extend_from_slice(rest);
    out
}

/// Whether the good chunk decodes with another head.
fn head(change: impl FnOnce(&mut Head)) -> bool {
    let sections = sections(&good());
    let chunks = with_head(&sections.chunks, change);
    replace_chunk(&sections, chunks).is_whole()
}

/// The sections with another chunk in them.
fn replace_chunk(sections: &Sections, chunks: Vec<u8>) -> Sections {
    let (_, encoder, codes, origins) = encode(&good());
    let shared = encode_shared(&[[0], [chunks.len() as u64]], &codes, encode_origins(&origins, &encoder));
    Sections { metadata: sections.metadata.clone(), chunks, shared }
}

#[test]
fn heads_that_make_no_sense_are_refused() {
    assert!(head(|_| ()));
    assert!(head(|head| head.counts[3] = 1), "names alone, whose lines nobody reads");
    for (at, refused) in [
        (0, &[2, SPAN + 1, u64::MAX][..]),
        (1, &[0, 2, MAX_CHUNK_LOCS as u64 + 1, u32::MAX as u64, 1 << 32, u64::MAX][..]),
        (2, &[0, 2, u64::MAX][..]),
        (3, &[2, u64::MAX][..]),
    ] {
        for number in refused {
            assert!(!head(|head| head.counts[at] = *number), "count {at} is {number}");
        }
    }
    for size in 4..7 {
        for number in [200, u64::MAX] {
            assert!(!head(|head| head.counts[size] = number), "a size of {number} bytes");
        }
    }
    assert!(!head(|head| head.counts[4] -= 1), "fewer bytes of runs");
    for column in 0..8 {
        for width in [58, 64, 255] {
            assert!(!head(|head| head.widths[column] = width), "a column of {width} bits");
        }
    }
}

#[test]
fn rows_that_lead_elsewhere_are_refused() {
    let run_row = |row: [u64; 4]| {
        head(|head| {
            let (widths, rows) = encode_rows(&[row]);
            head.widths[..4].copy_from_slice(&widths);
            head.parts[0] = rows;
        })
    };
    assert!(run_row([0; 4]));
    assert!(run_row([SPAN - 16, 0, 0, 0]) && !run_row([SPAN - 15, 0, 0, 0]), "a run beyond the chunk");
    assert!(
        !run_row([1 << 32, 0, 0, 0]) && !run_row([(1 << 57) - 1, 0, 0, 0]),
        "a start of more than 32 bits"
    );
    assert!(!run_row([0, 8, 0, 0]) && !run_row([0, (1 << 57) - 1, 0, 0]), "a run beyond the runs");
    assert!(!run_row([0, 0, 1, 0]) && !run_row([0, 0, (1 << 57) - 1, 0]), "a body beyond the bodies");
    assert!(!run_row([0, 0, 0, 1]) && !run_row([0, 0, 0, 1 << 32]), "triples that are not there");
    let triple_row = |row: [u64; 2]| {
        head(|head| {
            let (widths, rows) = encode_rows(&[row]);
            head.widths[4..6].copy_from_slice(&widths);
            head.parts[2] = rows;
        })
    };
    assert!(triple_row([0; 2]));
    assert!(!triple_row([8, 0]) && !triple_row([(1 << 57) - 1, 0]), "a triple beyond the triples");
    assert!(
        !triple_row([0, 1]) && !triple_row([0, 1 << 32]) && !triple_row([0, u32::MAX.into()]),
        "no such name"
    );
}

/// Looking an address up must not answer what a walk refuses, either.
#[test]
fn a_body_beyond_the_bodies_answers_nothing() {
    let sections = sections(&good());
    let chunks = with_head(&sections.chunks, |head| {
        let (widths, rows) = encode_rows(&[[0, 0, 1, 0]]);
        head.widths[..4].copy_from_slice(&widths);
        head.parts[0] = rows;
    });
    let sections = replace_chunk(&sections, chunks);
    sections.read(|reader| {
        let reader = reader.expect("as made");
        let chunk = reader.chunk(&sections.metadata, Table::Dwarf, 0).expect("as made").expect("not empty");
        let found = chunk.find(0, false, usize::MAX, &mut PackedScratch::default(), &mut Vec::new());
        assert!(found.is_err_and(|error| error.is_damage()));
    });
}

#[test]
fn triples_and_names_that_make_no_sense_are_refused() {
    let triples = |numbers: &[(u8, u64)]| decodes(|parts| parts.triples = numbers.to_vec());
    assert!(!triples(&[(name(0), 2), (LINE + 2, 7)]), "the name before the first");
    assert!(
        !triples(&[(name(0), 3), (LINE + 2, 7)]) && !triples(&[(name(0), u64::MAX), (LINE + 2, 7)]),
        "no name"
    );
    assert!(triples(&[(name(0), 1), (LINE + 2, 7)]), "the next name, said the other way");
    assert!(triples(&[(name(0), 0), (LINE + 1, 20)]), "to no line");
    assert!(!triples(&[(name(0), 0), (LINE + 1, 22)]), "and below");
    let top = 2 * u64::from(u32::MAX - 10) + 1;
    assert!(
        triples(&[(name(0), 0), (LINE + 1, top)]) && !triples(&[(name(0), 0), (LINE + 1, top + 2)]),
        "above"
    );
    assert!(!triples(&[(name(0), 0), (LINE + 1, u64::MAX)]), "far above");
    let own = |file: u64, line: u64| {
        triples(&[(name(0), 0), (LINE + 1, 0), (OTHER_FILE, file), (OTHER_LINE, line)])
    };
    assert!(own(0, 0) && own(u32::MAX.into(), u32::MAX.into()));
    assert!(!own(1 << 32, 0) && !own(0, 1 << 32) && !own(u64::MAX, u64::MAX), "more than 32 bits");
    let id = |number: u64| decodes(|parts| parts.names = vec![(ID, number)]);
    assert!(id(0) && id(2 * NAMES as u64), "none, and the last");
    assert!(!id(1) && !id(u64::MAX), "an id below none");
    assert!(!id(2 * NAMES as u64 + 2) && !id(1 << 33) && !id(u64::MAX - 1), "ids that there are not");
}

#[test]
fn what_chunks_share_and_makes_no_sense_is_refused() {
    let good = sections(&good());
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut sections = good.clone();
        change(&mut sections.shared);
        sections.is_whole()
    };
    // A varint of two bytes, two widths, the places, the codes.
    let [low, high, place_width, origin_width] = good.shared[..4] else { panic!("it has a head") };
    assert!(low >= 0x80 && high < 0x80 && place_width <= 8 && origin_width == 0);
    for number in [0, 58, 64, 255] {
        assert!(!changed(&|shared| shared[2] = number), "places of {number} bits");
    }
    for number in [58, 64, 255] {
        assert!(!changed(&|shared| shared[3] = number), "origins' places of {number} bits");
    }
    assert!(!changed(&|shared| (shared[0], shared[1]) = (0x80, 0)), "no codes");
    assert!(!changed(&|shared| shared[1] = 0x7f), "more codes than there are");
    let long = |shared: &mut Vec<u8>| {
        shared.splice(..2, [0x80, 0x80, 0x80, 0x01]);
        shared.resize(4 << 20, 0);
    };
    let mut sections = good.clone();
    long(&mut sections.shared);
    assert!(sections.read(|reader| reader.is_err()), "more codes than there can be");
    for byte in [0, 0xff] {
        assert!(!changed(&|shared| shared[4] = byte), "a place of {byte:#x}");
    }
}
