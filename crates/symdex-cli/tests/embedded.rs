//! Debug files that carry their index: they answer what the debug files say, and only while the index fits.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use symdex_build::{BuildOptions, Companions, Image, carrier_digest, slices};

use crate::common::{CommandOutput, command, dsym, folder, testdata};

/// Runs `symdex LINE` in `folder`.
fn run(folder: &Path, line: &str, input: &str) -> CommandOutput {
    let stdin = folder.with_extension("input");
    fs::write(&stdin, input).expect("written");
    let mut run = command();
    run.current_dir(folder).args(line.split(' ')).env("XDG_CACHE_HOME", folder.with_extension("cache"));
    run.stdin(File::open(stdin).expect("readable")).output().expect("the command starts").into()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("readable") {
            let entry = entry.expect("readable");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).expect("copied");
    }
}

/// The architectures of the debug file `file`, each with up to 1,000 addresses of its code.
fn asked(file: &Path) -> Vec<(String, Vec<u64>)> {
    let file = symdex_build::find(file).remove(0).expect("a debug file");
    let bytes = fs::read(&file).expect("readable");
    let slices = slices(&bytes).expect("a debug file");
    let companions = Companions::default();
    let addresses = |slice| {
        let image = Image::load(slice, &file, &companions).expect("loads");
        let code = || image.info().executable.iter().flat_map(|(start, end)| *start..*end);
        let step = code().count() / 1000 + 1;
        code().step_by(step).map(|offset| image.info().base + offset).collect()
    };
    slices.iter().map(|slice| (slice.arch.name.clone(), addresses(slice))).collect()
}

#[test]
fn a_debug_file_answers_the_same_from_the_index_that_it_carries() {
    let root = folder();
    let (plain, carrying) = (root.path().join("plain"), root.path().join("carrying"));
    let bundles = fs::read_dir(testdata().join("dsyms")).expect("readable");
    let files: Vec<PathBuf> = bundles
        .map(|entry| entry.expect("readable").path())
        .chain(["gcc-names.so", "gcc-parts.so"].map(|name| testdata().join("elf").join(name)))
        .collect();
    let (mut compared, mut used) = (0, 0);
    for folder in [&plain, &carrying] {
        fs::create_dir(folder).expect("a folder");
    }
    for file in &files {
        let name = file.file_name().expect("a name").to_str().expect("UTF-8");
        copy(file, &plain.join(name));
        copy(file, &carrying.join(name));
        let embed = if file.is_dir() { "--embed".to_owned() } else { format!("--embed-into {name}") };
        let built = run(&carrying, &format!("build {name} {embed}"), "");
        assert_eq!(built.code, Some(0), "{name}: {}", built.err);
        let again = run(&carrying, &format!("build {name} {embed}"), "").ok();
        assert!(again.contains(": unchanged"), "{again}");
        for (arch, addresses) in asked(file) {
            let mut input = String::new();
            addresses.iter().for_each(|address| _ = writeln!(input, "{address:#x}"));
            let mut ignored = false;
            for verb in [
                format!("atos -o {name} -arch {arch} -i -fullPath"),
                format!("lookup {name} --arch {arch} --svma --json"),
                format!("llvm-symbolizer -e {name} --default-arch {arch} --output-style=GNU -a"),
                format!("addr2line -e {name} --arch {arch} -a -f -i -C"),
                // Only the debug file has columns.
                format!("llvm-symbolizer -e {name} --default-arch {arch}"),
            ]
            .into_iter()
            .take(if name == "cxx.dSYM" { 5 } else { 4 })
            {
                let [of_plain, of_carrying] = [&plain, &carrying].map(|folder| run(folder, &verb, &input));
                assert_eq!((of_plain.code, &of_plain.out), (of_carrying.code, &of_carrying.out), "{verb}");
                assert!(of_plain.out.lines().count() >= addresses.len(), "{verb}: {}", of_plain.err);
                ignored |= of_carrying.err.contains("the index that it carries is not used");
            }
            (compared, used) = (compared + addresses.len(), used + usize::from(!ignored));
        }
    }
    assert!(compared > 5000 && used > 20, "{compared} addresses, {used} images");
}

#[test]
fn a_report_is_answered_the_same_from_the_index_that_the_dsym_carries() {
    let root = folder();
    let (plain, carrying) = (root.path().join("plain"), root.path().join("carrying"));
    let demo = testdata().join("demo");
    for folder in [&plain, &carrying] {
        copy(&demo, folder);
    }
    run(&carrying, "build DemoApp.app.dSYM DemoKit.framework.dSYM --embed", "").ok();
    let crash = fs::read_to_string(demo.join("demo.crash")).expect("text");
    let (start, end) = crash.split_once("Thread 0 Crashed:\n").expect("a thread");
    let mut many = format!("{start}Thread 0 Crashed:\n");
    for number in 0..1000 {
        let offset = 0x4000 + number * 4;
        let address = 0x1_0498_c000_u64 + offset;
        _ = writeln!(
            many,
            "{number:<4}DemoKit                       \t{address:#018x} 0x10498c000 + {offset}"
        );
    }
    let images = &end[end.find("Binary Images").expect("images")..];
    fs::write(root.path().join("many.crash"), format!("{many}\n{images}")).expect("written");
    for report in ["demo.crash", "../many.crash"] {
        for options in ["", " --json", " --lines exact"] {
            let line = format!(
                "symbolicate {report} --dsym DemoApp.app.dSYM --dsym DemoKit.framework.dSYM{options}"
            );
            let [of_plain, of_carrying] = [&plain, &carrying].map(|folder| {
                let done = run(folder, &line, "");
                // Later reports would be answered from the store.
                (done.code, done.out, fs::remove_dir_all(folder.with_extension("cache")).is_ok())
            });
            assert_eq!((of_plain.0, of_plain.1), (of_carrying.0, of_carrying.1), "{line}");
            // Only without an index is one built for 1,000 addresses.
            assert_eq!((of_plain.2, of_carrying.2), (report.contains("many"), false), "{line}");
        }
    }
}

/// A copy of `inline-dwarf4.dSYM` in `folder` that carries the index of another debug file, which states its id and
/// its digest.
fn forged(folder: &Path) -> PathBuf {
    let bundle = folder.join("inline-dwarf4.dSYM");
    copy(&dsym("inline-dwarf4"), &bundle);
    let file = bundle.join("Contents/Resources/DWARF/inline-dwarf4");
    let bytes = fs::read(&file).expect("readable");
    let other = fs::read(dsym("calls").join("Contents/Resources/DWARF/calls")).expect("readable");
    let (own, other) = (slices(&bytes).expect("a dSYM").remove(0), slices(&other).expect("a dSYM").remove(0));
    let companions = Companions::default();
    let id = Image::load(&own, &file, &companions).expect("loads").info().id.clone();
    let image = Image::load(&other, &file, &companions).expect("loads").with_id(id.clone());
    let digest = carrier_digest(&bytes).expect("a debug file");
    let index = BuildOptions::new().input_digest(Some(digest)).build(&image).expect("builds").bytes;
    fs::create_dir(bundle.join("Contents/Resources/symdex")).expect("a folder");
    fs::write(index_in(&bundle, &id.to_string()), index).expect("written");
    bundle
}

fn index_in(bundle: &Path, id: &str) -> PathBuf {
    bundle.join("Contents/Resources/symdex").join(format!("{id}.symdex"))
}

fn id_of(bundle: &Path) -> String {
    let ids = run(bundle.parent().expect("a folder"), &format!("ids {} --json", bundle.display()), "").ok();
    let image: serde_json::Value = serde_json::from_str(ids.lines().next().expect("an image")).expect("JSON");
    image["id"].as_str().expect("an id").replace('-', "").to_lowercase()
}

#[test]
fn a_forged_index_answers_for_its_own_bundle_and_is_never_built_or_listed() {
    let root = folder();
    let bundle = forged(root.path());
    let id = id_of(&bundle);
    let lookup = |line: &str| run(root.path(), line, "").out;
    let truth = run(root.path(), &format!("lookup {} 0x400", dsym("inline-dwarf4").display()), "").ok();
    assert_ne!(lookup("lookup inline-dwarf4.dSYM 0x400"), truth, "the carried index answers");
    // It is no index of a folder of indexes, but that of its debug file.
    assert_eq!(
        lookup(&format!("lookup inline-dwarf4.dSYM --id {id} 0x400")),
        lookup("lookup inline-dwarf4.dSYM 0x400")
    );
    run(root.path(), "build inline-dwarf4.dSYM -o built", "").ok();
    assert_eq!(lookup(&format!("lookup built --id {id} 0x400")), truth);
    let verified = run(root.path(), "verify inline-dwarf4.dSYM", "");
    assert_eq!(verified.code, Some(1), "{}{}", verified.out, verified.err);
    // The next build that embeds finds the same debug file, and --force builds it nevertheless.
    let built = run(root.path(), "build inline-dwarf4.dSYM --embed --force", "").ok();
    assert!(built.contains(": written, in place of another index"), "{built}");
    assert_eq!(lookup("lookup inline-dwarf4.dSYM 0x400"), truth);
    let verified = run(root.path(), "verify inline-dwarf4.dSYM", "").ok();
    assert!(verified.contains("every answer of the index equals"), "{verified}");
}

#[test]
fn an_index_that_does_not_fit_is_not_used_and_a_warning_says_why() {
    let root = folder();
    let spoil = |spoil: &dyn Fn(&Path, &Path), why: &str| {
        let folder = root.path().join("one");
        let bundle = folder.join("inline-dwarf4.dSYM");
        copy(&dsym("inline-dwarf4"), &bundle);
        run(&folder, "build inline-dwarf4.dSYM --embed", "").ok();
        let index = index_in(&bundle, &id_of(&bundle));
        let file = bundle.join("Contents/Resources/DWARF/inline-dwarf4");
        spoil(&file, &index);
        let expected = {
            let moved = index.with_extension("aside");
            fs::rename(&index, &moved).expect("moved");
            let expected = run(&folder, "lookup inline-dwarf4.dSYM 0x400 0x61b", "");
            fs::rename(&moved, &index).expect("moved");
            expected
        };
        for verb in
            ["lookup inline-dwarf4.dSYM", "addr2line -f -e inline-dwarf4.dSYM", "atos -o inline-dwarf4.dSYM"]
        {
            let answered = run(&folder, &format!("{verb} 0x400 0x61b"), "");
            assert_eq!(
                answered.err.lines().filter(|line| line.contains(why)).count(),
                usize::from(!why.is_empty()),
                "{verb}: {}",
                answered.err
            );
            assert_eq!(answered.code, expected.code, "{verb}");
            assert!(!verb.starts_with("lookup") || answered.out == expected.out, "{verb}: {}", answered.out);
        }
        let built = run(&folder, "build inline-dwarf4.dSYM --embed", "");
        assert!(built.out.contains(": written") != why.is_empty(), "{why}: {}", built.out);
        let modified = |path: &Path| path.metadata().expect("there").modified().expect("a time");
        assert!(modified(&index) >= modified(&file), "all bytes are compared from now on");
        fs::remove_dir_all(folder).expect("removed");
    };
    let change = |path: &Path, at: usize| {
        let mut bytes = fs::read(path).expect("readable");
        bytes[at] ^= 1;
        // The copy is newer than the index.
        fs::write(path, bytes).expect("written");
    };
    spoil(&|_, _| {}, "");
    spoil(&|file, _| _ = fs::write(file, fs::read(file).expect("readable")), "");
    let size = |path: &Path| usize::try_from(fs::metadata(path).expect("there").len()).expect("small");
    spoil(&|file, _| change(file, size(file) / 2), "it is of a debug file with other contents");
    spoil(&|_, index| change(index, size(index) / 2), "damaged");
    spoil(&|_, index| fs::write(index, b"symdex").expect("written"), "not a symdex index");
    let other = testdata().join("golden/v1/inline-dwarf4-1.symdex");
    spoil(
        &|_, index| _ = fs::copy(&other, index).expect("copied"),
        "the index that it carries is not used: ",
    );
}

#[test]
fn an_elf_file_gets_a_section_and_keeps_all_other_bytes() {
    let root = folder();
    let library = testdata().join("elf/gcc-names.so");
    fs::copy(&library, root.path().join("gcc-names.so")).expect("copied");
    run(root.path(), "build gcc-names.so --embed-into with/gcc-names.so", "");
    fs::create_dir(root.path().join("with")).expect("a folder");
    let built = run(root.path(), "build gcc-names.so --embed-into with/gcc-names.so", "").ok();
    assert!(built.contains("with/gcc-names.so: written"), "{built}");
    let verified = run(root.path(), "verify with/gcc-names.so", "").ok();
    assert!(verified.contains("every answer of the index equals"), "{verified}");
    // The index is not read by a build of the same file.
    for file in ["gcc-names.so", "with/gcc-names.so"] {
        run(root.path(), &format!("build {file} -o {}", file.replace(".so", "-built")), "").ok();
    }
    let [one, other] = ["gcc-names-built", "with/gcc-names-built"].map(|name| {
        let mut files = fs::read_dir(root.path().join(name)).expect("readable");
        fs::read(files.next().expect("an index").expect("readable").path()).expect("readable")
    });
    assert_eq!(one, other);
    let failed = |line: &str, code, why: &str| {
        let failed = run(root.path(), line, "");
        assert_eq!(failed.code, Some(code), "{}", failed.err);
        assert!(failed.err.contains(why), "{}", failed.err);
    };
    copy(&testdata().join("elf/gcc-parts.so"), &root.path().join("gcc-parts.so"));
    failed("build gcc-names.so --embed", 6, "--embed-into writes an ELF file with its index");
    failed("build gcc-names.so gcc-parts.so --embed-into x", 2, "--embed-into takes the index of one image");
    failed("build gcc-names.so --embed -o x", 2, "cannot be used with");
}
