use symdex::Counts;
use symdex_testkit::images::seal::seal_header;

use super::*;
use crate::test_indexes::{index, with_counts};

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn the_index_that_has_more_stays_in_any_order() {
    let digest_order = [index(7, 2, 3, "x"), index(7, 2, 3, "y")];
    let [small, large] = if rank(&digest_order[0]) < rank(&digest_order[1]) { [0, 1] } else { [1, 0] };
    let pairs = [
        (index(7, 1, 9, "x"), index(7, 2, 3, "x")),
        (index(7, 2, 3, "x"), index(7, 2, 4, "x")),
        (
            with_counts(7, Counts { functions: 2, symbols: 8, ..Counts::default() }, "x"),
            with_counts(7, Counts { functions: 2, symbols: 9, ..Counts::default() }, "x"),
        ),
        (
            Index::open(digest_order[small].as_bytes().to_vec()).expect("a copy"),
            Index::open(digest_order[large].as_bytes().to_vec()).expect("a copy"),
        ),
    ];
    for (less, more) in &pairs {
        for (first, second, outcome) in
            [(less, more, PublishOutcome::ConflictReplaced), (more, less, PublishOutcome::ConflictKept)]
        {
            let folder = tempfile::tempdir().expect("a folder");
            let published = |index| IndexFolder::new(folder.path()).publish(index).expect("published");
            assert_eq!(published(first).outcome, PublishOutcome::Written);
            assert_eq!(published(first).outcome, PublishOutcome::Unchanged);
            let last = published(second);
            assert_eq!(last.outcome, outcome);
            assert_eq!(fs::read(&last.path).expect("readable"), more.as_bytes());
            assert_eq!(files(folder.path()), ["07070707070707070707070707070707.symdex"]);
        }
    }
}

#[cfg(unix)]
#[test]
fn threads_that_publish_one_id_end_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let indexes: Vec<_> = (0..8).map(|functions| index(7, functions, 0, "x")).collect();
    std::thread::scope(|scope| {
        for index in &indexes {
            scope.spawn(|| IndexFolder::new(folder.path()).publish(index).expect("published"));
        }
    });
    let path = IndexFolder::new(folder.path()).find(indexes[7].id()).expect("readable").expect("there");
    assert_eq!(fs::read(path).expect("readable"), indexes[7].as_bytes());
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn damaged_and_misnamed_indexes_are_replaced() {
    let new = index(7, 1, 1, "x");
    let mut flipped = index(7, 5, 5, "x").as_bytes().to_vec();
    *flipped.last_mut().expect("not empty") ^= 1;
    let other = index(8, 5, 5, "x").as_bytes().to_vec();
    for existing in [Vec::new(), b"text".to_vec(), flipped, other] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(IndexFolder::file_name(new.id()));
        fs::write(&path, existing).expect("written");
        let published = IndexFolder::new(folder.path()).publish(&new).expect("published");
        assert!(matches!(published.outcome, PublishOutcome::Repaired { .. }), "{published:?}");
        assert_eq!(fs::read(&path).expect("readable"), new.as_bytes());
    }
}

#[test]
fn an_index_of_a_newer_version_is_left_alone() {
    let new = index(7, 1, 1, "x");
    let mut newer = new.as_bytes().to_vec();
    // With a wrong checksum, the index would be damaged instead.
    newer[8] += 1;
    seal_header(&mut newer);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(IndexFolder::file_name(new.id()));
    fs::write(&path, &newer).expect("written");
    assert!(matches!(IndexFolder::new(folder.path()).publish(&new), Err(Error::NewerIndex { .. })));
    assert_eq!(fs::read(&path).expect("readable"), newer);
}

#[test]
fn an_index_in_a_fanned_out_folder_is_replaced_at_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (index(7, 1, 1, "x"), index(7, 2, 2, "x"));
    assert_eq!(IndexFolder::new(folder.path()).find(old.id()).expect("readable"), None);
    let flat = IndexFolder::new(folder.path()).publish(&old).expect("published").path;
    let fanned = folder.path().join("07").join(IndexFolder::file_name(old.id()));
    fs::create_dir(folder.path().join("07")).expect("a folder");
    fs::rename(flat, &fanned).expect("moved");
    assert_eq!(IndexFolder::new(folder.path()).find(old.id()).expect("readable"), Some(fanned.clone()));
    assert_eq!(IndexFolder::new(folder.path()).publish(&new).expect("published").path, fanned);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_missing_file_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = index(7, 1, 1, "x");
    let path = folder.path().join(IndexFolder::file_name(new.id()));
    std::os::unix::fs::symlink(folder.path().join("missing"), &path).expect("linked");
    assert_eq!(IndexFolder::new(folder.path()).publish(&new).expect("published").path, path);
    assert_eq!(fs::read(&path).expect("readable"), new.as_bytes());
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_failed_write_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("written");
    let error = IndexFolder::new(file.join("below")).publish(&index(7, 1, 1, "x")).expect_err("below a file");
    assert!(error.to_string().contains("below"), "{error}");
    assert!(std::error::Error::source(&error).is_none(), "the text has the cause");
    // The rename fails, because a folder has the path of the index.
    let taken = folder.path().join("taken");
    let place = taken.join("07").join(IndexFolder::file_name(index(7, 1, 1, "x").id()));
    fs::create_dir_all(&place).expect("a folder");
    IndexFolder::new(&taken).publish(&index(7, 1, 1, "x")).expect_err("a folder has the path");
    assert_eq!(files(&taken.join("07")).len(), 1);
}

#[cfg(unix)]
#[test]
fn temporary_files_of_killed_processes_are_deleted_after_a_day() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, hours: u64| {
        let file = File::create(folder.path().join(name)).expect("a file");
        let modified = std::time::SystemTime::now() - Duration::from_secs(hours * 60 * 60);
        file.set_modified(modified).expect("a time");
    };
    for (name, hours) in
        [(".symdex-old.tmp", 25), (".symdex-new.tmp", 23), (".symdex-other", 25), ("other.tmp", 25)]
    {
        file(name, hours);
    }
    IndexFolder::new(folder.path()).publish(&index(7, 1, 1, "x")).expect("published");
    let others = [".symdex-new.tmp", ".symdex-other", "07070707070707070707070707070707.symdex", "other.tmp"];
    assert_eq!(files(folder.path()), others);
}
