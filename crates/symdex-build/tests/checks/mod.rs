//! The answers of an index as text. Direct lookups must give the same answers.
#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

mod on_disk;
pub(crate) mod same_answers;

use std::sync::Arc;

use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::audit_access::dwarf;
use symdex_build::{BuildOptions, Built, Companions, Image, Slice, slices};

pub(crate) use self::on_disk::all;
use self::same_answers::assert_same_everywhere;

/// The first slice of a debug file.
fn slice(file: &[u8]) -> Slice<'_> {
    slices(file).expect("a Mach-O file").remove(0)
}

/// The index of a debug file's first slice, with the report of its build.
pub(crate) fn built(file: &[u8]) -> Built {
    let companions = Companions::default();
    let image = Image::load(&slice(file), "made-up", &companions).expect("loads");
    build_any(&image)
}

/// Builds the index of an image, even an empty one.
fn build_any(image: &Image<'_>) -> Built {
    BuildOptions::new().allow_empty(true).build(image).expect("builds")
}

/// The answers of the index of a debug file's first slice: one line of text for each range of `table`. Checks that
/// direct lookups give the same answers.
///
/// A line is `START..END FRAME < CALLER`, with image offsets. A frame is `name file:line`. Paths in `/src` are relative
/// to it. A part that is missing is `-`. If the policy `statement` has another line, ` [statement file:line]` follows.
pub(crate) fn answers(file: &[u8], table: Table) -> Vec<String> {
    let companions = Companions::default();
    image_answers(&Image::load(&slice(file), "made-up", &companions).expect("loads"), table)
}

pub(crate) fn image_answers(image: &Image<'_>, table: Table) -> Vec<String> {
    let built = build_any(image);
    let index = Index::open(built.bytes).expect("just written");
    index.verify().expect("whole");
    assert_same_everywhere(image, &index);
    let mut lines = Vec::new();
    for chunk in index.chunks(table) {
        for range in chunk.expect("whole").1.ranges {
            let answer = match table {
                Table::Dwarf => frames(&index, range.start),
                Table::SymbolTable => {
                    let exact = range.exact as usize;
                    let chunk = index.chunk(table, range.start / 0x8000).expect("whole");
                    let name = chunk.frames[exact].name;
                    let mut strings = index.strings();
                    name.map_or("-".to_owned(), |id| text(strings.name(id).expect("whole")))
                }
            };
            lines.push(format!("{:x}..{:x} {answer}", range.start, range.end));
        }
    }
    lines
}

/// The answers of the debug information in the file at `path`, and the reasons why its index is partial.
pub(crate) fn found(path: &std::path::Path, companions: &Companions) -> (Vec<String>, Vec<String>) {
    let file = std::fs::read(path).expect("readable");
    let image = Image::load(&slices(&file).expect("an ELF file")[0], path, companions).expect("loads");
    let built = build_any(&image);
    let partial = Index::open(built.bytes).expect("just written").metadata().partial.clone();
    (image_answers(&image, Table::Dwarf), partial.iter().map(|partial| partial.reason.clone()).collect())
}

fn frames(index: &Index<Vec<u8>>, offset: u64) -> String {
    let (mut exact, mut statement) = (Scratch::default(), Scratch::default());
    let frames = |policy, scratch| {
        let frames = index.lookup(ImageOffset(offset), policy, scratch).expect("whole").expect("covered");
        frames
            .iter()
            .map(|frame| {
                let line = frame.line.map_or("-".to_owned(), |line| line.to_string());
                let place = match frame.file {
                    Some(file) => format!("{}:{line}", text(file.strip_prefix(b"/src/").unwrap_or(file))),
                    None => "-".to_owned(),
                };
                (frame.name.map_or("-".to_owned(), text), place)
            })
            .collect::<Vec<_>>()
    };
    let exact: Vec<(String, String)> = frames(LinePolicy::Exact, &mut exact);
    let statement = frames(LinePolicy::Statement, &mut statement);
    let frame = |((name, place), (_, other)): (&(String, String), &(String, String))| {
        let other = if place == other { String::new() } else { format!(" [statement {other}]") };
        format!("{name} {place}{other}")
    };
    exact.iter().zip(&statement).map(frame).collect::<Vec<_>>().join(" < ")
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// addr2line's answer at an image offset of a debug file's first slice: the frames as `name:line`, `nothing`, or its
/// error.
pub(crate) fn peer(file: &[u8], offset: u64) -> String {
    let companions = Companions::default();
    let image = Image::load(&slice(file), "made-up", &companions).expect("loads");
    let svma = image.info().base + offset;
    let names = || -> gimli::Result<Vec<String>> {
        let context = addr2line::Context::from_arc_dwarf(Arc::clone(dwarf(&image)))?;
        let mut frames = context.find_frames(svma).skip_all_loads()?;
        let mut names = Vec::new();
        while let Some(frame) = frames.next()? {
            let name = frame.function.map_or("-".to_owned(), |function| text(&function.name));
            let line = frame.location.and_then(|location| location.line);
            names.push(format!("{name}:{}", line.map_or("-".to_owned(), |line| line.to_string())));
        }
        Ok(names)
    };
    match names() {
        Ok(names) if names.is_empty() => "nothing".to_owned(),
        Ok(names) => names.join(" < "),
        Err(error) => format!("error: {error}"),
    }
}
