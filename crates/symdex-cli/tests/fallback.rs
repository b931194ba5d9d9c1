//! `symdex symbolicate` with indexes that are damaged and a store that cannot be written: the next source answers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, command, folder, names_in, symbolicate, symdex, testdata};

const KIT: &str = "4c4c442755553144a19dbd913be790e0.symdex";

fn crash() -> PathBuf {
    testdata().join("demo/demo.crash")
}

/// The demo's indexes in `folder`, and its crash symbolicated from them.
fn indexes(folder: &Path) -> CommandOutput {
    let built =
        symdex(["build".as_ref(), testdata().join("demo").as_os_str(), "-o".as_ref(), folder.as_os_str()]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    from(&[folder], &[])
}

/// The demo's crash, symbolicated from the indexes in these folders, without a store.
fn from(folders: &[&Path], options: &[&str]) -> CommandOutput {
    let mut run = command();
    run.arg("symbolicate").arg(crash()).args(options).arg("--store").arg(crash().join("none"));
    folders.iter().for_each(|folder| {
        run.arg("--index").arg(folder);
    });
    CommandOutput::from(run.output().expect("the command starts"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for name in names_in(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("copied");
    }
}

/// Damages the index so that it cannot be opened.
fn cut(index: &Path) {
    let mut bytes = fs::read(index).expect("there");
    bytes.truncate(100);
    fs::write(index, bytes).expect("written");
}

/// Damages a page that only a lookup reads.
fn flip(index: &Path) {
    let mut bytes = fs::read(index).expect("there");
    let parts = symdex::Index::open(&bytes[..]).expect("an index").sections();
    let chunks = parts.into_iter().find(|part| part.name == "chunks").expect("a part");
    bytes[usize::try_from(chunks.offset).expect("small") + 20] ^= 1;
    symdex::Index::open(&bytes[..]).expect("it opens all the same");
    fs::write(index, bytes).expect("written");
}

/// The JSON of the image DemoKit, and of the crash's first frame, which is in it.
fn kit(done: &CommandOutput) -> (serde_json::Value, serde_json::Value) {
    let [report] = &done.json()[..] else { panic!("{}", done.out) };
    let images = report["images"].as_array().expect("images");
    let image = images.iter().find(|image| image["name"] == "DemoKit").expect("it is listed");
    (image.clone(), report["threads"][0]["frames"][0].clone())
}

#[test]
fn a_damaged_index_is_reported_and_the_next_folder_answers() {
    for damage in [cut, flip] {
        let root = folder();
        let (good, bad) = (root.path().join("good"), root.path().join("bad"));
        let whole = indexes(&good);
        copy(&good, &bad);
        damage(&bad.join(KIT));
        let done = from(&[&bad, &good], &[]);
        assert_eq!((done.code, &done.out), (Some(4), &whole.out), "{}", done.err);
        let path = bad.join(KIT).display().to_string();
        let said: Vec<_> = done.err.lines().filter(|line| line.contains(&path)).collect();
        assert_eq!(said.len(), 1, "{}", done.err);
        assert!(said[0].starts_with("symdex:   damaged: "), "{}", said[0]);
        assert!(said[0].ends_with(&format!("; answered from {}", good.join(KIT).display())), "{}", said[0]);
        let (image, frame) = kit(&from(&[&bad, &good], &["--format", "json"]));
        assert_eq!(
            (image["status"].as_str(), frame["status"].as_str()),
            (Some("damaged"), Some("symbolicated"))
        );
        assert!(image["reason"].as_str().is_some_and(|reason| reason.starts_with(&path)), "{image}");
        assert_eq!(image["source"].as_str(), good.join(KIT).to_str());
        // In the other order, the damaged index is not asked.
        assert_eq!(from(&[&good, &bad], &[]).code, Some(0));
    }
}

#[test]
fn without_another_source_the_frames_of_a_damaged_index_are_malformed() {
    for damage in [cut, flip] {
        let root = folder();
        let whole = indexes(root.path());
        damage(&root.path().join(KIT));
        let done = from(&[root.path()], &["--format", "json"]);
        let (image, frame) = kit(&done);
        assert_eq!((done.code, image["status"].as_str()), (Some(4), Some("damaged")), "{}", done.err);
        assert_eq!(frame["status"], "damaged");
        assert!(image["reason"].as_str().is_some_and(|reason| !reason.contains("answered from")), "{image}");
        assert_ne!(from(&[root.path()], &[]).out, whole.out);
    }
}

#[test]
fn a_damaged_single_index_is_reported_and_the_others_answer() {
    let root = folder();
    let (good, bad) = (root.path().join("good"), root.path().join(KIT));
    let whole = indexes(&good);
    fs::copy(good.join(KIT), &bad).expect("copied");
    cut(&bad);
    let done = from(&[&bad, &good], &[]);
    assert_eq!((done.code, &done.out), (Some(4), &whole.out), "{}", done.err);
    assert_eq!(done.err.matches(&bad.display().to_string()).count(), 1, "{}", done.err);
}

#[test]
fn a_damaged_index_in_the_store_is_built_again_from_its_debug_file() {
    for damage in [cut, flip] {
        let root = folder();
        let dsym = testdata().join("demo");
        let whole = symbolicate(root.path(), &dsym, &[], [crash()]);
        let index = root.path().join("store/4c").join(KIT);
        let bytes = fs::read(&index).expect("there");
        damage(&index);
        let done = symbolicate(root.path(), &dsym, &[], [crash()]);
        assert_eq!((done.code, &done.out), (Some(4), &whole.out), "{}", done.err);
        assert!(done.err.contains(&format!("damaged: {}", index.display())), "{}", done.err);
        assert_eq!(fs::read(&index).expect("there"), bytes);
        let again = symbolicate(root.path(), &dsym, &[], [crash()]);
        assert_eq!((again.code, again.out, again.err), (Some(0), whole.out, whole.err));
    }
}

/// Every report of a run has the same status for the index, although one of them replaces it.
#[test]
fn reports_that_need_a_damaged_index_agree() {
    let root = folder();
    let dsym = testdata().join("demo");
    let reports = vec![crash(); 8];
    let whole = symbolicate(root.path(), &dsym, &["--format", "json"], &reports);
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    cut(&root.path().join("store/4c").join(KIT));
    let done = symbolicate(root.path(), &dsym, &["--format", "json"], &reports);
    assert_eq!((done.code, done.err.matches("damaged: ").count()), (Some(4), 1), "{}", done.err);
    let [first, others @ ..] = &done.json()[..] else { panic!("{}", done.out) };
    assert!(first.to_string().contains("damaged"), "{first}");
    assert!(others.iter().all(|report| report == first));
}

#[test]
fn a_store_that_cannot_be_written_is_a_warning_and_indexes_are_built_in_memory() {
    let root = folder();
    let dsym = testdata().join("demo");
    let whole = symbolicate(root.path(), &dsym, &[], [crash()]);
    let file = root.path().join("file");
    fs::write(&file, "").expect("written");
    let mut run = command();
    run.arg("symbolicate").arg(crash()).arg("--dsym").arg(&dsym).arg("--store").arg(file.join("store"));
    let done = CommandOutput::from(run.output().expect("the command starts"));
    assert_eq!((done.code, &done.out), (Some(0), &whole.out), "{}", done.err);
    let (warning, summary) = done.err.split_once('\n').expect("lines");
    assert!(warning.starts_with("symdex: warning: ") && warning.contains("--store"), "{warning}");
    assert_eq!(summary, whole.err, "it is said once");
}

/// An index is stored in the user's cache folder only if the reports ask for many addresses of its image.
#[test]
fn few_addresses_are_answered_from_the_debug_file_and_for_many_its_index_is_stored() {
    let root = folder();
    let dsym = testdata().join("demo");
    let whole = symbolicate(root.path(), &dsym, &[], [crash()]);
    let run = |reports: usize, home: &Path, options: &[&str]| {
        let mut run = command();
        run.arg("symbolicate").args(vec![crash(); reports]).arg("--dsym").arg(&dsym).args(options);
        run.env("HOME", home).env("XDG_CACHE_HOME", home.join("cache"));
        CommandOutput::from(run.output().expect("the command starts"))
    };
    let done = run(1, root.path(), &[]);
    assert_eq!((done.code, &done.out, &done.err), (Some(0), &whole.out, &whole.err));
    assert!(!root.path().join("cache").exists());
    let many = run(40, root.path(), &["--format", "json"]);
    assert_eq!(many.code, Some(0), "{}", many.err);
    let [first, others @ ..] = &many.json()[..] else { panic!("{}", many.out) };
    assert!(others.iter().all(|report| report["threads"] == first["threads"]));
    assert!(names_in(&root.path().join("cache/symdex/4c")).contains(&KIT.to_owned()));
    // Few addresses need no cache folder. For many addresses, a warning says that there is none.
    let file = root.path().join("file");
    fs::write(&file, "").expect("written");
    let done = run(1, &file, &[]);
    assert_eq!((done.code, &done.out, &done.err), (Some(0), &whole.out, &whole.err));
    let many = run(40, &file, &["--format", "json"]);
    assert_eq!((many.code, many.err.matches("symdex: warning: ").count()), (Some(0), 1), "{}", many.err);
}

#[test]
fn indexes_are_found_in_folders_below() {
    let root = folder();
    let whole = indexes(&root.path().join("flat"));
    let deep = root.path().join("deep");
    copy(&root.path().join("flat"), &deep.join("app/1.0/arm64"));
    fs::create_dir_all(deep.join("kit/4c")).expect("folders");
    fs::rename(deep.join("app/1.0/arm64").join(KIT), deep.join("kit/4c").join(KIT)).expect("moved");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&deep, deep.join("app/loop")).expect("linked");
    let done = from(&[&deep], &[]);
    assert_eq!((done.code, done.out, done.err), (Some(0), whole.out, whole.err));
}
