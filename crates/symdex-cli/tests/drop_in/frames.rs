//! Requests for local variables, byte for byte beside LLVM's.

use std::path::{Path, PathBuf};

use symdex_testkit::program;

use super::common::{folder, testdata};
use super::compared::{Asked, Classes, Counts, images, output, testdata_images};
use super::llvm::{LLVM, ours};

/// Local variables of many kinds of types, in inlined functions, and in methods of local types.
const CPP: &str = r#"
extern "C" void use(void *p);
struct Point { int x, y; int sum(int k) const { int r = x + y + k; use(&r); return r; } };
template <class T> static inline T twice(T v) { T w[2] = {v, v}; use(w); return w[0] + w[1]; }
namespace shapes {
int area(int a, const Point &p, int (Point::*method)(int) const, int Point::*member, double (&&rows)[3][200]) {
  int grid[3][4];
  use(grid);
  { Point q = {a, 1}; use(&q); a += q.sum(a); }
  { struct Local { int z; int get(int u) { return z + u; } } l = {twice(a)}; use(&l); a += l.get(2); }
  static int counter;
  typedef int (*Function)(int, char);
  Function f = nullptr;
  auto add = [&](int t) { use(&t); return t + counter++; };
  use(&f), use(&rows);
  return a + grid[1][2] + (p.*method)(p.*member) + add(3);
}
}
"#;

/// Arrays whose counts do not fit a signed number of the form that GCC writes them in.
const C: &str = r#"
extern void use(void *);
static int sizes(int n) { int v[n]; use(v); int w[256]; use(w); char c[3][150]; use(c); return v[0] + w[3] + c[1][2]; }
int twice(int n) { struct { int a[256]; } x; use(&x); int *p[9]; use(p); return sizes(n) + sizes(n + 1); }
"#;

/// Calls the function of [`C`], which is in another unit.
const CALLER: &str = r#"
int twice(int);
int calls(int n) { int in[2] = {n, n}; return twice(in[0]) + twice(in[1]); }
void use(void *p) { static int sum; sum += *(int *)p; }
"#;

/// The library that `compiler` makes with these options of the sources `files`.
pub(crate) fn library(folder: &Path, name: &str, compiler: &str, options: &str, files: &[&str]) -> PathBuf {
    let out = folder.join(name);
    let mut build = program(compiler, "--version");
    build.args("-g -shared -fPIC -w".split_whitespace()).args(options.split_whitespace()).arg("-o").arg(&out);
    let done = build.args(files).current_dir(folder).output().expect("it starts");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    out
}

/// What both programs print with this option for a request at each address of `image`.
pub(crate) fn outputs(image: &Asked, request: &str, option: &str) -> [String; 2] {
    let input: String = image.addresses.iter().map(|address| format!("{request} {address:#x}\n")).collect();
    [program(LLVM, "--version"), ours()].map(|mut command| {
        command.args(["--default-arch", &image.arch, option, "--obj"]).arg(&image.file);
        output(command, &input)
    })
}

/// The answers of both programs at each address of `image`.
fn answers(image: &Asked) -> [Vec<String>; 2] {
    let answers = outputs(image, "FRAME", "--output-style=LLVM")
        .map(|output| output.split_terminator("\n\n").map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(answers.each_ref().map(Vec::len), [image.addresses.len(); 2], "{}", image.file.display());
    answers
}

/// Why two answers differ. A variable has four lines: its function, its name, its declaration, and numbers.
fn classes(theirs: &str, ours: &str) -> Classes {
    let [theirs, ours] = [theirs, ours].map(|answer| answer.lines().collect::<Vec<_>>());
    if theirs.len() != ours.len() {
        return Classes::from([None]);
    }
    let differ = (0..ours.len()).filter(|line| theirs[*line] != ours[*line]);
    let of_line = |line: usize| match line % 4 {
        2 if ours[line].starts_with("<compiler-generated>:") => {
            theirs[line].ends_with(&format!("/{}", ours[line])).then_some("compiler-generated file")
        }
        2 if is_declared_at(ours[line - 1], ours[line]) => Some("file of another unit"),
        3 => class_of_numbers(theirs[line], ours[line]),
        _ => None,
    };
    differ.map(of_line).collect()
}

/// Whether the line of the source file has the name. Those of `testdata` were compiled in another folder.
pub(crate) fn is_declared_at(name: &str, place: &str) -> bool {
    let line = place.rsplit_once(':').and_then(|(file, line)| {
        let of_testdata =
            file.strip_prefix("/src/symdex").map(|file| format!("{}/src{file}", testdata().display()));
        let source = std::fs::read_to_string(of_testdata.as_deref().unwrap_or(file)).ok()?;
        Some(source.lines().nth(line.parse::<usize>().ok()?.checked_sub(1)?)?.contains(name))
    });
    line == Some(true)
}

/// The class of a frame offset, a size, and a tag offset.
fn class_of_numbers(theirs: &str, ours: &str) -> Option<&'static str> {
    let [theirs, ours] = [theirs, ours].map(|line| line.split(' ').collect::<Vec<_>>());
    let is_negative = |size: &str| size.parse().is_ok_and(|size: u64| size == 0 || size > u64::MAX / 2);
    let is_size = theirs.len() == 3 && (theirs[0], theirs[2]) == (ours[0], ours[2]);
    (is_size && is_negative(theirs[1])).then_some("size of an array")
}

fn counts(images: &[Asked]) -> Counts {
    let mut counts = Counts::default();
    for image in images {
        let [theirs, ours] = answers(image);
        for (number, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
            let shown = || format!("{} {:#x}", image.file.display(), image.addresses[number]);
            counts.add(classes(theirs, ours), || format!("{}\n{theirs}\n\n{ours}", shown()));
        }
    }
    counts.assert_explained();
    counts
}

pub(crate) fn frame_has_the_local_variables_of_llvm_symbolizer() {
    let folder = folder();
    for (file, text) in [("frames.cpp", CPP), ("frames.c", C), ("caller.c", CALLER)] {
        std::fs::write(folder.path().join(file), text).expect("written");
    }
    let build = |name: &str, compiler: &str, options: &str, files: &[&str]| {
        images(&library(folder.path(), name, compiler, options, files))
    };
    let given = testdata_images(&["dsyms", "elf", "demo"]);
    let mut compiled = Vec::new();
    for (number, level) in ["-O0", "-O1", "-O2 -gdwarf-4"].into_iter().enumerate() {
        for compiler in ["clang-19", "gcc"] {
            let name = |of: &str| format!("{of}-{compiler}-{number}");
            compiled.extend(build(&name("cpp"), compiler, level, &["frames.cpp"]));
            compiled.extend(build(&name("c"), compiler, level, &["frames.c", "caller.c"]));
        }
    }
    let sanitizers = [("hwaddress", "aarch64-linux-gnu"), ("memtag-stack", "aarch64-linux-android31")];
    let tagged = sanitizers.map(|(sanitizer, target)| {
        let of_target = format!("--target={target} -march=armv8.5-a+memtag -fuse-ld=lld-19 -nostdlib");
        build(sanitizer, "clang-19", &format!("{of_target} -O1 -fsanitize={sanitizer}"), &["frames.cpp"])
    });
    for images in &tagged {
        let [_, plain] = answers(&images[0]);
        let has_tag = |line: &str| line.rsplit(' ').next().is_some_and(|tag| tag.parse::<u64>().is_ok());
        let tags =
            plain.iter().flat_map(|answer| answer.lines().skip(3).step_by(4)).filter(|line| has_tag(line));
        assert!(tags.count() > 100, "variables have tag offsets");
    }
    for style in ["--output-style=JSON", "--output-style=GNU", "-p", "-a", "-s", "--verbose"] {
        let [theirs, ours] = outputs(&tagged[0][0], "FRAME", style);
        assert_eq!(theirs, ours, "{style}");
    }
    let lto = build("lto", "gcc", "-O2 -flto", &["frames.c", "caller.c"]);
    let columns = [
        ("testdata", given),
        ("compiled", compiled),
        ("tagged", tagged.into_iter().flatten().collect()),
        ("LTO", lto),
    ];
    let columns = columns.map(|(name, images)| (name, counts(&images)));
    println!("{}", Counts::table(&columns));
    for (class, column) in [("size of an array", 1), ("file of another unit", 3)] {
        assert!(columns[column].1.classes.contains_key(class), "{class}");
    }

    // llvm-symbolizer has no variables of split units. Those of the same code in one file are the same.
    let [whole, split] = ["", "-gsplit-dwarf"].map(|option| {
        build(&format!("one{option}"), "clang-19", &format!("-O1 {option}"), &["frames.cpp"]).remove(0)
    });
    assert_eq!(whole.addresses, split.addresses);
    let ([theirs, _], [none, ours]) = (answers(&whole), answers(&split));
    assert_eq!(theirs, ours);
    assert!(none.iter().all(|answer| answer == "??") && ours.iter().any(|answer| answer != "??"));
}
