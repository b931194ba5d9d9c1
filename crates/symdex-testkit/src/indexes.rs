//! Made-up indexes to put into stores.

use symdex::write::{
    ChunkEncoder, ChunkRanges, CodeRange, EncodedStrings, ImageInfo, InlineFrame, NonMaxU32, Writer,
};
use symdex::{Arch, Counts, Grade, ImageId, Segment, Table};

/// The bytes that a chunk of [`index`] spans.
const SPAN: u32 = 0x1000;

/// The id whose bytes are all `byte`.
pub fn id(byte: u8) -> ImageId {
    ImageId::new(&[byte; 16]).expect("16 bytes are an id")
}

/// The id of 20 bytes that begins with those of `id(byte)`.
pub fn long_id(byte: u8, last: u8) -> ImageId {
    ImageId::new(&[&[byte; 16][..], &[1, 2, 3, last]].concat()).expect("20 bytes are an id")
}

/// An index of the image `id(byte)` with this many chunks, each of one function `f0`, `f1`, ... of 0x100 bytes. The
/// index with more functions is better by the rule for conflicts.
pub fn index(byte: u8, functions: u16) -> Vec<u8> {
    index_of(id(byte), functions)
}

/// As [`index`], with one function, of an image called `name`.
pub fn index_called(byte: u8, name: &str) -> Vec<u8> {
    let mut image = image(id(byte));
    image.image_name = name.to_owned();
    functions_called(image, 1, "f")
}

/// As [`index`], of the image `id`.
pub fn index_of(id: ImageId, functions: u16) -> Vec<u8> {
    functions_called(image(id), functions, "f")
}

/// As [`index`], of an ELF file with these executable segments.
pub fn elf_index(byte: u8, functions: u16, segments: &[Segment]) -> Vec<u8> {
    let mut image = image(id(byte));
    image.segments = Some(segments.to_vec());
    functions_called(image, functions, "f")
}

fn image(id: ImageId) -> ImageInfo {
    ImageInfo::new(id, "demo", Arch::from_name("arm64").expect("known"))
}

/// As [`index`], of functions called `name0`, `name1`, ...
pub fn named_index(byte: u8, functions: u16, name: &str) -> Vec<u8> {
    functions_called(image(id(byte)), functions, name)
}

fn functions_called(image: ImageInfo, functions: u16, name: &str) -> Vec<u8> {
    let frames = (0..functions).map(|number| vec![frame(None, number.into())]);
    let names: Vec<String> = (0..functions).map(|number| format!("{name}{number}")).collect();
    written(image, frames.collect(), &names, &["a.c"])
}

/// As [`index`], with no more than the index of this grade has. `Grade::Nothing` counts as bounds.
pub fn index_of_grade(byte: u8, functions: u16, grade: Grade) -> Vec<u8> {
    let (has_names, has_lines) = (grade >= Grade::Names, grade == Grade::Lines);
    let of = |number: u16| {
        let frame = frame(None, number.into());
        vec![InlineFrame {
            name: frame.name.filter(|_| has_names),
            file: frame.file.filter(|_| has_lines),
            line: frame.line.filter(|_| has_lines),
            ..frame
        }]
    };
    let names = (0..functions).map(|number| format!("f{number}")).filter(|_| has_names);
    let files: &[&str] = if has_lines { &["a.c"] } else { &[] };
    written(image(id(byte)), (0..functions).map(of).collect(), &names.collect::<Vec<_>>(), files)
}

/// The index of the image `id(byte)` with one function of 0x100 bytes. `depth` functions, all named `name`, are inlined
/// into one another there.
pub fn deep_index(byte: u8, depth: u32, name: &str) -> Vec<u8> {
    let frames = (0..u64::from(depth)).map(|depth| frame(depth.checked_sub(1), 0));
    written(image(id(byte)), vec![frames.collect()], &[name.to_owned()], &["a.c"])
}

/// The function with this position in the names, inlined into `parent`.
fn frame(parent: Option<u64>, name: u64) -> InlineFrame {
    InlineFrame {
        parent: parent.and_then(NonMaxU32::new),
        name: NonMaxU32::new(name),
        file: NonMaxU32::new(0),
        line: NonMaxU32::new(name),
    }
}

/// The index of an image with a chunk for each of `functions`, which has these inlined functions, the innermost last.
fn written(
    mut image: ImageInfo,
    functions: Vec<Vec<InlineFrame>>,
    names: &[String],
    files: &[&str],
) -> Vec<u8> {
    let count = functions.len() as u64;
    image.image_size = count.max(1) * u64::from(SPAN);
    image.executable = vec![(0, image.image_size)];
    let mut encoder = ChunkEncoder::new(SPAN, image.image_size);
    let mut writer = Writer::new(image, SPAN, std::io::Cursor::new(Vec::new()));
    for (number, frames) in (0..).zip(functions) {
        let start = number * u64::from(SPAN);
        let innermost = u32::try_from(frames.len() - 1).expect("few");
        let range = CodeRange {
            start,
            end: start + 0x100,
            function_start: Some(start),
            exact: innermost,
            statement: innermost,
        };
        let chunk = ChunkRanges { ranges: vec![range], frames };
        writer.push(encoder.encode(Table::Dwarf, number, &chunk).expect("encodes")).expect("in order");
    }
    let (names, files) =
        (EncodedStrings::new(names).expect("names"), EncodedStrings::new(files).expect("files"));
    let counts = Counts { functions: count, ranges: count, ..Counts::default() };
    let mut bytes = Vec::new();
    writer.seal().expect("seals").finish(&names, &files, counts, Vec::new(), &mut bytes).expect("small");
    bytes
}
