//! `symdex import`. What the imported indexes answer is compared in the tests of `symdex-symbol-files`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use crate::common::{CommandOutput, command, folder, index_of, names_in, symdex, symdex_on};

fn import(files: &[&Path], options: &str) -> CommandOutput {
    let files = files.iter().map(|file| file.as_os_str());
    symdex(["import".as_ref()].into_iter().chain(files).chain(options.split(' ').map(str::as_ref)))
}

#[test]
fn an_exported_index_is_imported_into_a_folder_and_a_store() {
    let root = folder();
    let index = index_of("swift-names", &root.path().join("built"));
    let id = "4c4c442d55553144a16f02b9d32d2ce1";
    for (format, options, arch) in
        [("breakpad", "--json", "arm64"), ("gsym", "--json --arch arm64e", "arm64e")]
    {
        let file = root.path().join(format);
        let export = format!("export {{}} --no-demangle --format {format} -o {}", file.display());
        assert_eq!(symdex_on(&index, &export).ok(), "");
        let (indexes, store) = (root.path().join(format!("{format}-indexes")), root.path().join("store"));
        let to = format!("{options} -o {} --store {}", indexes.display(), store.display());
        let run = import(&[&file], &to);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let [image] = &run.images()[..] else { panic!("{}", run.out) };
        assert_eq!((image["id"].as_str(), image["arch"].as_str()), (Some(id), Some(arch)));
        assert_eq!((image["has_dwarf"].as_bool(), image["outcome"].as_str()), (Some(true), Some("written")));
        assert_eq!(names_in(&indexes), [format!("{id}.symdex")]);
        let answer = |folder: &Path| symdex_on(folder, &format!("lookup {{}} --id {id} 0x330")).ok();
        assert_eq!(answer(&indexes), answer(&root.path().join("built")));
        assert_eq!(answer(&store), answer(&indexes));
    }
    let again = import(
        &[&root.path().join("gsym")],
        &format!("--arch arm64e -o {}/gsym-indexes", root.path().display()),
    );
    assert!(again.ok().contains("unchanged"));
}

#[test]
fn standard_input_is_a_symbol_file() {
    let root = folder();
    let run = |text: &str| {
        let mut command = command();
        command.args(["import", "-", "-o"]).arg(root.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.as_mut().expect("runs");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(text.as_bytes()).expect("read");
        drop(input);
        let (mut out, mut err) = (String::new(), String::new());
        child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
        (child.wait().expect("ends").code(), out, err)
    };
    let (code, out, err) = run("MODULE mac arm64 33221100554477668899AABBCCDDEEFF0 a\nPUBLIC 10 0 f\n");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("33221100554477668899aabbccddeeff  arm64  a"), "{out}");
    assert_eq!(names_in(root.path()), ["33221100554477668899aabbccddeeff.symdex"]);
    let (code, _, err) = run("no symbols");
    assert!(code == Some(6) && err.contains("stdin"), "{err}");
}

#[test]
fn failures_have_messages_and_exit_codes() {
    let root = folder();
    let file = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let output = format!("-o {}", root.path().join("indexes").display());
    let fails = |path: &Path, code: i32, message: &str| {
        let run = import(&[path], &output);
        assert_eq!(run.code, Some(code), "{}", run.err);
        assert!(run.err.contains(message) && run.err.contains(&path.display().to_string()), "{}", run.err);
    };
    fails(&root.path().join("none.sym"), 5, "cannot read");
    fails(&file("a.crash", b"Incident Identifier: 1\n"), 6, "expected a symbol file of Breakpad");
    fails(&file("short.gsym", b"MYSG\x01\0\x04\x10"), 4, "the header reaches to byte 48");
    fails(&file("new.gsym", &[b"MYSG\x02\0\x04\x10", &[0; 48][..]].concat()), 6, "GSYM of version 2");
    let none = file("none", b"MODULE Linux arm 000000000000000000000000000000000 a\nPUBLIC 10 0 f\n");
    fails(&none, 2, "give it with --id");
    let given = import(&[&none], &format!("--id abcdef01 {output}"));
    assert!(given.code == Some(0) && given.out.contains("abcdef01  arm  a"), "{}", given.err);
    let two = import(&[&none, &none], &format!("--id abcdef01 {output}"));
    assert_eq!(two.code, Some(2), "{}", two.err);
}

#[test]
fn what_is_lost_is_said() {
    let root = folder();
    let path = root.path().join("a.sym");
    let text = "MODULE Linux arm64 33221100554477668899AABBCCDDEEFF0 a.so\nFILE 0 a.c\nFUNC 10 8 0 f\n10 8 1 0\nOOPS";
    fs::write(&path, text).expect("written");
    let run = import(&[&path], &format!("--verbose -o {}", root.path().display()));
    assert_eq!(run.code, Some(0), "{}", run.err);
    for expected in [
        "only the first 16 bytes of the build id",
        "not records of Breakpad",
        "ends within a line: it may be cut short",
    ] {
        assert!(run.err.contains(expected), "{}", run.err);
    }
}
