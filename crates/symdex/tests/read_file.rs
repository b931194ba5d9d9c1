//! Index files that are read instead of mapped.

use std::fs;
use std::path::{Path, PathBuf};

use symdex::{
    Cause, Error, ImageOffset, Index, LinePolicy, MAX_READ_SIZE, Metadata, Scratch, read_index_file,
};
use symdex_testkit::images::seal::{CHUNKS_SIZE, FILE_SIZE, METADATA_SIZE, enlarge};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/v1/inline-dwarf4-1.symdex")
}

fn golden_metadata() -> Metadata {
    Index::open(fs::read(golden()).expect("readable")).expect("an index").metadata().clone()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// An offset at which the golden index has several frames, and their number.
fn deepest<B: AsRef<[u8]>>(index: &Index<B>) -> (ImageOffset, usize) {
    let mut scratch = Scratch::default();
    let offsets = (0..index.metadata().image_size).map(ImageOffset);
    let frames = offsets.map(|offset| (offset, frames_at(index, offset, &mut scratch)));
    frames.max_by_key(|(_, frames)| *frames).expect("an image with code")
}

fn frames_at<B: AsRef<[u8]>>(index: &Index<B>, offset: ImageOffset, scratch: &mut Scratch) -> usize {
    let frames = index.lookup(offset, LinePolicy::Statement, scratch).expect("an intact index");
    frames.map_or(0, |frames| frames.len())
}

#[test]
fn a_file_that_is_cut_or_overwritten_after_it_was_read_still_answers() {
    let folder = folder();
    let path = folder.path().join("cut.symdex");
    fs::copy(golden(), &path).expect("copied");
    let index = Index::open(read_index_file(&path).expect("readable")).expect("an index");
    let before = deepest(&Index::open(fs::read(golden()).expect("readable")).expect("an index"));
    assert!(before.1 > 1, "the answer has inlined functions");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("writable");
    file.set_len(100).expect("cut");
    assert_eq!(deepest(&index), before);
    fs::write(&path, vec![0xff; index.as_bytes().len()]).expect("overwritten");
    index.verify().expect("all pages are as they were read");
}

/// The exception that [`Index::open_file`] documents: the child process of this test maps an index, cuts the file and
/// asks the index.
#[cfg(all(target_os = "linux", feature = "mmap"))]
#[test]
fn a_file_that_is_cut_while_it_is_mapped_kills_the_process() {
    use std::os::unix::process::ExitStatusExt as _;

    const CHILD: &str = "SYMDEX_TEST_MAPPED_FILE";
    const SIGBUS: i32 = 7;
    if let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) {
        let index = Index::open_file(&path).expect("an index");
        fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(0)).expect("cut");
        println!("still alive: {:?}", deepest(&index));
        return;
    }
    let folder = folder();
    let path = folder.path().join("cut.symdex");
    fs::copy(golden(), &path).expect("copied");
    let test = std::thread::current().name().expect("the name of the test").to_owned();
    let child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", &test, "--nocapture", "--test-threads", "1"])
        .env(CHILD, &path)
        .output()
        .expect("the child starts");
    assert_eq!(fs::metadata(&path).expect("there").len(), 0, "the child has cut the file");
    assert_eq!(child.status.signal(), Some(SIGBUS), "{child:?}");
}

#[test]
fn a_cut_file_fails_as_its_bytes_do() {
    let folder = folder();
    let path = folder.path().join("cut.symdex");
    let whole = fs::read(golden()).expect("readable");
    let sizes = (0..200).chain((200..whole.len()).step_by(97));
    for size in sizes {
        fs::write(&path, &whole[..size]).expect("written");
        let expected = Index::open(&whole[..size]).expect_err("cut").to_string();
        assert_eq!(read_index_file(&path).expect_err("cut").to_string(), expected, "{size}");
        assert_eq!(Metadata::read_file(&path).expect_err("cut").to_string(), expected, "{size}");
    }
    fs::write(&path, [&whole[..], b"more"].concat()).expect("written");
    assert!(matches!(read_index_file(&path), Err(Error::WrongSize { .. })));
}

#[test]
fn a_file_that_is_too_large_to_read_is_refused_before_it_is_read() {
    let folder = folder();
    let path = folder.path().join("large.symdex");
    let mut whole = fs::read(golden()).expect("readable");
    enlarge(&mut whole, &[FILE_SIZE, CHUNKS_SIZE], MAX_READ_SIZE);
    fs::write(&path, &whole).expect("written");
    // The rest of the file is a hole, which takes no space.
    let size = whole.len() as u64 + MAX_READ_SIZE;
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(size)).expect("sparse");
    let error = read_index_file(&path).expect_err("too large");
    assert!(matches!(error, Error::TooLarge { found, limit: MAX_READ_SIZE } if found == size));
    assert!(error.to_string().ends_with("map it instead"), "{error}");
    assert_eq!(error.cause(), Cause::Limit);
    assert_eq!(Metadata::read_file(&path).expect("readable"), golden_metadata());
}

#[test]
fn folders_and_missing_files_are_not_read() {
    let folder = folder();
    let missing = folder.path().join("missing.symdex");
    for path in [folder.path(), &missing] {
        assert!(matches!(read_index_file(path), Err(Error::Io(_))), "{}", path.display());
        assert!(matches!(Metadata::read_file(path), Err(Error::Io(_))), "{}", path.display());
    }
    let text = folder.path().join("text");
    fs::write(&text, "text\n".repeat(10_000)).expect("written");
    assert!(matches!(read_index_file(&text), Err(Error::NotAnIndex { .. })));
}

#[test]
fn metadata_is_read_without_the_rest_of_the_index() {
    let folder = folder();
    let path = folder.path().join("damaged.symdex");
    let whole = fs::read(golden()).expect("readable");
    let section = Index::open(&whole[..]).expect("an index").sections()[0];
    let range = usize::try_from(section.offset).expect("small")
        ..usize::try_from(section.offset + section.size).expect("small");
    assert_eq!(section.name, "metadata");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        Metadata::read_file(&path)
    };
    // Only the header and the metadata have to be right.
    let mut damaged = whole.clone();
    damaged[range.end..].fill(0xff);
    assert_eq!(read(&damaged).expect("readable"), golden_metadata());
    for place in range {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        assert!(matches!(read(&damaged), Err(Error::Checksum { .. })), "{place}");
    }
    // A header that states more metadata than an index can have.
    let mut large = whole.clone();
    enlarge(&mut large, &[FILE_SIZE, METADATA_SIZE], 1 << 30);
    fs::write(&path, &large).expect("written");
    let size = whole.len() as u64 + (1 << 30);
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(size)).expect("sparse");
    let error = Metadata::read_file(&path).expect_err("too large").to_string();
    assert!(error.contains("larger than the format allows"), "{error}");
}
