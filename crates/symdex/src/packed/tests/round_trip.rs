//! What was taken apart is put together again.

use super::super::RUN_LOCS;
use super::super::chunk::Walked;
use super::super::codes::{Counts, Decoder, Encoder};
use super::super::encode::{Buffers, draft};
use super::super::origins::Origins;
use super::super::triples;
use super::super::{RECENT, RUN_LEN, chunk::encode_chunk};
use super::*;
use crate::chunk::Range;
use crate::format::MAX_CHUNK_LOCS;
use crate::generator;

/// Every chunk of the image says what it was made of, to whoever walks it and to whoever asks.
fn assert_round_trip(image: &Image) {
    let sections = Sections::of(image);
    assert!(sections.is_whole());
    let mut scratch = PackedScratch::default();
    sections.read(|reader| {
        let reader = reader.expect("as written");
        for table in Table::ALL {
            for (index, chunk) in generator::cut(image.table(table), image.chunk_span) {
                let placed =
                    reader.chunk(&sections.metadata, table, index).expect("as written").expect("not empty");
                let expected = answers(&chunk);
                assert_eq!(answers(&placed.ranges(&mut scratch).expect("as written")), expected);
                // Backwards too: what is kept of one lookup must not show in the next.
                for (start, end, function_start, chains) in expected.iter().chain(expected.iter().rev()) {
                    for (statement, chain) in [false, true].into_iter().zip(chains) {
                        for offset in [*start, *end - 1] {
                            let mut locs = Vec::new();
                            let found = placed.find(offset, statement, usize::MAX, &mut scratch, &mut locs);
                            assert_eq!(found.expect("as written"), Some(*function_start));
                            assert_eq!(locs, *chain, "{table:?}, chunk {index}, offset {offset:#x}");
                        }
                    }
                }
            }
        }
    });
}

/// How many locs each run of a chunk defines, and how many ranges it has.
fn runs(chunk_start: u64, chunk: &ChunkRanges) -> Vec<(usize, usize)> {
    let depths = chunk.depths(chunk_start, u64::MAX).expect("sorted ranges of locs that are there");
    let mut draft = draft(chunk_start, chunk, &depths, &mut Buffers::default());
    let mut counts = Counts::default();
    let lens =
        triples::finish(&mut draft, &mut triples::Numbers::default(), &mut Origins::default(), &mut counts);
    let (encoder, codes) = Encoder::new(&counts);
    let bytes = encode_chunk(&draft.tokens.0, lens, &encoder);
    let decoder = Decoder::new(&codes).expect("as written");
    let codes = decoder.codes(&codes);
    let packed = PackedChunk::new(&bytes, chunk_start, 1 << 20, codes).expect("as written");
    let (mut runs, mut ranges) = (Vec::new(), 0);
    let walked = packed.walk(&mut PackedScratch::default().run, |walked| {
        match walked {
            Walked::Range { .. } => ranges += 1,
            Walked::Run(locs) => runs.push((locs.len(), std::mem::take(&mut ranges))),
        }
        Some(())
    });
    walked.expect("as written");
    assert_eq!(draft.locs, runs.iter().map(|(locs, _)| locs).sum::<usize>());
    runs
}

/// Ranges of 8 bytes from `start` on, of one function that starts at `function_start`.
fn ranges(start: u64, function_start: Option<u64>, answers: &[(u32, u32)]) -> Vec<Range> {
    let range = |(n, (exact, statement)): (u64, &(u32, u32))| {
        let start = start + 8 * n;
        Range { start, end: start + 8, function_start, exact: *exact, statement: *statement }
    };
    (0..).zip(answers).map(range).collect()
}

/// `chains` chains of `depth` locs of their own each; the last loc of each is `(n + 1) * depth - 1`.
fn chains(chains: u32, depth: u32) -> Vec<Loc> {
    let loc_of = |n: u32| {
        let (chain, frame) = (n / depth, n % depth);
        loc((frame != 0).then(|| n - 1), frame % 7, Some(chain % 4), Some(chain * 10 + frame % 3))
    };
    (0..chains * depth).map(loc_of).collect()
}

#[test]
fn what_was_taken_apart_is_put_together() {
    let mut deepest = 0;
    for seed in 0..14 {
        let image = Image::random(seed).with_aliases(seed);
        let chains = answers(&image.tables[0]).into_iter().flat_map(|(.., chains)| chains);
        deepest = chains.map(|chain| chain.len()).chain([deepest]).max().expect("one at least");
        assert_round_trip(&image);
    }
    assert!(deepest > 2 * super::super::MAX_STEPS, "{deepest} frames do not try what links can say");
}

#[test]
fn locs_that_a_run_has_forgotten_are_defined_anew() {
    let (chains_of_ten, last) = (chains(40, 10), |chain: u32| (chain * 10 + 9, chain * 10 + 9));
    // Each once, then from the oldest on, each of which pushes out the next one, then the youngest again.
    let asked: Vec<(u32, u32)> = (0..40).chain(0..20).chain((20..40).rev()).map(last).collect();
    assert!(asked.len() <= RUN_LEN && chains_of_ten.len() > RECENT);
    let chunk = ChunkRanges { ranges: ranges(64, Some(64), &asked), locs: chains_of_ten };
    let runs = runs(0, &chunk);
    assert!(matches!(&runs[..], [(locs, 80)] if *locs > 400 + 100), "{runs:?}: nothing was forgotten");
    assert_round_trip(&image_of(chunk, 7));
    // As many as a run remembers, all of which it still knows.
    let flat = chains(5, 51);
    let asked: Vec<(u32, u32)> = [50, 101, 152, 203, 254, 0, 254, 100, 1].map(|loc| (loc, loc)).to_vec();
    let chunk = ChunkRanges { ranges: ranges(0, None, &asked), locs: flat };
    assert_eq!(self::runs(0, &chunk), [(RECENT, 9)]);
    assert_round_trip(&image_of(chunk, 7));
}

#[test]
fn chains_are_as_deep_as_the_format_allows() {
    let most = MAX_FRAMES;
    // Both policies answer a whole chain; then every depth on the way back up, further than links reach.
    let mut asked = vec![(most - 1, 2 * most - 1), (0, most - 1), (2 * most - 1, most)];
    asked.extend((1..40).map(|n| (most - 1 - n * 25, 2 * most - 1 - n * 26)));
    let chunk = ChunkRanges { ranges: ranges(4096, Some(0), &asked), locs: chains(2, most) };
    let runs = runs(0, &chunk);
    assert!(runs.iter().any(|(locs, _)| *locs >= 2 * most as usize), "{runs:?}");
    assert!(runs.iter().all(|(locs, ranges)| *locs <= RUN_LOCS || *ranges == 1 && *locs <= MAX_LOCS));
    assert_round_trip(&image_of(chunk, 7));
}

#[test]
fn a_chunk_of_too_many_locs_is_not_written() {
    // With gaps between them, so that each is a run, which defines both chains.
    let both = [(MAX_FRAMES - 1, 2 * MAX_FRAMES - 1)];
    let write = |len: u32| {
        let ranges = (0..len).flat_map(|n| ranges(u64::from(n) * 16, Some(0), &both)).collect();
        let chunk = ChunkRanges { ranges, locs: chains(2, MAX_FRAMES) };
        crate::write::ChunkEncoder::new(1 << 20).encode(Table::Dwarf, 0, &chunk).map(drop)
    };
    let most = MAX_CHUNK_LOCS as u32 / (2 * MAX_FRAMES);
    write(most).expect("as many as there may be");
    assert!(write(most + 1).is_err_and(|error| !error.is_damage()));
}

#[test]
fn runs_end_where_they_would_have_too_many_locs_or_ranges() {
    // 41 chains of 100 locs are more than a run may define.
    let last = |chain: u32| (chain * 100 + 99, chain * 100 + 99);
    let asked: Vec<(u32, u32)> = (0..90).map(last).collect();
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), locs: chains(90, 100) };
    let cut = runs(0, &chunk);
    assert!(cut.len() > 2 && cut.iter().all(|(locs, _)| *locs <= RUN_LOCS), "{cut:?}");
    assert_round_trip(&image_of(chunk, 7));
    // A hundred runs, so that there are groups of them, of a function each, most of them the same as before.
    let mut long = ChunkRanges { locs: chains(3, 2), ..ChunkRanges::default() };
    for n in 0..60 {
        let asked = vec![(n % 3 * 2, n % 3 * 2 + 1); if n % 20 == 7 { 300 } else { 3 }];
        let start = long.ranges.last().map_or(0, |range| range.end + u64::from(n % 2) * 5);
        let function_start = [Some(start), None, Some(0)][n as usize % 3];
        long.ranges.extend(ranges(start, function_start, &asked));
    }
    assert!(runs(0, &long).iter().all(|(_, ranges)| *ranges <= RUN_LEN));
    assert_round_trip(&image_of(long, 7));
}

#[test]
fn functions_may_start_as_far_away_as_offsets_go() {
    let far = (1 << 62) + (1 << 20) - 64;
    let chunk =
        |function_start| ChunkRanges { ranges: ranges(far, function_start, &[(0, 0)]), locs: chains(1, 1) };
    for function_start in [Some(0), Some(1), Some(far - 1), Some(far), None] {
        assert_round_trip(&image_of(chunk(function_start), 7));
    }
}

#[test]
fn names_files_and_lines_may_be_none() {
    let top = u32::MAX - 1;
    let nameless = Loc { name: None, ..loc(None, 0, Some(1), Some(3)) };
    let locs = vec![
        loc(None, 0, None, None),
        loc(Some(0), 0, None, Some(0)),
        loc(Some(1), 0, Some(3), None),
        loc(None, 1, Some(3), Some(top)),
        loc(Some(3), 1, Some(0), Some(0)),
        loc(Some(4), 1, Some(0), Some(top)),
        nameless,
        Loc { file: None, line: None, ..nameless },
    ];
    let asked: Vec<(u32, u32)> = (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).collect();
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), locs };
    assert_round_trip(&image_of(chunk, 2));
    // Nothing but names.
    let plain = ChunkRanges {
        ranges: ranges(0, Some(0), &[(0, 0), (1, 1)]),
        locs: vec![loc(None, 1, None, None); 2],
    };
    assert_round_trip(&image_of(plain, 2));
}

#[test]
fn both_policies_answer_the_same_the_last_or_another() {
    // The same; another, which stays while the exact one changes; the same again; another that is new.
    let asked = [(0, 0), (1, 0), (2, 0), (2, 3), (4, 3), (4, 4), (5, 6), (6, 5), (0, 6)];
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), locs: chains(7, 1) };
    assert_eq!(runs(0, &chunk), [(7, 9)]);
    assert_round_trip(&image_of(chunk, 7));
}
