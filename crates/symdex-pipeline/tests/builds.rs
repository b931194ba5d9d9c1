//! Plans and builds over the debug files of `testdata`, in this process and in children. This program is its own child.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use symdex::Cause;
use symdex_pipeline::isolate::Isolation;
use symdex_pipeline::{Batch, BuiltIndex, Failure, Host, Indexes, Input, Intake, Pipeline, PipelineOptions};
use symdex_testkit::images::archive::zip_of;
use symdex_testkit::images::debug_file::debug_file;

const FAT: &str = "../../testdata/dsyms/fat.dSYM";
const THIN: &str = "../../testdata/dsyms/inline-dwarf4.dSYM";

symdex_testkit::tests! {
    files_without_a_wanted_architecture_are_skipped_unless_all_are,
    files_that_cannot_be_read_are_failures_in_their_places,
    uploads_have_their_names_and_are_refused_by_their_first_bytes,
    all_that_is_planned_is_read,
    indexes_are_refused_or_checked_whole,
    a_thousand_files_of_one_image_are_linear
}

fn main() -> ExitCode {
    symdex_pipeline::run_child().unwrap_or_else(run_tests)
}

fn batch(inputs: Vec<Input>) -> Batch {
    let batch = Intake::new(inputs).next_batch(&()).expect("a folder");
    batch.expect("inputs")
}

fn paths(paths: &[&Path]) -> Batch {
    batch(paths.iter().map(|path| Input::of_argument(path)).collect())
}

/// The images and failures of the batch.
fn build(options: PipelineOptions, batch: &Batch, host: &impl Host) -> Vec<Result<BuiltIndex, Failure>> {
    let pipeline = Pipeline::new(options).expect("threads");
    let plan = pipeline.plan(batch, &()).expect("a plan");
    let mut results = Vec::new();
    let built = pipeline.build(
        batch,
        plan,
        &[],
        host,
        |built| built,
        |built| {
            results.push(built);
            Ok::<(), Failure>(())
        },
    );
    built.expect("a folder");
    results
}

fn for_archs(archs: &[&str]) -> PipelineOptions {
    let mut options = PipelineOptions::default();
    options.archs = archs.iter().map(|arch| (*arch).to_owned()).collect();
    options
}

fn isolated() -> PipelineOptions {
    let mut options = PipelineOptions::default();
    options.isolation = Some(Isolation::of_this_program().expect("this program"));
    options
}

fn files_without_a_wanted_architecture_are_skipped_unless_all_are() {
    let both = paths(&[FAT.as_ref(), THIN.as_ref()]);
    let pipeline = Pipeline::new(for_archs(&["x86_64"])).expect("threads");
    let plan = pipeline.plan(&both, &()).expect("a plan");
    assert_eq!((plan.task_len(), plan.skipped, &plan.no_such_arch), (1, 1, &None));
    assert_eq!(build(for_archs(&["x86_64"]), &both, &()).len(), 1);
    let pipeline = Pipeline::new(for_archs(&["none"])).expect("threads");
    let plan = pipeline.plan(&paths(&[THIN.as_ref()]), &()).expect("a plan");
    let failure = plan.no_such_arch.expect("the only file is skipped");
    assert_eq!((plan.skipped, failure.cause), (1, Cause::NotFound));
    assert!(failure.message.contains("no slice for \"none\"; the file has arm64"), "{}", failure.message);
}

fn files_that_cannot_be_read_are_failures_in_their_places() {
    let root = tempfile::tempdir().expect("a folder");
    let file = symdex_build::find(FAT.as_ref()).remove(0).expect("it has a debug file");
    let (cut, gone) = (root.path().join("cut"), root.path().join("gone"));
    fs::write(&cut, &fs::read(&file).expect("readable")[..40]).expect("written");
    let batch = paths(&[&cut, &file, &gone]);
    let results = |options| -> Vec<_> {
        let images = build(options, &batch, &()).into_iter();
        images
            .map(|image| image.map(|image| image.id).map_err(|failure| (failure.cause, failure.message)))
            .collect()
    };
    let here = results(PipelineOptions::default());
    let kinds: Vec<_> = here.iter().map(|image| image.as_ref().err().map(|(kind, _)| *kind)).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&Some(Cause::Unsupported)), Some(&Some(Cause::Missing))));
    assert!(kinds.len() > 3 && kinds[1..kinds.len() - 1].iter().all(Option::is_none), "{here:?}");
    assert_eq!(results(isolated()), here);
}

fn uploads_have_their_names_and_are_refused_by_their_first_bytes() {
    let root = tempfile::tempdir().expect("a folder");
    let upload = |name: &str, bytes: &[u8]| {
        let path = root.path().join("upload");
        fs::write(&path, bytes).expect("written");
        batch(vec![Input::Named { path, name: name.to_owned(), origin: "upload".to_owned() }])
    };
    let bytes = fs::read(symdex_build::find(THIN.as_ref()).remove(0).expect("a file")).expect("readable");
    let images = build(isolated(), &upload("App", &bytes), &());
    assert_eq!(images[0].as_ref().expect("an index").file, "upload: App");
    let refused = upload("notes.txt", b"hello");
    assert!(refused.files.files().is_empty());
    let failure = &refused.failures[0];
    assert_eq!(failure.cause, Cause::Unsupported);
    assert!(
        failure.message.starts_with("notes.txt: not a debug file: it begins with the bytes 68656c6c6f;"),
        "{}",
        failure.message
    );
}

/// Counts what is planned and read.
#[derive(Default)]
struct Counts {
    planned: AtomicU64,
    read: AtomicU64,
}

impl Host for Counts {
    fn planned(&self, bytes: u64) {
        self.planned.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn all_that_is_planned_is_read() {
    let batch = paths(&[FAT.as_ref(), THIN.as_ref(), "../../testdata/README.md".as_ref()]);
    for options in [PipelineOptions::default(), isolated()] {
        let counts = Counts::default();
        build(options, &batch, &counts);
        let [planned, read] = [counts.planned, counts.read].map(AtomicU64::into_inner);
        assert!(planned > 0 && planned == read, "{read} of {planned} bytes");
    }
}

fn indexes_are_refused_or_checked_whole() {
    let whole = fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex").expect("an index");
    let id = symdex::Index::open(&whole[..]).expect("an index").id().clone();
    let root = tempfile::tempdir().expect("a folder");
    let path = root.path().join("a.symdex");
    let results = |bytes: &[u8], indexes: &Indexes| {
        fs::write(&path, bytes).expect("written");
        [PipelineOptions::default(), isolated()].map(|options| {
            let mut intake = Intake::new(vec![Input::Path(path.clone())]);
            intake.indexes = indexes.clone();
            let batch = intake.next_batch(&()).expect("a folder").expect("inputs");
            let [result] = &mut build(options, &batch, &())[..] else { panic!("one index") };
            let index =
                result.as_ref().map(|index| (index.id.clone(), index.is_input, index.as_ref() == bytes));
            index.map_err(|failure| (failure.cause, failure.message.clone()))
        })
    };
    let taken = || Ok((id.to_string(), true, true));
    assert_eq!(results(&whole, &Indexes::Taken), [taken(), taken()]);
    assert_eq!(results(&whole, &Indexes::Only(id.clone())), [taken(), taken()]);
    let mut damaged = whole.clone();
    *damaged.last_mut().expect("bytes") ^= 1;
    let other: symdex::ImageId = "00ff".parse().expect("an id");
    for (bytes, indexes, cause, what) in [
        (&whole, Indexes::default(), Cause::Unsupported, "with `symdex store put`"),
        (&damaged, Indexes::Taken, Cause::Damaged, "damaged index"),
        (&whole, Indexes::Only(other), Cause::Usage, "expected the index of 00ff and nothing else"),
    ] {
        for result in results(bytes, &indexes) {
            let (found, message) = result.expect_err(what);
            assert!(found == cause && message.contains(what), "{found:?} {message}");
        }
    }
}

/// The most memory that this process has had, in bytes.
#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a file of Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[cfg(not(target_os = "linux"))]
fn most_memory() -> u64 {
    0
}

/// Each task used to have the names of all files of its image.
fn a_thousand_files_of_one_image_are_linear() {
    let (root, file) = (tempfile::tempdir().expect("a folder"), debug_file(&[], &[("f", 0x1000)]));
    let names: Vec<String> = (0..1000).map(|number| format!("{}{number}", "long/".repeat(780))).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &file[..])).collect();
    let path: PathBuf = root.path().join("a.zip");
    fs::write(&path, zip_of(&files)).expect("written");
    drop(files);
    let before = most_memory();
    let archive = paths(&[&path]);
    assert_eq!(archive.files.files().len(), 1000);
    let images = build(isolated(), &archive, &());
    let [Ok(image)] = &images[..] else { panic!("one image: {images:?}") };
    assert_eq!(image.joined.len(), 100);
    assert!(image.warnings.iter().any(|warning| warning.contains("and 899 are not")), "{:?}", image.warnings);
    let more = most_memory() - before;
    assert!(more < 200 << 20, "{} MB", more >> 20);
}
