//! Names that are hidden in builds from bitcode, and the symbol maps that resolve them (docs/DEBUG-INFO.md, "Hidden
//! names of bitcode builds").

use std::fs;
use std::path::{Path, PathBuf};

use crate::checks::{answers, image_answers};
use gimli::constants as dw;
use symdex::{ImageId, Index, LinePolicy, Scratch, Table};
use symdex_audit::audit;
use symdex_build::{Built, Companions, Error, Image, SymbolMap, SymbolMaps, slices};
use symdex_testkit::images::debug_file::{BASE, CODE, Die, MachO, Symbol, Unit, macho};

const MAP: &str = "\
BCSymbolMap Version: 2.0
_main
-[Car drive:]
/Users/me/car
Sources/main.m
main
helper
_ZN4Road5crossEv
Road
Sources/road.h
\u{1}+[Car new]

/abs/generated.c
";

/// A debug file with these names: directory, files, functions, scope.
fn with_names(names: [&'static str; 10], symbols: &[&str]) -> MachO {
    let [directory, source, header, main, drive, helper, cross, road, new, generated] = names;
    let unit = Unit::new((CODE.start, CODE.end))
        .directory(directory)
        .files(&[source, header, generated])
        .child(
            Die::function(main, (0x1000, 0x1100))
                .child(Die::inlined("helper", 7).range((0x1010, 0x1020)))
                .child(Die::inlined("crossed", 8).range((0x1020, 0x1030))),
        )
        .child(Die::function(drive, (0x1100, 0x1200)))
        .child(Die::function(new, (0x1200, 0x1300)))
        .child(Die::new(dw::DW_TAG_subprogram).name("cross").linkage_name(cross).label("crossed"))
        .child(
            Die::new(dw::DW_TAG_namespace)
                .name(road)
                .child(Die::new(dw::DW_TAG_subprogram).name(helper).label("helper")),
        )
        .sequence(&[(0x1000, 1, 2, true), (0x1010, 2, 3, true), (0x1030, 3, 4, true)], 0x1300);
    let svmas = (0x1000..).step_by(0x100).map(|offset| BASE + offset);
    let symbols = symbols.iter().zip(svmas).map(|(name, svma)| Symbol::raw(name.as_bytes(), svma)).collect();
    MachO { symbols, ..macho(&[unit], &[]) }
}

fn hidden() -> Vec<u8> {
    let names = [
        "__hidden#2_",
        "__hidden#3_",
        "__hidden#8_",
        "__hidden#4_",
        "__hidden#1_",
        "__hidden#5_",
        "__hidden#6_",
        "__hidden#7_",
        "__hidden#9_",
        "__hidden#11_",
    ];
    // Some symbols have the underscore of Mach-O and some do not.
    with_names(names, &["__hidden#0_", "___hidden#1_", "__hidden#9_"]).bytes()
}

fn clear() -> Vec<u8> {
    let names = [
        "/Users/me/car",
        "Sources/main.m",
        "Sources/road.h",
        "main",
        "-[Car drive:]",
        "helper",
        "_ZN4Road5crossEv",
        "Road",
        "+[Car new]",
        "/abs/generated.c",
    ];
    with_names(names, &["_main", "-[Car drive:]", "+[Car new]"]).bytes()
}

fn image<'d>(file: &'d [u8], companions: &'d Companions) -> Image<'d> {
    Image::load(&slices(file).expect("a Mach-O file")[0], "made-up", companions).expect("loads")
}

fn map(text: &str) -> SymbolMap {
    SymbolMap::parse(text.as_bytes().to_vec()).expect("a symbol map")
}

fn build(image: &Image<'_>) -> Built {
    symdex_build::build(image).expect("builds")
}

pub(crate) fn hidden_names_become_what_they_would_be_in_the_clear() {
    let (hidden, map) = (hidden(), map(MAP));
    let companions = Companions::default();
    let resolved = image(&hidden, &companions).with_symbol_map(&map);
    for &table in Table::ALL {
        assert_eq!(image_answers(&resolved, table), answers(&clear(), table));
    }
    assert_eq!(
        image_answers(&resolved, Table::Dwarf),
        [
            "1000..1010 main /Users/me/car/Sources/main.m:2",
            "1010..1020 Road::helper /Users/me/car/Sources/road.h:3 < main /Users/me/car/Sources/main.m:7",
            "1020..1030 _ZN4Road5crossEv /Users/me/car/Sources/road.h:3 < main /Users/me/car/Sources/main.m:8",
            "1030..1100 main /abs/generated.c:4",
            "1100..1200 -[Car drive:] /abs/generated.c:4",
            "1200..1300 +[Car new] /abs/generated.c:4",
        ]
    );
    let built = build(&resolved);
    assert_eq!(built.report.hidden_names, 0);
    let report = audit(&resolved, &Index::open(built.bytes).expect("just written")).expect("compared");
    assert_eq!((report.wrong(), report.unexplained_len), (Vec::new(), 0), "{report}");
}

pub(crate) fn without_a_map_names_stay_as_they_are_and_are_counted() {
    let hidden = hidden();
    let symbols = answers(&hidden, Table::SymbolTable);
    assert_eq!(symbols, ["1000..1100 __hidden#0_", "1100..1200 __hidden#1_", "1200..3000 __hidden#9_"]);
    let companions = Companions::default();
    let built = build(&image(&hidden, &companions));
    let partial = Index::open(built.bytes).expect("just written").metadata().partial.clone();
    // Three symbols, the names of the two inlined functions, and three paths.
    assert_eq!(built.report.hidden_names, 8);
    assert_eq!((partial.len(), partial[0].count), (1, 8), "{partial:?}");
}

pub(crate) fn names_that_the_map_lacks_stay_as_they_are_and_are_counted() {
    let names =
        ["__hidden#10_", "__hidden#12_", "__hidden#_", "__hidden#1", "__hidden#+1_", "__hidden#1_.cold.1"];
    let huge = "__hidden#18446744073709551615_";
    let units = names.iter().chain([&huge]).zip(0x10..).map(|(name, at)| {
        let range = (at << 8, (at + 1) << 8);
        Unit::new(range).child(Die::function(name, range))
    });
    let file = macho(&units.collect::<Vec<_>>(), &[]).bytes();
    let map = map(MAP);
    let companions = Companions::default();
    let resolved = image(&file, &companions).with_symbol_map(&map);
    let found = image_answers(&resolved, Table::Dwarf);
    for name in names.iter().chain([&huge]) {
        assert!(found.iter().any(|line| line.contains(&format!(" {name} "))), "{name} in {found:?}");
    }
    assert_eq!(build(&resolved).report.hidden_names, 7);
}

pub(crate) fn only_version_two_is_read() {
    for (text, says) in [
        ("BCSymbolMap Version: 1.0\n_main\n", "version 1.0"),
        ("BCSymbolMap Version: 2.01\n", "version 2.01"),
        ("_main\n", "without the line"),
        ("", "without the line"),
    ] {
        let error = SymbolMap::parse(text.as_bytes().to_vec()).expect_err("no symbol map");
        assert!(error.to_string().contains(says), "{error}");
    }
    let windows = map("BCSymbolMap Version: 2.0\r\nfirst\r\nlast");
    assert_eq!([windows.resolve(b"__hidden#0_"), windows.resolve(b"__hidden#1_")], [&b"first"[..], b"last"]);
    assert_eq!(windows.resolve(b"__hidden#2_"), b"__hidden#2_");
}

const ID: [u8; 16] = [0xab; 16];
const ID_NAME: &str = "ABABABAB-ABAB-ABAB-ABAB-ABABABABABAB";
const ORIGINAL_NAME: &str = "CDCDCDCD-CDCD-CDCD-CDCD-CDCDCDCDCDCD";

fn plist(original: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\n\
         <key>Other</key><integer>1</integer><key>DBGOriginalUUID</key><string>{original}</string></dict></plist>\n"
    )
}

fn write(folder: &Path, path: &str, text: &str) -> PathBuf {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("in the folder")).expect("a folder");
    fs::write(&path, text).expect("written");
    path
}

pub(crate) fn maps_are_found_by_the_id_or_the_original_id() {
    let root = tempfile::tempdir().expect("a folder");
    let root = root.path();
    let id = ImageId::new(&ID).expect("an id");
    let debug_file = write(root, "App.dSYM/Contents/Resources/DWARF/App", "");
    let maps = root.join("maps");
    let named = |found: Option<SymbolMap>| found.map(|map| map.resolve(b"__hidden#0_").to_vec());
    let of = |paths: &[PathBuf]| {
        let maps = SymbolMaps::find(paths).expect("readable");
        (named(maps.load(&id, &debug_file, None).expect("readable")), maps.file_name(&id, &debug_file))
    };
    let text = |name| format!("BCSymbolMap Version: 2.0\n{name}\n");
    let none = of(&[]);
    assert_eq!(none, (None, format!("{ID_NAME}.bcsymbolmap")));
    let original =
        write(root, &format!("maps/deep/{}.bcsymbolmap", ORIGINAL_NAME.to_lowercase()), &text("original"));
    assert_eq!(of(std::slice::from_ref(&maps)).0, None);
    // A property list in Resources of the bundle, or beside the symbol maps, states the original id.
    let beside = write(root, &format!("maps/{ID_NAME}.plist"), &plist(ORIGINAL_NAME));
    assert_eq!(
        of(std::slice::from_ref(&maps)),
        (Some(b"original".to_vec()), format!("{ORIGINAL_NAME}.bcsymbolmap"))
    );
    fs::rename(beside, root.join(format!("App.dSYM/Contents/Resources/{ID_NAME}.plist"))).expect("moved");
    assert_eq!(of(std::slice::from_ref(&maps)).0, Some(b"original".to_vec()));
    assert_eq!(of(&[original]).0, Some(b"original".to_vec()));
    write(root, &format!("maps/{ID_NAME}.bcsymbolmap"), &text("own"));
    assert_eq!(of(&[maps]).0, Some(b"own".to_vec()));
}

pub(crate) fn what_is_no_symbol_map_is_named() {
    let root = tempfile::tempdir().expect("a folder");
    let id = ImageId::new(&ID).expect("an id");
    let otherwise = write(root.path(), "App.bcsymbolmap", MAP);
    let error = SymbolMaps::find(&[otherwise]).expect_err("not named by a UUID").to_string();
    assert!(
        error.ends_with("App.bcsymbolmap: not a symbol map: a file that is not named <UUID>.bcsymbolmap")
    );
    let text = write(root.path(), &format!("{ID_NAME}.bcsymbolmap"), "text");
    let found = SymbolMaps::find(&[text]).expect("named by a UUID");
    let error = found.load(&id, Path::new("App"), None).expect_err("text").to_string();
    assert!(error.contains("AB.bcsymbolmap: not a symbol map: a file without the line"), "{error}");
    SymbolMaps::find(&[root.path().join("missing")]).expect_err("missing");
}

pub(crate) fn hostile_property_lists_cost_nothing_but_themselves() {
    let root = tempfile::tempdir().expect("a folder");
    let id = ImageId::new(&ID).expect("an id");
    let map = write(root.path(), &format!("maps/{ORIGINAL_NAME}.bcsymbolmap"), MAP);
    let maps = SymbolMaps::find(&[map]).expect("readable");
    let debug_file = root.path().join("App");
    for text in ["bplist00".to_owned(), "<array>".repeat(1 << 20), String::new(), plist("no id")] {
        write(root.path(), &format!("{ID_NAME}.plist"), &text);
        assert!(matches!(maps.load(&id, &debug_file, None), Err(_) | Ok(None)));
        assert_eq!(maps.file_name(&id, &debug_file), format!("{ID_NAME}.bcsymbolmap"));
    }
    write(root.path(), &format!("{ID_NAME}.plist"), &plist(ORIGINAL_NAME));
    assert!(maps.load(&id, &debug_file, None).expect("readable").is_some());
}

pub(crate) fn a_symbol_map_takes_no_more_than_its_limit() {
    let root = tempfile::tempdir().expect("a folder");
    let id = ImageId::new(&ID).expect("an id");
    // Each line takes more memory than text.
    let text = format!("BCSymbolMap Version: 2.0\n{}", "\n".repeat(1000));
    let map = write(root.path(), &format!("{ID_NAME}.bcsymbolmap"), &text);
    let maps = SymbolMaps::find(&[map]).expect("readable");
    let load = |limit| maps.load(&id, root.path(), Some(limit));
    for limit in [0, 1000, 8000] {
        let error = load(limit).expect_err("too large");
        assert!(matches!(error, Error::TooLarge { what: "its symbol map", .. }), "{error}");
        assert!(error.to_string().contains("`max_memory`"), "{error}");
    }
    assert!(load(10_000).expect("readable").is_some());
}

/// A framework that the app store compiled again, with the map of the original build.
pub(crate) fn every_hidden_name_of_a_real_debug_file_is_resolved() {
    let root = tempfile::tempdir().expect("a folder");
    let folder =
        symdex_testkit::corpus("bcsymbolmap", root.path()).join("symbolic/symbolic-debuginfo/tests/fixtures");
    let path = folder.join("2d10c42f-591d-3265-b147-78ba0868073f.dwarf-hidden");
    let file = fs::read(&path).expect("there");
    let companions = Companions::default();
    let hidden = image(&file, &companions);
    let maps = SymbolMaps::find(std::slice::from_ref(&folder)).expect("readable");
    let map = maps.load(&hidden.info().id, &path, None).expect("readable").expect("by the original id");
    let text = fs::read(folder.join("c8374b6d-6e96-34d8-ae38-efaa5fec424f.bcsymbolmap")).expect("there");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();

    let raw = Index::open(build(&hidden).bytes).expect("just written");
    let resolved_image = image(&file, &companions).with_symbol_map(&map);
    let built = build(&resolved_image);
    assert_eq!(built.report.hidden_names, 0);
    let resolved = Index::open(built.bytes).expect("just written");
    assert_eq!(resolved.metadata().partial, []);
    let report = audit(&resolved_image, &resolved).expect("compared");
    assert_eq!((report.wrong(), report.unexplained_len), (Vec::new(), 0), "{report}");
    assert!(report.addresses > 70_000);

    // The answers must be those of the hidden file with each hidden part replaced by its line of the map.
    let in_clear = |text: &[u8]| -> Vec<u8> {
        let part = |part: &[u8]| {
            let number = part.strip_prefix(b"__hidden#").and_then(|rest| rest.strip_suffix(b"_"));
            let number = number.map(|digits| std::str::from_utf8(digits).expect("digits"));
            number
                .map_or(part.to_vec(), |digits| lines[digits.parse::<usize>().expect("digits") + 1].to_vec())
        };
        let path = text.split(|byte| *byte == b'/').map(part).collect::<Vec<_>>().join(&b"/"[..]);
        // An absolute part replaces the parts before it.
        let absolute = path.windows(2).rposition(|pair| pair == b"//");
        path[absolute.map_or(0, |at| at + 1)..].to_vec()
    };
    let (mut scratch, mut raw_scratch) = (Scratch::default(), Scratch::default());
    let (mut compared, mut names) = (0, 0);
    for chunk in resolved.chunks(Table::Dwarf) {
        for range in chunk.expect("whole").1.ranges {
            let offset = symdex::ImageOffset(range.start);
            let ours =
                resolved.lookup(offset, LinePolicy::Exact, &mut scratch).expect("whole").expect("code");
            let theirs =
                raw.lookup(offset, LinePolicy::Exact, &mut raw_scratch).expect("whole").expect("code");
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs.iter()) {
                let name = in_clear(theirs.name.expect("a name"));
                // The map keeps the underscore of Mach-O in names of symbols.
                let ours_name = ours.name.expect("a name");
                assert!(
                    name == ours_name || name == [b"_", ours_name].concat(),
                    "{}",
                    ours_name.escape_ascii()
                );
                assert_eq!(ours.file.map(<[u8]>::to_vec), theirs.file.map(in_clear));
                assert_eq!(ours.line, theirs.line);
                names += usize::from(theirs.name.is_some_and(|name| name.starts_with(b"__hidden#")));
                compared += 1;
            }
        }
    }
    assert!(compared > 15_000 && names > 10_000, "{names} of {compared} names were hidden");
}
