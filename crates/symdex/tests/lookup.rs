//! Whole indexes: what is written is what is answered, from a file and from a store's values alike.

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

mod generator;

use std::collections::{HashMap, HashSet};

use generator::{Answer, Image, Random};
use symdex::{Chunk, Dictionary, ImageOffset, Index, LinePolicy, Metadata, Scratch, Table};

const POLICIES: [LinePolicy; 2] = [LinePolicy::Exact, LinePolicy::Statement];

/// Two images of three have functions of several names, and some so many names that they have a dictionary in a store.
fn image(seed: u64) -> Image {
    let image = Image::random(seed);
    let image = if seed.is_multiple_of(8) { image.with_many_names(seed) } else { image };
    if seed.is_multiple_of(3) { image } else { image.with_aliases(seed) }
}

fn answers(
    index: &Index<Vec<u8>>,
    offset: u64,
    policy: LinePolicy,
    scratch: &mut Scratch,
) -> Option<Vec<Answer>> {
    let frames = index.lookup(ImageOffset(offset), policy, scratch).expect("an intact index");
    frames.map(|frames| frames.iter().map(Answer::from).collect())
}

#[test]
fn an_index_and_its_scratch_go_where_threads_go() {
    fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Index<Vec<u8>>>();
    send_and_sync::<Index<&[u8]>>();
    send_and_sync::<Chunk>();
    send_and_sync::<Dictionary>();
    send_and_sync::<Scratch>();
}

#[test]
fn every_address_is_answered_as_a_linear_scan_answers_it() {
    // One scratch space for all indexes, and one that keeps nothing.
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
            let frames: Option<Vec<_>> = frames.map(|frames| frames.iter().map(Answer::from).collect());
            assert!(answered[place].replace(frames).is_none(), "called once for each");
        });
        for (offset, found) in offsets.iter().zip(answered) {
            assert_eq!(found, Some(answers(&index, offset.0, LinePolicy::Exact, &mut alone)));
        }
    }
}

/// The image with no line that is too large for answers to be kept.
fn with_small_lines(mut image: Image) -> Image {
    for loc in image.tables.iter_mut().flat_map(|table| &mut table.locs) {
        loc.line = loc.line.filter(|line| line.get() < 1 << 20);
    }
    image
}

#[test]
fn an_address_that_is_asked_for_again_has_the_same_answer() {
    // One that keeps all answers, and one that has to forget most.
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
            // The first answers are not kept when they are given first, and where they are may move as long as there come more.
            for frame in frames.iter().flat_map(symdex::Frames::iter).filter(|_| time == 2) {
                let (name, file) = (frame.name.map(<[u8]>::to_vec), frame.file.map(<[u8]>::to_vec));
                places.entry((name, file)).or_default().insert(frame.name.map(<[u8]>::as_ptr));
            }
        }
    }
    assert!(places.len() > 300 && places.values().all(|places| places.len() == 1));
}

/// What a service with nothing but a key-value store answers.
fn answer_from_values<'v>(
    metadata: &Metadata,
    dictionary: &Dictionary,
    value: impl Fn(Table, u64) -> Option<&'v [u8]>,
    offset: u64,
    policy: LinePolicy,
) -> Option<Vec<Answer>> {
    let index = offset / u64::from(metadata.chunk_span);
    let [dwarf, symbol] = Table::ALL.map(|table| {
        let chunk = Chunk::decode(metadata, dictionary, table, index, value(table, index)?);
        let chunk = chunk.expect("an intact value");
        let frames = chunk.lookup(ImageOffset(offset), policy).expect("an intact chunk")?;
        Some(frames.into_iter().map(Answer::from).collect::<Vec<_>>())
    });
    let Some(mut answers) = dwarf else { return symbol };
    if let Some(last) = answers.last_mut().filter(|last| last.function_start.is_none())
        && let Some(symbol) = symbol.and_then(|mut symbol| symbol.pop())
    {
        (last.name, last.function_start) = (symbol.name, symbol.function_start);
    }
    Some(answers)
}

#[test]
fn an_address_is_answered_from_the_metadata_and_one_chunk_value_alone() {
    let mut dictionaries = 0;
    for seed in 0..30 {
        let image = image(seed);
        let index = Index::open(image.index()).expect("as written");
        let exported = index.values().expect("intact");
        let metadata = Metadata::decode(&image.id, exported.metadata()).expect("a value of its own");
        assert_eq!(&metadata, index.metadata());
        let decoded = Dictionary::decode(&image.id, exported.dictionary()).expect("a value of its own");
        dictionaries += usize::from(!exported.dictionary().is_empty());
        let mut scratch = Scratch::default();
        let mut values = HashMap::new();
        for table in Table::ALL {
            for chunk in metadata.chunks(table) {
                let Some(value) = exported.chunk(table, chunk).expect("intact") else { continue };
                let read = Chunk::decode(&metadata, &decoded, table, chunk, &value).expect("intact");
                values.insert((table, chunk), value);
                let ranges = index.chunk(table, chunk).expect("intact").ranges;
                for (range, policy) in ranges.iter().flat_map(|range| POLICIES.map(|policy| (range, policy)))
                {
                    let found = read.lookup(ImageOffset(range.start), policy).expect("intact");
                    let found = found.map(|frames| frames.into_iter().map(Answer::from).collect());
                    assert_eq!(found, image.scan_table(table, range.start, policy), "seed {seed}, {range:?}");
                    let names = read.function_names(ImageOffset(range.start)).expect("intact");
                    match table {
                        Table::Dwarf => assert!(names.is_empty()),
                        Table::SymbolTable => assert_eq!(names, image.function_names(range.start)),
                    }
                }
            }
        }
        let value = |table, chunk| values.get(&(table, chunk)).map(Vec::as_slice);
        for offset in image.offsets().into_iter().step_by(71) {
            for policy in POLICIES {
                let found = answer_from_values(&metadata, &decoded, value, offset, policy);
                assert_eq!(found, answers(&index, offset, policy, &mut scratch), "seed {seed}, {offset:#x}");
            }
        }
    }
    assert_eq!(dictionaries, 4, "small images have none");
}

/// Values of version 1 hold frame A as the index has it.
#[test]
fn values_of_version_1_answer_as_their_index_does() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/v1/inline-dwarf4-1.symdex");
    let index = Index::open(std::fs::read(golden).expect("in the repository")).expect("whole");
    assert_eq!(index.format_version(), 1);
    let exported = index.values().expect("intact");
    let dictionary = Dictionary::decode(index.id(), exported.dictionary()).expect("intact");
    let (mut scratch, mut found) = (Scratch::default(), 0);
    for (number, contents) in index.chunks(Table::Dwarf).map(|chunk| chunk.expect("intact")) {
        let value = exported.chunk(Table::Dwarf, number).expect("intact").expect("not empty");
        let chunk =
            Chunk::decode(index.metadata(), &dictionary, Table::Dwarf, number, &value).expect("as exported");
        for offset in contents.ranges.iter().flat_map(|range| [range.start, range.end - 1]).map(ImageOffset) {
            for policy in [LinePolicy::Exact, LinePolicy::Statement] {
                let expected =
                    index.lookup(offset, policy, &mut scratch).expect("intact").expect("in a range");
                let answer = chunk.lookup(offset, policy).expect("intact").expect("in a range");
                assert_eq!(answer, expected.iter().collect::<Vec<_>>(), "{offset:?}");
                found += 1;
            }
        }
    }
    assert!(found > 100);
}

#[test]
fn a_value_in_another_place_is_damage_and_so_is_a_dictionary_that_is_not_there() {
    let (image, other) = (Image::random(1), Image::random(2));
    let image = image.with_many_names(1);
    let index = Index::open(image.index()).expect("as written");
    let (metadata, exported) = (index.metadata(), index.values().expect("intact"));
    let dictionary = Dictionary::decode(&image.id, exported.dictionary()).expect("intact");
    let (chunk, _) = index.chunks(Table::Dwarf).next().expect("a chunk").expect("intact");
    let value = exported.chunk(Table::Dwarf, chunk).expect("intact").expect("not empty");
    let decode =
        |metadata, dictionary, table, chunk| Chunk::decode(metadata, dictionary, table, chunk, &value);
    assert!(decode(metadata, &dictionary, Table::Dwarf, chunk).is_ok());

    let checksum =
        |result: Result<Chunk, symdex::Error>| matches!(result, Err(symdex::Error::Checksum { .. }));
    assert!(checksum(decode(metadata, &dictionary, Table::SymbolTable, chunk)));
    assert!(checksum(decode(metadata, &dictionary, Table::Dwarf, chunk + 1)));
    let other_index = Index::open(other.index()).expect("as written");
    assert!(checksum(decode(other_index.metadata(), &dictionary, Table::Dwarf, chunk)));
    let without = Dictionary::none();
    let none = decode(metadata, &without, Table::Dwarf, chunk);
    assert!(matches!(none, Err(symdex::Error::Malformed { .. })), "{:?}", none.err());
    // Another dictionary of the same image, as an older symdex may have made it.
    let mut content = exported.dictionary()[8..].to_vec();
    content.truncate(3000);
    let mut hash = xxhash_rust::xxh3::Xxh3Default::new();
    let section = [6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut id = image.id.as_bytes().to_vec();
    id.resize(32, 0);
    [&id[..], &section, &content].into_iter().for_each(|bytes| hash.update(bytes));
    let older = [&hash.digest().to_le_bytes(), &content[..]].concat();
    let older = Dictionary::decode(&image.id, &older).expect("a dictionary");
    let refused = decode(metadata, &older, Table::Dwarf, chunk).err().expect("another one").to_string();
    assert!(refused.contains("another dictionary"), "{refused}");
    for cut in 0..value.len() {
        let cut = Chunk::decode(metadata, &dictionary, Table::Dwarf, chunk, &value[..cut]);
        assert!(cut.is_err_and(|error| error.is_damage()));
    }
}

#[test]
fn an_empty_index_has_no_answers() {
    let mut image = Image::random(5);
    image.tables = Default::default();
    let index = Index::open(image.index()).expect("as written");
    assert_eq!(index.verify().expect("intact").chunks, 0);
    assert_eq!(answers(&index, 0, LinePolicy::Exact, &mut Scratch::default()), None);
    assert_eq!(index.chunks(Table::Dwarf).count(), 0);
}
