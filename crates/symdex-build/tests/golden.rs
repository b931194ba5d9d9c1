//! The indexes in `testdata/golden`. Every later version of symdex must open them and give the same answers.
//!
//! The build writes the index with the highest number of each kind, byte for byte. After an intended change of the
//! bytes, `SYMDEX_BLESS=1 cargo test -p symdex-build --test plain golden` adds files with the next number. From the
//! first release on, the old files stay.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use symdex::{Frame, ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{BuildOptions, Companions, Image, build, slices};

/// Makes the bytes of an index.
type Make = fn() -> Vec<u8>;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// The kinds of golden indexes: the first part of the file name, and how the index is made.
const KINDS: [(&str, Make); 7] = [
    ("inline-dwarf4", || build_dsym("inline-dwarf4")),
    ("swift-names", || build_dsym("swift-names")),
    ("made-up", made_up),
    // Functions of several names.
    ("icf", || build_dsym("icf")),
    // No debug information, and so a digest of the input.
    ("plain", || build_file("DemoPlain.dylib", "demo/DemoPlain.dylib")),
    ("readable-names", readable_names),
    ("unwind-rows", unwind_rows),
];

fn build_dsym(name: &str) -> Vec<u8> {
    build_file(name, &format!("dsyms/{name}.dSYM/Contents/Resources/DWARF/{name}"))
}

fn build_file(name: &str, path: &str) -> Vec<u8> {
    let bytes = std::fs::read(Path::new(TESTDATA).join(path)).expect("testdata has it");
    let slice = slices(&bytes).expect("a Mach-O file").remove(0);
    let companions = Companions::default();
    let image = Image::load(&slice, name, &companions).expect("loads");
    build(&image).expect("builds").bytes
}

/// The index of names in Swift and C, with readable names.
fn readable_names() -> Vec<u8> {
    let path = format!("{TESTDATA}/dsyms/swift-names.dSYM/Contents/Resources/DWARF/swift-names");
    let bytes = std::fs::read(path).expect("testdata has it");
    let slice = slices(&bytes).expect("a Mach-O file").remove(0);
    let companions = Companions::default();
    let image = Image::load(&slice, "readable-names", &companions).expect("loads");
    let options = BuildOptions::new().readable_names(Some(symdex_demangle::demangle));
    options.build(&image).expect("builds").bytes
}

/// The index of an ELF library, with unwind rows.
fn unwind_rows() -> Vec<u8> {
    let bytes = std::fs::read(format!("{TESTDATA}/elf/gcc-parts.so")).expect("testdata has it");
    let slice = slices(&bytes).expect("an ELF file").remove(0);
    let companions = Companions::default();
    let image = Image::load(&slice, "unwind-rows", &companions).expect("loads");
    BuildOptions::new().unwind_rows(true).build(&image).expect("builds").bytes
}

/// The index of a made-up image whose names consist of any bytes.
fn made_up() -> Vec<u8> {
    let mut image = symdex_testkit::images::Image::random(11);
    image.tables.iter_mut().for_each(|table| table.ranges.truncate(25));
    image.names.iter_mut().for_each(|name| name.truncate(40));
    image.chunk_span = 1000;
    image.index()
}

/// The golden indexes of `kind` in the order of their numbers.
fn golden(kind: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(Path::new(TESTDATA).join("golden")) {
        let path = entry.expect("testdata/golden is readable").into_path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let number = stem.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-')?.parse::<u32>().ok());
        if let (Some(number), true) = (number, path.extension().is_some_and(|end| end == "symdex")) {
            found.push((number, path));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn blessing() -> bool {
    std::env::var_os("SYMDEX_BLESS").is_some_and(|value| value == "1")
}

#[test]
fn todays_bytes_are_the_newest_golden_ones() {
    if blessing() {
        std::fs::create_dir_all(Path::new(TESTDATA).join("golden")).expect("made");
    }
    for (kind, make) in KINDS {
        let (bytes, golden) = (make(), golden(kind));
        let newest = golden.last().map(|path| std::fs::read(path).expect("readable"));
        if newest.as_ref() == Some(&bytes) {
            continue;
        }
        let version = Index::open(&bytes[..]).expect("as written").format_version();
        let number = golden.len() + 1;
        let path = format!("{TESTDATA}/golden/v{version}/{kind}-{number}.symdex");
        assert!(
            blessing(),
            "the index of {kind} is no longer {golden:?}, byte for byte. If the encoder was meant to change, run \
             `SYMDEX_BLESS=1 cargo test -p symdex-build --test plain golden`, which adds {path}, and commit that file too. \
             Keep the old files: published indexes are like them"
        );
        let index = Index::open(&bytes[..]).expect("as written");
        std::fs::create_dir_all(Path::new(&path).parent().expect("a folder")).expect("made");
        std::fs::write(Path::new(&path).with_extension("txt"), text(&index)).expect("written");
        std::fs::write(&path, &bytes).expect("written");
    }
}

#[test]
fn every_golden_index_opens_and_says_what_it_always_said() {
    if blessing() {
        return;
    }
    let mut read = 0;
    for path in KINDS.iter().flat_map(|(kind, _)| golden(kind)) {
        let bytes = std::fs::read(&path).expect("readable");
        let index = Index::open(&bytes[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        index.verify().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let expected = std::fs::read_to_string(path.with_extension("txt")).expect("each has its text");
        assert_eq!(text(&index), expected, "{} must say for ever what its .txt has", path.display());
        read += 1;
    }
    assert!(read >= KINDS.len(), "only {read} golden indexes were found");
}

/// The contents of an index as text: metadata, ranges, and answers.
fn text(index: &Index<&[u8]>) -> String {
    let metadata = index.metadata();
    let mut out = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("a string takes all");
    line(format_args!("format {} image {} {:?}", index.format_version(), metadata.id, metadata.image_name));
    line(format_args!("arch {:?} base {:#x} size {:#x}", metadata.arch, metadata.base, metadata.image_size));
    line(format_args!("executable {:x?} __TEXT_EXEC {:x?}", metadata.executable, metadata.text_exec_base));
    if let Some(segments) = &metadata.segments {
        let numbers = segments
            .iter()
            .map(|[file_offset, address, size]| format!("{{{file_offset:x} {address:x} {size:x}}}"));
        line(format_args!("segments [{}]", numbers.collect::<Vec<_>>().join(" ")));
    }
    line(format_args!("chunk span {:#x}", metadata.chunk_span));
    line(format_args!("{:?}", metadata.counts));
    line(format_args!("partial {:?} builder {:?}", metadata.partial, metadata.builder));
    line(format_args!("input digest {:02x?}", metadata.input_digest));
    let digest = u128::from_le_bytes(index.digest());
    let symdex::SectionInfo { name, size, .. } = index.sections()[5];
    line(format_args!("digest {digest:032x} {name} {size} bytes"));
    for row in index.unwind_rows().expect("whole") {
        let row = row.expect("whole");
        let rules: Vec<_> = row.rules().collect();
        let range = row.range();
        line(format_args!(
            "unwind {}..{} {:?} {:?} {rules:?}",
            range.start,
            range.end,
            row.cfa(),
            row.return_register()
        ));
    }
    let mut scratch = Scratch::default();
    for &table in Table::ALL {
        for chunk in index.chunks(table) {
            let (number, contents) = chunk.expect("intact");
            line(format_args!("{} chunk {number}", table.name()));
            for range in contents.ranges {
                line(format_args!("  {:#x}..{:#x}", range.start, range.end));
                let mut frames = |policy| -> Vec<String> {
                    let found = index.lookup(ImageOffset(range.start), policy, &mut scratch).expect("intact");
                    found.expect("a range").iter().map(|frame| frame_text(&frame)).collect()
                };
                let (exact, statement) = (frames(LinePolicy::Exact), frames(LinePolicy::Statement));
                exact.iter().for_each(|frame| line(format_args!("    {frame}")));
                if table == Table::SymbolTable {
                    let names = index.function_names(ImageOffset(range.start), &mut scratch).expect("intact");
                    names
                        .skip(1)
                        .for_each(|name| line(format_args!("    alias \"{}\"", name.escape_ascii())));
                }
                if exact != statement {
                    line(format_args!("   statement"));
                    statement.iter().for_each(|frame| line(format_args!("    {frame}")));
                }
            }
        }
    }
    out
}

fn frame_text(frame: &Frame<'_>) -> String {
    let text = |string: Option<&[u8]>| string.map_or("-".to_owned(), |s| format!("\"{}\"", s.escape_ascii()));
    let line = frame.line.map_or("-".to_owned(), |line| line.to_string());
    let start = frame.function_start.map_or("-".to_owned(), |start| start.to_string());
    let inlined = if frame.inlined { " inlined" } else { "" };
    let readable = frame.readable.map_or(String::new(), |_| format!(" = {}", text(frame.readable)));
    format!(
        "{}{readable} {}:{line} function {start} {}{inlined}",
        text(frame.name),
        text(frame.file),
        frame.table.name()
    )
}
