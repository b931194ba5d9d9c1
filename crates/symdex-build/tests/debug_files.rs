//! Files of images, and the plan of a build, over the debug files of `testdata`.

use std::fs;
use std::path::Path;

use symdex_build::Companions;
use symdex_build::debug_files::{
    BuildInputs, BuildJob, DebugFile, FindImageError, ImageGroups, InputFiles, JoinedImage, NoSuchArch,
    find_image, images_in,
};

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
fn files_without_a_wanted_architecture_are_skipped_unless_all_are() {
    let archs = archs(&file_in(FAT));
    let wanted = [archs.last().expect("it has some").clone()];
    let inputs = BuildInputs::find([FAT, THIN]);
    let thin = images_in(&file_in(THIN)).expect("readable").remove(0).expect("readable").arch;
    assert_ne!(thin, wanted[0]);
    assert_eq!(inputs.plan(&[]).jobs.len(), 2);
    let plan = inputs.plan(&wanted);
    assert!(matches!(plan.jobs[..], [BuildJob::File(file)] if file.path() == file_in(FAT)));
    assert_eq!(plan.skipped, 1);
    let inputs = BuildInputs::find([THIN]);
    match &inputs.plan(&wanted).jobs[..] {
        [BuildJob::NoSuchArch(NoSuchArch { file: Some(file), available, .. })] => {
            assert_eq!((file, &available[..]), (&file_in(THIN), &[thin][..]));
        }
        _ => panic!("one job is expected"),
    };
}

#[test]
fn files_of_one_image_are_joined_in_one_of_them() {
    let root = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        fs::copy(file_in(THIN), root.path().join(name)).expect("copied");
    }
    let inputs = BuildInputs::find([root.path()]);
    let groups = ImageGroups::of(&inputs);
    let companions = Companions::default();
    for name in ["a", "b"] {
        let path = root.path().join(name);
        let bytes = fs::read(&path).expect("readable");
        let slice = &symdex_build::slices(&bytes).expect("readable")[0];
        // Both have debug information, so neither is joined into the other.
        let joined =
            groups.join(&DebugFile::on_disk(&path), slice, &companions).expect("it is no part of the other");
        assert_eq!((joined.paths, joined.failures.len()), (vec![path], 0));
    }
}

#[test]
fn a_job_loads_the_wanted_images_of_its_file() {
    let root = tempfile::tempdir().expect("a folder");
    let (file, all) = (file_in(FAT), archs(&file_in(FAT)));
    let companions = Companions::default();
    let loaded = |wanted: &[String], paths: &[&Path]| {
        let inputs = BuildInputs::find(paths);
        let mut loaded = Vec::new();
        for job in inputs.plan(wanted).jobs {
            job.for_each_image(wanted, &ImageGroups::of(&inputs), &companions, |image| {
                loaded.push(
                    image
                        .map(|image| image.image.info().arch.name.clone())
                        .map_err(|error| error.to_string()),
                );
            });
        }
        loaded
    };
    assert_eq!(loaded(&[], &[&file]).into_iter().collect::<Result<Vec<_>, _>>(), Ok(all.clone()));
    assert_eq!(loaded(&all[1..2], &[&file]), [Ok(all[1].clone())]);
    let (cut, gone) = (root.path().join("cut"), root.path().join("gone"));
    fs::write(&cut, &fs::read(&file).expect("readable")[..40]).expect("written");
    let failed = loaded(&[], &[&cut, &gone]);
    assert_eq!(failed.iter().filter(|image| image.is_err()).count(), 2, "{failed:?}");
    let none = loaded(&["none".to_owned()], &[&file]);
    assert!(matches!(&none[..], [Err(error)] if error.contains("no slice for \"none\"")), "{none:?}");
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
