//! Which indexes the commands map, and which they read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::{CommandOutput, command, folder, index_of, names_in, symdex, symdex_on, testdata};
use symdex_testkit::images::seal::{CHUNKS_SIZE, FILE_SIZE, enlarge};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
}

/// Makes the index at `path` larger than what is read into memory. Mapped, it is a damaged index.
fn make_large(path: &Path) {
    let more = symdex::MAX_READ_SIZE;
    let mut bytes = fs::read(path).expect("readable");
    enlarge(&mut bytes, &[FILE_SIZE, CHUNKS_SIZE], more);
    fs::write(path, &bytes).expect("written");
    // The rest of the file is a hole, which takes no space.
    let file = fs::OpenOptions::new().write(true).open(path).expect("writable");
    file.set_len(bytes.len() as u64 + more).expect("sparse");
}

#[test]
fn an_index_that_others_can_change_is_read_unless_the_option_map_is_given() {
    let root = folder();
    let path = index_of("inline-dwarf4", root.path());
    make_large(&path);
    let commands = ["lookup {} 0x400", "atos -o {} -offset 0x400", "verify {}", "inspect {}"];
    let run = |line: &str, map: &str| symdex_on(&path, &format!("{line}{map}"));
    // (The mode of the folder, the option, whether the index is mapped.)
    for (mode, option, is_mapped) in [(0o755, "", true), (0o777, "", false), (0o777, " --map", true)] {
        set_mode(root.path(), mode);
        for line in commands {
            let CommandOutput { code, out, err } = run(line, option);
            let text = out + &err;
            if is_mapped {
                assert!(code == Some(4) && text.contains("damaged index"), "{line} {mode:o}: {text}");
            } else {
                assert_eq!(code, Some(1), "{line} {mode:o}: {text}");
                assert!(text.contains("at most 1073741824 are read into memory; map it instead, with --map"));
            }
        }
        // Only metadata is read.
        assert_eq!(run("ids {}", "").code, Some(0));
    }
}

#[test]
fn a_report_is_answered_from_indexes_that_others_can_change() {
    let root = folder();
    let indexes = root.path().join("indexes");
    let build =
        ["build".into(), testdata().join("demo").into_os_string(), "-o".into(), indexes.clone().into()];
    assert_eq!(symdex(build).code, Some(0));
    set_mode(root.path(), 0o755);
    let run = |mode: u32, options: &[&str]| {
        set_mode(&indexes, mode);
        let mut run = command();
        run.arg("symbolicate").arg(testdata().join("demo/demo.crash")).args(options);
        run.arg("--index").arg(&indexes).arg("--store").arg(root.path().join("store"));
        CommandOutput::from(run.output().expect("the command starts"))
    };
    let private = run(0o755, &[]).out;
    assert!(private.contains("[inlined]"), "{private}");
    assert_eq!(run(0o777, &[]).out, private);
    assert_eq!(run(0o777, &["--map"]).out, private);
    // All of them are too large to be read.
    fs::read_dir(&indexes).expect("a folder").for_each(|entry| make_large(&entry.expect("an entry").path()));
    assert!(run(0o777, &[]).err.contains("map it instead, with --map"));
    assert!(!run(0o777, &["--map"]).err.contains("map it instead"));
}

#[test]
fn the_store_in_the_cache_folder_is_private() {
    let root = folder();
    let mut run = command();
    // So many frames that an index is built.
    run.arg("symbolicate").args(vec![testdata().join("demo/demo.crash"); 40]);
    run.arg("--dsym").arg(testdata().join("demo"));
    let done = run.env("XDG_CACHE_HOME", root.path().join("cache")).env("HOME", root.path()).output();
    assert!(done.expect("the command starts").status.success());
    let caches = [root.path().join("cache/symdex"), root.path().join("Library/Caches/symdex")];
    let store = caches.iter().find(|store| !names_in(store).is_empty()).expect("a store");
    assert_eq!(fs::metadata(store).expect("there").permissions().mode() & 0o7777, 0o700);
}
