//! Unwind rows of real files, compared with a second reading of their tables.

pub(crate) mod oracle;

use std::path::{Path, PathBuf};

use symdex::{ImageOffset, Index, UnwindRule, UnwindValue};
use symdex_build::{BuildOptions, Companions, Image, slices};
use symdex_testkit::images::debug_file::{Elf, ElfSection};
use symdex_testkit::program;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

/// Functions that save registers, move the stack pointer and call others; one needs an aligned frame.
const SOURCE: &str = "\
int other(int, char *);
int leaf(int n) { return n * n; }
double saves(int a, int b, int c, double d) {
    double all = d;
    for (int n = other(a, 0); n < other(b, 0); n++) all = all * other(c, (char *)&all) + d;
    return all;
}
int large(int n) { char room[70000]; other(n, room); return room[n] + other(room[1], room); }
int dynamic(int n) { char room[n]; return other(n, room) + room[n / 2]; }
int aligned(int n) { _Alignas(64) char room[256]; return other(n, room) + room[n]; }
";

/// The index of the file at `path` with unwind rows, checked.
fn index(path: &Path) -> (Index<Vec<u8>>, u64) {
    let bytes = std::fs::read(path).expect("readable");
    let slice = slices(&bytes).expect("a debug file").remove(0);
    let companions = Companions::default();
    let image = Image::load(&slice, path, &companions).expect("loads");
    let built = BuildOptions::new().unwind_rows(true).build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("as written");
    index.verify().expect("whole");
    let counts = index.unwind_counts().expect("whole");
    // `.ARM.exidx` has no second reader.
    let is_exception_index = image.info().arch.is_arm32()
        && index.unwind_rows().expect("whole").any(|row| row.expect("whole").holds_at_calls_only());
    if !is_exception_index {
        let compared = oracle::compare(&image, &index);
        assert_eq!(compared.first_wrong, None, "{}: {}", path.display(), compared.wrong_len);
        assert!(compared.addresses >= counts.rows, "{}: {}", path.display(), compared.addresses);
    }
    (index, counts.rows)
}

pub(crate) fn rows_of_elf_files_are_those_of_gimli() {
    for name in ["elf/gcc-names.so", "elf/gcc-parts.so"] {
        let (_, rows) = index(&Path::new(TESTDATA).join(name));
        assert!(rows > 10, "{name}: {rows}");
    }
}

/// The C library has signal trampolines, expressions and functions without a caller.
pub(crate) fn rows_of_the_c_library_are_those_of_gimli() {
    // Other systems do not have this file.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let Some(path) = paths.into_iter().find(|path| path.contains("libc.so") || path.contains("ld-musl"))
    else {
        return;
    };
    let (index, rows) = index(Path::new(path));
    assert!(rows > 1000, "{rows}");
    let rows: Vec<_> = index.unwind_rows().expect("whole").map(|row| row.expect("whole")).collect();
    assert!(rows.iter().any(|row| row.is_signal_frame()));
    let at_register =
        |rule: &UnwindRule<'_>| matches!(rule, UnwindRule::Stored(UnwindValue::Register { .. }));
    assert!(rows.iter().any(|row| row.rules().any(|(_, rule)| at_register(&rule))));
}

/// The encodings are those that llvm-objdump --unwind-info prints: 0x04000003, 0x04000000 and 0x04000001.
pub(crate) fn rows_of_compact_unwind_information_are_those_of_its_encodings() {
    let (index, rows) = index(&Path::new(TESTDATA).join("demo/DemoPlain.dylib"));
    assert_eq!(rows, 3);
    for (offset, end, saved) in [(0x4000, 0x40bc, 22), (0x40bc, 0x4158, 0), (0x4158, 0x41a4, 20)] {
        let row = index.unwind_row(ImageOffset(offset)).expect("whole").expect("a row");
        assert_eq!(row.range(), ImageOffset(offset)..ImageOffset(end));
        assert_eq!(row.cfa(), UnwindValue::Register { register: 29, offset: 16 });
        let at = |offset| UnwindRule::Stored(UnwindValue::Cfa(offset));
        let mut expected: Vec<_> = (19..=22).zip([-24, -32, -40, -48]).collect();
        expected.retain(|(register, _)| *register <= saved);
        expected.extend([(29, -16), (30, -8)]);
        let expected: Vec<_> =
            expected.into_iter().map(|(register, offset)| (register, at(offset))).collect();
        assert_eq!(row.rules().collect::<Vec<_>>(), expected);
        assert!(row.holds_at_calls_only());
    }
    assert_eq!(index.unwind_row(ImageOffset(0x41a4)).expect("whole"), None);
}

pub(crate) fn rows_of_compilers_are_those_of_gimli() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.c");
    std::fs::write(&source, SOURCE).expect("written");
    let _ = program("ld.lld-19", "--version");
    for (target, flags) in [
        ("x86_64-linux-gnu", &["-fomit-frame-pointer"][..]),
        ("x86_64-linux-gnu", &["-gz=zlib", "-g"]),
        // A compressed .debug_frame only.
        ("x86_64-linux-gnu", &["-gz=zlib", "-g", "-fno-asynchronous-unwind-tables"]),
        ("i686-linux-gnu", &[]),
        ("aarch64-linux-gnu", &["-mbranch-protection=standard"]),
        // The exception index only, and then with .debug_frame.
        ("armv7a-linux-gnueabihf", &["-mthumb", "-funwind-tables"]),
        ("armv7a-linux-gnueabihf", &["-marm", "-funwind-tables", "-g"]),
    ] {
        let path = folder.path().join("library.so");
        let mut clang = program("clang-19", "--version");
        clang.args(["-target", target, "-shared", "-fPIC", "-nostdlib", "-O2", "--ld-path=ld.lld-19"]);
        clang.args(["-fno-stack-protector", "-Wl,-z,undefs"]).args(flags);
        let done = clang.arg("-o").arg(&path).arg(&source).output().expect("runs");
        assert!(done.status.success(), "{target}: {}", String::from_utf8_lossy(&done.stderr));
        let (index, rows) = index(&path);
        println!("{target} {flags:?}: {rows} rows");
        assert!(rows >= 5, "{target} {flags:?}: {rows}");
        let rows: Vec<_> = index.unwind_rows().expect("whole").map(|row| row.expect("whole")).collect();
        let is_exception_index = rows.iter().any(|row| row.holds_at_calls_only());
        assert_eq!(
            is_exception_index,
            target.starts_with("arm") && !flags.contains(&"-g"),
            "{target} {flags:?}"
        );
        let is_signed = rows.iter().any(|row| row.is_return_address_signed());
        assert_eq!(is_signed, target.starts_with("aarch64"), "{target} {flags:?}");
    }
}

/// Compilers write `.debug_frame` besides the exception index. Without it, the exception index has the rows.
pub(crate) fn rows_of_the_exception_index_are_those_of_debug_frame_at_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, path, stripped] =
        ["source.c", "library.so", "stripped.so"].map(|name| folder.path().join(name));
    std::fs::write(&source, SOURCE).expect("written");
    let _ = program("ld.lld-19", "--version");
    for instructions in ["-mthumb", "-marm"] {
        let mut clang = program("clang-19", "--version");
        clang.args(["-target", "armv7a-linux-gnueabihf", "-shared", "-fPIC", "-nostdlib", "-O2", "-g"]);
        clang.args(["-fno-stack-protector", "-funwind-tables", "-Wl,-z,undefs", "--ld-path=ld.lld-19"]);
        let done = clang.arg(instructions).arg("-o").arg(&path).arg(&source).output().expect("runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let mut strip = program("llvm-objcopy-19", "--version");
        let done =
            strip.arg("--remove-section=.debug_frame").args([&path, &stripped]).output().expect("runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (index, _) = index(&stripped);
        let bytes = std::fs::read(&path).expect("readable");
        let companions = Companions::default();
        let image = Image::load(&slices(&bytes).expect("an ELF file")[0], &path, &companions).expect("loads");
        let compared = oracle::compare_bodies(&image, &index);
        assert!(compared >= 5, "{instructions}: {compared}");
    }
}

/// Functions that keep registers in every way that compact unwind information states.
const MACH_O_SOURCE: &str = "\
int other(int, char *);
#if __aarch64__
#define SAVE \\
    __asm__ volatile(\"\" ::: \"x19\", \"x20\", \"x21\", \"x22\", \"x27\", \"x28\", \"d8\", \"d9\", \"d14\", \"d15\");
#define FEW __asm__ volatile(\"\" ::: \"x25\", \"x26\", \"d10\", \"d11\");
#else
#define SAVE __asm__ volatile(\"\" ::: \"rbx\", \"r12\", \"r13\", \"r14\", \"r15\");
#define FEW __asm__ volatile(\"\" ::: \"r15\", \"r12\");
#endif
int all(int n) { SAVE return n; }
int few(int n) { FEW return n; }
int all_and_calls(int n) { int first = other(n, 0); SAVE return first + other(first, 0); }
int few_and_calls(int n) { int first = other(n, 0); FEW return first + other(first, 0); }
int all_and_large(int n) { volatile char room[5000]; room[n] = 3; SAVE return room[n + 1]; }
";

pub(crate) fn rows_of_mach_o_files_are_those_of_macho_unwind_info() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.c");
    std::fs::write(&source, format!("{MACH_O_SOURCE}{}", SOURCE.replacen("int other(int, char *);", "", 1)))
        .expect("written");
    for (arch, flags) in [
        ("arm64", &[][..]),
        ("arm64", &["-fomit-frame-pointer"]),
        ("x86_64", &["-fno-omit-frame-pointer"]),
        ("x86_64", &["-fomit-frame-pointer"]),
    ] {
        let (object, library) = (folder.path().join("source.o"), folder.path().join("library.dylib"));
        let mut clang = program("clang-19", "--version");
        clang.arg(format!("--target={arch}-apple-macos11")).args(["-c", "-O2", "-fno-stack-protector"]);
        let done = clang.args(flags).arg("-o").arg(&object).arg(&source).output().expect("runs");
        assert!(done.status.success(), "{arch}: {}", String::from_utf8_lossy(&done.stderr));
        let mut linker = program("ld64.lld-19", "--version");
        linker.args(["-dylib", "-arch", arch, "-platform_version", "macos", "11.0", "11.0"]);
        linker.args(["-undefined", "dynamic_lookup", "-o"]).arg(&library).arg(&object);
        let done = linker.output().expect("runs");
        assert!(done.status.success(), "{arch}: {}", String::from_utf8_lossy(&done.stderr));
        let (index, rows) = index(&library);
        println!("{arch} {flags:?}: {rows} rows");
        let rows: Vec<_> = index.unwind_rows().expect("whole").map(|row| row.expect("whole")).collect();
        let compact = rows.iter().filter(|row| row.holds_at_calls_only()).count();
        assert!(compact >= 6, "{arch} {flags:?}: {compact}");
    }
}

pub(crate) fn rows_of_another_file_are_found_to_be_wrong() {
    let (other, _) = index(&Path::new(TESTDATA).join("elf/gcc-names.so"));
    let path = Path::new(TESTDATA).join("elf/gcc-parts.so");
    let bytes = std::fs::read(&path).expect("readable");
    let companions = Companions::default();
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], &path, &companions).expect("loads");
    assert!(oracle::compare(&image, &other).wrong_len > 10);
}

pub(crate) fn rows_of_damaged_tables_are_lost_one_by_one() {
    let path = Path::new(TESTDATA).join("elf/gcc-parts.so");
    let intact = std::fs::read(&path).expect("readable");
    let build = |bytes: &[u8]| {
        let companions = Companions::default();
        let slice = slices(bytes).ok()?.into_iter().next()?;
        let image = Image::load(&slice, &path, &companions).ok()?;
        let built = BuildOptions::new().unwind_rows(true).build(&image).ok()?;
        let index = Index::open(built.bytes).expect("as written");
        index.verify().expect("whole");
        Some(index.unwind_counts().expect("whole").rows)
    };
    let all = build(&intact).expect("builds");
    // Each byte of .eh_frame.
    let section = section(&intact, ".eh_frame");
    let mut fewer = 0;
    for at in section.step_by(3) {
        let mut damaged = intact.clone();
        damaged[at] ^= 0xff;
        fewer += usize::from(build(&damaged).is_some_and(|rows| rows < all));
    }
    assert!(fewer > 10, "{fewer}");
}

/// Changes each byte of `__unwind_info` in several ways. The rows that are left are those of macho-unwind-info.
pub(crate) fn rows_of_damaged_compact_unwind_information_are_lost_or_those_of_its_encodings() {
    let path = Path::new(TESTDATA).join("demo/DemoPlain.dylib");
    let intact = std::fs::read(&path).expect("readable");
    let companions = Companions::default();
    let (mut none, mut other) = (0, 0);
    // Behind these bytes, the section has padding.
    for at in section(&intact, "__unwind_info").take(104) {
        for change in [0x01, 0x02, 0x40, 0xff] {
            let mut damaged = intact.clone();
            damaged[at] ^= change;
            let slice = slices(&damaged).expect("a Mach-O file").remove(0);
            let image = Image::load(&slice, &path, &companions).expect("loads");
            let built = BuildOptions::new().unwind_rows(true).build(&image).expect("builds");
            let index = Index::open(built.bytes).expect("as written");
            let first_wrong = oracle::compare(&image, &index).first_wrong;
            assert_eq!(first_wrong, None, "byte {at:#x}, changed by {change:#x}");
            let rows = index.unwind_counts().expect("whole").rows;
            none += usize::from(rows == 0);
            other += usize::from(rows != 0 && rows != 3);
        }
    }
    assert!(none > 10 && other > 10, "{none} {other}");
}

/// Where a section lies in a file.
fn section(file: &[u8], name: &str) -> std::ops::Range<usize> {
    use object::{Object as _, ObjectSection as _};
    let parsed = object::File::parse(file).expect("a debug file");
    let section = parsed.section_by_name(name).expect("it has one");
    let (start, size) = section.file_range().expect("with bytes");
    usize::try_from(start).expect("small")..usize::try_from(start + size).expect("small")
}

/// Each entry of `.ARM.exidx` has 8 bytes, and its instructions can have 1,022.
pub(crate) fn entries_that_share_many_instructions_are_left_out_and_counted() {
    const ENTRIES: u32 = 600;
    const INDEX: u32 = 0x1_0000;
    const TABLE: u32 = 0x2_0000;
    let distance = |from: u32, to: u32| (to.wrapping_sub(from) & 0x7fff_ffff).to_le_bytes();
    let entry = |number: u32| {
        let at = INDEX + 8 * number;
        [distance(at, 0x1000 + 4 * number), distance(at + 4, TABLE)].concat()
    };
    // The long form: 255 words of instructions follow. Each instruction adds 8 to the stack pointer.
    let mut table = 0x81ff_0101u32.to_le_bytes().to_vec();
    table.resize(4 + 4 * 255, 1);
    let section = |name: &str, kind: u32, address: u32, bytes: Vec<u8>| ElfSection {
        name: name.to_owned(),
        kind,
        flags: 2,
        address: address.into(),
        bytes,
        ..ElfSection::default()
    };
    let index = section(".ARM.exidx", 0x7000_0001, INDEX, (0..ENTRIES).flat_map(entry).collect());
    let sections = vec![index, section(".ARM.extab", 1, TABLE, table)];
    let machine = object::elf::EM_ARM;
    let bytes = Elf { machine, is_64_bit: false, sections, ..Elf::default() }.bytes();
    let companions = Companions::default();
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], "x", &companions).expect("loads");
    let built = BuildOptions::new().unwind_rows(true).build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("as written");
    // 64 KiB, and 8 bytes for each byte of the section.
    let within = ((1 << 16) + 8 * 8 * u64::from(ENTRIES)) / 1022;
    let lost = &index.metadata().partial;
    let lost = lost.iter().find(|partial| partial.reason.starts_with("unwind entries left out"));
    assert_eq!(lost.map(|lost| lost.count), Some(u64::from(ENTRIES) - within));
    let row = |offset| index.unwind_row(ImageOffset(offset)).expect("whole").map(|row| row.cfa());
    let cfa = UnwindValue::Register { register: 13, offset: 8 * 1022 };
    assert_eq!(row(0x1000), Some(cfa));
    assert_eq!(row(0x1000 + 4 * (within - 1)), Some(cfa));
    assert_eq!(row(0x1000 + 4 * within), None);
}

/// Splits an index of unwind rows into values, which have the rows of their parts.
pub(crate) fn values_have_the_rows_of_their_parts() {
    let (index, _) = index(&Path::new(TESTDATA).join("elf/gcc-parts.so"));
    let values: Vec<_> = symdex::write::split(&index).map(|value| value.expect("whole")).collect();
    let values: Vec<_> =
        values.iter().map(|value| (value.number, Index::open(&value.bytes[..]).expect("whole"))).collect();
    let mut compared = 0;
    for row in index.unwind_rows().expect("whole") {
        let row = row.expect("whole");
        let offset = row.range().start;
        let number = index.metadata().value_number(offset);
        let Some((_, value)) = values.iter().find(|(other, _)| *other == number) else { continue };
        let found = value.unwind_row(offset).expect("whole").expect("a row");
        assert_eq!((found.cfa(), found.range()), (row.cfa(), row.range()));
        assert!(found.rules().eq(row.rules()));
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

/// `SYMDEX_UNWIND_INPUT=FILE cargo test -p symdex-build --test needs unwind_rows -- --ignored --nocapture`
pub(crate) fn rows_of_a_given_file_are_those_of_its_tables() {
    let input = std::env::var_os("SYMDEX_UNWIND_INPUT").map(PathBuf::from).expect("SYMDEX_UNWIND_INPUT");
    let (index, rows) = index(&input);
    let size = index.sections().iter().find(|section| section.name == "unwind rows").map_or(0, |s| s.size);
    println!("{}: {rows} rows, {size} of {} bytes", input.display(), index.as_bytes().len());
}
