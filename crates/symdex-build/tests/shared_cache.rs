//! dyld shared caches: each image becomes an index, even if its parts are in several files of the cache
//! (docs/DEBUG-INFO.md, "Shared caches").

#![expect(clippy::cast_possible_truncation, reason = "the caches made here are small")]

use std::fs;
use std::path::Path;

use symdex::{Cause, Index, Table};
use symdex_build::{Error, SharedCache, build};
use symdex_testkit::images::shared_cache::{BASE, CacheFile, CacheImage, Layout, address, cache, put, write};

fn images() -> Vec<CacheImage> {
    vec![
        CacheImage {
            path: "/usr/lib/libone.dylib",
            uuid: 0x11,
            exported: vec![("_open", 0x1000), ("<redacted>", 0x1100), ("<redacted>", 0x1200)],
            locals: vec![("_helper", 0x1100), ("lambda", 0x1800)],
            // 0x1000, 0x1100, 0x1200, 0x1800, 0x1c00.
            function_starts: vec![0x80, 0x20, 0x80, 2, 0x80, 2, 0x80, 0xc, 0x80, 8, 0],
        },
        CacheImage {
            path: "/System/Library/Frameworks/Two.framework/Two",
            uuid: 0x22,
            exported: vec![("__ZN3Two3runEv", 0x1000)],
            locals: vec![("-[Two stop]", 0x1400)],
            function_starts: vec![0],
        },
        CacheImage {
            path: "/usr/lib/libthree.dylib",
            uuid: 0x33,
            exported: vec![("_three", 0x1000)],
            locals: Vec::new(),
            function_starts: vec![0],
        },
    ]
}

const ONE: [&str; 5] =
    ["1000..1100 open", "1100..1200 helper", "1200..1800 ?", "1800..1c00 lambda", "1c00..2000 ?"];

/// The symbols of an index, as text.
fn symbols(index: &Index<Vec<u8>>) -> Vec<String> {
    let mut strings = index.strings();
    let mut shown = Vec::new();
    for chunk in index.chunks(Table::SymbolTable) {
        let (_, contents) = chunk.expect("whole");
        for range in &contents.ranges {
            let name = contents.frames[range.exact as usize].name;
            let name = name.map(|name| strings.name(name).expect("whole").to_vec());
            let name = name.map_or("?".to_owned(), |name| String::from_utf8(name).expect("text"));
            shown.push(format!("{:x}..{:x} {name}", range.start, range.end));
        }
    }
    shown
}

/// The index of each image, or the error for it.
fn indexes(path: &Path) -> Vec<Result<Index<Vec<u8>>, Error>> {
    let cache = SharedCache::open(path).expect("opens");
    let index = |image: symdex_build::Image<'_>| {
        let built = build(&image).expect("built");
        Index::open(built.bytes).expect("as written")
    };
    cache.images().iter().map(|image| image.load().map(index)).collect()
}

fn whole(path: &Path) -> Vec<Index<Vec<u8>>> {
    indexes(path).into_iter().map(|index| index.expect("loads")).collect()
}

/// Writes the cache after `change`. Returns for each image the number of its symbols or its error.
///
/// # Errors
///
/// The error for the whole cache.
fn changed(layout: Layout, change: impl FnOnce(&mut Vec<CacheFile>)) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = cache(&images(), layout);
    change(&mut files);
    let path = write(&files, folder.path());
    SharedCache::open(&path).map_err(|error| error.to_string())?;
    let shown = |index: Result<Index<Vec<u8>>, Error>| match index {
        Ok(index) => index.metadata().counts.symbols.to_string(),
        Err(error) => error.to_string().replace(&folder.path().display().to_string(), ""),
    };
    Ok(indexes(&path).into_iter().map(shown).collect())
}

#[test]
fn every_image_has_its_id_its_name_and_its_symbols() {
    for layout in [Layout::Old, Layout::One, Layout::Split] {
        let folder = tempfile::tempdir().expect("a folder");
        let found = whole(&write(&cache(&images(), layout), folder.path()));
        let about: Vec<_> = found.iter().map(|index| index.metadata()).collect();
        let names: Vec<_> = about.iter().map(|about| about.image_name.as_str()).collect();
        assert_eq!(names, ["libone.dylib", "Two", "libthree.dylib"], "{layout:?}");
        assert_eq!(about[0].id.to_string(), "11".repeat(16));
        assert_eq!((about[1].base, about[1].arch.name.as_str()), (address(1), "arm64e"));
        assert_eq!((&about[1].executable, about[1].image_size), (&vec![(0x1000, 0x2000)], 0x2000));
        assert!(about.iter().all(|about| about.partial.is_empty()), "{layout:?}");
        assert_eq!(symbols(&found[0]), ONE, "{layout:?}");
        assert_eq!(symbols(&found[1]), ["1000..1400 _ZN3Two3runEv", "1400..2000 -[Two stop]"]);
        assert_eq!(symbols(&found[2]), ["1000..2000 three"]);
    }
}

#[test]
fn indexes_do_not_depend_on_how_the_cache_is_split() {
    let bytes = [Layout::Old, Layout::One, Layout::Split].map(|layout| {
        let folder = tempfile::tempdir().expect("a folder");
        let indexes = whole(&write(&cache(&images(), layout), folder.path()));
        indexes.iter().map(|index| index.as_bytes().to_vec()).collect::<Vec<_>>()
    });
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
}

#[test]
fn a_missing_part_costs_the_images_that_need_it() {
    let without = |suffix: &str| {
        changed(Layout::Split, |files| files.retain(|file| file.suffix != suffix)).expect("opens")
    };
    let [one, two, three] = &without(".01")[..] else { panic!("three images") };
    assert_eq!(one, "5");
    for lost in [two, three] {
        let uuid = "02".repeat(16);
        assert!(lost.contains("/dyld_shared_cache_arm64e.01: cannot read: "), "{lost}");
        assert!(lost.ends_with(&format!("wanted is the part {uuid} of the shared cache")), "{lost}");
    }
    let lost = without(".02.dyldlinkedit");
    assert!(lost.iter().all(|lost| lost.contains(".02.dyldlinkedit: cannot read")), "{lost:?}");
}

#[test]
fn a_part_of_another_cache_is_none_of_this_one() {
    let lost = changed(Layout::Split, |files| put(&mut files[1].bytes, 0x58, &[9; 16])).expect("opens");
    assert_eq!(lost[0], "5");
    assert!(lost[1].contains(&format!("it is the part {} of another cache", "09".repeat(16))), "{}", lost[1]);
    let lost = changed(Layout::Split, |files| files[1].bytes.truncate(0x80)).expect("opens");
    assert!(lost[1].contains(".01: cut short; wanted is the part 0202"), "{}", lost[1]);
}

#[test]
fn without_its_local_symbols_a_cache_is_partial() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(&cache(&images(), Layout::Split), folder.path());
    fs::remove_file(folder.path().join("dyld_shared_cache_arm64e.symbols")).expect("removed");
    assert!(SharedCache::open(&path).expect("opens").missing().is_empty());
    let found = whole(&path);
    assert_eq!(symbols(&found[0])[1..3], ["1100..1200 ?", "1200..1800 ?"]);
    let [partial] = &found[0].metadata().partial[..] else { panic!("{:?}", found[0].metadata().partial) };
    let start = "local symbols: dyld_shared_cache_arm64e.symbols: cannot read: ";
    assert!(partial.reason.starts_with(start), "{}", partial.reason);
    assert!(partial.reason.contains(&"04".repeat(16)), "{}", partial.reason);
}

#[test]
fn the_other_parts_of_a_development_cache_have_its_suffix_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = cache(&images(), Layout::Split);
    put(&mut files[0].bytes, 0x800 + 24, b".01.development\0");
    let suffixes = [".development", ".01.development", ".02.dyldlinkedit", ".symbols"];
    files.iter_mut().zip(suffixes).for_each(|(file, suffix)| file.suffix = suffix);
    write(&files, folder.path());
    assert_eq!(whole(&folder.path().join("dyld_shared_cache_arm64e.development")).len(), 3);
}

#[test]
fn a_part_alone_is_no_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&cache(&images(), Layout::Split), folder.path());
    let part = folder.path().join("dyld_shared_cache_arm64e.01");
    assert!(SharedCache::is_cache(&part));
    let error = SharedCache::open(&part).map(|_| ()).expect_err("not the main file");
    assert!(error.cause() == Cause::Unsupported && error.to_string().contains("its main file"), "{error}");
}

/// The offset of the second image's header in the main file of a cache in one file.
fn second_image(main: &[u8]) -> usize {
    let uuid = main.windows(16).position(|bytes| bytes == [0x22; 16]).expect("there");
    main[..uuid].windows(4).rposition(|bytes| bytes == [0xcf, 0xfa, 0xed, 0xfe]).expect("before it")
}

#[test]
fn what_one_image_claims_wrongly_costs_that_image() {
    const WILD: [u8; 4] = [0xff; 4];
    let of_second = |at: usize, new: &[u8]| {
        changed(Layout::One, |files| {
            let header = second_image(&files[0].bytes);
            put(&mut files[0].bytes, header + at, new);
        })
        .expect("opens")
    };
    // The load commands begin at 32. __TEXT with a section has 152 bytes, __LINKEDIT 72, LC_SYMTAB 24.
    let (linkedit, symtab, starts) = (32 + 152, 32 + 152 + 72, 32 + 152 + 72 + 24);
    for (at, new, expected) in [
        (0, &b"text"[..], "there is no Mach-O header at 0x180200000"),
        (20, &WILD, "cut short: the load commands of /System/Library"),
        (linkedit + 24, &[0xff; 8], "maps nothing to 0xffffffffffffffff"),
        (symtab + 8, &WILD, "cut short: the symbol table"),
        (symtab + 12, &WILD, "share their tables"),
        (symtab + 16, &WILD, "cut short: the symbol table"),
        (symtab + 20, &WILD, "cut short: the symbol table"),
        (starts + 12, &WILD, "share their tables"),
    ] {
        let found = of_second(at, new);
        assert_eq!((found[0].as_str(), found[2].as_str()), ("5", "1"), "{at}: {found:?}");
        assert!(found[1].contains(expected), "{at}: {}", found[1]);
    }
    // Function starts outside of the file are ignored, as in a dSYM.
    assert_eq!(of_second(starts + 8, &WILD)[1], "2");
}

#[test]
fn what_the_header_claims_wrongly_is_said() {
    const WILD: [u8; 4] = [0xff; 4];
    let of_main = |at: usize, new: &[u8]| changed(Layout::Split, |files| put(&mut files[0].bytes, at, new));
    for (at, expected) in [
        (0x138, "the mappings of the shared cache"),
        (0x13c, "the mappings of the shared cache"),
        (0x188, "the list of parts of the shared cache"),
        (0x18c, "the list of parts of the shared cache"),
        (0x1c0, "the list of images of the shared cache"),
        (0x1c4, "the list of images of the shared cache"),
    ] {
        let error = of_main(at, &WILD).expect_err("refused");
        assert!(error.contains(expected), "{at:#x}: {error}");
    }
    for name in [b"/../x\0", b"01.xy\0", b".a/b\0\0"] {
        let error = of_main(0x800 + 24, name).expect_err("refused");
        assert!(error.contains("names of other folders"), "{error}");
    }
    // The same part is listed twice.
    let error = of_main(0x800 + 56 + 24, b".01\0").expect_err("refused");
    assert!(error.contains("one of them twice"), "{error}");
    // A mapping past the end of the file, a mapping that wraps, and an image at an address that is not mapped.
    let mapping = 0x240 + 56;
    let found = of_main(mapping + 16, &[0xff; 8]).expect("opens");
    assert!(found[0].contains("the load commands of"), "{}", found[0]);
    assert_eq!(of_main(mapping + 8, &[0xff; 8]).expect("opens")[0], "5");
    let found = of_main(0x900, &(BASE - 8).to_le_bytes()).expect("opens");
    assert!(found[0].contains("maps nothing to 0x17ffffff8"), "{}", found[0]);
    assert_eq!(found[1..3], ["2", "1"]);
}

#[test]
fn local_symbols_that_contradict_themselves_are_left_out() {
    // The last change gives the third image the symbols of the first.
    let entry_of_third = (None, [[0; 4], 3u32.to_le_bytes()].concat());
    let numbers = (0..6).map(|number| (Some(4 * number), vec![0xff; 4]));
    for (at, new) in numbers.chain([entry_of_third]) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = cache(&images(), Layout::One);
        let main = &mut files[0].bytes;
        let locals = u64::from_le_bytes(main[0x48..0x50].try_into().expect("8 bytes")) as usize;
        let at = at.map_or(main.len() - new.len(), |at| locals + at);
        put(main, at, &new);
        let found = whole(&write(&files, folder.path()));
        let partial = &found[0].metadata().partial[0].reason;
        assert!(partial.contains("local symbols: their table contradicts itself"), "{at}: {partial}");
        assert_eq!(symbols(&found[0])[1], "1100..1200 ?");
    }
}

#[test]
fn a_cache_that_is_cut_or_changed_anywhere_neither_panics_nor_hangs() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = cache(&images(), Layout::Split);
    let path = write(&files, folder.path());
    let load = || {
        if let Ok(cache) = SharedCache::open(&path) {
            cache.images().iter().filter(|image| image.load().is_ok()).count()
        } else {
            0
        }
    };
    for CacheFile { suffix, bytes } in &files {
        let part = folder.path().join(format!("dyld_shared_cache_arm64e{suffix}"));
        for size in (0..bytes.len()).step_by(97) {
            fs::write(&part, &bytes[..size]).expect("written");
            assert!(load() < 4);
        }
        let ones = bytes.iter().enumerate().filter(|(at, byte)| **byte != 0 || at % 256 == 0);
        for (at, _) in ones {
            for new in [0xff, 0x00] {
                let mut changed = bytes.clone();
                changed[at] = new;
                fs::write(&part, changed).expect("written");
                assert!(load() < 5);
            }
        }
        fs::write(&part, bytes).expect("written");
    }
    assert_eq!(load(), 3);
}
