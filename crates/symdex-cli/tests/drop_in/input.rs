//! Requests on standard input, and where the modules that they name are found.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use symdex_testkit::program;

use super::common::{command, debug_file, folder, index_of, symdex};
use super::compared::output;

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
    assert!(whole.starts_with("cell\n/src/symdex/inline/level/../grid.h:9:0\nrow\n"), "{whole}");
    // An index instead of the file.
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

pub(crate) fn a_link_has_the_verb_of_its_name() {
    let folder = folder();
    let file = debug_file("inline-dwarf4");
    for (name, expected) in [
        ("llvm-symbolizer", "cell\n/src/symdex/inline/level/../grid.h:9:0\n"),
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
        "??\n??:0:0\n\n??\n??:0:0\n\npyramid\n/src/symdex/inline/level/mip.h:11:0\n\n"
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
    let answer = "pyramid\n/src/symdex/inline/level/mip.h:11:0\n\n";
    assert_eq!(output(ours, &input), answer.repeat(80));
}
