//! Round trips: a decoded chunk has the same ranges as the encoded one.

use super::super::{MAX_STEPS, RECENT};
use super::*;
use crate::format::MAX_CHUNK_FRAMES;
use crate::ranges::CodeRange;
use crate::write::{BLOCK_FRAMES, BLOCK_LENS};

/// Asserts that a walk and lookups of a chunk both return the ranges that were encoded.
fn assert_round_trip(image: &Image) {
    let sections = Sections::of(image);
    assert!(sections.is_whole());
    let mut scratch = PackedScratch::default();
    sections.read(|reader| {
        let reader = reader.expect("as written");
        for (&table, made) in Table::ALL.iter().zip(&image.tables) {
            for (index, chunk) in symdex_testkit::images::cut(made, image.chunk_span) {
                let placed = reader.chunk(table, index).expect("as written").expect("not empty");
                let expected = answers(&own(&chunk));
                assert_eq!(answers(&placed.ranges(&mut scratch).expect("as written")), expected);
                // Lookups in both directions: a cached answer must not change the answers of later lookups.
                for (start, end, function_start, chains) in expected.iter().chain(expected.iter().rev()) {
                    for (statement, chain) in [false, true].into_iter().zip(chains) {
                        for offset in [*start, *end - 1] {
                            let mut frames = Vec::new();
                            let found = placed.find(offset, statement, usize::MAX, &mut scratch, &mut frames);
                            assert!(found.expect("as written").is_answer);
                            let (start, frames) = answer_of(&frames);
                            assert_eq!(start, *function_start);
                            assert_eq!(frames, *chain, "{table:?}, chunk {index}, offset {offset:#x}");
                        }
                    }
                }
            }
        }
    });
}

/// Encodes `chunk` in a large image. Returns the numbers of defined inline frames and of ranges for each block. Gaps
/// count as ranges.
fn blocks(chunk: &ChunkRanges) -> Vec<(usize, usize)> {
    let mut image = image_of(chunk.clone(), 7);
    image.without_code = 8 << 20;
    blocks_of(&image)
}

fn blocks_of(image: &Image) -> Vec<(usize, usize)> {
    Sections::of(image).read(|reader| {
        let chunk =
            reader.expect("as written").chunk(Table::Dwarf, 0).expect("as written").expect("not empty");
        chunk.block_sizes().expect("as written")
    })
}

/// Adjacent ranges of 8 bytes from `start` on. All belong to one function, which starts at `function_start`.
fn ranges(start: u64, function_start: Option<u64>, answers: &[(u32, u32)]) -> Vec<CodeRange> {
    let range = |(n, (exact, statement)): (u64, &(u32, u32))| {
        let start = start + 8 * n;
        CodeRange { start, end: start + 8, function_start, exact: *exact, statement: *statement }
    };
    (0..).zip(answers).map(range).collect()
}

/// `chains` disjoint chains of `depth` inline frames each. The innermost frame of chain `n` is `(n + 1) * depth - 1`.
fn chains(chains: u32, depth: u32) -> Vec<InlineFrame> {
    let frame_of = |n: u32| {
        let (chain, frame) = (n / depth, n % depth);
        inline_frame((frame != 0).then(|| n - 1), frame % 7, Some(chain % 4), Some(chain * 10 + frame % 3))
    };
    (0..chains * depth).map(frame_of).collect()
}

#[test]
fn what_was_taken_apart_is_put_together() {
    let mut deepest = 0;
    for seed in 0..14 {
        let image = Image::random(seed).with_aliases(seed);
        let chains = answers(&own(&image.tables[0])).into_iter().flat_map(|(.., chains)| chains);
        deepest = chains.map(|chain| chain.len()).chain([deepest]).max().expect("one at least");
        assert_round_trip(&image);
    }
    assert!(deepest > 2 * MAX_STEPS, "{deepest} frames do not try what links can say");
}

#[test]
fn inline_frames_that_a_block_has_forgotten_are_defined_again() {
    let (chains_of_twenty, last) = (chains(20, 20), |chain: u32| (chain * 20 + 19, chain * 20 + 19));
    // Every chain once. Then the ten oldest chains, oldest first: each of them evicts the next one. Then the other ten
    // chains, youngest first.
    let asked: Vec<(u32, u32)> = (0..20).chain(0..10).chain((10..20).rev()).map(last).collect();
    assert!(asked.len() < BLOCK_LENS[1] && chains_of_twenty.len() > RECENT);
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), frames: chains_of_twenty };
    let blocks = blocks(&chunk);
    assert!(
        matches!(&blocks[..], [(frames, 41)] if *frames > 400 + 100),
        "{blocks:?}: nothing was forgotten"
    );
    assert_round_trip(&image_of(chunk, 7));
    // Exactly as many inline frames as a block remembers.
    let flat = chains(5, 51);
    let asked: Vec<(u32, u32)> =
        [50, 101, 152, 203, 254, 0, 254, 100, 1].map(|frame| (frame, frame)).to_vec();
    let chunk = ChunkRanges { ranges: ranges(0, None, &asked), frames: flat };
    assert_eq!(self::blocks(&chunk), [(RECENT, 10)]);
    assert_round_trip(&image_of(chunk, 7));
}

#[test]
fn chains_are_as_deep_as_the_format_allows() {
    let most = MAX_FRAMES;
    // Both policies first answer whole chains. Later answers move towards the outermost frame, in total further than a
    // link reaches.
    let mut asked = vec![(most - 1, 2 * most - 1), (0, most - 1), (2 * most - 1, most)];
    asked.extend((1..40).map(|n| (most - 1 - n * 25, 2 * most - 1 - n * 26)));
    let chunk = ChunkRanges { ranges: ranges(4096, Some(0), &asked), frames: chains(2, most) };
    let blocks = blocks(&chunk);
    assert!(blocks.iter().any(|(frames, _)| *frames >= 2 * most as usize), "{blocks:?}");
    assert!(blocks.iter().all(|(frames, _)| *frames <= MAX_BLOCK_FRAMES), "{blocks:?}");
    assert_round_trip(&image_of(chunk, 7));
}

#[test]
fn a_chunk_of_too_many_inline_frames_is_not_written() {
    // Each range has two chains of the maximum depth, so each block has two ranges.
    let both = [(MAX_FRAMES - 1, 2 * MAX_FRAMES - 1)];
    let write = |len: u32| {
        let ranges = (0..len).flat_map(|n| ranges(u64::from(n) * 16, Some(0), &both)).collect();
        let chunk = ChunkRanges { ranges, frames: chains(2, MAX_FRAMES) };
        crate::write::ChunkEncoder::new(1 << 20, 0).encode(Table::Dwarf, 0, &chunk).map(drop)
    };
    // The second range of a block defines a forgotten inline frame again.
    let most = MAX_CHUNK_FRAMES as u32 / (2 * MAX_FRAMES);
    write(most).expect("as many as there may be");
    assert!(write(2 * most).is_err_and(|error| !error.cause().is_damage()));
}

#[test]
fn blocks_end_where_they_would_have_too_many_inline_frames_or_ranges() {
    // 41 chains of 100 inline frames are more than a block may define.
    let last = |chain: u32| (chain * 100 + 99, chain * 100 + 99);
    let asked: Vec<(u32, u32)> = (0..90).map(last).collect();
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), frames: chains(90, 100) };
    let cut = blocks(&chunk);
    assert!(cut.len() > 2 && cut.iter().all(|(frames, _)| *frames <= BLOCK_FRAMES), "{cut:?}");
    assert_round_trip(&image_of(chunk, 7));
    let mut long = ChunkRanges { frames: chains(3, 2), ..ChunkRanges::default() };
    for n in 0..60 {
        let asked = vec![(n % 3 * 2, n % 3 * 2 + 1); if n % 20 == 7 { 300 } else { 3 }];
        let start = long.ranges.last().map_or(0, |range| range.end + u64::from(n % 2) * 5);
        let function_start = [Some(start), None, Some(0)][n as usize % 3];
        long.ranges.extend(ranges(start, function_start, &asked));
    }
    // Larger images have longer blocks.
    for (without_code, most) in [0, 8 << 20].into_iter().zip(BLOCK_LENS) {
        let mut image = image_of(long.clone(), 7);
        image.without_code = without_code;
        let cut = blocks_of(&image);
        let longest = cut.iter().map(|(_, ranges)| *ranges).max();
        // The last two entries of a block can be a gap and a range. The last block can end with a gap.
        assert!(cut.len() > 10 && longest.is_some_and(|len| (most..=most + 1).contains(&len)), "{cut:?}");
        assert_round_trip(&image);
    }
}

#[test]
fn functions_may_start_as_far_away_as_numbers_go() {
    let far = (1 << 62) + (1 << 20) - 64;
    let most = (1 << 47) - 1;
    let chunk =
        |function_start| ChunkRanges { ranges: ranges(far, function_start, &[(0, 0)]), frames: chains(1, 1) };
    for function_start in [Some(far - most), Some(far - 1), Some(far), None] {
        assert_round_trip(&image_of(chunk(function_start), 7));
    }
    let too_far = chunk(Some(far - most - 1)).depths(0, u64::MAX);
    assert_eq!(too_far, Err("a range lies too far after the start of its function"));
}

#[test]
fn names_files_and_lines_may_be_none() {
    let top = u32::MAX - 1;
    let nameless = InlineFrame { name: None, ..inline_frame(None, 0, Some(1), Some(3)) };
    let frames = vec![
        inline_frame(None, 0, None, None),
        inline_frame(Some(0), 0, None, Some(0)),
        inline_frame(Some(1), 0, Some(3), None),
        inline_frame(None, 1, Some(3), Some(top)),
        inline_frame(Some(3), 1, Some(0), Some(0)),
        inline_frame(Some(4), 1, Some(0), Some(top)),
        nameless,
        InlineFrame { file: None, line: None, ..nameless },
    ];
    let asked: Vec<(u32, u32)> = (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).collect();
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), frames };
    assert_round_trip(&image_of(chunk, 2));
    // An image with names only.
    let plain = ChunkRanges {
        ranges: ranges(0, Some(0), &[(0, 0), (1, 1)]),
        frames: vec![inline_frame(None, 1, None, None); 2],
    };
    assert_round_trip(&image_of(plain, 2));
}

#[test]
fn both_policies_answer_the_same_the_last_or_another() {
    // The answer under `statement` equals the one under `exact`, stays the same while the one under `exact` changes,
    // equals the one under `exact` again, or is new.
    let asked = [(0, 0), (1, 0), (2, 0), (2, 3), (4, 3), (4, 4), (5, 6), (6, 5), (0, 6)];
    let chunk = ChunkRanges { ranges: ranges(0, Some(0), &asked), frames: chains(7, 1) };
    assert_eq!(blocks(&chunk), [(7, 10)]);
    assert_round_trip(&image_of(chunk, 7));
}

#[test]
fn groups_of_more_source_locations_than_the_format_allows_are_refused() {
    let sections = Sections::of(&Image::random(3));
    let size = usize::from(u16::from_le_bytes([sections.codes[0], sections.codes[1]]));
    let opens = |group_bits| {
        let mut sections = sections.clone();
        sections.codes[2 + size] = group_bits;
        sections.read(|reader| reader.is_ok())
    };
    assert!(opens(0) && opens(4) && !opens(5) && !opens(64));
}
