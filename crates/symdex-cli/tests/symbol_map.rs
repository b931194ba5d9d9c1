//! `--symbol-map` resolves the hidden names of a bitcode build.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, folder, names_in, symdex, testdata};

/// A library whose first function's symbol is hidden, and the folder of its symbol map.
fn hidden(root: &Path) -> (PathBuf, PathBuf, String) {
    let mut bytes = fs::read(testdata().join("demo/DemoPlain.dylib")).expect("there");
    let symbol = b"_plain_each_row\0";
    let at = bytes.windows(symbol.len()).position(|window| window == symbol).expect("a symbol");
    bytes[at..at + 12].copy_from_slice(b"__hidden#1_\0");
    let input = root.join("DemoPlain.dylib");
    fs::write(&input, bytes).expect("written");
    let built = symdex(["build".as_ref(), input.as_os_str(), "-o".as_ref(), root.join("first").as_os_str()]);
    let [index] = &names_in(&root.join("first"))[..] else { panic!("{}", built.err) };
    let digits = index.trim_end_matches(".symdex").to_uppercase();
    let [a, b, c, d] = [8, 12, 16, 20].map(|at| digits.split_at(at).0);
    let uuid = [a, &b[8..], &c[12..], &d[16..], &digits[20..]].join("-");
    (input, root.join("maps"), uuid)
}

fn build(input: &Path, out: &Path, more: &[&Path]) -> CommandOutput {
    let paths = ["build".as_ref(), input, "-o".as_ref(), out, "--verify".as_ref()];
    let maps = more.iter().flat_map(|map| ["--symbol-map".as_ref(), *map]);
    symdex(paths.into_iter().chain(maps))
}

#[test]
fn a_missing_map_is_named_and_an_index_with_one_replaces_the_index_without() {
    let root = folder();
    let (input, maps, uuid) = hidden(root.path());
    let (out, other) = (root.path().join("out"), root.path().join("other"));
    let without = build(&input, &out, &[]);
    assert_eq!(without.code, Some(0), "{}", without.err);
    let asks = format!("its names are hidden: give {uuid}.bcsymbolmap with --symbol-map\n");
    assert!(without.err.contains(&asks), "{}", without.err);
    assert!(without.err.contains("partial: 1 x hidden names that no symbol map resolved"), "{}", without.err);

    fs::create_dir(&maps).expect("a folder");
    let map = maps.join(format!("{uuid}.bcsymbolmap"));
    fs::write(&map, "BCSymbolMap Version: 2.0\n_other\n_plain_each_row\n").expect("written");
    let with = build(&input, &out, &[&maps]);
    assert!(with.code == Some(0) && !with.err.contains("hidden"), "{}", with.err);
    assert!(with.out.contains("written, in place of another index of this id"), "{}", with.out);
    // In the other order, the index with the names is kept, too.
    assert_eq!(build(&input, &other, &[&map]).code, Some(0));
    let kept = build(&input, &other, &[]).out;
    assert!(kept.contains("not written: the existing index of this id is kept"), "{kept}");

    let [index] = &names_in(&out)[..] else { panic!("one index") };
    let contents = [&out, &other].map(|folder| fs::read(folder.join(index)).expect("there"));
    assert!(contents[0] == contents[1]);
    let verify =
        ["verify".into(), out.join(index).into_os_string(), "--against".into(), input.into_os_string()];
    let map = ["--symbol-map".into(), map.into_os_string()];
    assert_eq!(symdex(verify.iter().chain(&map)).code, Some(0));
    assert_eq!(symdex(&verify).code, Some(1), "without the map the names differ");
}

#[test]
fn a_file_that_is_not_a_symbol_map_stops_the_build() {
    let root = folder();
    let (input, maps, uuid) = hidden(root.path());
    let out = root.path().join("out");
    let missing = build(&input, &out, &[&maps]);
    assert_eq!((missing.code, names_in(&out).len()), (Some(5), 0), "{}", missing.err);
    fs::create_dir(&maps).expect("a folder");
    let map = maps.join(format!("{uuid}.bcsymbolmap"));
    fs::write(&map, "BCSymbolMap Version: 3.0\n").expect("written");
    let newer = build(&input, &out, &[&maps]);
    assert_eq!((newer.code, names_in(&out).len()), (Some(6), 0), "{}", newer.err);
    assert!(
        newer.err.contains(".bcsymbolmap: not a symbol map: a BCSymbolMap of version 3.0"),
        "{}",
        newer.err
    );
}
