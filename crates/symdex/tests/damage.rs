//! Lookups in truncated, changed or forged indexes return the right answer or an error. They never panic.

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::panic::AssertUnwindSafe;

use symdex::{Cause, Error, ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_testkit::images::seal::{seal, seal_header};
use symdex_testkit::images::{Image, ScannedFrame};

/// A small image with all features: gaps, inlining, both tables, different answers under the two policies, aliases,
/// readable names, and strings of all kinds.
fn small() -> Image {
    let mut image = Image::random(11);
    image.chunk_span = 1000;
    for table in &mut image.tables {
        table.ranges.truncate(60);
        assert!(!table.ranges.is_empty(), "the seed makes a table that is worth testing");
    }
    image.names.iter_mut().for_each(|name| name.truncate(20));
    image.with_aliases(11).with_readable_names(11)
}

/// For each offset, the answers under both policies and the names of the function that starts there.
type Answers = Vec<(u64, [Option<Vec<ScannedFrame>>; 2], Vec<Vec<u8>>)>;

const POLICIES: [LinePolicy; 2] = [LinePolicy::Exact, LinePolicy::Statement];

/// The expected answers at the start and the end of each range of `image`. The end is exclusive.
fn expected(image: &Image) -> Answers {
    let ranges = image.tables.iter().flat_map(|table| &table.ranges);
    let mut offsets: Vec<u64> = ranges.flat_map(|range| [range.start, range.end]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let answer =
        |offset| (offset, POLICIES.map(|policy| image.scan(offset, policy)), image.function_names(offset));
    offsets.into_iter().map(answer).collect()
}

/// Looks up all offsets. Asserts that each lookup returns the expected answer or an error about damage. Returns the
/// number of failed lookups.
fn ask<B: AsRef<[u8]>>(index: &Index<B>, expected: &Answers, what: &str) -> usize {
    let mut scratch = Scratch::default();
    let mut failed = 0;
    let mut fails = |error: Error| {
        assert!(error.cause().is_damage(), "{what}: {error}");
        failed += 1;
    };
    for (offset, answers, names) in expected {
        for (policy, answer) in POLICIES.into_iter().zip(answers) {
            match index.lookup(ImageOffset(*offset), policy, &mut scratch) {
                Ok(frames) => {
                    let found =
                        frames.map(|frames| frames.iter().map(ScannedFrame::from).collect::<Vec<_>>());
                    assert_eq!(found, *answer, "{what}, offset {offset:#x}");
                }
                Err(error) => fails(error),
            }
        }
        match index.function_names(ImageOffset(*offset), &mut scratch) {
            Ok(found) => assert!(found.eq(names), "{what}, names at {offset:#x}"),
            Err(error) => fails(error),
        }
    }
    failed
}

#[test]
fn every_truncation_is_noticed_when_opening() {
    let bytes = small().index();
    for len in 0..bytes.len() {
        let error = Index::open(&bytes[..len]).expect_err("cut");
        assert!(matches!(error, Error::NotAnIndex { .. } | Error::WrongSize { .. }), "{len}: {error}");
    }
    let longer = [&bytes[..], b"\n"].concat();
    assert!(matches!(Index::open(longer).err(), Some(Error::WrongSize { .. })));
}

#[test]
fn every_changed_byte_is_an_error_or_changes_no_answer_and_verify_notices_it() {
    let image = small();
    let (bytes, expected) = (image.index(), expected(&image));
    assert_eq!(ask(&Index::open(&bytes[..]).expect("as written"), &expected, "intact"), 0);
    let (mut opened, mut failed) = (0, 0);
    for at in 0..bytes.len() {
        for pattern in [0x01, 0x80, 0xff] {
            let what = format!("byte {at} of {} xor {pattern:#x}", bytes.len());
            let mut changed = bytes.clone();
            changed[at] ^= pattern;
            let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| match Index::open(&changed[..]) {
                // Without its magic, a file is no index.
                Err(error) if at < 8 => assert!(matches!(error, Error::NotAnIndex { .. }), "{what}: {error}"),
                Err(error) => assert!(error.cause().is_damage(), "{what}: {error}"),
                Ok(index) => {
                    opened += 1;
                    // One pattern is enough here: lookups at all offsets are slow in a debug build.
                    if pattern == 0x01 {
                        failed += usize::from(ask(&index, &expected, &what) != 0);
                    }
                    let error = index.verify().expect_err("something changed");
                    assert!(error.cause().is_damage(), "{what}: {error}");
                }
            }));
            assert!(unwound.is_ok(), "{what} is a panic");
        }
    }
    assert!(opened > 1000 && failed > 300, "{opened} opened, {failed} failed: the test lost its point");
}

/// The index with correct checksums of its header and of all its bytes.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    seal(&mut bytes);
    bytes
}

/// The index with more optional sections, whose bits are above that of readable names. Each has 1000 bytes and wrong
/// checksums, which nobody reads.
fn with_sections(mut bytes: Vec<u8>, bits: &[usize]) -> Vec<u8> {
    for bit in bits {
        bytes[24 + bit / 8] |= 1 << (bit % 8);
        bytes.extend(1000u64.to_le_bytes());
        bytes.extend([0xaa; 1000 + 2 * 4]);
    }
    let size = (bytes.len() as u64).to_le_bytes();
    bytes[64..72].copy_from_slice(&size);
    sealed(bytes)
}

#[test]
fn unknown_features_are_refused_where_they_matter_and_passed_over_where_they_do_not() {
    let image = small();
    for bit in 32..64 {
        let mut bytes = image.index();
        bytes[24 + bit / 8] |= 1 << (bit % 8);
        let compatible = Index::open(sealed(bytes)).expect("compatible features may be unknown");
        assert_eq!(ask(&compatible, &expected(&image), "a compatible feature"), 0);
    }
    for (sections, what) in [(&[2, 31][..], "unknown sections"), (&[31], "an unknown section")] {
        let bytes = with_sections(image.index(), sections);
        let compatible = Index::open(&bytes[..]).expect("optional sections may be unknown");
        assert_eq!(ask(&compatible, &expected(&image), what), 0);
        compatible.verify().expect("it is whole");
        for short in 1..20 {
            let mut bytes = bytes.clone();
            bytes.truncate(bytes.len() - short);
            let size = (bytes.len() as u64).to_le_bytes();
            bytes[64..72].copy_from_slice(&size);
            let error = Index::open(sealed(bytes)).expect_err("a section is cut");
            assert!(error.cause().is_damage(), "{what}: {error}");
        }
    }
    for bit in 1..64 {
        let mut bytes = image.index();
        bytes[16 + bit / 8] = 1 << (bit % 8);
        let error = Index::open(sealed(bytes)).expect_err("an incompatible feature");
        assert!(error.cause() == Cause::Unsupported);
        assert!(matches!(error, Error::UnsupportedFeature { unknown } if unknown == 1 << bit));
    }
}

#[test]
fn aliases_set_a_feature_bit_and_nothing_else_does() {
    let bit = |bytes: &[u8]| u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
    let (with, without) = (small(), Image::random(11));
    assert_eq!((bit(&with.index()), bit(&without.index())), (1, 0));
    // Only the feature bit is wrong. The header's checksum is correct.
    let mut forged = with.index();
    forged[16] = 0;
    let forged = Index::open(sealed(forged)).expect("opens");
    assert_eq!(ask(&forged, &expected(&with), "a bit that is missing"), 0);
    let error = forged.verify().expect_err("old readers would misread it");
    assert!(error.cause().is_damage() && error.to_string().contains("other names"), "{error}");
}

#[test]
fn an_index_that_passes_itself_off_for_another_gets_its_own_answers_only() {
    let mut other = small();
    other.names.iter_mut().for_each(|name| name.insert(0, b'!'));
    let (image, victim) = (small(), small().index());
    let mut forged = other.index();
    forged[120..136].copy_from_slice(&victim[120..136]);
    seal_header(&mut forged);
    let (victim, forged) = (Index::open(victim).expect("intact"), Index::open(forged).expect("opens"));
    assert_eq!(victim.digest(), forged.digest());
    let mut scratch = Scratch::default();
    for (offset, answers, names) in expected(&image) {
        for (policy, answer) in POLICIES.into_iter().zip(answers) {
            let mut ask = |index: &Index<Vec<u8>>| {
                let frames = index.lookup(ImageOffset(offset), policy, &mut scratch).expect("intact");
                frames.map(|frames| frames.iter().map(ScannedFrame::from).collect::<Vec<_>>())
            };
            assert_eq!(ask(&forged), other.scan(offset, policy));
            assert_eq!(ask(&victim), answer);
        }
        let mut ask = |index: &Index<Vec<u8>>| {
            let found = index.function_names(ImageOffset(offset), &mut scratch).expect("intact");
            found.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(ask(&forged), other.function_names(offset));
        assert_eq!(ask(&victim), names);
    }
}

#[test]
fn the_writer_refuses_what_the_format_cannot_hold() {
    use symdex::write::{ChunkEncoder, ChunkRanges, CodeRange, EncodedStrings, InlineFrame, NonMaxU32};
    let mut encoder = ChunkEncoder::new(1000, 0);
    let frame = InlineFrame { parent: None, name: None, file: None, line: None };
    let good = CodeRange { start: 2000, end: 2010, function_start: Some(2000), exact: 0, statement: 0 };
    let mut refusal = |index, ranges: &[CodeRange], frames: &[InlineFrame]| {
        let chunk = ChunkRanges { ranges: ranges.to_vec(), frames: frames.to_vec() };
        encoder.encode(Table::Dwarf, index, &chunk).err().map(|error| error.to_string())
    };
    assert_eq!(refusal(2, &[good], &[frame]), None);
    let parent = |parent| InlineFrame { parent: NonMaxU32::new(parent), ..frame };
    let chain = |len: u64| -> Vec<InlineFrame> {
        (0..len).map(|n| if n == 0 { frame } else { parent(n - 1) }).collect()
    };
    assert_eq!(refusal(2, &[good], &chain(1024)), None);
    let later = CodeRange { start: 2010, end: 2011, ..good };
    for (index, ranges, frames, expected) in [
        (1, vec![good], vec![frame], "outside the chunk"),
        (3, vec![good], vec![frame], "outside the chunk"),
        (2, vec![later, good], vec![frame], "out of order"),
        (2, vec![good, good], vec![frame], "out of order"),
        (2, vec![CodeRange { end: 2000, ..good }], vec![frame], "is empty"),
        (
            2,
            vec![CodeRange { function_start: Some(2001), ..good }],
            vec![frame],
            "before the start of its function",
        ),
        (2, vec![CodeRange { exact: 1, ..good }], vec![frame], "not there"),
        (2, vec![CodeRange { statement: 7, ..good }], vec![frame], "not there"),
        (2, vec![good], vec![parent(0)], "before its parent"),
        (2, vec![good], vec![frame, parent(2), frame], "before its parent"),
        (2, vec![good], chain(1025), "longer than the format allows"),
        (u64::MAX / 999, vec![], vec![], "beyond the address space"),
    ] {
        let refusal = refusal(index, &ranges, &frames).expect(expected);
        assert!(refusal.contains(expected), "{refusal}, not {expected}");
    }
    let long = [vec![b'x'; symdex::write::MAX_STRING + 1]];
    assert!(matches!(EncodedStrings::new(&long), Err(Error::Unwritable { .. })));
}

#[test]
fn code_in_two_places_far_apart_does_not_fill_memory_with_what_lies_between() {
    use symdex::write::{ChunkEncoder, ChunkRanges, Writer};
    let image = small();
    let info = symdex::write::ImageInfo::new(image.id.clone(), String::new(), symdex::Arch::from_macho(7, 3));
    let mut writer = Writer::new(info, 1000, std::io::Cursor::new(Vec::new()));
    let mut encoder = ChunkEncoder::new(1000, 0);
    let mut push =
        |index| writer.push(encoder.encode(Table::Dwarf, index, &ChunkRanges::default()).expect("empty"));
    assert!(push(7).is_ok() && push(1_000_000).is_ok());
    for index in [1_000_000, 7 + (1 << 22), u64::MAX / 1000 - 1] {
        assert!(matches!(push(index), Err(Error::Unwritable { .. })), "{index}");
    }
    // The writer is for a small image. The encoder is for a large one.
    let mut of_large_image = ChunkEncoder::new(1000, 8 << 20);
    let chunk = of_large_image.encode(Table::Dwarf, 1_000_001, &ChunkRanges::default()).expect("empty");
    assert!(matches!(writer.push(chunk), Err(Error::Unwritable { .. })), "groups of another size");
}

/// The paths and bytes of the golden indexes.
fn golden() -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/v1");
    let paths = std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("readable").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "symdex"));
    let read = |path: std::path::PathBuf| (path.clone(), std::fs::read(path).expect("readable"));
    let golden: Vec<_> = paths.map(read).collect();
    assert!(golden.len() >= 4, "{} golden indexes are too few", golden.len());
    golden
}

#[test]
fn every_flipped_bit_and_every_truncation_of_the_golden_indexes_is_noticed() {
    for (path, bytes) in golden() {
        let path = path.display();
        for len in 0..bytes.len() {
            assert!(Index::open(&bytes[..len]).is_err(), "{path}, {len} bytes");
        }
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                changed[at] ^= 1 << bit;
                let noticed = Index::open(&changed[..]).and_then(|index| index.verify());
                assert!(noticed.is_err(), "{path}, bit {bit} of byte {at}");
                changed[at] ^= 1 << bit;
            }
        }
    }
}

/// Lookups find the changes by the checksums of pages. They do not check the digest.
#[test]
fn every_flipped_bit_of_a_golden_index_that_a_lookup_reads_is_noticed_by_it() {
    let (path, bytes) = golden().into_iter().max_by_key(|(_, bytes)| bytes.len()).expect("a golden index");
    let intact = Index::open(&bytes[..]).expect("a golden index");
    let answers = |index: &Index<&[u8]>| {
        let mut scratch = Scratch::default();
        let mut all = Vec::new();
        for (start, end) in &intact.metadata().executable {
            for offset in (*start..*end).step_by(16) {
                let frames = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch);
                all.push(frames.ok().map(|frames| {
                    frames.iter().flat_map(|frames| frames.iter().map(ScannedFrame::from)).collect::<Vec<_>>()
                }));
            }
        }
        all
    };
    let expected = answers(&intact);
    let (mut changed, mut failed) = (bytes.clone(), 0);
    for at in 0..bytes.len() - 32 {
        changed[at] ^= 1 << (at % 8);
        if let Ok(index) = Index::open(&changed[..]) {
            for (found, expected) in answers(&index).iter().zip(&expected) {
                assert!(found.is_none() || found == expected, "{}, byte {at}", path.display());
                failed += usize::from(found.is_none());
            }
        }
        changed[at] ^= 1 << (at % 8);
    }
    assert!(failed > 1000, "{failed} lookups failed: the test lost its point");
}
