//! Frame A against a linear scan, and against payloads that no encoder makes.

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use super::encode::EncodedStructure;
use super::*;
use crate::LinePolicy;
use crate::chunk::Range;
use crate::format::{MAX_FRAMES, put_varint};
use crate::generator::{self, Answer, Image, Random};

/// Names and files of an image's chunk, as the numbers of its frame A stand for them.
struct Explained<'a> {
    image: &'a Image,
    encoded: &'a EncodedStructure,
}

impl Explained<'_> {
    /// What the structure answers at `offset`, as [`Image::scan_table`] puts it.
    fn find(&self, structure: &Structure, offset: u64, policy: LinePolicy) -> Option<Vec<Answer>> {
        let (mut locs, mut frames) = (Vec::new(), Vec::new());
        let found =
            structure.find(offset, policy.is_statement(), &mut locs, &mut frames).expect("as written");
        let len = frames.len();
        let string = |strings: &[Vec<u8>], id: Option<Id32>| id.map(|id| strings[id.index()].clone());
        let answer = |(number, frame): (usize, LocalFrame)| Answer {
            name: string(&self.image.names, self.encoded.names[frame.name as usize]),
            file: string(&self.image.files, self.encoded.files[frame.file as usize]),
            line: frame.line.map(Id32::get),
            inlined: number + 1 < len,
            function_start: frame.function_start,
            table: crate::Table::Dwarf,
        };
        found.then(|| frames.into_iter().enumerate().map(answer).collect())
    }
}

#[test]
fn every_address_of_a_chunk_is_found_as_a_linear_scan_finds_it() {
    let mut deepest = 0;
    for seed in 0..40 {
        let mut image = Image::random(seed);
        let cut = generator::cut(&image.tables[0], image.chunk_span);
        for (index, chunk) in cut.into_iter().take(40) {
            let start = index * u64::from(image.chunk_span);
            let encoded = encode_structure(start, &chunk);
            let structure = Structure::decode(&encoded.payload, start, image.chunk_span, Answers::Together);
            let structure = structure.expect("as written");
            assert_eq!(structure.lens(), (encoded.names.len(), encoded.files.len()));
            image.tables[0] = chunk;
            let explained = Explained { image: &image, encoded: &encoded };
            let ends = [start, start + u64::from(image.chunk_span)];
            for offset in image.offsets().into_iter().filter(|offset| (ends[0]..ends[1]).contains(offset)) {
                for policy in [LinePolicy::Exact, LinePolicy::Statement] {
                    let expected = image.scan_table(crate::Table::Dwarf, offset, policy);
                    deepest = deepest.max(expected.as_ref().map_or(0, Vec::len));
                    let found = explained.find(&structure, offset, policy);
                    assert_eq!(found, expected, "seed {seed}, chunk {index}, offset {offset:#x}");
                }
            }
            let read = structure.ranges().expect("as written");
            let bounds =
                |ranges: &[Range]| ranges.iter().map(|r| (r.start, r.end, r.function_start)).collect();
            let (read_bounds, bounds): (Vec<_>, Vec<_>) =
                (bounds(&read.ranges), bounds(&image.tables[0].ranges));
            assert_eq!(read_bounds, bounds);
            assert!(read.depths(ends[0], ends[1]).is_ok());
        }
    }
    assert!(deepest > 2 * MAX_STEPS, "chains of {deepest} frames do not try what links can say");
}

/// A payload of any origin is refused, or is a chunk with nothing wrong in it whose addresses all have an answer or none.
fn assert_harmless(payload: &[u8], start: u64, span: u32, answers: Answers) -> bool {
    let Some(structure) = Structure::decode(payload, start, span, answers) else { return false };
    let (mut locs, mut frames) = (Vec::new(), Vec::new());
    let end = start + u64::from(span);
    for offset in [start, start + u64::from(span / 2), end - 1] {
        frames.clear();
        let found = structure.find(offset, true, &mut locs, &mut frames);
        assert!(found != Some(true) || (1..=MAX_FRAMES as usize).contains(&frames.len()));
    }
    let Some(ranges) = structure.ranges() else { return false };
    assert!(ranges.depths(start, end).is_ok());
    true
}

#[test]
fn no_change_to_a_payload_makes_ranges_that_no_encoder_takes() {
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..12 {
        let image = Image::random(seed);
        let Some((index, mut chunk)) = generator::cut(&image.tables[0], 1000).into_iter().next() else {
            continue;
        };
        chunk.ranges.truncate(40);
        let start = index * 1000;
        let payload = encode_structure(start, &chunk).payload;
        for len in 0..payload.len() {
            assert!(
                !assert_harmless(&payload[..len], start, 1000, Answers::Together),
                "{len} of {}",
                payload.len()
            );
        }
        for at in 0..payload.len() {
            for pattern in [0x01, 0x02, 0x7f, 0x80] {
                let mut changed = payload.clone();
                changed[at] ^= pattern;
                *if assert_harmless(&changed, start, 1000, Answers::Together) {
                    &mut taken
                } else {
                    &mut refused
                } += 1;
            }
        }
    }
    assert!(refused > 1000 && taken > 1000, "{refused} refused, {taken} taken");
}

#[test]
fn bytes_at_random_are_harmless() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let len = random.below(60) as usize;
        // Small numbers, which get far; the counts fit together now and then.
        let payload: Vec<u8> = (0..len).map(|_| random.below(8) as u8).collect();
        for answers in [Answers::Apart, Answers::Together] {
            assert_harmless(&payload, 1 << 40, 64, answers);
        }
    }
}

/// Frame A as version 1 has it, from the columns' varints.
fn payload(runs: &[[u64; 5]], triples: u64, bodies: &[u64]) -> Vec<u8> {
    let encode = |numbers: &mut dyn Iterator<Item = u64>| {
        let mut out = Vec::new();
        numbers.for_each(|number| put_varint(&mut out, number));
        out
    };
    let columns = encode(&mut (0..5).flat_map(|column| runs.iter().map(move |run| run[column])));
    // One name, one file, no line: 0 and 1 are new ones, later triples repeat them a line further.
    let names = (0..triples).map(|n| u64::from(n != 0));
    let files = (0..triples).map(|n| u64::from(n == 0));
    let lines = (0..triples).map(|_| 3);
    let triple_columns = encode(&mut names.chain(files).chain(lines));
    let bodies = encode(&mut bodies.iter().copied());
    let sizes = [columns.len(), triple_columns.len(), bodies.len()].map(|size| size as u64);
    let counts = [runs.len() as u64, triples, triples.min(1), triples.min(1)];
    [encode(&mut counts.into_iter().chain(sizes)), columns, triple_columns, bodies].concat()
}

fn decodes(payload: Vec<u8>) -> bool {
    decodes_as(&payload, Answers::Apart)
}

fn decodes_as(payload: &[u8], answers: Answers) -> bool {
    Structure::decode(payload, 0, 4096, answers).and_then(|structure| structure.ranges()).is_some()
}

#[test]
fn what_the_format_forbids_is_refused() {
    // One range of 16 bytes with one loc: defines one (head 2), no parent, the next new triple.
    let good = [16, 1, 1, 3, 1];
    assert!(decodes(payload(&[good], 1, &[2, 0, 0])));
    assert!(decodes(payload(&[[16, 0, 0, 0, 0], good], 1, &[2, 0, 0])), "behind a gap");
    assert!(decodes(payload(&[[16, 1, 2, 6, 1]], 1, &[15, 2, 0, 0, 0, 1])), "of two ranges");
    assert!(decodes(payload(&[[16, 1, 1, 5, 1]], 1, &[3, 0, 0, 0, 1])), "with a statement answer");
    for (runs, triples, bodies, why) in [
        (vec![[0, 1, 1, 3, 1]], 1, vec![2, 0, 0], "a run without a span"),
        (vec![[4097, 1, 1, 3, 1]], 1, vec![2, 0, 0], "a run beyond the chunk"),
        (vec![[u64::MAX, 0, 0, 0, 0], good], 1, vec![2, 0, 0], "spans that overflow"),
        (vec![[0, 0, 0, 0, 0], good], 1, vec![2, 0, 0], "a gap without a span"),
        (vec![[16, 0, 0, 0, 1], good], 1, vec![2, 0, 0], "a gap with triples"),
        (vec![[16, 0, 1, 0, 0], good], 1, vec![2, 0, 0], "a gap with ranges"),
        (vec![[16, 2, 1, 3, 1]], 1, vec![2, 0, 0], "the function before the first"),
        (vec![[16, 4, 1, 3, 1]], 1, vec![2, 0, 0], "a function that starts below 0"),
        (vec![[16, 1, 0, 3, 1]], 1, vec![2, 0, 0], "a run without ranges"),
        (vec![[16, 1, 1, 2, 1]], 1, vec![2, 0, 0], "a body that is not all of the bodies"),
        (vec![[16, 1, 1, 4, 1]], 1, vec![2, 0, 0, 0], "bytes behind the last range"),
        (vec![[16, 1, 1, 3, 0]], 1, vec![2, 0, 0], "more new triples than the run has"),
        (vec![[16, 1, 1, 3, 2]], 2, vec![2, 0, 0], "fewer new triples than the run has"),
        (vec![[16, 1, 1, 3, 1]], 1, vec![2, 0, 2], "a triple that is not there yet"),
        (vec![[16, 1, 1, 2, 0]], 0, vec![0, 0], "an answer that is no loc"),
        (vec![[16, 1, 1, 2, 0]], 0, vec![0, 2], "a loc before the first"),
        (vec![[16, 1, 1, 2, 0]], 0, vec![0, 1], "the answer before the first"),
        (vec![[16, 1, 2, 6, 1]], 1, vec![17, 2, 0, 0, 0, 1], "ranges longer than the run"),
        (vec![[16, 1, 2, 6, 1]], 1, vec![0, 2, 0, 0, 0, 1], "a range without a length"),
        (vec![[16, 1, 1, 7, 1]], 1, vec![3, 0, 0, 1, 1, 0, 1], "a statement answer to a statement answer"),
    ] {
        assert!(!decodes(payload(&runs, triples, &bodies)), "{why}");
    }
}

#[test]
fn since_version_2_an_answer_is_one_number_unless_it_defines_many_locs() {
    let one_range = |answer: &[u64], locs: u64| {
        let numbers: Vec<u64> = answer.iter().copied().chain((0..locs).map(|_| 0)).collect();
        payload(&[[16, 1, 1, put_all(&numbers).len() as u64, locs]], locs, &numbers)
    };
    assert!(decodes_as(&one_range(&[2], 1), Answers::Together), "one loc");
    assert!(decodes_as(&one_range(&[6], 3), Answers::Together), "three");
    assert!(decodes_as(&one_range(&[7, 1], 4), Answers::Together), "four, whose head is 8");
    assert!(!decodes_as(&one_range(&[7, u64::MAX], 4), Answers::Together), "a head that overflows");
    assert!(!decodes_as(&one_range(&[8 + 2], 1), Answers::Together), "the answer before the first");
    assert!(!decodes_as(&one_range(&[u64::MAX - 7], 1), Answers::Together), "a link that overflows");
}

#[test]
fn chains_and_runs_are_no_longer_than_the_format_allows() {
    // One answer that defines all of a chain.
    let chain = |len: u64| {
        let numbers: Vec<u64> = [2 * len, 0].into_iter().chain((0..len).map(|_| 0)).collect();
        let size = put_all(&numbers).len() as u64;
        payload(&[[16, 1, 1, size, len]], len, &numbers)
    };
    let most = u64::from(MAX_FRAMES);
    assert!(decodes(chain(most)) && !decodes(chain(most + 1)));
    // A chain that grows by one frame with each range.
    let growing = |len: u64| {
        let range =
            |n: u64| [if n + 1 < len { Some(1) } else { None }, Some(2), Some(u64::from(n != 0)), Some(0)];
        let numbers: Vec<u64> = (0..len).flat_map(range).flatten().collect();
        let size = put_all(&numbers).len() as u64;
        payload(&[[len, 1, len, size, len]], len, &numbers)
    };
    assert!(decodes(growing(most)) && !decodes(growing(most + 1)));
    // A chain of 300, and an answer some steps above its end.
    let above = |steps: u64| {
        let chain = [15, 2 * 300, 0].into_iter().chain((0..300).map(|_| 0));
        let numbers: Vec<u64> = chain.chain([0, 2 * steps + 1]).collect();
        payload(&[[16, 1, 2, put_all(&numbers).len() as u64, 300]], 300, &numbers)
    };
    assert!(decodes(above(255)) && !decodes(above(256)));
    // Ranges that all are the answer before, in one run.
    let run = |len: u64| {
        let range = |n: u64| [if n + 1 < len { Some(1) } else { None }, Some(0), Some(1)];
        let first: &[u64] = if len > 1 { &[1, 2, 0, 0] } else { &[2, 0, 0] };
        let numbers: Vec<u64> = first.iter().copied().chain((1..len).flat_map(range).flatten()).collect();
        let size = put_all(&numbers).len() as u64;
        payload(&[[len, 1, len, size, 1]], 1, &numbers)
    };
    let most = u64::from(MAX_RUN_RANGES);
    assert!(decodes(run(1)) && decodes(run(most)) && !decodes(run(most + 1)));
}

fn put_all(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.iter().for_each(|number| put_varint(&mut out, *number));
    out
}
