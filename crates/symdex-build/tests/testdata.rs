//! What must be true of the index of every debug file of `testdata`.

use std::path::{Path, PathBuf};

use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_audit::audit;
use symdex_build::{Companions, DirectLookup, Image, build, find, slices};

/// The debug files below `testdata`, sorted.
fn debug_files() -> Vec<PathBuf> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let files = find(&testdata).into_iter();
    let files: Vec<PathBuf> = files.map(|file| file.expect("testdata has debug files")).collect();
    assert!(files.len() > 20, "found only {files:?}");
    files
}

/// Calls `each` with every image of every debug file.
fn each_image(each: impl Fn(&Path, &Image<'_>)) {
    for path in debug_files() {
        let bytes = std::fs::read(&path).expect("readable");
        for slice in slices(&bytes).expect("a debug file") {
            let companions = Companions::default();
            each(&path, &Image::load(&slice, &path, &companions).expect("loads"));
        }
    }
}

fn built_on(threads: usize, image: &Image<'_>) -> Vec<u8> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads");
    pool.install(|| build(image)).expect("builds").bytes
}

#[test]
fn any_number_of_threads_makes_the_same_bytes() {
    each_image(|path, image| {
        let one = built_on(1, image);
        assert_eq!(one, built_on(2, image), "{}", path.display());
        assert_eq!(one, built_on(8, image), "{}", path.display());
    });
}

#[test]
fn every_index_is_whole_and_sound() {
    each_image(|path, image| {
        let index = Index::open(built_on(1, image)).expect("opens");
        assert_eq!(index.metadata().partial, [], "{}", path.display());
        let verified = index.verify().expect("nothing is damaged");
        let counts = index.metadata().counts;
        assert!(
            verified.ranges >= counts.ranges + counts.symbols,
            "{}: {verified:?} {counts:?}",
            path.display()
        );
    });
}

#[test]
fn every_answer_is_the_one_the_debug_file_gives() {
    each_image(|path, image| {
        let index = Index::open(built_on(2, image)).expect("opens");
        let report = audit(image, &index).expect("can be compared");
        assert_eq!(report.failures(), [] as [String; 0], "{}\n{report}", path.display());
        assert_eq!(report.findings(), [] as [String; 0], "{}\n{report}", path.display());
    });
}

/// GCC lists a function and its `.cold` part as one. The part lies below the entry and has a symbol of its own.
#[test]
fn gcc_parts_have_the_name_of_their_function() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/elf/gcc-parts.so");
    let bytes = std::fs::read(&path).expect("readable");
    let companions = Companions::default();
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], &path, &companions).expect("loads");
    let symbols: Vec<_> =
        image.symbols().iter().filter_map(|symbol| Some((symbol.name?, symbol.start))).collect();
    let starts = |name: &str| {
        let of_name = symbols.iter().filter(|(symbol, _)| *symbol == name.as_bytes());
        of_name.map(|(_, start)| ImageOffset(*start)).collect::<Vec<_>>()
    };
    let built = Index::open(built_on(1, &image)).expect("opens");
    let mut direct = DirectLookup::new(&image).expect("reads");
    let mut scratch = Scratch::default();
    let mut name = |start: ImageOffset| {
        let mut of = |index: &Index<Vec<u8>>| {
            let frames = index.lookup(start, LinePolicy::Exact, &mut scratch).expect("intact");
            let last = frames.expect("covered").iter().last().expect("a frame");
            assert_eq!((last.function_start, last.table), (Some(start), Table::Dwarf));
            String::from_utf8(last.name.expect("a name").to_vec()).expect("text")
        };
        let name = of(&built);
        assert_eq!(name, of(direct.answer(&[start]).expect("answers")));
        name
    };
    for function in ["reload", "rescale", "repaint", "_ZN5paint7refreshEi"] {
        let (entry, part) = (starts(function), starts(&format!("{function}.cold")));
        let ([entry], [part]) = (&entry[..], &part[..]) else { panic!("{function} has no part") };
        assert!(part < entry, "{function}");
        assert_eq!([name(*entry), name(*part)], [function, function]);
    }
    // A copy has no part. The symbol at its entry names it.
    assert_eq!(starts("scale.constprop.0").into_iter().map(name).collect::<Vec<_>>(), ["scale.constprop.0"]);
}

/// Both policies give the same functions, and the same files and lines of all frames but the innermost.
#[test]
fn the_policies_differ_in_the_innermost_line_alone() {
    each_image(|path, image| {
        let index = Index::open(built_on(1, image)).expect("opens");
        let (mut exact, mut statement) = (Scratch::default(), Scratch::default());
        for chunk in index.chunks(Table::Dwarf) {
            for range in chunk.expect("intact").1.ranges {
                let offset = symdex::ImageOffset(range.start);
                let exact =
                    index.lookup(offset, LinePolicy::Exact, &mut exact).expect("intact").expect("covered");
                let statement = index
                    .lookup(offset, LinePolicy::Statement, &mut statement)
                    .expect("intact")
                    .expect("covered");
                assert_eq!(exact.len(), statement.len(), "{} {offset}", path.display());
                for (depth, (a, b)) in exact.iter().zip(statement.iter()).enumerate() {
                    assert_eq!(
                        (a.name, a.function_start),
                        (b.name, b.function_start),
                        "{} {offset}",
                        path.display()
                    );
                    assert!(depth == 0 || a == b, "{} {offset}: {a:?} {b:?}", path.display());
                }
            }
        }
    });
}
