//! The store in a folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::common::{behaves_as_a_store, entries, id, index, put, writers};
use symdex::{Cause, Index};
use symdex_store::{IndexFolder, Store, StoreOptions, open_store};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Sets the time of the last use of the file at `path`.
fn age(path: &Path, age: Duration) {
    let file = File::open(path).expect("a file");
    file.set_modified(SystemTime::now() - age).expect("a time");
}

fn last_use(store: &dyn Store, byte: u8) -> Duration {
    let entry = store.stat(&id(byte)).expect("readable").expect("there");
    entry.last_use.expect("recorded").elapsed().unwrap_or_default()
}

pub(crate) fn a_folder_behaves_as_a_store() {
    let root = tempfile::tempdir().expect("a folder");
    let url = root.path().join("not there yet").to_str().expect("text").parse().expect("a path");
    let store = open_store(&url, &StoreOptions::new()).expect("opened");
    behaves_as_a_store(&*store);
}

pub(crate) fn indexes_are_fanned_out_by_two_digits_and_flat_ones_are_found() {
    let root = tempfile::tempdir().expect("a folder");
    let store = IndexFolder::new(root.path()).fan_out();
    put(&store, &index(0xab, 1));
    let path = root.path().join("ab").join(IndexFolder::file_name(&id(0xab)));
    assert!(path.is_file());
    assert_eq!(store.location(&id(0xab)), path.display().to_string());
    fs::write(root.path().join(IndexFolder::file_name(&id(0xcd))), index(0xcd, 1)).expect("written");
    assert_eq!(entries(&store).len(), 2);
    assert!(store.remove(&id(0xcd)).expect("removed"));
}

pub(crate) fn a_use_is_recorded_once_a_day() {
    let root = tempfile::tempdir().expect("a folder");
    let store = IndexFolder::new(root.path()).fan_out();
    put(&store, &index(0xab, 1));
    let path = store.location(&id(0xab));
    let use_it: [&dyn Fn(); 3] = [
        &|| assert!(store.open(&id(0xab)).expect("readable").is_some()),
        &|| assert!(store.touch(&id(0xab)).expect("readable")),
        &|| _ = put(&store, &index(0xab, 1)),
    ];
    for use_it in use_it {
        age(path.as_ref(), DAY / 2);
        use_it();
        assert!(last_use(&store, 0xab) >= DAY / 2, "recorded half a day ago");
        age(path.as_ref(), 2 * DAY);
        use_it();
        assert!(last_use(&store, 0xab) < DAY / 2, "recorded now");
    }
    age(path.as_ref(), 2 * DAY);
    assert!(store.get(&id(0xab)).expect("readable").is_some());
    assert!(last_use(&store, 0xab) >= DAY, "a copy is not a use");
}

pub(crate) fn gc_removes_unused_indexes_and_files_of_killed_processes_only() {
    let root = tempfile::tempdir().expect("a folder");
    let store = IndexFolder::new(root.path()).fan_out();
    put(&store, &index(0xab, 1));
    put(&store, &index(0xcd, 1));
    age(store.location(&id(0xab)).as_ref(), 46 * DAY);
    age(store.location(&id(0xcd)).as_ref(), 44 * DAY);
    let (living, killed) = (root.path().join("ab/.symdex-1.tmp"), root.path().join("cd/.symdex-2.tmp"));
    let other = root.path().join("notes.txt");
    for (path, days) in [(&living, 0), (&killed, 2), (&other, 100)] {
        fs::write(path, b"").expect("written");
        age(path, days * DAY);
    }
    let [orphan, young] = [0xca, 0xcb].map(|byte| root.path().join(format!("cd/{}.provenance", id(byte))));
    for (path, days) in [(&orphan, 46), (&young, 1)] {
        fs::write(path, b"").expect("written");
        age(path, days * DAY);
    }
    let mut orphans = Vec::new();
    store.orphans(&mut |orphan| orphans.push(orphan.id)).expect("listed");
    orphans.sort();
    assert_eq!(orphans, [id(0xca), id(0xcb)]);
    let counts = store.gc(45 * DAY).expect("collected");
    assert_eq!((counts.removed, counts.kept, counts.leftovers, counts.failed), (1, 1, 1, 0));
    assert_eq!(counts.orphans, 1);
    assert_eq!(counts.removed_bytes, index(0xab, 1).len() as u64);
    assert!(living.exists() && !killed.exists() && other.exists());
    assert!(!orphan.exists() && young.exists(), "the provenance of an index that is not there");
    assert!(store.open(&id(0xab)).expect("readable").is_none());
    assert!(store.open(&id(0xcd)).expect("readable").is_some());
}

pub(crate) fn a_missing_folder_is_an_empty_store() {
    let root = tempfile::tempdir().expect("a folder");
    let store = IndexFolder::new(root.path().join("missing")).fan_out();
    assert!(entries(&store).is_empty());
    assert_eq!(store.gc(DAY).expect("collected").removed, 0);
    assert!(!root.path().join("missing").exists());
}

/// A volume that is unmounted takes the folder away, or leaves an empty mount point.
#[cfg(unix)]
pub(crate) fn a_folder_that_has_vanished_is_an_error_and_is_not_made_anew() {
    let root = tempfile::tempdir().expect("a folder");
    let (path, away) = (root.path().join("store"), root.path().join("away"));
    let store = IndexFolder::new(&path).fan_out();
    assert!(store.open(&id(0xab)).expect("not made yet").is_none());
    put(&store, &index(0xab, 1));
    let new = index(0xcd, 1);
    let fails_everywhere = |text: &str| {
        let results = [
            store.open(&id(0xab)).map(drop),
            store.stat(&id(0xcd)).map(drop),
            store.check(),
            store.ids_from(&[id(0xab)]).remove(0).map(drop),
            store.list(&mut |_| std::ops::ControlFlow::Continue(())),
            store.put(&Index::open(&new[..]).expect("an index")).map(drop),
            store.remove(&id(0xab)).map(drop),
            store.gc(DAY).map(drop),
        ];
        for result in results {
            let error = result.expect_err("it has vanished");
            assert!(error.cause() == Cause::Unavailable && error.to_string().contains(text), "{error}");
        }
    };
    // Another process has found an index there.
    let other = IndexFolder::new(&path).fan_out();
    assert!(other.open(&id(0xab)).expect("readable").is_some());
    fs::rename(&path, &away).expect("renamed");
    other.open(&id(0xab)).expect_err("it has vanished");
    fails_everywhere("it is gone");
    assert!(!path.exists());
    fs::create_dir(&path).expect("made");
    fails_everywhere("an empty folder is in its place");
    fs::remove_dir(&path).expect("empty");
    // The volume is mounted again, or the path leads to another folder with indexes.
    std::os::unix::fs::symlink(&away, &path).expect("a link");
    assert!(store.open(&id(0xab)).expect("readable").is_some());
    put(&store, &new);
    fs::remove_file(&path).expect("removed");
    fs::create_dir_all(path.join("ab")).expect("made");
    assert!(store.open(&id(0xab)).expect("another folder that is not empty").is_none());
    // A folder that was emptied is the same folder.
    fs::remove_dir(path.join("ab")).expect("empty");
    assert!(store.open(&id(0xab)).expect("readable").is_none());
}

/// The folder that child processes write to.
const FOLDER: &str = "SYMDEX_TEST_FOLDER";

/// Runs the function `name` in a process of its own, which writes to `folder`.
fn child(name: &str, folder: &Path) -> Command {
    let mut command = symdex_testkit::child(&format!("folder_store::{name}"));
    command.env(FOLDER, folder);
    command
}

fn folder_of_the_parent() -> PathBuf {
    std::env::var_os(FOLDER).expect("set").into()
}

/// Puts and removes two indexes of one id until it is killed.
pub(crate) fn one_process_that_is_killed() {
    let store = IndexFolder::new(folder_of_the_parent()).fan_out();
    let [small, large] = [3, 3000].map(|functions| index(0xab, functions));
    loop {
        put(&store, &small);
        writers::report_step();
        put(&store, &large);
        writers::report_step();
        store.remove(&id(0xab)).expect("removed");
        writers::report_step();
    }
}

pub(crate) fn a_killed_writer_leaves_no_index_the_old_or_the_new_one() {
    let root = tempfile::tempdir().expect("a folder");
    let store = IndexFolder::new(root.path()).fan_out();
    let [small, large] = [3, 3000].map(|functions| index(0xab, functions));
    let mut left = [0; 3];
    for round in 0..40 {
        writers::kill_after(child("one_process_that_is_killed", root.path()), 1 + round % 7);
        let kept = store.get(&id(0xab)).expect("readable");
        let whole = [None, Some(&small), Some(&large)];
        let which = whole.iter().position(|whole| whole.map(|whole| &whole[..]) == kept.as_deref());
        left[which.expect("absent, old or whole")] += 1;
        // The lock of the killed process is free.
        put(&store, &small);
        store.remove(&id(0xab)).expect("removed");
    }
    assert!(left.iter().filter(|count| **count > 0).count() > 1, "{left:?}");
    let mut leftovers = 0;
    for file in fs::read_dir(root.path().join("ab")).expect("a folder").flatten() {
        if file.path().extension().is_some_and(|extension| extension == "tmp") {
            age(&file.path(), 2 * DAY);
            leftovers += 1;
        }
    }
    assert_eq!(store.gc(45 * DAY).expect("collected").leftovers, leftovers);
}

pub(crate) fn one_process_of_writers() {
    let root = folder_of_the_parent();
    writers::write_in_a_race(|round| {
        let folder = root.join(round.to_string());
        move |functions| {
            let bytes = index(0xab, functions);
            // Half of the writers write to the folder itself.
            if functions % 2 == 0 {
                put(&IndexFolder::new(&folder).fan_out(), &bytes);
            } else {
                let index = symdex::Index::open(&bytes[..]).expect("an index");
                IndexFolder::new(&folder).publish(&index).expect("published");
            }
        }
    });
}

fn race(rounds: u16) {
    let root = tempfile::tempdir().expect("a folder");
    writers::race(rounds, || child("one_process_of_writers", root.path()));
    let best = index(0xab, writers::BEST);
    for round in 0..rounds {
        let store = IndexFolder::new(root.path().join(round.to_string())).fan_out();
        let listed = entries(&store);
        assert_eq!(listed.len(), 1, "round {round}: {listed:?}");
        let kept = store.get(&id(0xab)).expect("readable").expect("there");
        assert!(*kept == best[..], "round {round}: {} of {} bytes", kept.len(), best.len());
    }
}

pub(crate) fn writers_of_several_processes_leave_the_best_index() {
    race(10);
}

pub(crate) fn writers_of_several_processes_leave_the_best_index_of_1000_rounds() {
    race(1000);
}

pub(crate) fn gc_among_writers_and_readers_removes_nothing_fresh() {
    let root = tempfile::tempdir().expect("a folder");
    crate::common::collected::gc_keeps_what_is_fresh(|| Box::new(IndexFolder::new(root.path()).fan_out()));
}

pub(crate) fn a_report_is_answered_from_one_version() {
    let root = tempfile::tempdir().expect("a folder");
    crate::common::versions::a_report_is_answered_from_one_version(|| {
        Box::new(IndexFolder::new(root.path()).fan_out())
    });
}
