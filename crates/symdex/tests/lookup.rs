//! Lookups in whole indexes and in the values of a key-value store return what was written.

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::collections::{HashMap, HashSet};

use symdex::{ImageOffset, Index, LinePolicy, Scratch, SectionInfo};
use symdex_testkit::images::{Image, Random, ScannedFrame};

const POLICIES: [LinePolicy; 2] = [LinePolicy::Exact, LinePolicy::Statement];

/// A random image. Functions have several names unless `seed` is a multiple of 3. Names have readable names unless
/// `seed` is a multiple of 2.
fn image(seed: u64) -> Image {
    let image = Image::random(seed);
    let image = if seed.is_multiple_of(3) { image } else { image.with_aliases(seed) };
    if seed.is_multiple_of(2) { image } else { image.with_readable_names(seed) }
}

fn answers(
    index: &Index<Vec<u8>>,
    offset: u64,
    policy: LinePolicy,
    scratch: &mut Scratch,
) -> Option<Vec<ScannedFrame>> {
    let frames = index.lookup(ImageOffset(offset), policy, scratch).expect("an intact index");
    frames.map(|frames| frames.iter().map(ScannedFrame::from).collect())
}

#[test]
fn an_index_and_its_scratch_go_where_threads_go() {
    fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Index<Vec<u8>>>();
    send_and_sync::<Index<&[u8]>>();
    send_and_sync::<Scratch>();
    send_and_sync::<symdex::Error>();
    send_and_sync::<symdex::OwnedFrame>();
    #[cfg(feature = "mmap")]
    send_and_sync::<Index<symdex::MappedFile>>();
}

#[test]
fn every_address_is_answered_as_a_linear_scan_answers_it() {
    // One scratch space that all indexes share, and one that caches no answers.
    let (mut scratch, mut forgetful) = (Scratch::default(), Scratch::with_capacity(0));
    let (mut answered, mut gaps, mut aliases) = (0, 0, 0);
    for seed in 0..40 {
        let image = image(seed);
        let index = Index::open(image.index()).expect("as written");
        index.verify().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for (number, offset) in image.offsets().into_iter().enumerate() {
            let policy = POLICIES[number % 2];
            let expected = image.scan(offset, policy);
            *if expected.is_some() { &mut answered } else { &mut gaps } += 1;
            let found = answers(&index, offset, policy, &mut scratch);
            assert_eq!(found, expected, "seed {seed}, offset {offset:#x}, {policy:?}");
            if number % 40 < 2 {
                assert_eq!(answers(&index, offset, policy, &mut forgetful), expected);
            }
            let names = image.function_names(offset);
            aliases += names.len().saturating_sub(1);
            let found = index.function_names(ImageOffset(offset), &mut scratch).expect("an intact index");
            assert!(found.eq(names), "seed {seed}, names at {offset:#x}");
        }
    }
    assert!(answered > 10_000 && gaps > 500, "{answered} answers and {gaps} gaps are worth little");
    assert!(aliases > 500, "{aliases} aliases are worth little");
}

#[test]
fn many_offsets_at_once_are_answered_as_each_by_itself() {
    let (mut scratch, mut alone) = (Scratch::with_capacity(0), Scratch::default());
    for seed in 0..20 {
        let image = image(seed);
        let index = Index::open(image.index()).expect("as written");
        let mut random = Random::new(seed);
        let all = image.offsets();
        let offsets: Vec<_> = (0..300).map(|_| ImageOffset(random.pick(&all))).collect();
        let mut answered = vec![None; offsets.len()];
        index.lookup_many(&offsets, LinePolicy::Exact, &mut scratch, |place, answer| {
            let frames = answer.expect("an intact index");
            let frames: Option<Vec<_>> = frames.map(|frames| frames.iter().map(ScannedFrame::from).collect());
            assert!(answered[place].replace(frames).is_none(), "called once for each");
        });
        for (offset, found) in offsets.iter().zip(answered) {
            assert_eq!(found, Some(answers(&index, offset.0, LinePolicy::Exact, &mut alone)));
        }
    }
}

#[test]
fn ascending_offsets_are_answered_as_a_linear_scan_answers_them() {
    for seed in 0..40 {
        let image = image(seed);
        let index = Index::open(image.index()).expect("as written");
        let mut random = Random::new(seed);
        let mut offsets = image.offsets();
        // Most once, some twice, some never; in one image in three, some that do not ascend.
        offsets.retain(|_| !random.one_in(4));
        offsets.extend_from_within(offsets.len() / 2..);
        offsets.sort_unstable();
        if seed % 3 == 0 {
            offsets = offsets.into_iter().flat_map(|offset| [offset, offset / 2]).collect();
        }
        for policy in POLICIES {
            let mut asked = offsets.iter();
            index.lookup_ascending(offsets.iter().copied().map(ImageOffset), policy, |offset, answer| {
                assert_eq!(Some(&offset.0), asked.next());
                let frames = answer.expect("an intact index");
                let found: Option<Vec<_>> =
                    frames.map(|frames| frames.iter().map(ScannedFrame::from).collect());
                assert_eq!(found, image.scan(offset.0, policy), "seed {seed}, offset {offset}, {policy:?}");
            });
            assert_eq!(asked.next(), None);
        }
    }
}

#[test]
fn a_large_batch_is_answered_in_the_order_of_its_places() {
    let image = image(4);
    let index = Index::open(image.index()).expect("as written");
    let (mut random, all) = (Random::new(4), image.offsets());
    let offsets: Vec<_> = (0..10_000).map(|_| ImageOffset(random.pick(&all))).collect();
    let (mut scratch, mut seen) = (Scratch::default(), vec![false; offsets.len()]);
    index.lookup_many(&offsets, LinePolicy::Exact, &mut scratch, |place, answer| {
        assert!(!std::mem::replace(&mut seen[place], true), "called once for each");
        let frames = answer.expect("an intact index");
        let found: Option<Vec<_>> = frames.map(|frames| frames.iter().map(ScannedFrame::from).collect());
        assert_eq!(found, image.scan(offsets[place].0, LinePolicy::Exact), "place {place}");
    });
    assert!(seen.iter().all(|seen| *seen));
}

/// Removes large line numbers from the image, so that a scratch space can cache all its answers.
fn with_small_lines(mut image: Image) -> Image {
    for frame in image.tables.iter_mut().flat_map(|table| &mut table.frames) {
        frame.line = frame.line.filter(|line| line.get() < 1 << 20);
    }
    image
}

#[test]
fn an_address_that_is_asked_for_again_has_the_same_answer() {
    // One scratch space caches all answers. The other one evicts most of them.
    let mut spaces = [1 << 24, 200 << 10].map(Scratch::with_capacity);
    let images = [image(6), with_small_lines(image(9)), with_small_lines(image(11))];
    let indexes = images.map(|image| (Index::open(image.index()).expect("as written"), image));
    let expected = indexes.iter().flat_map(|(index, image)| {
        let questions =
            image.offsets().into_iter().flat_map(|offset| POLICIES.map(|policy| (offset, policy)));
        questions.map(move |(offset, policy)| (index, offset, policy, image.scan(offset, policy)))
    });
    let expected: Vec<_> = expected.collect();
    let mut random = Random::new(1);
    for _ in 0..4 * expected.len() {
        let (index, offset, policy, answer) = &expected[random.below(expected.len() as u64) as usize];
        for scratch in &mut spaces {
            assert_eq!(&answers(index, *offset, *policy, scratch), answer, "{offset:#x}, {policy:?}");
        }
    }
    assert!(expected.len() > 1000, "{} questions are worth little", expected.len());
}

#[test]
fn strings_of_answers_that_were_given_before_are_not_copied() {
    let image = with_small_lines(image(9));
    let index = Index::open(image.index()).expect("as written");
    let mut scratch = Scratch::default();
    let mut places: HashMap<_, HashSet<_>> = HashMap::new();
    for time in 0..3 {
        for offset in image.offsets() {
            let answer = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch);
            let frames = answer.expect("an intact index");
            // The first answers are not cached on their first lookup, and cached strings can move while answers are
            // added. So the test compares only the pointers of the third pass.
            for frame in frames.iter().flat_map(symdex::Frames::iter).filter(|_| time == 2) {
                let (name, file) = (frame.name.map(<[u8]>::to_vec), frame.file.map(<[u8]>::to_vec));
                places.entry((name, file)).or_default().insert(frame.name.map(<[u8]>::as_ptr));
            }
        }
    }
    assert!(places.len() > 300 && places.values().all(|places| places.len() == 1));
}

/// Lookups in the values of a key-value store return the same answers as lookups in the whole index.
#[test]
fn a_value_answers_as_the_whole_index_does() {
    let (mut scratch, mut answered, mut values) = (Scratch::default(), 0, 0);
    for seed in 0..24 {
        let image = image(seed);
        let index = Index::open(image.index()).expect("as written");
        let store: HashMap<u64, Index<Vec<u8>>> = symdex::write::split(&index)
            .map(|value| value.expect("intact"))
            .map(|value| (value.number, Index::open(value.bytes).expect("a value is an index")))
            .collect();
        let numbers: Vec<u64> = index.metadata().value_numbers().into_iter().flatten().collect();
        assert!(numbers.iter().is_sorted() && numbers.len() == store.len());
        assert!(numbers.iter().all(|number| store.contains_key(number)), "seed {seed}");
        for value in store.values() {
            value.verify().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(value.id(), index.id());
        }
        values += store.len();
        for (number, offset) in image.offsets().into_iter().enumerate() {
            let (policy, expected) = (POLICIES[number % 2], image.scan(offset, POLICIES[number % 2]));
            let value = store.get(&index.metadata().value_number(ImageOffset(offset)));
            let found = value.and_then(|value| answers(value, offset, policy, &mut scratch));
            assert_eq!(found, expected, "seed {seed}, offset {offset:#x}, {policy:?}");
            answered += u32::from(expected.is_some());
            let names = image.function_names(offset);
            if let Some(value) = value {
                let found = value.function_names(ImageOffset(offset), &mut scratch).expect("intact");
                assert!(found.eq(names), "seed {seed}, names at {offset:#x}");
            }
        }
    }
    assert!(answered > 3_000 && values > 100, "{answered} answers of {values} values");
}

#[test]
fn values_are_made_one_by_one_and_damage_is_an_error_of_its_value() {
    let image = (0..).map(image).find(|image| image.chunk_span == 64 && image.tables[0].ranges.len() > 300);
    let image = image.expect("there is one");
    let mut bytes = image.index();
    let index = Index::open(&bytes[..]).expect("as written");
    let whole = symdex::write::split(&index).count();
    let SectionInfo { offset: chunks, size, .. } = index.sections()[5];
    let last = (chunks + size - 1) as usize;
    bytes[last] ^= 1;
    let index = Index::open(&bytes[..]).expect("opens");
    let values: Vec<_> = symdex::write::split(&index).collect();
    assert!(values[0].is_ok() && values.len() == whole);
    assert!(values.iter().filter_map(|value| value.as_ref().err()).all(|error| error.cause().is_damage()));
    assert!(values.iter().any(Result::is_err));
}

#[test]
fn a_function_is_found_by_each_of_its_names_unless_others_have_the_name() {
    let (mut scratch, mut unique, mut shared) = (Scratch::default(), 0, 0);
    let random = (0..20).map(|seed| image(seed).index());
    let golden = ["icf-1", "made-up-1", "plain-1"].map(|name| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/v1");
        std::fs::read(format!("{folder}/{name}.symdex")).expect("readable")
    });
    for bytes in golden.into_iter().chain(random) {
        let index = Index::open(bytes).expect("an intact index");
        let mut starts: HashMap<Vec<u8>, HashSet<u64>> = HashMap::new();
        for chunk in index.chunks(symdex::Table::SymbolTable) {
            let (_, chunk) = chunk.expect("an intact chunk");
            for start in chunk.ranges.iter().filter_map(|range| range.function_start) {
                for name in index.function_names(ImageOffset(start), &mut scratch).expect("an intact index") {
                    starts.entry(name.to_vec()).or_default().insert(start);
                }
            }
        }
        for (name, starts) in starts {
            let only = starts.iter().next().filter(|_| starts.len() == 1);
            let expected = only.copied().map(ImageOffset);
            assert_eq!(index.function_start(&name).expect("an intact index"), expected, "{name:?}");
            *if expected.is_some() { &mut unique } else { &mut shared } += 1;
        }
        assert_eq!(index.function_start(b"no such function").expect("an intact index"), None);
    }
    assert!(unique > 10 && shared > 0, "{unique} {shared}");
}
