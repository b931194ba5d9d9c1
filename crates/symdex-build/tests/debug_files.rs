//! Files of images, over the debug files of `testdata`.

use std::fs;
use std::path::Path;

use symdex_build::Companions;
use symdex_build::debug_files::{FindImageError, InputFiles, JoinedImage, find_image, images_in};

const FAT: &str = "../../testdata/dsyms/fat.dSYM";
const THIN: &str = "../../testdata/dsyms/inline-dwarf4.dSYM";

fn file_in(bundle: &str) -> std::path::PathBuf {
    symdex_build::find(bundle.as_ref()).remove(0).expect("it has a debug file")
}

fn archs(path: &Path) -> Vec<String> {
    let images = images_in(path).expect("readable");
    images.into_iter().map(|image| image.expect("readable").arch).collect()
}

#[test]
fn an_image_is_found_by_its_architecture() {
    let archs = archs(&file_in(FAT));
    assert!(archs.len() > 1, "{archs:?}");
    for arch in &archs {
        let files = find_image(InputFiles::find([FAT]), Some(arch), |_| true).expect("one image");
        let companions = Companions::default();
        let (image, failures) = files.load(&companions).expect("readable");
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!((files.arch(), &image.info().id), (arch.as_str(), files.id()));
    }
    match find_image(InputFiles::find([FAT]), None, |_| true) {
        Err(FindImageError::Ambiguous { images }) => assert_eq!(images.len(), archs.len()),
        other => panic!("{other:?}"),
    }
    match find_image(InputFiles::find([FAT]), Some("none"), |_| true) {
        Err(FindImageError::NotFound { images }) => assert_eq!(images.len(), archs.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_cannot_be_read_counts_only_if_no_other_has_the_image() {
    let root = tempfile::tempdir().expect("a folder");
    fs::copy(file_in(THIN), root.path().join("whole")).expect("copied");
    let cut = &fs::read(file_in(FAT)).expect("readable")[..40];
    fs::write(root.path().join("cut"), cut).expect("written");
    assert!(find_image(InputFiles::find([root.path()]), None, |_| true).is_ok());
    let failed = find_image(InputFiles::find([root.path()]), None, |_| false).expect_err("no such image");
    assert!(matches!(&failed, FindImageError::File(error) if error.path().ends_with("cut")), "{failed}");
}

#[test]
fn the_files_of_one_image_are_found_and_joined() {
    let root = tempfile::tempdir().expect("a folder");
    let (debug, cut) = (root.path().join("debug"), root.path().join("cut"));
    fs::copy(file_in(THIN), &debug).expect("copied");
    fs::write(&cut, &fs::read(&debug).expect("readable")[..40]).expect("written");
    let files = find_image(InputFiles::find([&debug]), None, |_| true).expect("one image");
    let companions = Companions::default();
    let find = |arch| JoinedImage::find(root.path(), files.id(), arch, &companions).expect("it has files");
    let joined = find(files.arch());
    assert!(joined.image.is_some_and(|image| image.has_dwarf()));
    assert_eq!((joined.paths, joined.failures.len()), (vec![debug], 1));
    assert!(find("none").image.is_none());
    assert!(JoinedImage::find("/nowhere/at/all".as_ref(), files.id(), "arm64", &companions).is_err());
}

#[test]
fn archives_beside_debug_files_are_named() {
    let root = tempfile::tempdir().expect("a folder");
    fs::copy(file_in(THIN), root.path().join("a")).expect("copied");
    fs::write(root.path().join("b.zip"), b"PK").expect("written");
    let inputs = InputFiles::find([root.path()]);
    let unread = inputs.unread_archives();
    assert_eq!((unread.len(), &unread[0].archives[..]), (1, &[root.path().join("b.zip")][..]));
}
