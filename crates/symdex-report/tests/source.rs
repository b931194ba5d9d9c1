//! `answer_from_index`: which images an index answers for, and what offsets count from.

use symdex::{Arch, Cause, ImageOffset, Index, LinePolicy, Scratch};
use symdex_report::{Answer, Base, Function, Question, ReportImage, Unanswered, answer_from_index};

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
