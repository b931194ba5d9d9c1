//! C and C++ programs that use the library have the answers of the reader in Rust, also under valgrind and with
//! AddressSanitizer.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_testkit::program;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// How a program is linked.
const STATIC: &str = "libsymdex_capi.a";
const SHARED: &str = "libsymdex_capi.so";

/// The folder of the libraries, which are built with the features of this test.
fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--lib", "--manifest-path"]).arg(format!("{CRATE}/Cargo.toml"));
        if cfg!(feature = "demangle") {
            cargo.args(["--features", "demangle"]);
        }
        assert!(cargo.status().expect("cargo runs").success(), "the library builds");
        // target/debug/deps/c-0123
        let program = std::env::current_exe().expect("a path");
        program.ancestors().nth(2).expect("a folder of deps").to_owned()
    })
}

/// Compiles a program of one source, and links it with a library.
fn compile(compiler: &str, source: &str, library: &str, options: &[&str], folder: &Path) -> PathBuf {
    let stem = Path::new(source).file_stem().expect("a name").to_owned();
    let out = folder.join(stem).with_extension(library);
    let mut command = program(compiler, "--version");
    command.args(["-Wall", "-Wextra", "-Werror", "-g", "-I"]).arg(format!("{CRATE}/include"));
    command.args(options).arg(format!("{CRATE}/{source}")).arg(libraries().join(library));
    command.arg(format!("-Wl,-rpath,{}", libraries().display()));
    command.args(["-lpthread", "-ldl", "-lm"]);
    if cfg!(feature = "demangle") {
        command.arg("-lstdc++");
    }
    let done = command.arg("-o").arg(&out).output().expect("it runs");
    assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    out
}

fn golden() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(format!("{CRATE}/../../testdata/golden/v1")).expect("it is there");
    let paths = folder.map(|entry| entry.expect("readable").path());
    let paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "symdex")).collect();
    assert!(paths.len() > 5);
    paths
}

/// The offsets of all code of an index, and what `lookup` has to print for them.
fn expected(path: &Path, policy: LinePolicy) -> (String, Vec<u8>) {
    let index = Index::open(std::fs::read(path).expect("readable")).expect("a golden index");
    let (mut offsets, mut out, mut scratch) = (String::new(), Vec::new(), Scratch::default());
    let code = index.metadata().executable.iter().flat_map(|(start, end)| *start..*end);
    for offset in code {
        writeln!(offsets, "{offset}").expect("a string takes all");
        match index.lookup(ImageOffset(offset), policy, &mut scratch).expect("intact") {
            None => out.extend(format!("{offset}\n").bytes()),
            Some(frames) => frames.iter().for_each(|frame| line(offset, &frame, &mut out)),
        }
    }
    (offsets, out)
}

fn line(offset: u64, frame: &symdex::Frame<'_>, out: &mut Vec<u8>) {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    #[cfg(not(feature = "demangle"))]
    let readable = frame.display_name();
    #[cfg(feature = "demangle")]
    let demangled = frame.name.map(symdex_demangle::demangle);
    #[cfg(feature = "demangle")]
    let readable = frame.readable.or(demangled.as_ref().map(|name| name.as_bytes()));
    out.extend(offset.to_string().bytes());
    for text in [frame.name, readable, frame.file] {
        out.push(b'\t');
        out.extend(text.unwrap_or(b"-"));
    }
    let inlined = if frame.inlined { "inlined" } else { "" };
    let (line, start) =
        (number(frame.line.map(u64::from)), number(frame.function_start.map(|start| start.0)));
    out.extend(format!("\t{line}\t{inlined}\t{start}\n").bytes());
}

fn run(command: &mut Command, offsets: &str) -> Output {
    let folder = tempfile::tempdir().expect("made");
    let input = folder.path().join("offsets");
    std::fs::write(&input, offsets).expect("written");
    let input = File::open(input).expect("just written");
    let output = command.stdin(Stdio::from(input)).output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Runs the example `lookup` on golden indexes.
fn lookups(run_with: impl Fn(&Path) -> Command, example: &Path, indexes: &[PathBuf]) {
    for path in indexes {
        for (policy, options) in [(LinePolicy::Statement, &[][..]), (LinePolicy::Exact, &["--exact"])] {
            let (offsets, expected) = expected(path, policy);
            let output = run(run_with(example).args(options).arg(path), &offsets);
            assert!(output.stdout == expected, "{}, {policy:?}", path.display());
        }
    }
}

fn plain(example: &Path) -> Command {
    Command::new(example)
}

/// Fails for any error and any leak.
fn valgrind(example: &Path) -> Command {
    let mut valgrind = program("valgrind", "--version");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all"]);
    valgrind.arg(example);
    valgrind
}

const C: [&str; 2] = ["-std=c99", "-pedantic"];
/// Any error ends the program, and so does any leak.
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

fn a_program_in_c_has_the_answers_of_the_reader_in_rust() {
    let folder = tempfile::tempdir().expect("made");
    for library in [STATIC, SHARED] {
        let example = compile("cc", "examples/lookup.c", library, &C, folder.path());
        lookups(plain, &example, &golden());
    }
}

fn a_program_in_cpp_has_the_same_answers_on_all_threads() {
    let folder = tempfile::tempdir().expect("made");
    let options = ["-std=c++14", "-pthread"];
    let example = compile("c++", "examples/threads.cpp", STATIC, &options, folder.path());
    let sanitized = folder.path().join("sanitized");
    std::fs::create_dir(&sanitized).expect("made");
    let options = [&options[..], &SANITIZERS].concat();
    let sanitized = compile("c++", "examples/threads.cpp", STATIC, &options, &sanitized);
    let golden = golden();
    let path = golden.iter().find(|path| path.ends_with("inline-dwarf4-1.symdex")).expect("a golden index");
    for mut command in [plain(&example), valgrind(&example), plain(&sanitized)] {
        let output = run(command.arg(path).args(["0x3cf", "0x3d3", "0xffffff"]), "");
        let expected = "975: cell row mip pyramid\n";
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(found.starts_with(expected) && found.ends_with("\n16777215:\n"), "{found}");
    }
}

fn wrong_arguments_have_a_status_and_a_message() {
    let folder = tempfile::tempdir().expect("made");
    let example = compile("cc", "tests/arguments.c", STATIC, &C, folder.path());
    let golden = golden();
    let path = golden.iter().find(|path| path.ends_with("inline-dwarf4-1.symdex")).expect("a golden index");
    let id = Index::open(std::fs::read(path).expect("readable")).expect("an index").id().to_string();
    let fanned = folder.path().join(&id[..2]);
    std::fs::create_dir(&fanned).expect("made");
    std::fs::copy(path, fanned.join(format!("{id}.symdex"))).expect("copied");
    for mut command in [plain(&example), valgrind(&example)] {
        run(command.arg(folder.path()).arg(&id), "");
    }
}

fn valgrind_finds_nothing() {
    let folder = tempfile::tempdir().expect("made");
    let example = compile("cc", "examples/lookup.c", STATIC, &C, folder.path());
    // It takes long.
    let mut golden = golden();
    golden
        .retain(|path| path.ends_with("inline-dwarf4-1.symdex") || path.ends_with("readable-names-1.symdex"));
    assert_eq!(golden.len(), 2);
    lookups(valgrind, &example, &golden);
}

fn the_address_sanitizer_finds_nothing() {
    let folder = tempfile::tempdir().expect("made");
    let options = [&C[..], &SANITIZERS].concat();
    let example = compile("cc", "examples/lookup.c", STATIC, &options, folder.path());
    lookups(plain, &example, &golden());
}

fn the_header_is_what_cbindgen_writes() {
    let mut cbindgen = program("cbindgen", "--version");
    cbindgen.args(["--quiet", "--config", "cbindgen.toml", "--crate", "symdex-capi", "."]);
    let output = cbindgen.current_dir(CRATE).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let header = std::fs::read(format!("{CRATE}/include/symdex.h")).expect("it is there");
    assert!(
        output.stdout == header,
        "include/symdex.h is not what cbindgen writes; README.md says how to update it"
    );
}

symdex_testkit::main! {
    a_program_in_c_has_the_answers_of_the_reader_in_rust,
    a_program_in_cpp_has_the_same_answers_on_all_threads,
    wrong_arguments_have_a_status_and_a_message,
    valgrind_finds_nothing,
    the_address_sanitizer_finds_nothing,
    the_header_is_what_cbindgen_writes
}
