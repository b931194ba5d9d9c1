//! A symbolicator over the debug files and indexes of `testdata`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symdex::LinePolicy::Statement;
use symdex::{Grade, ImageId, ImageOffset};
use symdex_answer::fetch::{
    DebugSources, FetchOptions, FetchOutcome, FetchingSource, MissOptions, Misses, Verdict,
};
use symdex_answer::{Event, Note, Session, SourceError, Symbolicator, SymbolicatorOptions};
use symdex_report::{Answer, Answers, Question, ReportImage, Source, Unanswered};
use symdex_store::{IndexFolder, Store as _};
use symdex_testkit::testdata::{debug_file, without_debug_information};

const DSYM: &str = "../../testdata/dsyms/inline-dwarf4.dSYM";
/// The offset of an inlined function.
const OFFSET: ImageOffset = ImageOffset(0x3cf);

fn open(options: &SymbolicatorOptions) -> Symbolicator {
    let skipped = &mut |error| panic!("skipped: {error}");
    Symbolicator::open(options, skipped).expect("the sources are there")
}

fn image(symbolicator: &Symbolicator) -> ReportImage {
    let mut image = ReportImage::default();
    image.id = Some(symbolicator.known()[0].id.clone());
    image
}

fn answer(session: &mut Session<'_>, image: &ReportImage) -> Result<Answers, Unanswered> {
    session.answer(&[Question::new(image, &[OFFSET], Statement)]).remove(0)
}

/// The answers at [`OFFSET`], and the names of the events while they are found.
fn ask(symbolicator: &Symbolicator, image: &ReportImage) -> (Result<Answers, Unanswered>, Vec<&'static str>) {
    let events = Mutex::new(Vec::new());
    let on_event = |event: Event<'_>| {
        let name = match event {
            Event::Building { done, total, .. } if done == total => "built",
            Event::NotStored { error: None } => "no store",
            Event::NotStored { error: Some(_) } => "not stored",
            _ => return,
        };
        let mut events = events.lock().expect("no thread has panicked");
        if events.last() != Some(&name) {
            events.push(name);
        }
    };
    let answers = answer(&mut symbolicator.session(&on_event), image);
    (answers, events.into_inner().expect("no thread has panicked"))
}

fn innermost(answers: &Answers) -> String {
    let Answer::Functions(functions) = &answers.answers[0] else { panic!("no functions: {answers:?}") };
    functions[0].name().expect("a name").to_owned()
}

#[test]
fn few_addresses_are_answered_without_building_an_index() {
    let symbolicator = open(&SymbolicatorOptions::new().debug_files(DSYM));
    let (answers, events) = ask(&symbolicator, &image(&symbolicator));
    let answers = answers.expect("answers");
    assert_eq!((innermost(&answers).as_str(), events.len()), ("cell", 0));
    assert!(answers.by.source.is_some_and(|source| source.ends_with("DWARF/inline-dwarf4")));
}

#[test]
fn an_index_is_built_once_and_stored() {
    let root = tempfile::tempdir().expect("a folder");
    let store = root.path().join("store");
    let options = SymbolicatorOptions::new().debug_files(DSYM).store(store.as_path()).always_store(true);
    let symbolicator = open(&options);
    let image = image(&symbolicator);
    for expected in [&["built"][..], &[]] {
        let (answers, events) = ask(&symbolicator, &image);
        assert_eq!((innermost(&answers.expect("answers")).as_str(), &events[..]), ("cell", expected));
    }
    let id = image.id.as_ref().expect("it has one");
    assert!(IndexFolder::new(&store).index(id).expect("readable").is_some());
    // Another symbolicator needs no debug file.
    let stored = open(&SymbolicatorOptions::new().store(store.as_path()));
    let answers = ask(&stored, &image).0.expect("answers");
    let path = store.join(&id.to_string()[..2]).join(IndexFolder::file_name(id));
    assert_eq!(answers.by.source, Some(path.display().to_string()));
    let counts = &stored.store_counts()[0];
    assert_eq!((counts.url.to_string(), counts.found), (store.display().to_string(), 1));
}

#[test]
fn the_stores_are_asked_in_order_and_new_indexes_are_put_into_the_first() {
    let root = tempfile::tempdir().expect("a folder");
    let [near, far] = ["near", "far"].map(|name| root.path().join(name));
    let options = |stores: [&Path; 2]| {
        let options = SymbolicatorOptions::new().debug_files(DSYM).always_store(true);
        stores.into_iter().fold(options, |options, store| options.store(store))
    };
    // The second store has the index, so none is built.
    let alone = open(&options([&far, &far]));
    let image = image(&alone);
    assert_eq!(ask(&alone, &image).1, ["built"]);
    let both = open(&options([&near, &far]));
    let (answers, events) = ask(&both, &image);
    let source = answers.expect("answers").by.source.expect("one source");
    assert!(source.starts_with(&far.display().to_string()) && events.is_empty(), "{source}");
    assert!(!near.exists());
    // A damaged index in the second store is passed over, and the first one gets a new index.
    let id = image.id.as_ref().expect("it has one");
    fs::write(IndexFolder::new(&far).fan_out().location(id), b"damaged").expect("written");
    let (answers, events) = ask(&open(&options([&near, &far])), &image);
    assert_eq!((answers.expect("answers").by.passed_over.len(), events), (1, vec!["built"]));
    assert!(IndexFolder::new(&near).fan_out().stat(id).expect("readable").is_some());
}

/// The index of a stripped copy of the debug file, and the index of the debug file, each in a folder below `root`. The
/// copy is in the folder `file`.
fn stripped_and_full(root: &Path) -> [PathBuf; 2] {
    let stripped = root.join("file/inline-dwarf4");
    fs::create_dir(root.join("file")).expect("made");
    fs::write(&stripped, without_debug_information(&debug_file("inline-dwarf4"))).expect("written");
    [("stripped", stripped.as_path()), ("full", DSYM.as_ref())].map(|(name, file)| {
        let folder = root.join(name);
        let options = SymbolicatorOptions::new().debug_files(file).store(folder.as_path()).always_store(true);
        let symbolicator = open(&options);
        ask(&symbolicator, &image(&symbolicator)).0.expect("answers");
        folder
    })
}

/// The innermost function, its line, the grade of the image, and the source.
fn described(answers: &Answers) -> (String, Option<u32>, Option<Grade>, String) {
    let Answer::Functions(functions) = &answers.answers[0] else { panic!("no functions: {answers:?}") };
    let source = answers.by.source.clone().expect("one source");
    (innermost(answers), functions[0].line, answers.by.grade, source)
}

#[test]
fn a_stripped_index_hides_no_full_one() {
    let root = tempfile::tempdir().expect("a folder");
    let [stripped, full] = &stripped_and_full(root.path());
    let options = SymbolicatorOptions::new;
    let alone = open(&options().store(full.as_path()));
    let image = image(&open(&options().debug_files(DSYM)));
    let expected = described(&ask(&alone, &image).0.expect("answers"));
    assert_eq!((expected.0.as_str(), expected.2), ("cell", Some(Grade::Lines)));

    let poor = open(&options().store(stripped.as_path()));
    let (name, line, grade, _) = described(&ask(&poor, &image).0.expect("answers"));
    assert_eq!((line, grade), (None, Some(Grade::Names)));
    assert_ne!(name, "cell", "the inlined function is not in the symbol table");
    for options in [
        options().store(stripped.as_path()).store(full.as_path()),
        options().store(full.as_path()).store(stripped.as_path()),
        options().index(stripped).store(full.as_path()),
        options().index(stripped).index(full),
        options().index(full).index(stripped),
    ] {
        let symbolicator = open(&options);
        assert_eq!(described(&ask(&symbolicator, &image).0.expect("answers")), expected);
        let available = answer(&mut symbolicator.availability(), &image).expect("at hand");
        assert_eq!(
            (available.by.grade, available.by.source.as_ref()),
            (Some(Grade::Lines), Some(&expected.3))
        );
    }
    // A stripped file adds nothing to a full index.
    let symbolicator = open(&options().store(full.as_path()).debug_files(root.path().join("file")));
    let (answers, events) = ask(&symbolicator, &image);
    assert_eq!((described(&answers.expect("answers")), events), (expected.clone(), vec![]));
    // A debug file answers, and its index takes the place of the stripped one.
    let symbolicator = open(&options().index(stripped).debug_files(DSYM));
    let found = described(&ask(&symbolicator, &image).0.expect("answers"));
    assert_eq!((&found.0, found.1, found.2), (&expected.0, expected.1, expected.2));
    let symbolicator = open(&options().store(stripped.as_path()).debug_files(DSYM));
    let (answers, events) = ask(&symbolicator, &image);
    assert_eq!((innermost(&answers.expect("answers")).as_str(), events), ("cell", vec!["built"]));
    let again = ask(&open(&options().store(stripped.as_path())), &image).0.expect("answers");
    assert_eq!(described(&again).1, expected.1);
}

#[test]
fn a_better_file_is_fetched_once() {
    let root = tempfile::tempdir().expect("a folder");
    let [stripped, _] = &stripped_and_full(root.path());
    let image = image(&open(&SymbolicatorOptions::new().debug_files(DSYM)));
    let id = image.id.as_ref().expect("it has one").to_string();
    // Two servers in the layout `unified`: the first has only the stripped file.
    let files = [root.path().join("file/inline-dwarf4"), debug_file("inline-dwarf4")];
    let servers = ["poor", "rich"].map(|name| root.path().join(name));
    for (server, file) in servers.iter().zip(files) {
        let folder = server.join(&id[..2]).join(&id[2..]);
        fs::create_dir_all(&folder).expect("made");
        fs::copy(file, folder.join("debuginfo")).expect("copied");
    }
    // Returns what three requests are answered, and how many files were fetched.
    let fetched = |servers: &[PathBuf], options: &SymbolicatorOptions| {
        let symbolicator = Arc::new(open(options));
        let urls =
            servers.iter().map(|server| format!("unified+{}", server.display()).parse().expect("a URL"));
        let sources = DebugSources::open(&urls.collect::<Vec<_>>(), &FetchOptions::new()).expect("folders");
        let count = Arc::new(AtomicUsize::new(0));
        let (builder, counted) = (Arc::clone(&symbolicator), Arc::clone(&count));
        let options = MissOptions::new().built(Duration::ZERO).absent(Duration::MAX);
        let misses = Misses::new(&options, move |wanted| {
            let built = sources.fetch(wanted, |file| {
                counted.fetch_add(1, Ordering::SeqCst);
                match builder.build_fetched(file.path(), &wanted.id, "inline", file.location(), &|_| ()) {
                    Ok(Some(Grade::Lines)) => Verdict::Used(FetchOutcome::Built),
                    Ok(Some(_)) => Verdict::Poor(FetchOutcome::Built),
                    other => panic!("{other:?}"),
                }
            });
            built.expect("folders").unwrap_or(FetchOutcome::Absent)
        });
        let answered = [(); 3].map(|()| {
            let mut source = FetchingSource::new(symbolicator.session(&|_| ()), Some(&misses), None);
            let question = Question::new(&image, &[OFFSET], Statement);
            let answers = source.answer(&[question]).remove(0).expect("answers");
            (innermost(&answers) == "cell", answers.by.grade.expect("an index"))
        });
        assert_eq!(answered[0], answered[2]);
        (answered[0], count.load(Ordering::SeqCst))
    };
    let (lines, names) = ((true, Grade::Lines), (false, Grade::Names));
    let none = SymbolicatorOptions::new();
    assert_eq!(fetched(&servers[1..], &none), (lines, 1));
    assert_eq!(fetched(&servers, &none), (lines, 2), "the second server knows more");
    // Nobody has more than the index: one fetch, not one for each request.
    let poor = none.index(stripped);
    assert_eq!(fetched(&servers[..1], &poor), (names, 1));
    assert_eq!(fetched(&[], &poor), (names, 0));
    assert_eq!(fetched(&servers[1..], &poor), (lines, 1));
}

#[test]
fn an_index_that_cannot_be_stored_is_kept_in_memory() {
    let root = tempfile::tempdir().expect("a folder");
    let file = root.path().join("file");
    fs::write(&file, b"").expect("written");
    let options = SymbolicatorOptions::new().debug_files(DSYM).always_store(true);
    for (options, why) in [(options.clone(), "no store"), (options.store(file.join("below")), "not stored")] {
        let symbolicator = open(&options);
        let image = image(&symbolicator);
        let (answers, events) = ask(&symbolicator, &image);
        assert_eq!(innermost(&answers.expect("answers")), "cell");
        assert_eq!(events, ["built", why]);
        assert!(ask(&symbolicator, &image).1.is_empty(), "it is not built again");
    }
}

#[test]
fn a_damaged_index_is_reported_with_the_answers_of_the_debug_file() {
    let root = tempfile::tempdir().expect("a folder");
    let with_store = SymbolicatorOptions::new().debug_files(DSYM).store(root.path());
    let image = image(&open(&with_store));
    let path = root.path().join(IndexFolder::file_name(image.id.as_ref().expect("it has one")));
    fs::write(&path, b"no index").expect("written");
    let symbolicator = open(&with_store);
    let available = answer(&mut symbolicator.availability(), &image).expect("at hand");
    assert_eq!((available.answers, available.by.passed_over.len()), (vec![Answer::NoFunction], 1));
    let (answers, events) = ask(&symbolicator, &image);
    let answers = answers.expect("answers");
    assert_eq!((innermost(&answers).as_str(), &events[..]), ("cell", &["built"][..]));
    let reason = answers.by.passed_over[0].reason().into_owned();
    assert!(reason.starts_with(&path.display().to_string()), "{reason}");
    // A new index has replaced the damaged one.
    assert!(symdex::Index::open_file(&path).is_ok());
}

#[test]
fn unreadable_sources_are_skipped_and_the_rest_is_used() {
    let root = tempfile::tempdir().expect("a folder");
    let cache = root.path().join("dyld_shared_cache_arm64");
    fs::write(&cache, b"dyld_v1   arm64\0").expect("written");
    let text = root.path().join("text");
    fs::write(&text, b"text").expect("written");
    let options = SymbolicatorOptions::new().debug_files(&cache).debug_files(DSYM).index(&text);
    let mut skipped = Vec::new();
    let symbolicator =
        Symbolicator::open(&options, &mut |error| skipped.push(error)).expect("the others are used");
    assert!(
        matches!(&skipped[..], [SourceError::SharedCache { path }, SourceError::Index(_)] if *path == cache),
        "{skipped:?}"
    );
    assert_eq!(symbolicator.known().len(), 1);
    let nowhere = SymbolicatorOptions::new().index(Path::new("nowhere/at/all"));
    let failed = Symbolicator::open(&nowhere, &mut |_| ()).expect_err("no such path");
    assert!(failed.to_string().starts_with("nowhere/at/all: cannot read: "), "{failed}");
}

#[test]
fn an_assumption_that_no_report_needs_is_noted() {
    let assumption = format!("App={DSYM}").parse().expect("a name and a file");
    let symbolicator = open(&SymbolicatorOptions::new().assume(assumption));
    assert_eq!(symbolicator.notes(), [Note::AssumptionUnused { name: "App".to_owned() }]);
    let mut app = ReportImage::default();
    app.name = "App".to_owned();
    assert_eq!(innermost(&ask(&symbolicator, &app).0.expect("answers")), "cell");
    assert!(symbolicator.notes().is_empty());
    let unknown = SymbolicatorOptions::new().assume("App=0123".parse().expect("a name and an id"));
    let failed = Symbolicator::open(&unknown, &mut |_| ()).expect_err("no such id");
    assert!(matches!(failed, SourceError::UnknownId { .. }), "{failed}");
}

#[test]
fn a_symbolicator_is_shared_by_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&open(&SymbolicatorOptions::new()));
}

/// Reports with Breakpad's ids state only the first 16 bytes of a build id.
#[test]
fn an_image_is_found_by_the_start_of_its_id() {
    let root = tempfile::tempdir().expect("a folder");
    let options = SymbolicatorOptions::new().debug_files(DSYM).store(root.path()).always_store(true);
    let from_debug_file = open(&options);
    let whole = image(&from_debug_file);
    let mut cut = whole.clone();
    cut.id = ImageId::new(&whole.id.as_ref().expect("it has one").as_bytes()[..12]);
    assert_eq!(ask(&from_debug_file, &cut).0, Err(Unanswered::Missing));
    cut.is_id_cut = true;
    assert_eq!(innermost(&ask(&from_debug_file, &cut).0.expect("answers")), "cell");
    let from_folder = open(&SymbolicatorOptions::new().store(root.path()));
    assert_eq!(innermost(&ask(&from_folder, &cut).0.expect("answers")), "cell");
    let index = IndexFolder::new(root.path()).files().paths.remove(0);
    let from_index = open(&SymbolicatorOptions::new().index(index));
    assert_eq!(innermost(&ask(&from_index, &cut).0.expect("answers")), "cell");
    cut.id = ImageId::new(&[1, 2, 3, 4]);
    assert_eq!(ask(&from_folder, &cut).0, Err(Unanswered::Missing));
}
