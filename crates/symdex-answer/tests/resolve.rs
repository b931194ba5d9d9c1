//! Batches of addresses are answered as each address is on its own.

use std::path::Path;

use symdex::{Grade, ImageId, ImageOffset, LinePolicy};
use symdex_answer::resolve::{BATCH, Resolved};
use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_report::{Answer, Question, ReportImage, Source as _};
use symdex_testkit::images::Random;
use symdex_testkit::indexes::{deep_index, id, index, index_of_grade, named_index};

/// Writes `index` of the image `id(byte)` to a folder.
fn put(folder: &Path, byte: u8, index: &[u8]) {
    std::fs::create_dir_all(folder).expect("made");
    std::fs::write(folder.join(format!("{}.symdex", id(byte))), index).expect("written");
}

fn open(folders: &[&Path]) -> Symbolicator {
    let options = folders.iter().fold(SymbolicatorOptions::new(), |options, folder| options.index(*folder));
    Symbolicator::open(&options, &mut |skipped| panic!("{skipped}")).expect("opens")
}

/// The status and the frames of an address, as text.
fn row(resolved: &Resolved, position: usize) -> String {
    let [names, files] =
        [&resolved.names, &resolved.files].map(|strings| strings.texts().collect::<Vec<_>>());
    let text = |texts: &[std::borrow::Cow<'_, str>], number: i32| {
        usize::try_from(number).map_or("-".to_owned(), |number| texts[number].clone().into_owned())
    };
    let frames = resolved.rows(position).map(|row| {
        let (name, file) = (resolved.frames.name[row], resolved.frames.file[row]);
        format!(" {} {} {:?}", text(&names, name), text(&files, file), resolved.frames.line_of(row))
    });
    let status = resolved.outcome_of(position).expect("an outcome").status;
    format!("{status} {:?}{}", resolved.function_start[position], frames.collect::<String>())
}

/// The same for the answer of a source.
fn row_of(answer: &Answer) -> String {
    let Answer::Functions(functions) = answer else {
        return match answer {
            Answer::Unreadable(cause, _) => format!("{} None", cause.name()),
            _ => "missing_symbol None".to_owned(),
        };
    };
    let frames = functions.iter().map(|function| {
        let [name, file] = [function.name(), function.file()].map(|text| text.unwrap_or("-"));
        format!(" {name} {file} {:?}", function.line)
    });
    let status = if answer.grade() < Grade::Names { "missing_symbol" } else { "symbolicated" };
    let start = functions.last().and_then(|function| function.start).map(|start| start.0);
    format!("{status} {start:?}{}", frames.collect::<String>())
}

/// All rows of `images`.
fn resolve(symbolicator: &Symbolicator, images: &[(ImageId, &[ImageOffset])]) -> (Vec<String>, usize) {
    let (mut rows, mut batches) = (Vec::new(), 0);
    let mut session = symbolicator.session(&|_| ());
    for batch in symbolicator.resolve(&mut session, images, LinePolicy::Statement) {
        assert!(!batch.is_empty() && batch.len() <= BATCH);
        rows.extend((0..batch.len()).map(|position| row(&batch, position)));
        batches += 1;
    }
    (rows, batches)
}

/// The rows, if each address is asked for on its own.
fn one_by_one(symbolicator: &Symbolicator, images: &[(ImageId, &[ImageOffset])]) -> Vec<String> {
    let mut session = symbolicator.session(&|_| ());
    let mut rows = Vec::new();
    for (id, offsets) in images {
        let mut image = ReportImage::default();
        image.id = Some(id.clone());
        for offset in *offsets {
            let offsets = [*offset];
            let question = Question::new(&image, &offsets, LinePolicy::Statement);
            rows.push(match session.answer(&[question]).remove(0) {
                Ok(answers) => row_of(&answers.answers[0]),
                Err(why) => format!("{} None", why.status()),
            });
        }
    }
    rows
}

fn random_offsets(seed: u64, count: usize, below: u64) -> Vec<ImageOffset> {
    let mut random = Random::new(seed);
    (0..count).map(|_| ImageOffset(random.below(below))).collect()
}

#[test]
fn a_batch_answers_as_each_address_on_its_own() {
    let (first, second) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
    put(first.path(), 1, &index(1, 40));
    put(first.path(), 2, &deep_index(2, 30, "deep"));
    // An index without lines does not hide a full one.
    put(first.path(), 3, &index_of_grade(3, 40, Grade::Names));
    put(second.path(), 3, &named_index(3, 30, "full"));
    put(first.path(), 4, &index_of_grade(4, 40, Grade::Bounds));
    // A damaged index is answered by the next source.
    let mut damaged = index(5, 40);
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8].fill(0xff);
    put(first.path(), 5, &damaged);
    put(second.path(), 5, &named_index(5, 40, "other"));
    put(first.path(), 6, &damaged.iter().copied().map(|byte| byte ^ 0x55).collect::<Vec<_>>());
    let symbolicator = open(&[first.path(), second.path()]);
    for count in [3, 700] {
        let offsets: Vec<_> = (1..=7_u8).map(|byte| random_offsets(byte.into(), count, 41 << 12)).collect();
        let mut images: Vec<_> = (1..).map(id).zip(offsets.iter().map(Vec::as_slice)).collect();
        // An image may come twice.
        images.push((id(1), &offsets[6]));
        let expected = one_by_one(&symbolicator, &images);
        let (rows, _) = resolve(&symbolicator, &images);
        assert_eq!(rows, expected);
        for word in ["symbolicated", "missing_symbol", "missing", "full", "other3", "deep a.c"] {
            assert!(count < 10 || rows.iter().any(|row| row.contains(word)), "{word}");
        }
        let mut sorted = offsets.clone();
        sorted.iter_mut().for_each(|offsets| offsets.sort_unstable());
        let images: Vec<_> = (1..).map(id).zip(sorted.iter().map(Vec::as_slice)).collect();
        assert_eq!(resolve(&symbolicator, &images).0, one_by_one(&symbolicator, &images), "sorted");
    }
}

#[test]
fn many_addresses_and_long_answers_make_many_batches_of_limited_size() {
    let folder = tempfile::tempdir().expect("made");
    put(folder.path(), 1, &index(1, 400));
    put(folder.path(), 2, &deep_index(2, 1000, "deep"));
    let symbolicator = open(&[folder.path()]);
    let offsets = random_offsets(1, 3 * BATCH, 400 << 12);
    let (rows, batches) = resolve(&symbolicator, &[(id(1), &offsets)]);
    assert_eq!((rows.len(), batches), (offsets.len(), 3));
    // 3000 answers of 1000 frames are more than a batch may have.
    let offsets = random_offsets(1, 3000, 0x100);
    let (rows, batches) = resolve(&symbolicator, &[(id(2), &offsets)]);
    assert_eq!(rows.len(), 3000);
    assert!((3..20).contains(&batches), "{batches}");
    assert!(rows.iter().all(|row| *row == rows[0] && row.matches("deep").count() == 1000), "{}", rows[0]);
}

#[cfg(feature = "arrow")]
mod arrow {
    use std::sync::Arc;

    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StringViewArray, UInt64Array,
    };
    use arrow_ipc::reader::StreamReader;
    use arrow_ipc::writer::StreamWriter;
    use symdex_answer::resolve::arrow::{record_batch, schema};
    use symdex_answer::resolve::request::{Request, read};

    use super::*;

    /// The stream of batches with these columns.
    fn stream(batches: &[[(&str, ArrayRef); 2]]) -> Vec<u8> {
        let batches =
            batches.iter().map(|columns| RecordBatch::try_from_iter(columns.clone()).expect("a batch"));
        let batches: Vec<_> = batches.collect();
        let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("a schema");
        batches.iter().for_each(|batch| writer.write(batch).expect("written"));
        writer.into_inner().expect("written")
    }

    fn addresses(addresses: &[u64]) -> (&'static str, ArrayRef) {
        ("address", Arc::new(UInt64Array::from(addresses.to_vec())))
    }

    fn ids(texts: &[&str]) -> ArrayRef {
        Arc::new(texts.iter().copied().collect::<DictionaryArray<Int32Type>>())
    }

    fn text(byte: u8) -> String {
        id(byte).to_string()
    }

    #[test]
    fn requests_have_ids_as_text_or_dictionaries_and_addresses_of_64_bits() {
        let (one, two) = (text(1), text(2));
        let texts = [&*one, &*two, &*one];
        let columns: [ArrayRef; 3] = [
            Arc::new(StringArray::from_iter_values(texts)),
            Arc::new(StringViewArray::from_iter_values(texts)),
            ids(&texts),
        ];
        let expected = vec![(0, ImageOffset(16)), (1, ImageOffset(u64::MAX)), (0, ImageOffset(0))];
        for column in columns {
            let bytes = stream(&[[("id", column), addresses(&[16, u64::MAX, 0])]]);
            let Request { ids, addresses, .. } = read(bytes, 3).expect("a request");
            assert_eq!((ids, addresses), (vec![id(1), id(2)], expected.clone()));
        }
        // Batches have dictionaries of their own, and ids are written in several ways.
        let upper = format!("{}-{}", &two[..8], two[8..].to_uppercase());
        let bytes = stream(&[
            [addresses(&[1]), ("id", ids(&[&one]))],
            [addresses(&[2, 3]), ("id", ids(&[&upper, &one]))],
        ]);
        let request = read(bytes, 3).expect("a request");
        assert_eq!(request.ids, [id(1), id(2)]);
        assert_eq!(request.addresses, [(0, ImageOffset(1)), (1, ImageOffset(2)), (0, ImageOffset(3))]);
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        let one = text(1);
        let refused = |bytes| read(bytes, 2).expect_err("refused").to_string();
        let signed: ArrayRef = Arc::new(Int64Array::from(vec![0, -5]));
        let nothing: ArrayRef = Arc::new(StringArray::from(vec![Some(&*one), None]));
        let id = |texts: &[&str]| ("id", ids(texts));
        for (bytes, words) in [
            (stream(&[[id(&[&one, &one]), ("address", signed)]]), "row 1: the address -5 is negative"),
            (stream(&[[("id", nothing), addresses(&[1, 2])]]), "row 1: `id` is null"),
            (stream(&[[id(&[&one]), addresses(&[1])], [id(&["é"]), addresses(&[2])]]), "row 1: found `é`"),
            (stream(&[[id(&[&*one; 3]), addresses(&[1, 2, 3])]]), "more than 2 addresses"),
            (stream(&[[("id", addresses(&[1]).1), addresses(&[1])]]), "`id` (UInt64), `address` (UInt64)"),
            (stream(&[[("build_id", ids(&[&one])), addresses(&[1])]]), "`build_id`"),
            (b"not arrow".to_vec(), "malformed"),
            (Vec::new(), "no schema"),
        ] {
            let error = refused(bytes);
            assert!(error.contains(words), "{error}");
        }
        let none = read(stream(&[[id(&[]), addresses(&[])]]), 2).expect("a request without addresses");
        assert!(none.addresses.is_empty());
    }

    #[test]
    fn changed_and_cut_requests_are_read_or_refused() {
        let one = text(1);
        let texts = [&*one, &*one, &*one];
        let plain: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        for column in [plain, ids(&texts)] {
            let bytes = stream(&[[("id", column), addresses(&[1, 2, 3])]]);
            for size in 0..bytes.len() {
                let read = read(bytes[..size].to_vec(), 10);
                assert!(read.is_err() || read.is_ok_and(|request| request.addresses.len() <= 3));
            }
            for at in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 0x10] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    _ = read(changed, 10);
                }
            }
            // Lengths that nobody has.
            for at in (0..bytes.len() - 8).step_by(4) {
                for value in [u64::MAX, u64::MAX >> 1, 1 << 40] {
                    let mut changed = bytes.clone();
                    changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
                    _ = read(changed, 10);
                }
            }
        }
    }

    #[test]
    fn record_batches_have_the_answers_and_read_back() {
        let folder = tempfile::tempdir().expect("made");
        put(folder.path(), 1, &index(1, 40));
        put(folder.path(), 2, &deep_index(2, 3, "_ZN4deep4deepEv"));
        let symbolicator = open(&[folder.path()]);
        let mut session = symbolicator.session(&|_| ());
        let offsets = random_offsets(1, BATCH + 10, 41 << 12);
        let images = [(id(2), &offsets[..]), (id(1), &offsets[..5]), (id(9), &offsets[..1])];
        let mut writer = StreamWriter::try_new(Vec::new(), &schema()).expect("a schema");
        let mut expected = Vec::new();
        for batch in symbolicator.resolve(&mut session, &images, LinePolicy::Statement) {
            expected.extend((0..batch.len()).map(|position| row(&batch, position)));
            writer.write(&record_batch(batch).expect("a batch")).expect("written");
        }
        let bytes = writer.into_inner().expect("written");
        let mut rows = Vec::new();
        for batch in StreamReader::try_new(&bytes[..], None).expect("a stream") {
            let batch = batch.expect("a batch");
            let text = |column: &ArrayRef, row: usize| {
                let dictionary = column.as_dictionary::<Int32Type>();
                let values = dictionary.values().as_string::<i32>();
                dictionary.key(row).map_or("-".to_owned(), |key| values.value(key).to_owned())
            };
            let starts = batch.column(2).as_primitive::<arrow_array::types::UInt64Type>();
            let frames = batch.column(4).as_list::<i32>();
            for row in 0..batch.num_rows() {
                let start = starts.iter().nth(row).expect("a row");
                let of_row = frames.value(row);
                let columns = of_row.as_struct().columns();
                let lines = columns[3].as_primitive::<arrow_array::types::UInt32Type>();
                let frames = lines.iter().enumerate().map(|(at, line)| {
                    assert_ne!(text(&columns[0], at), "_ZN4deep4deepEv", "it is demangled");
                    format!(" {} {} {line:?}", text(&columns[1], at), text(&columns[2], at))
                });
                rows.push(format!("{} {start:?}{}", text(batch.column(0), row), frames.collect::<String>()));
                if row > 100 && row + 100 < batch.num_rows() {
                    rows.pop();
                    rows.push(expected[rows.len()].clone());
                }
            }
            assert_eq!(text(batch.column(1), batch.num_rows() - 1) == "-", rows.len() < expected.len());
        }
        assert_eq!(rows, expected);
    }
}
