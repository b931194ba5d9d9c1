//! Requests on standard input, and where the modules that they name are found.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use symdex_testkit::images::debug_file::{BASE, library_and_package, write};
use symdex_testkit::program;

use super::compared::output;
use crate::common::{CommandOutput, command, debug_file, folder, index_of, symdex, testdata};

const INLINED: &str = "0x1000003cf";

/// A client writes an address, and waits for the answer before it writes the next one.
pub(crate) fn each_line_is_answered_before_the_next_one() {
    let file = debug_file("inline-dwarf4");
    for (verb, end_of_answer) in [("llvm-symbolizer", ""), ("addr2line", "/src/symdex/inline/level/mip.h:11")]
    {
        let mut child = command();
        child.args([verb, "-fi", "-e"]).arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().expect("starts");
        let mut stdin = child.stdin.take().expect("piped");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        for _ in 0..3 {
            writeln!(stdin, "{INLINED}").expect("written");
            let mut lines = Vec::new();
            while lines.last().is_none_or(|line: &String| line.trim_end() != end_of_answer) {
                let mut line = String::new();
                assert_ne!(stdout.read_line(&mut line).expect("readable"), 0, "{verb} ends after {lines:?}");
                lines.push(line);
            }
            assert_eq!(lines[0], "cell\n", "{verb}");
        }
        drop(stdin);
        assert!(child.wait().expect("ends").success());
    }
}

pub(crate) fn modules_are_answered_from_the_indexes_of_their_ids() {
    let folder = folder();
    let index = index_of("inline-dwarf4", folder.path());
    let file = debug_file("inline-dwarf4");
    let id = index.file_stem().and_then(|stem| stem.to_str()).expect("an id").to_owned();
    let whole = symdex(["llvm-symbolizer".as_ref(), "-e".as_ref(), file.as_os_str(), INLINED.as_ref()]).ok();
    assert!(whole.starts_with("cell\n/src/symdex/inline/level/../grid.h:9:11\nrow\n"), "{whole}");
    // An index instead of the file. It has no columns.
    let column = regex::Regex::new(r"(?m)(:[0-9]+):[0-9]+$").expect("valid");
    let whole = column.replace_all(&whole, "$1:0").into_owned();
    let of_index =
        symdex(["llvm-symbolizer".as_ref(), "-e".as_ref(), index.as_os_str(), INLINED.as_ref()]).ok();
    assert_eq!(of_index, whole);
    // A stripped file, which only the index can answer. It is chosen by the id of the file.
    let stripped = folder.path().join("stripped");
    std::fs::write(&stripped, symdex_testkit::testdata::without_debug_information(&file)).expect("written");
    let input = format!("CODE \"{}\" {INLINED}\nCODE BUILDID:{id} {INLINED}\n", stripped.display());
    for sources in [["--index"], ["--store"]] {
        let mut ours = command();
        ours.arg("llvm-symbolizer").args(sources).arg(folder.path());
        assert_eq!(output(ours, &input), whole.repeat(2), "{sources:?}");
    }
    let mut by_environment = command();
    by_environment.args(["llvm-symbolizer", "--build-id", &id, INLINED]).env("SYMDEX_INDEX", folder.path());
    assert_eq!(output(by_environment, ""), whole);
    // Without the index, the symbol table of the file answers.
    let mut without = command();
    without.arg("llvm-symbolizer");
    assert!(output(without, &input).starts_with("pyramid\n??:0:0\n\n??\n??:0:0\n\n"));
}

pub(crate) fn files_that_a_module_lacks_are_named_once_on_standard_error() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    let (library, package) = library_and_package();
    write(&at("lib/liba.so"), &library);
    write(&at("dwp/liba.so.dwp"), &package);
    write(&at("dwp/other"), &package);
    let address = format!("{:#x}", BASE + 0x1018);
    let ask = |verb: &str, option: &[&str]| {
        let mut ours = command();
        ours.current_dir(folder.path()).args([verb, "-fi", "-e", "lib/liba.so"]).args(option);
        CommandOutput::from(ours.args([&address, &address]).output().expect("starts"))
    };
    for verb in ["llvm-symbolizer", "addr2line"] {
        let without = ask(verb, &[]);
        assert_eq!(without.err.matches("the split unit obj/a.dwo (dwo id 0807060504030201)").count(), 1);
        assert!(without.out.contains("b.h:6") && !without.out.contains("split"), "{}", without.out);
        for option in ["--dwp=dwp/other", "--debug-file-directory=dwp", "--debug-dir=dwp"] {
            let with = ask(verb, &[option]);
            assert!(with.out.contains("g\n") && with.out.contains("split\n"), "{option}: {}", with.out);
            assert_eq!(with.err, "");
        }
        assert!(ask(verb, &["--dwp=gone"]).err.starts_with("symdex: warning: gone: no such package"));
    }
}

pub(crate) fn a_dsym_of_another_build_is_named_and_not_used() {
    let folder = folder();
    let binary = folder.path().join("App");
    let bytes = symdex_testkit::testdata::without_debug_information(&debug_file("inline-dwarf4"));
    std::fs::write(&binary, bytes).expect("written");
    let inside = folder.path().join("App.dSYM/Contents/Resources/DWARF");
    std::fs::create_dir_all(&inside).expect("folders");
    for (name, answer) in [("inline-dwarf4", "cell\n"), ("inline-dwarf5", "pyramid\n")] {
        std::fs::copy(debug_file(name), inside.join("App")).expect("copied");
        let done = symdex(["addr2line".as_ref(), "-fe".as_ref(), binary.as_os_str(), INLINED.as_ref()]);
        assert!(done.out.starts_with(answer), "{name}: {}{}", done.out, done.err);
        let ids = ["inline-dwarf5", "inline-dwarf4"].map(|name| {
            let ids = symdex(["ids".as_ref(), debug_file(name).as_os_str(), "--json".as_ref()]).json();
            ids[0]["id"].as_str().expect("an id").to_owned()
        });
        let message =
            format!("App.dSYM: does not match: it has the id {}, and the binary has {}", ids[0], ids[1]);
        assert_eq!(done.err.contains(&message), name == "inline-dwarf5", "{}", done.err);
    }
    // A dSYM of this build without debug information.
    std::fs::copy(&binary, inside.join("App")).expect("copied");
    let done = symdex(["addr2line".as_ref(), "-fe".as_ref(), binary.as_os_str(), INLINED.as_ref()]);
    assert!(!done.err.contains("does not match"), "{}", done.err);
}

pub(crate) fn a_link_has_the_verb_of_its_name() {
    let folder = folder();
    let file = debug_file("inline-dwarf4");
    for (name, expected) in [
        ("llvm-symbolizer", "cell\n/src/symdex/inline/level/../grid.h:9:11\n"),
        ("aarch64-linux-gnu-addr2line", "/src/symdex/inline/level/../grid.h:9\n"),
        ("atos", "pyramid (in inline-dwarf4) (mip.h:11)\n"),
    ] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_symdex"), &link).expect("linked");
        let mut linked = Command::new(&link);
        linked.arg(if name == "atos" { "-o" } else { "-e" }).arg(&file).arg(INLINED);
        let printed = output(linked, "");
        assert!(printed.starts_with(expected), "{name}: {printed}");
    }
}

pub(crate) fn arguments_come_from_files_and_the_environment() {
    let folder = folder();
    let file = debug_file("inline-dwarf4");
    let options = folder.path().join("options");
    std::fs::write(&options, format!("-e '{}' {INLINED}\n", file.display())).expect("written");
    let argument = format!("@{}", options.display());
    assert_eq!(symdex(["addr2line", &argument]).ok(), "/src/symdex/inline/level/../grid.h:9\n");
    let ours = |verb: &[&str]| {
        let mut command =
            if verb.is_empty() { program("llvm-symbolizer-19", "--version") } else { command() };
        command.args(verb).arg(&argument).env("LLVM_SYMBOLIZER_OPTS", "--output-style=GNU -pa");
        output(command, "")
    };
    assert_eq!(ours(&["llvm-symbolizer"]), ours(&[]));
}

pub(crate) fn addresses_can_be_offsets_in_a_section() {
    let elf = testdata().join("elf/gcc-parts.so");
    let [offsets, addresses] = [["0x10", "0x100"], ["0x1080", "0x1170"]];
    let elf = elf.to_str().expect("text");
    let ours = |options: &[&str], addresses: [&str; 2]| {
        symdex(["addr2line", "-f", "-e", elf].iter().chain(options).chain(&addresses)).ok()
    };
    assert_eq!(ours(&["-j", ".text"], offsets), ours(&[], addresses));
    assert!(
        ours(&["--section=.text"], offsets).starts_with("reload\n"),
        "{}",
        ours(&["-j", ".text"], offsets)
    );
    // After the section, and in a section without code.
    assert_eq!(ours(&["-j", ".text"], ["0x1a0", "ffffffffffffffff"]), "??\n??:0\n".repeat(2));
    assert_eq!(ours(&["-j", ".data"], ["0", "8"]), "??\n??:0\n".repeat(2));
    let missing = symdex(["addr2line", "-e", elf, "-j", ".nope", "0"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(3), ""));
    assert!(missing.err.contains(".nope") && missing.err.contains(".plt, .text"), "{}", missing.err);
    let macho = debug_file("inline-dwarf4");
    let macho = macho.to_str().expect("text");
    for section in ["__text", "__TEXT,__text"] {
        let first = symdex(["addr2line", "-f", "-e", macho, "-j", section, "0"]).ok();
        assert!(first.contains("/src/symdex/inline/"), "{first}");
    }
    let folder = folder();
    let index = index_of("inline-dwarf4", folder.path());
    let of_index = symdex(["addr2line", "-j", "__text", "-e", index.to_str().expect("text"), "0"]);
    assert_eq!(of_index.code, Some(3));
    assert!(of_index.err.contains("name an ELF or Mach-O file"), "{}", of_index.err);
}

/// Symbols, with and without offsets, as arguments and on standard input, beside GNU's addr2line.
pub(crate) fn addr2line_reads_symbols_as_gnu_does() {
    let folder = folder();
    let source = "int twice(int x) { return 2 * x; }\nint add(int x) {\n  return x + 1;\n}\n\
                  static int fabled(int x) { return add(x); }\nint main(void) { return fabled(twice(3)); }\n";
    std::fs::write(folder.path().join("a.c"), source).expect("written");
    let path = folder.path().join("app");
    let mut compiler = program("gcc", "--version");
    compiler.args(["-g", "-O0", "-o"]).arg(&path).arg(folder.path().join("a.c"));
    assert!(compiler.status().expect("it starts").success());
    let file = path.to_str().expect("text");
    // `add` and `fabled` begin with hexadecimal digits. GNU's program takes `fabled` for 0xfab.
    let places =
        ["main", "main+4", "main+0x4", " twice+04 more", "add+2", "add", "nope", "nope+4", "1+1", "12q", ""];
    let both = |more: &[&str], input: &str| {
        [program("addr2line", "--version"), super::gnu::ours()].map(|mut command| {
            command.args(["-afe", file]).args(more);
            output(command, input)
        })
    };
    let [theirs, ours] = both(&places, "");
    assert_eq!(ours, theirs);
    let lines: String = places.iter().map(|place| format!("{place}\n")).collect();
    assert_eq!(both(&[], &lines)[1], ours);
    assert_eq!(both(&[], &lines)[0], ours);
    let fabled = symdex(["addr2line", "-fe", file, "fabled"]).ok();
    assert!(fabled.starts_with("fabled\n") && fabled.ends_with("a.c:5\n"), "{fabled}");
    let link = folder.path().join("llvm-addr2line");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_symdex"), &link).expect("linked");
    let [theirs, linked] =
        [program("llvm-addr2line-19", "--version"), Command::new(&link)].map(|mut command| {
            command.args(["-fe", file]);
            output(command, "main+4\nfabled\ntwice\n")
        });
    assert_eq!(linked, theirs);
    let version = symdex(["addr2line", "-V"]).ok();
    assert_eq!(version, symdex(["addr2line", "--version"]).ok());
    // The symbols of Mach-O files have an underscore.
    let macho = debug_file("inline-dwarf4");
    let of_macho = symdex(["addr2line", "-fe", macho.to_str().expect("text"), "pyramid"]).ok();
    assert!(of_macho.starts_with("pyramid\n/src/symdex/inline/"), "{of_macho}");
}

/// Both programs on the same lines.
#[track_caller]
fn assert_same(arguments: &[&str], input: &str) {
    let mut ours = command();
    ours.arg("llvm-symbolizer").args(arguments);
    let mut theirs = program("llvm-symbolizer-19", "--version");
    theirs.args(arguments);
    assert_eq!(output(ours, input), output(theirs, input), "{input:?}");
}

pub(crate) fn lines_that_are_no_requests_are_answered_as_by_llvm_symbolizer() {
    let file = debug_file("inline-dwarf4");
    let file = file.to_str().expect("text");
    let object = format!("--obj={file}");
    let lines = "\n\nCODE\nDATA\n0xzz\n12q\nFILE:\nFILE: \nBUILDID:zz 0x1\nBUILDID:abcd 0x1\nno_such_symbol\nnope+4\n\"";
    for style in ["--output-style=LLVM", "--output-style=GNU", "-pa"] {
        assert_same(&[style, &object], &format!("{lines}\n"));
        assert_same(&[style], &format!("{lines}\n{file}\n\"{file}\"\n\"{file}\" 0x0\nnofile 0x10\n"));
    }
    assert_same(&["--output-style=JSON", &object], "\nzz\n0xzz\n");
}

pub(crate) fn modules_that_cannot_be_read_do_not_end_the_run() {
    let file = debug_file("inline-dwarf4");
    let folder = folder();
    let text = folder.path().join("text");
    std::fs::write(&text, "no debug file").expect("written");
    let input = format!("nofile 0x10\n{} 0x10\n{} {INLINED}\n", text.display(), file.display());
    let mut ours = command();
    ours.args(["llvm-symbolizer", "--no-inlines"]);
    assert_eq!(
        output(ours, &input),
        "??\n??:0:0\n\n??\n??:0:0\n\npyramid\n/src/symdex/inline/level/mip.h:11:10\n\n"
    );
    let json = symdex(["llvm-symbolizer", "--output-style=JSON", "--obj=nofile", "0x10"]);
    assert_eq!((json.code, &json.json()[0][0]["ModuleName"]), (Some(5), &"nofile".into()));
    assert!(json.json()[0][0]["Error"]["Message"].as_str().is_some_and(|text| text.contains("nofile")));
    let missing = symdex(["addr2line", "-e", "nofile", "10"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(5), ""));
    assert!(missing.err.contains("nofile"), "{}", missing.err);
    // More modules than stay open at a time.
    let mut ours = command();
    ours.args(["llvm-symbolizer", "--no-inlines"]);
    let many: Vec<_> = (0..40).map(|number| folder.path().join(number.to_string())).collect();
    many.iter().for_each(|path| _ = std::fs::copy(&file, path).expect("copied"));
    let line = |path: &std::path::PathBuf| format!("{} {INLINED}\n", path.display());
    let input: String = many.iter().chain(&many).map(line).collect();
    let answer = "pyramid\n/src/symdex/inline/level/mip.h:11:10\n\n";
    assert_eq!(output(ours, &input), answer.repeat(80));
}
