//! `symdex build --isolate`: the same results as without, and children that die.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{CommandOutput, folder, names_in, symdex, testdata};
use serde_json::{Value, json};
use symdex_testkit::images::archive::{gzip, tar_of, zip_of};
use symdex_testkit::images::debug_file::{
    Elf, Unit, debug_file, library_and_package, referring_to, supplementary, write,
};

/// The output of a build without what differs from run to run: the time, and the folder of the indexes.
fn results(built: &CommandOutput, folder: &Path) -> Vec<Value> {
    let mut lines = built.json();
    for line in &mut lines {
        line.as_object_mut().expect("an object").remove("seconds");
        line.pointer_mut("/totals").and_then(Value::as_object_mut).map(|totals| totals.remove("seconds"));
        if let Some(index) = line.get_mut("location").filter(|index| index.is_string()) {
            let path = Path::new(index.as_str().expect("a path"));
            *index = json!(path.strip_prefix(folder).expect("in the folder"));
        }
    }
    lines
}

/// Builds `inputs` with `options`, in this process and isolated, and compares everything.
#[track_caller]
fn same(inputs: &[&Path], options: &[&str]) -> Vec<Value> {
    let (here, isolated) = (folder(), folder());
    let build = |folder: &Path, more: &[&str]| {
        let options = options.iter().chain(more).map(AsRef::<std::ffi::OsStr>::as_ref);
        let arguments = ["build".as_ref(), "--json".as_ref(), "-o".as_ref(), folder.as_os_str()];
        symdex(arguments.into_iter().chain(options).chain(inputs.iter().map(|path| path.as_os_str())))
    };
    let (a, b) = (build(here.path(), &[]), build(isolated.path(), &["--isolate"]));
    assert_eq!(a.code, b.code, "{}", b.err);
    let (all, others) = (results(&a, here.path()), results(&b, isolated.path()));
    assert_eq!(all, others);
    assert_eq!(names_in(here.path()), names_in(isolated.path()));
    for name in names_in(here.path()) {
        let bytes = |folder: &Path| fs::read(folder.join(&name)).expect("an index");
        assert!(bytes(here.path()) == bytes(isolated.path()), "{name}");
    }
    let told: Vec<_> = b.err.lines().filter(|line| line.contains("are isolated: ")).collect();
    let said: Vec<_> = b.err.lines().filter(|line| !told.contains(line)).collect();
    assert_eq!(said, a.err.lines().collect::<Vec<_>>());
    let has_images = all.iter().any(|line| line.get("outcome").is_some());
    assert!((usize::from(has_images)..=1).contains(&told.len()), "{}", b.err);
    all
}

#[test]
fn isolated_builds_give_the_same_results() {
    let all = testdata();
    let images = same(&[&all], &[]).len();
    assert!(images > 20, "{images}");
    same(&[&all], &["--jobs", "1"]);
    same(&[&all], &["--arch", "armv7", "--arch", "i386"]);
    same(&[&all.join("dsyms/fat.dSYM"), &all.join("gone")], &["--verify"]);
    same(&[&all.join("demo")], &["--arch", "riscv64"]);
    same(&[&all.join("README.md"), &all.join("dsyms/icf.dSYM")], &["--max-memory", "32MB"]);
}

#[test]
fn isolated_builds_join_the_files_of_an_image() {
    let folder = folder();
    let stripped = folder.path().join("stripped");
    let debug_file = crate::common::debug_file("inline-dwarf4");
    fs::write(&stripped, crate::common::without_debug_information(&debug_file)).expect("written");
    let lines = same(&[&stripped, &debug_file], &[]);
    assert_eq!(lines[0]["joined"], json!([stripped]));
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn isolated_builds_read_the_companions_among_the_inputs() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    let (library, package) = library_and_package();
    let referring = referring_to("/usr/lib/debug/.dwz/machine/common", &[9; 20]);
    let referring = Elf { build_id: Some(vec![8; 20]), ..referring };
    let files = [
        ("in/lib/liba.so", &library),
        ("in/dwp/a.dwp", &package),
        ("in/debug/x/b.debug", &referring),
        ("in/debug/.dwz/machine/common", &supplementary(&[9; 20])),
    ];
    files.iter().for_each(|(path, file)| write(&at(path), file));
    let bytes = files.map(|(path, file)| (path, file.bytes()));
    fs::write(at("a.zip"), zip_of(&bytes.each_ref().map(|(path, file)| (*path, &file[..]))))
        .expect("written");
    let paths = files.map(|(path, _)| at(path));
    for inputs in [&[&*at("in")][..], &[&at("a.zip")], &paths.each_ref().map(PathBuf::as_path)] {
        let images: Vec<_> = same(inputs, &[]).into_iter().filter(|line| line.get("id").is_some()).collect();
        let counts = images.iter().map(|image| (image["partial"].clone(), image["functions"].clone()));
        assert_eq!(counts.collect::<Vec<_>>(), [(json!([]), json!(2)), (json!([]), json!(2))], "{inputs:?}");
    }
    // Alone they are no images.
    let lines = same(&[&at("in/dwp")], &[]);
    assert!(lines.iter().any(|line| line.to_string().contains("give it together with")), "{lines:?}");
}

#[test]
fn isolated_builds_of_archives_have_the_same_results_and_names() {
    let folder = folder();
    let read = |name: &str| fs::read(crate::common::debug_file(name)).expect("there");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let in_bundle = "A.dSYM/Contents/Resources/DWARF/A";
    let cut = &read("cxx")[..3000];
    let files: &[(&str, &[u8])] = &[(in_bundle, &read("cxx")), ("fat", &read("fat")), ("cut", cut)];
    let zip = write("a.zip", &zip_of(files));
    let binary = crate::common::without_debug_information(&crate::common::debug_file("cxx"));
    let tgz = write("b.tgz", &gzip(&tar_of(&[("App", &binary), ("notes.txt", b"x")])));
    let icf = crate::common::dsym("icf");
    let lines = same(&[&zip, &tgz, &icf], &[]);
    assert_eq!(lines[0]["joined"], json!([format!("{}: App", tgz.display())]));
    let failure = lines.iter().find(|line| line.get("error").is_some()).expect("a failure");
    assert_eq!(failure["file"], format!("{}: cut", zip.display()));
    let apart = same(&[&zip, &tgz, &icf], &["--max-temporary", "1"]);
    assert_eq!(apart.len(), lines.len() + 1, "each archive is a batch: {apart:?}");
    assert_eq!(same(&[&zip, &icf], &["--arch", "riscv64"]).len(), 2);
    assert_eq!(same(&[&tgz, &icf], &["--max-temporary", "1", "--arch", "arm64"]).len(), 3);
    same(&[&write("empty.zip", &zip_of(&[("notes", b"x")])), &zip], &["--max-entries", "2"]);
}

#[test]
fn isolated_builds_find_the_required_images() {
    let folder = folder();
    let id = |name: &str| {
        let listed = symdex(["ids".as_ref(), crate::common::dsym(name).as_os_str(), "--json".as_ref()]);
        listed.json()[0]["id"].as_str().expect("an id").to_owned()
    };
    let (cxx, gone) = (id("cxx"), "00112233445566778899aabbccddeeff");
    let dsyms = testdata().join("dsyms");
    assert_eq!(same(&[&dsyms], &["--id", &cxx]).len(), 2);
    let lines = same(&[&dsyms], &["--id", &cxx, "--id", gone]);
    assert_eq!(lines[1]["error"]["kind"], "not_found");
    // The image is there, and its index fails.
    assert_eq!(same(&[&crate::common::dsym("cxx")], &["--id", &cxx, "--max-memory", "1"]).len(), 2);

    let archive = folder.path().join("App.xcarchive");
    let (products, dwarf) =
        (archive.join("Products"), archive.join("dSYMs/lto.dSYM/Contents/Resources/DWARF"));
    for folder in [&products, &dwarf] {
        fs::create_dir_all(folder).expect("a folder");
    }
    fs::copy(crate::common::debug_file("lto"), dwarf.join("lto")).expect("copied");
    for name in ["lto", "cxx"] {
        let binary = crate::common::without_debug_information(&crate::common::debug_file(name));
        fs::write(products.join(name), binary).expect("written");
    }
    let lines = same(&[&archive], &["--require-all"]);
    let missing: Vec<_> = lines.iter().filter(|line| line.get("error").is_some()).collect();
    assert_eq!(missing.len(), 1, "{lines:?}");
    assert_eq!(missing[0]["file"], json!(products.join("cxx")));
}

#[test]
fn isolated_builds_use_the_existing_index_without_force() {
    let root = folder();
    let (path, out) = (root.path().join("cxx"), root.path().join("out"));
    let whole = fs::read(crate::common::debug_file("cxx")).expect("there");
    fs::write(&path, &whole).expect("written");
    let build = |more: &[&str]| {
        let arguments =
            ["build", "--isolate", "--json"].iter().chain(more).map(AsRef::<std::ffi::OsStr>::as_ref);
        symdex(arguments.chain([path.as_os_str(), "-o".as_ref(), out.as_os_str()])).images()[0].clone()
    };
    assert_eq!(build(&[])["outcome"], "written");
    // The unit headers stay, and the entries cannot be read.
    let mut broken = whole;
    let section = broken.windows(16).position(|name| name == b"__debug_info\0\0\0\0").expect("DWARF");
    let at = u32::from_le_bytes(broken[section + 48..section + 52].try_into().expect("4 bytes")) as usize;
    broken[at + 11..at + 40].fill(0xff);
    fs::write(&path, &broken).expect("written");
    let again = build(&[]);
    assert_eq!(
        (&again["outcome"], again["partial"].as_array().map(Vec::len)),
        (&json!("unchanged"), Some(0))
    );
    assert_eq!(build(&["--force"])["outcome"], "kept");
}

#[test]
fn isolated_builds_read_shared_caches_symbol_maps_and_debug_folders() {
    use symdex_testkit::images::shared_cache::{CacheImage, Layout, cache, write};
    let folder = folder();
    let image = |uuid: u8, path| CacheImage {
        path,
        uuid,
        exported: vec![("_f", 0x1000)],
        locals: vec![("_g", 0x1800)],
        function_starts: vec![0],
    };
    let images = [image(0x11, "/usr/lib/libone.dylib"), image(0x22, "/usr/lib/libtwo.dylib")];
    let main = write(&cache(&images, Layout::Split), folder.path());
    assert_eq!(same(&[&main], &[]).len(), 3, "two images and the totals");
    // One image is in the missing part.
    fs::remove_file(folder.path().join("dyld_shared_cache_arm64e.01")).expect("removed");
    same(&[&main, &crate::common::dsym("icf")], &[]);

    let maps = folder.path().join("maps");
    fs::create_dir(&maps).expect("a folder");
    let hidden = folder.path().join("hidden.dylib");
    let mut bytes = fs::read(testdata().join("demo/DemoPlain.dylib")).expect("there");
    let symbol = b"_plain_each_row\0";
    let at = bytes.windows(symbol.len()).position(|window| window == symbol).expect("a symbol");
    bytes[at..at + 12].copy_from_slice(b"__hidden#1_\0");
    fs::write(&hidden, bytes).expect("written");
    let map = "4C4C444E-5555-3144-A1E5-129C2DC95135.bcsymbolmap";
    fs::write(maps.join(map), "BCSymbolMap Version: 2.0\n_other\n_plain_each_row\n").expect("written");
    let without = same(&[&hidden], &[]);
    let with = same(&[&hidden], &["--symbol-map", maps.to_str().expect("UTF-8")]);
    assert_eq!((&without[0]["hidden_names"], &with[0]["hidden_names"]), (&json!(1), &json!(0)));
}

/// A debug file whose line program has so many rows that reading them takes more than 64 MB.
fn large() -> Vec<u8> {
    // Opcode 33 advances the address by 1 and the line by 1.
    let unit = Unit::new((0x1000, 0x1100)).sequence_of_bytes(0x1000, &vec![33; 3 << 20]);
    debug_file(&[unit], &[("f", 0x1000)])
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_whose_child_dies_does_not_stop_the_others() {
    let folder = folder();
    let (large_file, out) = (folder.path().join("large"), folder.path().join("out"));
    fs::write(&large_file, large()).expect("written");
    // The child inherits this limit, which is lower than its own.
    let script = r#"ulimit -d 65536; exec "$0" "$@""#;
    let built = Command::new("sh")
        .args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_symdex"),
            "build",
            "--isolate",
            "--json",
            "--jobs",
            "2",
            "-o",
        ])
        .args([&out, &crate::common::dsym("icf"), &large_file, &crate::common::dsym("cxx")])
        .output()
        .expect("sh");
    let built = CommandOutput::from(built);
    assert_eq!(built.code, Some(1), "{}", built.err);
    assert_eq!(built.images().len(), 2, "{}", built.out);
    let failure = built.json().into_iter().find(|line| line.get("error").is_some()).expect("a failure");
    let message = format!(
        "{}: needs more memory than the 64 MB that a child may have; raise --max-memory to build it",
        large_file.display()
    );
    let error = json!({ "kind": "limit", "limit": "memory", "message": message });
    assert_eq!(failure, json!({ "file": large_file, "error": error }));
    assert!(built.err.contains(&message), "{}", built.err);
    let names = names_in(&out);
    assert!(names.len() == 2 && names.iter().all(|name| name.ends_with(".symdex")), "{names:?}");
}

#[test]
fn the_command_of_the_child_is_not_shown() {
    let help = symdex(["--help"]).ok();
    assert!(!help.contains("isolated-child"), "{help}");
    let help = symdex(["build", "--help"]).ok();
    assert!(help.contains("--isolate"), "{help}");
}
