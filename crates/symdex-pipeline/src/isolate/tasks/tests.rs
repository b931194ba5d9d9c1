use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::isolate::Death;
use symdex::Cause;

fn image(id: &str, index_size: usize) -> BuiltIndex {
    BuiltIndex {
        id: id.to_owned(),
        file: "a".into(),
        joined: Vec::new(),
        debug_size: 0,
        index_size: index_size as u64,
        warnings: Vec::new(),
        has_dwarf: false,
        failed_units: 0,
        dropped: Default::default(),
        hidden_names: 0,
        coverage: Default::default(),
        verified: None,
        time: Default::default(),
        is_input: false,
        bytes: BuiltBytes::default(),
    }
}

#[test]
fn only_whole_indexes_of_the_stated_image_are_used() {
    let index = fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex").expect("an index");
    let id = Index::open(&index[..]).expect("an index").id().to_string();
    let mut damaged = index.clone();
    *damaged.last_mut().expect("bytes") ^= 1;
    let mut file = tempfile::tempfile().expect("a file");
    [&index, &damaged, &index].into_iter().for_each(|bytes| file.write_all(bytes).expect("written"));
    let mut outputs = Outputs::new(&file).expect("mapped");
    let mut next = |id: &str, size: usize| match outputs
        .next(TaskResult::Image(Box::new(image(id, size))), "a".as_ref())
    {
        Some(Ok(built)) => built.as_ref().len().to_string(),
        Some(Err(failure)) => failure.message,
        None => panic!("a result"),
    };
    assert_eq!(next(&id, index.len()), index.len().to_string());
    let message = next(&id, index.len());
    assert!(message.starts_with("a: the child's index is not used: "), "{message}");
    assert!(next("00", index.len()).contains(&format!("the index of {id}, not of 00")));
    assert!(next(&id, 1).contains("not in the child's output"));
}

#[test]
fn the_files_at_which_children_end_are_named() {
    let files = ["a", "bad", "b", "c", "bad too", "d"].map(DebugFile::on_disk);
    let children = AtomicUsize::new(0);
    let read = |files: &[DebugFile]| {
        children.fetch_add(1, Ordering::Relaxed);
        if files.iter().any(|file| file.name().to_string_lossy().starts_with("bad")) {
            Err(Death::StackOverflow.into())
        } else {
            Ok(files.iter().map(|file| Ok(file.name().to_owned())).collect())
        }
    };
    let read = find_culprits(&files, &read).expect("children start");
    let names: Vec<_> = read
        .into_iter()
        .map(|read| read.map_err(|failure| (failure.cause, failure.path.expect("a path"))))
        .collect();
    let killed = |path: &str| Err((Cause::Other, path.into()));
    let fine = |path: &str| Ok(path.into());
    assert_eq!(names, [fine("a"), killed("bad"), fine("b"), fine("c"), killed("bad too"), fine("d")]);
    assert!(children.into_inner() <= 11, "halves are read, and not each file");
    let none = |_: &[DebugFile]| {
        Err::<Vec<Result<(), _>>, _>(ChildError::NotStarted {
            program: "p".into(),
            error: io::ErrorKind::NotFound.into(),
        })
    };
    assert!(find_culprits(&files, &none).is_err());
}

#[test]
fn a_child_that_wrote_nothing_has_no_index() {
    let mut outputs = Outputs::new(&tempfile::tempfile().expect("a file")).expect("empty");
    assert!(outputs.index(image("00", 0)).is_err());
}

#[cfg(unix)]
#[test]
fn a_child_reads_an_unpacked_file_alone_and_a_file_on_disk_with_its_folder() {
    let id: ImageId = "0011".parse().expect("an id");
    let others = Some(vec![DebugFile::on_disk("/up/liba.so")]);
    let task = BuildTask {
        file: DebugFile::of_archive("/tmp/x/0", "a.zip", "App"),
        joins: vec![Join { image: (id.clone(), "arm64".to_owned()), others, left_out: 0 }],
        cached_image: None,
        archs: Vec::new(),
        ids: Vec::new(),
        given_id: None,
        debug_dirs: Vec::new(),
        companions: vec![DebugFile::of_archive("/tmp/x/1", "a.zip", "App.dwp")],
        symbol_maps: Vec::new(),
        existing: vec![(id, "/tmp/y".into())],
        temporary: "/tmp/z".into(),
        max_memory: 0,
        max_seconds: None,
        threads: 1,
        verify: false,
        readable_names: false,
        unwind_rows: false,
        allow_empty: false,
        embed: false,
    };
    let read: Vec<_> = task.access().read.into_iter().collect();
    assert_eq!(read, ["/tmp/x/0", "/tmp/x/1", "/tmp/y", "/up", "/up/liba.so"]);
}
