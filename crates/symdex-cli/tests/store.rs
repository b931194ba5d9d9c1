//! `symdex store` on stores in folders.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::store_verbs::{indexes, store, totals};
use crate::common::{
    command, debug_file, demo_files, folder, indexes_in, symdex, symdex_on, testdata,
    without_debug_information,
};
use serde_json::Value;

/// A store of the golden indexes below `root`.
fn filled(root: &Path) -> PathBuf {
    let path = root.join("store");
    let put = store("put", [&path], indexes().iter().map(|(path, _)| path));
    assert_eq!(put.code, Some(0), "{}", put.err);
    path
}

/// The file of the index of `id` in the store at `path`.
fn file(path: &Path, id: &str) -> PathBuf {
    path.join(&id[..2]).join(format!("{id}.symdex"))
}

/// Changes a byte in the middle of the file.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(path, bytes).expect("written");
}

#[test]
fn ls_prints_each_index_and_totals() {
    let root = folder();
    let path = filled(root.path());
    let listed = store("ls", [&path], [] as [&str; 0]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let mut lines = listed.out.lines();
    let header = lines.next().expect("a header");
    assert!(
        header.contains("STORED") && header.contains("LAYOUT") && header.ends_with("ID  IMAGE"),
        "{header}"
    );
    let id_and_name = |line: &str| {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        words[words.len() - 2..].join(" ")
    };
    let mut images: Vec<_> = lines.map(id_and_name).collect();
    images.sort();
    let name = |path: &Path| symdex::Metadata::read_file(path).expect("an index").image_name;
    let mut expected: Vec<_> =
        indexes().into_iter().map(|(path, id)| format!("{id} {}", name(&path))).collect();
    expected.sort();
    assert_eq!(images, expected);
    assert!(listed.err.starts_with(&format!("{} indexes, ", expected.len())), "{}", listed.err);

    let (file, id) = &indexes()[0];
    for prefix in [&id[..8], id] {
        let one = store("ls", [&path], ["--id", prefix, "--json"]);
        let [line, totals] = &one.json()[..] else { panic!("{}", one.out) };
        let size = fs::metadata(file).expect("there").len();
        assert_eq!((line["id"].as_str(), line["name"].as_str()), (Some(&id[..]), Some(&name(file)[..])));
        assert_eq!((&line["stored_size"], &line["index_size"]), (&size.into(), &size.into()));
        assert_eq!((line["layout"].as_str(), &line["expires"]), (Some("whole"), &Value::Null));
        assert_eq!((&totals["totals"]["indexes"], &totals["totals"]["size"]), (&1.into(), &size.into()));
    }
    let none = store("ls", [&path], ["--id", "00000000"]);
    assert_eq!(none.code, Some(3), "{}", none.err);
    assert!(none.err.contains("no index has an id that begins with 00000000"), "{}", none.err);
}

#[test]
fn a_folder_that_does_not_exist_is_missing() {
    let root = folder();
    let gone = root.path().join("gone");
    for (verb, more) in [("ls", vec![]), ("stat", vec!["0c37"]), ("verify", vec![]), ("rm", vec!["0c37"])] {
        let missing = store(verb, [&gone], more);
        assert_eq!(missing.code, Some(5), "{verb}: {}", missing.err);
        assert!(missing.err.contains("gone"), "{verb}: {}", missing.err);
    }
    let file = root.path().join("file");
    fs::write(&file, b"").expect("written");
    let wrong = store("ls", [&file], [] as [&str; 0]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
}

#[test]
fn stat_says_where_an_index_is_and_that_an_id_is_missing() {
    let root = folder();
    let path = filled(root.path());
    let (_, id) = &indexes()[0];
    let found = store("stat", [&path], [&id[..8]]).ok();
    for part in [id, file(&path, id).to_str().expect("UTF-8"), "layout    whole", "last use  20"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let both = store("stat", [&path], [&id[..8], "00000000"]);
    assert_eq!((both.code, both.out), (Some(3), found));
    assert!(both.err.contains("no index has an id that begins with 00000000"), "{}", both.err);
}

#[test]
fn get_writes_the_same_bytes_and_nothing_if_the_index_is_damaged() {
    let root = folder();
    let path = filled(root.path());
    let [(first, first_id), (second, second_id), ..] = &indexes()[..] else { panic!("too few indexes") };
    let target = root.path().join("got");
    let both = store("get", [&path], [&first_id[..8], second_id, "-o", target.to_str().expect("UTF-8")]);
    assert_eq!(both.code, Some(0), "{}", both.err);
    for (golden, id) in [(first, first_id), (second, second_id)] {
        let got = fs::read(target.join(format!("{id}.symdex"))).expect("written");
        assert!(got == fs::read(golden).expect("there"), "{id}");
    }
    let printed = command().args(["store", "get"]).arg(&path).args([first_id, "-o", "-"]).output();
    assert!(printed.expect("ran").stdout == fs::read(first).expect("there"));

    damage(&file(&path, first_id));
    let one = target.join("one");
    let damaged = store("get", [&path], [first_id, "-o", one.to_str().expect("UTF-8")]);
    assert_eq!((damaged.code, one.exists()), (Some(4), false), "{}", damaged.err);
    let missing = store("get", [&path], ["00000000", "--json"]);
    assert_eq!((missing.code, missing.json()[0]["error"]["kind"].as_str()), (Some(3), Some("not_found")));
}

#[test]
fn put_checks_each_index_and_puts_the_others() {
    let root = folder();
    let cut = root.path().join("cut.symdex");
    let [(first, _), (second, _), ..] = &indexes()[..] else { panic!("too few indexes") };
    let bytes = fs::read(first).expect("there");
    fs::write(&cut, &bytes[..bytes.len() - 1]).expect("written");
    let gone = root.path().join("gone.symdex");
    let path = root.path().join("store");
    let put = store("put", [&path], [&cut, second, &gone]);
    assert_eq!(put.code, Some(4), "{}", put.err);
    assert!(put.err.contains("cut.symdex") && put.err.contains("gone.symdex"), "{}", put.err);
    assert_eq!(indexes_in(&path).len(), 1);
    let again = store("put", [&path], [second.to_str().expect("UTF-8"), "--json"]);
    assert_eq!((again.code, again.json()[0]["outcome"].as_str()), (Some(0), Some("unchanged")));
}

#[test]
fn rm_removes_whole_ids_only_and_says_what_it_removed() {
    let root = folder();
    let path = filled(root.path());
    let (_, id) = &indexes()[0];
    let first_digits = store("rm", [&path], [&id[..8]]);
    assert_eq!((first_digits.code, first_digits.out.as_str()), (Some(2), ""), "{}", first_digits.err);
    assert!(first_digits.err.contains(&format!("to remove {id}, give all")), "{}", first_digits.err);
    assert!(file(&path, id).exists());
    let removed = store("rm", [&path], [&id.to_uppercase()]).ok();
    assert!(removed.starts_with(&format!("removed  {id}  ")), "{removed}");
    assert!(removed.trim_end().ends_with(file(&path, id).to_str().expect("UTF-8")), "{removed}");
    assert!(!file(&path, id).exists());
    assert_eq!(indexes_in(&path).len(), indexes().len() - 1);
    assert_eq!(store("rm", [&path], [id]).code, Some(3));
    let without_ids = store("rm", [&path], [] as [&str; 0]);
    assert_eq!(without_ids.code, Some(2), "{}", without_ids.err);
}

#[test]
fn gc_removes_unused_indexes_and_names_them() {
    let root = folder();
    let path = filled(root.path());
    let ids: Vec<_> = indexes().into_iter().map(|(_, id)| id).collect();
    let day = Duration::from_secs(24 * 60 * 60);
    let age = |path: &Path, days| {
        let file = File::options().write(true).open(path).expect("there");
        file.set_modified(SystemTime::now() - days * day).expect("changed");
    };
    age(&file(&path, &ids[0]), 50);
    age(&file(&path, &ids[1]), 40);
    let leftover = path.join(".symdex-killed.tmp");
    fs::write(&leftover, b"").expect("written");
    age(&leftover, 2);

    let dry = store("gc", [&path], ["--older-than", "45d", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    assert!(dry.out.starts_with(&format!("would remove  {}  ", ids[0])), "{}", dry.out);
    assert_eq!((dry.out.lines().count(), indexes_in(&path).len()), (1, ids.len()));
    assert!(leftover.exists());

    let collected = store("gc", [&path], ["--older-than", "45d", "--json"]);
    assert_eq!(collected.code, Some(0), "{}", collected.err);
    let [removed, _] = &collected.json()[..] else { panic!("{}", collected.out) };
    assert_eq!((removed["id"].as_str(), removed["outcome"].as_str()), (Some(&ids[0][..]), Some("removed")));
    let outcomes = totals(&collected)["outcomes"].clone();
    assert_eq!((&outcomes["removed"], &outcomes["leftover_files"]), (&1.into(), &1.into()), "{outcomes}");
    assert_eq!(outcomes["kept"], ids.len() - 1);
    assert!(!file(&path, &ids[0]).exists() && file(&path, &ids[1]).exists() && !leftover.exists());
    for wrong in [&["--older-than", "45"][..], &[]] {
        assert_eq!(store("gc", [&path], wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn gc_removes_nothing_after_a_short_time_unless_that_is_confirmed() {
    let root = folder();
    let path = filled(root.path());
    for (age, said) in [
        ("6m", "--older-than is 6 minutes: uses are recorded once a day"),
        ("23h", "23 hours"),
        ("90m", "90 minutes"),
        ("0s", "removes every index"),
    ] {
        let refused = store("gc", [&path], ["--older-than", age]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{age}: {}", refused.err);
        assert!(refused.err.contains(said) && refused.err.contains("--force"), "{age}: {}", refused.err);
        assert_eq!(indexes_in(&path).len(), indexes().len(), "{age}");
        assert_eq!(store("gc", [&path], ["--older-than", age, "--dry-run"]).code, Some(0), "{age}");
    }
    let kept = store("gc", [&path], ["--older-than", "6m", "--force"]);
    assert_eq!((kept.code, indexes_in(&path).len()), (Some(0), indexes().len()), "{}", kept.err);
    assert_eq!(store("gc", [&path], ["--older-than", "0s", "--force"]).code, Some(0));
    assert_eq!(indexes_in(&path), [""; 0]);
}

#[test]
fn every_reader_of_a_folder_records_a_use() {
    let root = folder();
    let demo = testdata().join("demo");
    let crash = demo.join("demo.crash").display().to_string();
    let path = root.path().join("store");
    let built = symdex_on(&path, &format!("build {} --store {{}}", demo.display()));
    assert_eq!(built.code, Some(0), "{}", built.err);
    let ids: Vec<_> = demo_files().iter().map(|(id, _)| *id).collect();
    let old = SystemTime::now() - Duration::from_secs(50 * 24 * 60 * 60);
    let (id, index) = (ids[0], file(&path, ids[0]).display().to_string());
    for (line, used) in [
        (format!("lookup {{}} --id {id} 0x1000"), &ids[..1]),
        (format!("lookup {index} 0x1000"), &ids[..1]),
        (format!("lookup --store {{}} --id {id} 0x1000"), &ids[..1]),
        (format!("atos -o {{}} --id {id} -offset 0x1000"), &ids[..1]),
        (format!("symbolicate {crash} --index {{}} --store {{}}/none"), &ids[..]),
        (format!("symbolicate {crash} --store {{}}"), &ids[..]),
        (format!("inspect {index}"), &[]),
        ("ids {}".to_owned(), &[]),
    ] {
        for id in &ids {
            File::options()
                .write(true)
                .open(file(&path, id))
                .and_then(|file| file.set_modified(old))
                .expect("aged");
        }
        symdex_on(&path, &line.replace("{}/none", &root.path().join("none").display().to_string()));
        let dry = store("gc", [&path], ["--older-than", "45d", "--dry-run", "--json"]);
        let unused: Vec<_> =
            dry.json().iter().filter_map(|line| Some(line["id"].as_str()?.to_owned())).collect();
        let expected: Vec<_> = ids.iter().filter(|id| !used.contains(id)).copied().collect();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(unused, expected, "{line}");
        let said = "may not write the files of the indexes are not recorded";
        assert_eq!(dry.err.contains(said), !unused.is_empty(), "{line}: {}", dry.err);
    }
}

#[test]
fn verify_checks_every_index_and_names_the_damaged_one() {
    let root = folder();
    let path = filled(root.path());
    let (_, id) = &indexes()[0];
    let whole = store("verify", [&path], [] as [&str; 0]);
    assert_eq!((whole.code, whole.out.lines().count()), (Some(0), indexes().len()), "{}", whole.err);
    assert!(whole.out.lines().all(|line| line.contains("  whole: ")), "{}", whole.out);

    damage(&file(&path, id));
    let damaged = store("verify", [&path], ["--json"]);
    assert_eq!(damaged.code, Some(4), "{}", damaged.err);
    assert!(damaged.err.contains(file(&path, id).to_str().expect("UTF-8")), "{}", damaged.err);
    let failed: Vec<_> = damaged.json().into_iter().filter(|line| line.get("error").is_some()).collect();
    assert_eq!((failed.len(), failed[0]["id"].as_str()), (1, Some(id.as_str())), "{}", damaged.out);
    assert_eq!(totals(&damaged)["outcomes"]["whole"], indexes().len() - 1);
    let other = &indexes()[1].1;
    assert_eq!(store("verify", [&path], ["--id", &other[..8]]).code, Some(0));
}

#[test]
fn copy_goes_on_where_it_was_interrupted() {
    let root = folder();
    let (from, to) = (filled(root.path()), root.path().join("copies"));
    let all = store("copy", [&from, &to], ["--json"]);
    assert_eq!(all.code, Some(0), "{}", all.err);
    assert_eq!(totals(&all)["outcomes"]["written"], indexes().len());
    assert_eq!(indexes_in(&from), indexes_in(&to));
    // As if the copy had been interrupted, and one index had been cut since.
    let [(_, gone), (_, cut), ..] = &indexes()[..] else { panic!("too few indexes") };
    fs::remove_file(file(&to, gone)).expect("there");
    let bytes = fs::read(file(&to, cut)).expect("there");
    fs::write(file(&to, cut), &bytes[..bytes.len() / 2]).expect("written");
    let rest = store("copy", [&from, &to], ["--json"]);
    let outcomes = totals(&rest)["outcomes"].clone();
    assert_eq!((&outcomes["written"], &outcomes["repaired"]), (&1.into(), &1.into()), "{outcomes}");
    assert_eq!(outcomes["unchanged"], indexes().len() - 2);
    for (golden, id) in indexes() {
        assert!(fs::read(file(&to, &id)).expect("there") == fs::read(golden).expect("there"), "{id}");
    }
    // People see only what has changed.
    let again = store("copy", [&from, &to], [] as [&str; 0]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "{}", again.err);
    assert!(again.err.contains(&format!("{} unchanged", indexes().len())), "{}", again.err);
}

#[test]
fn an_index_that_is_there_is_skipped_without_reading_it() {
    let root = folder();
    let (from, to) = (filled(root.path()), root.path().join("copies"));
    assert_eq!(store("copy", [&from, &to], [] as [&str; 0]).code, Some(0));
    let (_, id) = &indexes()[0];
    damage(&file(&from, id));
    let again = store("copy", [&from, &to], ["--json"]);
    assert_eq!(totals(&again)["outcomes"]["unchanged"], indexes().len(), "{}", again.out);
    // Without it in the target, the damage is found, and the damaged index is not copied.
    fs::remove_file(file(&to, id)).expect("there");
    let damaged = store("copy", [&from, &to], [] as [&str; 0]);
    assert_eq!((damaged.code, file(&to, id).exists()), (Some(4), false), "{}", damaged.err);
}

#[test]
fn copy_takes_the_indexes_of_an_id_only_and_refuses_the_same_store() {
    let root = folder();
    let (from, to) = (filled(root.path()), root.path().join("copies"));
    let (_, id) = &indexes()[0];
    let one = store("copy", [&from, &to], ["--id", &id[..8]]);
    assert_eq!((one.code, indexes_in(&to)), (Some(0), vec![format!("{id}.symdex")]), "{}", one.err);
    assert_eq!(store("copy", [&from, &to], ["--id", "00000000"]).code, Some(3));
    let same = store("copy", [&from, &from], [] as [&str; 0]);
    assert_eq!(same.code, Some(2), "{}", same.err);
}

#[test]
fn a_dash_stands_for_the_stores_in_the_environment() {
    let root = folder();
    let path = filled(root.path());
    let run = |verb: &str, stores: &str| {
        let output = command().args(["store", verb, "-"]).env("SYMDEX_STORE", stores).output();
        crate::common::CommandOutput::from(output.expect("ran"))
    };
    let one = path.to_str().expect("UTF-8");
    assert_eq!(run("ls", one).out.lines().count(), indexes().len() + 1);
    let twice = run("ls", &format!("{one} {one}"));
    assert_eq!(twice.out.lines().count(), 2 * indexes().len() + 1);
    assert!(twice.out.lines().skip(1).all(|line| line.contains(one)), "{}", twice.out);
    let secret = run("ls", "ftp://me:hunter2@host");
    assert_eq!(secret.code, Some(2), "{}", secret.err);
    assert!(!secret.err.contains("hunter2"), "{}", secret.err);
    assert_eq!(run("ls", "").code, Some(2));
    let refused = symdex(["store", "ls", "https://me:hunter2@host/x"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("SYMDEX_STORE") && !refused.err.contains("hunter2"), "{}", refused.err);
}

#[test]
fn every_command_has_help_with_examples_and_exit_codes() {
    for verb in ["ls", "stat", "get", "put", "rm", "gc", "verify", "copy"] {
        let help = symdex(["store", verb, "--help"]).ok();
        assert!(help.contains(&format!("symdex store {verb} ")), "{help}");
        assert!(
            help.contains("Examples:") && help.contains("Exit codes:") && help.contains("JSON:"),
            "{help}"
        );
    }
}

/// A copy of a debug file in which the function `scaled` is called `poison`.
fn with_another_name(debug_file: &Path) -> Vec<u8> {
    let mut bytes = fs::read(debug_file).expect("a debug file");
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"scaled")).collect();
    assert!(!places.is_empty(), "{} has the name", debug_file.display());
    places.into_iter().for_each(|at| bytes[at..at + 6].copy_from_slice(b"poison"));
    bytes
}

#[test]
fn the_rule_for_conflicts_can_be_chosen() {
    let root = folder();
    let (whole, stripped) = (debug_file("cxx"), root.path().join("cxx"));
    fs::write(&stripped, without_debug_information(&whole)).expect("written");
    let outcome = |input: &Path, output: &Path, rule: &[&str]| {
        let mut run = command();
        run.arg("build").arg(input).arg("-o").arg(output).arg("--json").args(rule);
        let built = crate::common::CommandOutput::from(run.output().expect("the command starts"));
        assert_eq!(built.code, Some(0), "{}", built.err);
        built.images()[0]["outcome"].as_str().expect("text").to_owned()
    };
    let (indexes, other) = (root.path().join("indexes"), root.path().join("other"));
    assert_eq!(outcome(&stripped, &indexes, &[]), "written");
    assert_eq!(outcome(&whole, &indexes, &["--on-conflict", "keep"]), "kept");
    assert_eq!(outcome(&whole, &indexes, &[]), "replaced");
    assert_eq!(outcome(&stripped, &indexes, &["--on-conflict", "more"]), "kept");
    assert_eq!(outcome(&stripped, &indexes, &["--on-conflict", "replace"]), "replaced");
    // A debug file with the same counts and other names is taken for the one that was built, unless its index is
    // replaced.
    let poisoned = root.path().join("poisoned");
    fs::create_dir(&poisoned).expect("made");
    let poisoned = poisoned.join("cxx");
    fs::write(&poisoned, with_another_name(&whole)).expect("written");
    let wrong = root.path().join("wrong");
    assert_eq!(outcome(&poisoned, &wrong, &[]), "written");
    assert_eq!(outcome(&whole, &wrong, &[]), "unchanged");
    assert_eq!(outcome(&whole, &wrong, &["--on-conflict", "replace"]), "replaced");
    assert_eq!(outcome(&whole, &wrong, &["--on-conflict", "replace"]), "unchanged");
    // The same for index files.
    assert_eq!(outcome(&whole, &other, &[]), "written");
    let put = |from: &Path, to: &Path, rule: &[&str]| {
        let arguments = [&[from.to_str().expect("UTF-8"), "--json"], rule].concat();
        let put = store("put", [to], arguments);
        assert_eq!(put.code, Some(0), "{}", put.err);
        put.json()[0]["outcome"].as_str().expect("text").to_owned()
    };
    let target = root.path().join("store");
    assert_eq!(put(&other, &target, &[]), "written");
    assert_eq!(put(&indexes, &target, &[]), "kept");
    assert_eq!(put(&indexes, &target, &["--on-conflict", "replace"]), "replaced");
    assert_eq!(put(&other, &target, &["--on-conflict", "keep"]), "kept");
    let wrong = store("put", [&target], [other.to_str().expect("UTF-8"), "--on-conflict", "best"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("keep, replace or more"), "{}", wrong.err);
}
