//! `answer_from_index`: which images an index answers for, and what offsets count from.

use symdex::{Arch, Cause, ImageOffset, Index, LinePolicy, Scratch};
use symdex_report::{
    Answer, Base, Function, Question, ReportImage, Unanswered, answer_from_index, image_offsets,
};
use symdex_testkit::indexes;

fn index(bytes: &[u8]) -> Index<&[u8]> {
    Index::open(bytes).expect("an index")
}

fn bytes() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/v1/inline-dwarf4-1.symdex"))
        .expect("readable")
}

fn answers(image: &ReportImage, offsets: &[u64]) -> Result<Vec<Answer>, Unanswered> {
    let offsets: Vec<_> = offsets.iter().copied().map(ImageOffset).collect();
    let question = Question::new(image, &offsets, LinePolicy::Exact);
    answer_from_index(&index(&bytes()), &question, &mut Scratch::default())
}

fn of_arch(name: &str) -> ReportImage {
    let mut image = ReportImage::default();
    image.arch = Arch::from_name(name);
    image
}

#[test]
fn each_offset_has_its_answer_in_order() {
    let answers = answers(&of_arch("arm64"), &[0, 0x3cf, u64::MAX]).expect("answers");
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0], &answers[2]), (&Answer::NoFunction, &Answer::NoFunction));
    let Answer::Functions(functions) = &answers[1] else { panic!("{:?}", answers[1]) };
    let names = functions.iter().filter_map(Function::name);
    assert_eq!(names.collect::<Vec<_>>(), ["cell", "row", "mip", "pyramid"]);
    assert_eq!(functions[0].line, Some(9));
    assert_eq!(functions[3].start, Some(ImageOffset(0x3a0)));
}

#[test]
fn an_index_answers_for_architectures_of_its_family_only() {
    for name in ["arm64", "arm64e", "unknown"] {
        assert!(answers(&of_arch(name), &[0x3cf]).is_ok(), "{name}");
    }
    for name in ["armv7", "x86_64", "arm64_32"] {
        assert_eq!(answers(&of_arch(name), &[0x3cf]), Err(Unanswered::other_arch("arm64")), "{name}");
    }
}

#[test]
fn offsets_from_text_exec_need_an_index_with_that_segment() {
    let mut image = of_arch("arm64");
    image.base = Base::TextExec;
    assert!(
        matches!(answers(&image, &[0x3cf]), Err(Unanswered::Failed(Cause::Unsupported, why)) if why.contains("__TEXT_EXEC"))
    );
}

#[test]
fn a_damaged_index_yields_damaged_answers() {
    let mut bytes = bytes();
    let start = index(&bytes).sections()[5].offset;
    let start = usize::try_from(start).expect("small");
    bytes[start + 20] ^= 1;
    let offsets = [ImageOffset(0x3cf)];
    let image = of_arch("arm64");
    let question = Question::new(&image, &offsets, LinePolicy::Exact);
    let answers = answer_from_index(&index(&bytes), &question, &mut Scratch::default());
    assert!(
        matches!(&answers.expect("opened")[..], [Answer::Unreadable(Cause::Damaged, what)] if what.contains("checksum"))
    );
}

/// The answers of offsets from a function are those of the same addresses, counted from the start of the image.
#[test]
fn offsets_from_a_function_are_answered_if_it_is_the_only_one_of_its_name() {
    let mut image = of_arch("arm64");
    (image.base, image.function) = (Base::Function, "pyramid".to_owned());
    let [from_function, from_image] =
        [answers(&image, &[0, 0x2f]), answers(&of_arch("arm64"), &[0x3a0, 0x3cf])].map(|answers| {
            let names = |answer: &Answer| match answer {
                Answer::Functions(functions) => functions
                    .iter()
                    .map(|function| {
                        (
                            function.name().map(str::to_owned),
                            function.file().map(str::to_owned),
                            function.line,
                        )
                    })
                    .collect(),
                _ => Vec::new(),
            };
            answers.expect("answers").iter().map(names).collect::<Vec<_>>()
        });
    assert_eq!((from_function[1].len(), &from_function), (4, &from_image));
    let start = match &answers(&image, &[0x2f]).expect("answers")[0] {
        Answer::Functions(functions) => functions.last().and_then(|function| function.start),
        other => panic!("{other:?}"),
    };
    assert_eq!(start, Some(ImageOffset(0)), "starts count from the function, too");
    for name in ["pyrami", "", "cell"] {
        image.function = name.to_owned();
        assert!(
            matches!(answers(&image, &[0]), Err(Unanswered::NoMatch(why)) if why.contains(name)),
            "{name}"
        );
    }
}

/// The answers of the index `bytes`, whose functions `f0`, `f1`, ... start at multiples of 0x1000, for addresses in a
/// stack of Android.
fn of_android(
    bytes: &[u8],
    (release, mapped): (Option<u64>, Option<u64>),
    addresses: &[u64],
) -> Result<Vec<String>, Unanswered> {
    let mut image = of_arch("arm64");
    image.base = Base::Android { release, mapped };
    let offsets: Vec<_> = addresses.iter().copied().map(ImageOffset).collect();
    let index = index(bytes);
    let question = Question::new(&image, &offsets, LinePolicy::Exact);
    let answers = answer_from_index(&index, &question, &mut Scratch::default())?;
    let text = |(offset, answer): (&ImageOffset, &Answer)| match answer {
        Answer::Functions(functions) => {
            let distance =
                functions[0].distance(*offset).map_or("?".to_owned(), |bytes| format!("{bytes:x}"));
            format!("{}+{distance}", functions[0].name().unwrap_or_default())
        }
        Answer::NoFunction => "-".to_owned(),
        Answer::Ambiguous(summary) => summary.clone(),
        other => panic!("{other:?}"),
    };
    // A store is asked for the same addresses before.
    assert!(image_offsets(index.metadata(), &image, &offsets).is_ok());
    Ok(offsets.iter().zip(&answers).map(text).collect())
}

#[test]
fn addresses_of_android_are_positions_in_the_file_on_9_and_10_and_in_the_mapping_before() {
    // As lld links: the code begins in the middle of a page, and its address is some pages after its position.
    let index = indexes::elf_index(1, 8, &[[0x1900, 0x2900, 0x3000]]);
    let answers = |known, addresses: &[u64]| of_android(&index, known, addresses).expect("answers");
    for release in [9, 10] {
        assert_eq!(
            answers((Some(release), None), &[0x10, 0x18ff, 0x2010, 0x4010, 0x4900, 0x5010, u64::MAX]),
            ["-", "-", "f3+10", "f5+10", "-", "-", "-"]
        );
        // An archive has no part in it.
        assert_eq!(answers((Some(release), Some(0x12_a000)), &[0x2010]), ["f3+10"]);
    }
    // The position of the mapping in the file, or in an archive, or none because the text was cut.
    for mapped in [Some(0x1000), Some(0x12_a000), None] {
        for release in [4, 8] {
            assert_eq!(
                answers((Some(release), mapped), &[0x8ff, 0x1010, 0x3010, 0x3900]),
                ["-", "f3+10", "f5+10", "-"]
            );
        }
    }
    assert_eq!(answers((Some(11), None), &[0x2010, 0x3010]), ["-", "f3+10"]);
}

#[test]
fn the_mapping_tells_the_segment() {
    // The second one begins with a page of the file. Some releases then add its address.
    let index = indexes::elf_index(1, 0x10, &[[0x900, 0x1900, 0x1800], [0x4000, 0x6000, 0x3000]]);
    let answers =
        |mapped, addresses: &[u64]| of_android(&index, (Some(8), mapped), addresses).expect("answers");
    assert_eq!(answers(None, &[0x1010, 0x2010, 0x6010]), ["f2+10", "f3+10", "-"]);
    assert_eq!(answers(Some(0x4000), &[0x10, 0x2010, 0x6010]), ["f6+10", "f8+10", "f6+10"]);
    assert_eq!(answers(Some(0x12_a000), &[0x1010]), ["f7 (a.c:7) or f2 (a.c:2)"]);
    // Android adds the address of a segment at the start of the file.
    let index = indexes::elf_index(1, 8, &[[0, 0x2000, 0x1800]]);
    assert_eq!(of_android(&index, (Some(9), None), &[0x2010]).expect("answers"), ["f2+10"]);
}

#[test]
fn without_the_release_of_android_an_address_is_answered_if_all_readings_agree() {
    let unknown = (None, None);
    let index = indexes::elf_index(1, 8, &[[0x1900, 0x2900, 0x3000]]);
    assert_eq!(
        of_android(&index, unknown, &[0x10, 0x2010, 0x3010, 0x3200, 0x5010]).expect("answers"),
        // Only one reading of the second and the last address lies in the code. The fourth lies in no function.
        ["-", "f3+10", "f4 (a.c:4) or f3 (a.c:3)", "-", "f5+10"]
    );
    let mapped = (None, Some(0x1000));
    assert_eq!(
        of_android(&index, mapped, &[0x1010, 0x3010]).expect("answers"),
        ["f3+10", "f5 (a.c:5) or f4 (a.c:4) or f3 (a.c:3)"]
    );
    let index = indexes::elf_index(1, 8, &[[0x2000, 0x2000, 0x3000]]);
    assert_eq!(of_android(&index, unknown, &[0x2010, 0x5010]).expect("answers"), ["f2+10", "-"]);
    // The same function, and an unknown distance from its start.
    let index = indexes::elf_index(1, 8, &[[0x2000, 0x2010, 0x3000]]);
    assert_eq!(
        of_android(&index, unknown, &[0x3010, 0x30f8]).expect("answers"),
        ["f3+?", "no function or f3 (a.c:3)"]
    );
}

#[test]
fn without_segments_an_index_answers_no_address_of_an_older_android() {
    let [old, of_debug_file] = [indexes::index(1, 8), indexes::elf_index(1, 8, &[])];
    let no_match = |index: &[u8], release| match of_android(index, (release, None), &[0x2010]) {
        Err(Unanswered::NoMatch(why)) => why,
        other => panic!("{other:?}"),
    };
    let whys = [(&old, Some(10)), (&old, Some(4)), (&of_debug_file, Some(10)), (&of_debug_file, None)];
    for why in whys.map(|(index, release)| no_match(index, release)) {
        assert!(
            why.contains("does not state where the code lies") && why.contains("build it again"),
            "{why}"
        );
    }
    // It may be of a file of another system.
    assert_eq!(of_android(&old, (None, None), &[0x2010]), Ok(vec!["f2+10".to_owned()]));
}
