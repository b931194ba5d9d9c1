//! Requests for data, byte for byte beside LLVM's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use symdex_testkit::program;

use super::compared::{Asked, Classes, Counts, images, output, testdata_images};
use super::llvm::{LLVM, ours};
use crate::common::{folder, testdata};

/// The most addresses that are asked of an image of `testdata`.
const ADDRESSES: usize = 300;

/// Variables of all kinds: of threads, local, without a size, at the address of another, and unnamed ones.
const C: &str = r#"
__thread int of_thread = 5, zero_of_thread[4];
static __thread long local_of_thread = 7;
int plain = 3, zeros[4];
static int local = 4;
static char local_zero;
const char text[] = "abc";
struct { int n; char last[]; } flexible = {3, "last"};
struct empty {} nothing;
extern int alias __attribute__((alias("plain")));
const char *use(int n) {
  static int inner = 9;
  static __thread int inner_of_thread = 3;
  of_thread += zero_of_thread[n] + local_of_thread++ + plain + zeros[n] + local++ + local_zero++ + text[n];
  inner += inner_of_thread++;
  return inner > n ? "a literal" : "literal";
}
"#;

const CPP: &str = r#"
namespace n {
thread_local int of_thread = 3;
int plain = 4;
struct Empty {} nothing;
inline int shared = 5;
template <class T> T value = 3;
}
struct Shape {
  static thread_local int of_thread;
  static long count;
  struct Corner { int x, y; };
  static const Corner corners[3];
};
thread_local int Shape::of_thread = 2;
long Shape::count = 5;
const Shape::Corner Shape::corners[3] = {{1, 2}, {3, 4}, {5, 6}};
int none[0], after = 7;
const char *use(int n) {
  static thread_local long inner_of_thread = 4;
  static int inner = n::of_thread;
  auto local = [] { static short of_lambda = 3; return of_lambda++; };
  after += inner_of_thread++ + n::shared + n::value<int> + n::value<long> + Shape::of_thread + local() + inner++;
  return Shape::corners[n].x > none[0] ? __func__ : "literal";
}
"#;

/// Symbols that compilers do not write: without a size before, after and beside others, of no type, at one address, of
/// a section that is not loaded, and of threads.
const ASSEMBLER: &str = r#"
  .data
  .globl first, second, third, fourth, last
  .type first, %object
first: .long 1
  .type second, %object
  .size second, 8
second: .quad 2
  .type third, %object
third:
  .type fourth, %object
  .size fourth, 4
fourth: .long 3
  .long 33
label: .long 4
  .type same1, %object
same1:
  .type same2, %object
same2: .quad 1
  .type local, %object
  .size local, 4
local: .quad 5
  .type large, %object
  .size large, 12
  .type small, %object
  .size small, 4
large:
small: .quad 5
  .long 5
  .type last, %object
last:
  .section .rodata
  .type constant, %object
constant: .quad 0
  .bss
  .type zero, %object
zero: .zero 8
  .type zeros, %object
  .size zeros, 4
zeros: .zero 16
  .section .tdata,"awT",%progbits
  .globl of_thread
  .type of_thread, %object
of_thread: .long 1
  .size of_thread, 4
local_of_thread: .long 3
  .section .tbss,"awT",%nobits
  .type zero_of_thread, %tls_object
zero_of_thread: .zero 8
  .section .note.other,"",%progbits
  .type not_loaded, %object
  .size not_loaded, 100
not_loaded: .quad 1
  .set absolute, 0x4000
  .type absolute, %object
  .size absolute, 8
  .section .note.GNU-stack,"",%progbits
"#;

/// Answers by address.
type Answers = BTreeMap<u64, String>;

/// The image with the addresses of its sections, those around them, and the lowest ones, which are the offsets of
/// variables of threads; at equal distances if they are more than `most`.
fn with_data(mut image: Asked, most: usize) -> Asked {
    let bytes = std::fs::read(&image.file).expect("readable");
    let sections = symdex_build::sections(&bytes, Some(&image.arch)).expect("a debug file");
    let around = |start: u64, size: u64| start.saturating_sub(2)..start + size + 18;
    let mut addresses: Vec<_> = (0..0x100).collect();
    addresses.extend(sections.iter().flat_map(|section| around(section.start, section.size)));
    addresses.sort_unstable();
    addresses.dedup();
    let step = addresses.len() / most + 1;
    image.addresses = addresses.into_iter().step_by(step).collect();
    image
}

/// The library that `compiler` makes with these options of the sources `files`.
fn library(folder: &Path, name: &str, compiler: &str, options: &str, files: &[&str]) -> PathBuf {
    let out = folder.join(name);
    let mut build = program(compiler, "--version");
    build.args("-g -shared -fPIC -w".split_whitespace()).args(options.split_whitespace()).arg("-o").arg(&out);
    let done = build.args(files).current_dir(folder).output().expect("it starts");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    out
}

/// What both programs print with this option for a request for data at each address of `image`.
fn outputs(image: &Asked, option: &str) -> [String; 2] {
    let input: String = image.addresses.iter().map(|address| format!("DATA {address:#x}\n")).collect();
    [program(LLVM, "--version"), ours()].map(|mut command| {
        command.args(["--default-arch", &image.arch, option, "--obj"]).arg(&image.file);
        output(command, &input)
    })
}

/// The answers of both programs at each address of `image`. Their names are not demangled.
fn answers(image: &Asked) -> [Answers; 2] {
    outputs(image, "--no-demangle").map(|output| {
        let answers: Vec<_> = output.split_terminator("\n\n").map(str::to_owned).collect();
        assert_eq!(answers.len(), image.addresses.len(), "{}", image.file.display());
        image.addresses.iter().copied().zip(answers).collect()
    })
}

/// Counts the differences for `image`. The answers of llvm-symbolizer for `twin`, which has the same code and other
/// debug information, explain some of them. Returns its answers for `image`.
fn count(image: &Asked, twin: Option<(&'static str, &Answers)>, counts: &mut Counts) -> Answers {
    let [theirs, ours] = answers(image);
    for (address, ours) in &ours {
        let class = || {
            let start = ours.lines().nth(1)?.split(' ').next()?.parse().ok()?;
            let has = |answers: &Answers, address| answers.get(address) == Some(ours);
            let place = ours.lines().last()?;
            match twin {
                _ if theirs[address].replace('\u{1}', "\\u{1}") == *ours => Some("control character"),
                _ if has(&theirs, &start) => Some("declared by another entry"),
                Some((class, twin)) if has(twin, address) || has(twin, &start) => Some(class),
                _ if is_declared_at("of_lambda", place) => Some("variable in a type"),
                _ => None,
            }
        };
        let is_same = theirs[address] == *ours;
        let classes = if is_same { Classes::new() } else { Classes::from([class()]) };
        let shown = || format!("{} {address:#x}\n{}\n\n{ours}", image.file.display(), theirs[address]);
        counts.add(classes, shown);
    }
    theirs
}

/// Whether the line of the source file has the name. Those of `testdata` were compiled in another folder.
fn is_declared_at(name: &str, place: &str) -> bool {
    let line = place.rsplit_once(':').and_then(|(file, line)| {
        let of_testdata =
            file.strip_prefix("/src/symdex").map(|file| format!("{}/src{file}", testdata().display()));
        let source = std::fs::read_to_string(of_testdata.as_deref().unwrap_or(file)).ok()?;
        Some(source.lines().nth(line.parse::<usize>().ok()?.checked_sub(1)?)?.contains(name))
    });
    line == Some(true)
}

fn build(folder: &Path, compiler: &str, options: &str, file: &str) -> Asked {
    let name = format!("{file}-{compiler}{options}").replace(' ', "");
    let library = library(folder, &name, compiler, options, &[file]);
    with_data(images(&library).remove(0), usize::MAX)
}

pub(crate) fn data_has_the_answers_of_llvm_symbolizer() {
    let folder = folder();
    let folder = folder.path();
    for (file, text) in [("data.c", C), ("data.cpp", CPP), ("symbols.S", ASSEMBLER)] {
        std::fs::write(folder.join(file), text).expect("written");
    }
    let mut columns = ["testdata", "C", "C++", "assembler"].map(|name| (name, Counts::default()));
    for image in testdata_images(&["dsyms", "elf", "demo"]) {
        count(&with_data(image, ADDRESSES), None, &mut columns[0].1);
    }
    for (file, column) in [("data.c", 1), ("data.cpp", 2)] {
        let [gcc, clang] = ["gcc", "clang-19"].map(|compiler| {
            let image = build(folder, compiler, "-gdwarf-4", file);
            count(&image, None, &mut columns[column].1)
        });
        let image = build(folder, "gcc", "-gdwarf-5", file);
        count(&image, Some(("file in the abbreviation", &gcc)), &mut columns[column].1);
        let image = build(folder, "clang-19", "-gdwarf-4 -gsplit-dwarf", file);
        count(&image, Some(("split unit", &clang)), &mut columns[column].1);
        let image = build(folder, "clang-19", "-O1 -gdwarf-5", file);
        count(&image, None, &mut columns[column].1);
    }
    // A linker that has other symbols and addresses; symbols that mark data.
    let lld = "--target=aarch64-linux-gnu -fuse-ld=lld-19 -nostdlib -Wl,--image-base=0x10000";
    for (compiler, options) in [("gcc", ""), ("clang-19", ""), ("clang-19", lld), ("clang-19", "-Wl,-s")] {
        count(&build(folder, compiler, options, "symbols.S"), None, &mut columns[3].1);
    }
    let image = build(folder, "clang-19", "-O1", "data.c");
    for style in ["--output-style=JSON", "--output-style=GNU", "-p", "-a", "-s", "--verbose"] {
        let [theirs, ours] = outputs(&image, style);
        assert_eq!(theirs, ours, "{style}");
    }
    println!("{}", Counts::table(&columns));
    columns.iter().for_each(|(_, counts)| counts.assert_explained());
    for (class, column) in
        [("declared by another entry", 2), ("file in the abbreviation", 1), ("split unit", 1)]
    {
        assert!(columns[column].1.classes.contains_key(class), "{class}");
    }
}
