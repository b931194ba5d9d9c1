//! The store in a folder.

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use common::{behaves_as_a_store, entries, id, index, put};
use symdex_store::{FolderStore, IndexFolder, Store, StoreOptions, open_store};

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

#[test]
fn a_folder_behaves_as_a_store() {
    let root = tempfile::tempdir().expect("a folder");
    let url = root.path().join("not there yet").to_str().expect("text").parse().expect("a path");
    let store = open_store(&url, &StoreOptions::new()).expect("opened");
    behaves_as_a_store(&*store);
}

#[test]
fn indexes_are_fanned_out_by_two_digits_and_flat_ones_are_found() {
    let root = tempfile::tempdir().expect("a folder");
    let store = FolderStore::at(root.path());
    put(&store, &index(0xab, 1));
    let path = root.path().join("ab").join(IndexFolder::file_name(&id(0xab)));
    assert!(path.is_file());
    assert_eq!(store.location(&id(0xab)), path.display().to_string());
    fs::write(root.path().join(IndexFolder::file_name(&id(0xcd))), index(0xcd, 1)).expect("written");
    assert_eq!(entries(&store).len(), 2);
    assert!(store.remove(&id(0xcd)).expect("removed"));
}

#[test]
fn a_use_is_recorded_once_a_day() {
    let root = tempfile::tempdir().expect("a folder");
    let store = FolderStore::at(root.path());
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

#[test]
fn gc_removes_unused_indexes_and_files_of_killed_processes_only() {
    let root = tempfile::tempdir().expect("a folder");
    let store = FolderStore::at(root.path());
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
    let counts = store.gc(45 * DAY).expect("collected");
    assert_eq!((counts.removed, counts.kept, counts.leftovers, counts.failed), (1, 1, 1, 0));
    assert_eq!(counts.removed_bytes, index(0xab, 1).len() as u64);
    assert!(living.exists() && !killed.exists() && other.exists());
    assert!(store.open(&id(0xab)).expect("readable").is_none());
    assert!(store.open(&id(0xcd)).expect("readable").is_some());
}

#[test]
fn a_missing_folder_is_an_empty_store() {
    let root = tempfile::tempdir().expect("a folder");
    let store = FolderStore::at(&root.path().join("missing"));
    assert!(entries(&store).is_empty());
    assert_eq!(store.gc(DAY).expect("collected").removed, 0);
    assert!(!root.path().join("missing").exists());
}

/// Puts and removes two indexes of one id for ever, as the process that
/// [`a_killed_writer_leaves_no_index_the_old_or_the_new_one`] kills. Does nothing when all tests are run.
#[test]
fn one_process_that_is_killed() {
    let Ok(folder) = std::env::var(KILLED) else { return };
    let store = FolderStore::at(Path::new(&folder));
    let [small, large] = [3, 3000].map(|functions| index(0xab, functions));
    loop {
        put(&store, &small);
        put(&store, &large);
        store.remove(&id(0xab)).expect("removed");
    }
}

const KILLED: &str = "SYMDEX_TEST_KILLED";

#[cfg(unix)]
#[test]
fn a_killed_writer_leaves_no_index_the_old_or_the_new_one() {
    let root = tempfile::tempdir().expect("a folder");
    let store = FolderStore::at(root.path());
    let [small, large] = [3, 3000].map(|functions| index(0xab, functions));
    let mut left = [0; 3];
    for round in 0..40 {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        child.args(["--exact", "one_process_that_is_killed"]).env(KILLED, root.path());
        let mut child = child.stdout(std::process::Stdio::null()).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(40 + round * 7 % 31));
        child.kill().expect("killed");
        child.wait().expect("waited");
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

/// Names the folder of [`writers_of_several_processes`] for its child processes, and the number of rounds.
const FOLDER: &str = "SYMDEX_TEST_WRITERS";
const ROUNDS: &str = "SYMDEX_TEST_ROUNDS";
const PROCESSES: u16 = 4;
const THREADS: u16 = 16;

/// Writes as one of the processes of [`race`]. Does nothing when all tests are run.
#[test]
fn one_process_of_writers() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let variable = |name| std::env::var(name).expect("set").parse::<u16>().expect("a number");
    let (rounds, process) = (variable(ROUNDS), variable("SYMDEX_TEST_PROCESS"));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let folder = Path::new(&folder);
            scope.spawn(move || {
                let bytes = index(0xab, process * THREADS + thread + 1);
                for round in 0..rounds {
                    // Half of the writers write to the folder itself.
                    let folder = folder.join(round.to_string());
                    match (thread + round) % 2 {
                        0 => _ = put(&FolderStore::at(&folder), &bytes),
                        _ => {
                            let index = symdex::Index::open(&bytes[..]).expect("an index");
                            IndexFolder::new(&folder).publish(&index).expect("published");
                        }
                    }
                }
            });
        }
    });
}

/// 64 writers in 4 processes put 64 different indexes of one id into one folder in each round.
fn race(rounds: u16) {
    let root = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this test");
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            let mut child = Command::new(&program);
            child.args(["--exact", "one_process_of_writers"]).env(FOLDER, root.path());
            child.env(ROUNDS, rounds.to_string()).env("SYMDEX_TEST_PROCESS", process.to_string());
            child.stdout(std::process::Stdio::null()).spawn().expect("started")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("waited").success());
    }
    let best = index(0xab, PROCESSES * THREADS);
    for round in 0..rounds {
        let store = FolderStore::at(&root.path().join(round.to_string()));
        let listed = entries(&store);
        assert_eq!(listed.len(), 1, "round {round}: {listed:?}");
        let kept = store.get(&id(0xab)).expect("readable").expect("there");
        assert!(*kept == best[..], "round {round}: {} of {} bytes", kept.len(), best.len());
    }
}

#[cfg(unix)]
#[test]
fn writers_of_several_processes_leave_the_best_index() {
    race(10);
}

#[cfg(unix)]
#[test]
#[ignore = "takes minutes"]
fn writers_of_several_processes_leave_the_best_index_of_1000_rounds() {
    race(1000);
}
