//! `symdex build --verify`, and the JSON of a build.

use std::fs;
use std::path::Path;

use crate::common::{CommandOutput, debug_file, dsym, folder, names_in, symdex, testdata};
use serde_json::Value;

fn build(input: &Path, out: &Path, more: &[&str]) -> CommandOutput {
    let paths = ["build".as_ref(), input.as_os_str(), "-o".as_ref(), out.as_os_str(), "--json".as_ref()];
    symdex(paths.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

fn number(value: &Value, keys: &[&str]) -> u64 {
    let found = keys.iter().fold(value, |value, key| &value[*key]);
    found.as_u64().unwrap_or_else(|| panic!("{keys:?} is no number in {value}"))
}

#[test]
fn a_verified_index_equals_the_one_without_verify() {
    let (verified, plain) = (folder(), folder());
    let built = build(&testdata(), verified.path(), &["--verify"]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    for image in built.images() {
        assert!(number(&image, &["verified", "addresses"]) > 0, "{image}");
        assert_eq!(number(&image, &["verified", "unexplained"]), 0, "{image}");
        assert_eq!(image["verified"]["wrong"], Value::Array(Vec::new()));
    }
    let built = build(&testdata(), plain.path(), &[]);
    assert!(built.images().iter().all(|image| image["verified"].is_null()));
    let contents = |folder: &Path| -> Vec<_> {
        names_in(folder).iter().map(|name| fs::read(folder.join(name)).expect("there")).collect()
    };
    assert!(contents(verified.path()) == contents(plain.path()));
}

#[test]
fn the_summary_has_the_number_of_compared_answers() {
    let out = folder();
    let input = dsym("inline-dwarf4");
    let args = ["build".as_ref(), input.as_os_str(), "-o".as_ref(), out.path().as_os_str()];
    let built = symdex(args.into_iter().chain(["--verify".as_ref()])).ok();
    assert!(built.ends_with(": written, 496 answers compared\n"), "{built}");
}

#[test]
fn json_has_the_coverage_of_each_table_and_the_dropped_units() {
    let out = folder();
    let lto = &build(&dsym("lto"), out.path(), &[]).images()[0];
    let coverage = |table| number(lto, &["coverage", table]);
    let tables = ["executable", "dwarf", "dwarf_function", "symbol_table"];
    assert_eq!(tables.map(coverage), [428; 4]);
    // LTO has emptied two units.
    assert_eq!(lto["dropped"], serde_json::json!({ "empty line sequences": 2 }));
    assert_eq!((number(lto, &["failed_units"]), &lto["partial"]), (0, &Value::Array(Vec::new())));
    let plain = &build(&testdata().join("demo/DemoPlain.dylib"), out.path(), &[]).images()[0];
    assert_eq!(tables.map(|table| number(plain, &["coverage", table])), [432, 0, 0, 432]);
}

/// Little-endian numbers in a debug file.
fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}

/// The symbol table of a thin file gets a name that is longer than an index allows.
fn with_endless_name(mut bytes: Vec<u8>) -> Vec<u8> {
    // LC_SYMTAB, 24 bytes long.
    let command = bytes.windows(8).position(|window| window == [2, 0, 0, 0, 24, 0, 0, 0]).expect("LC_SYMTAB");
    let [symbols, symbol_len, strings] = [8, 12, 16].map(|field| u32_at(&bytes, command + field));
    let name = u32::try_from(bytes.len() - strings).expect("small");
    for symbol in 0..symbol_len {
        bytes[symbols + 16 * symbol..][..4].copy_from_slice(&name.to_le_bytes());
    }
    bytes.resize(bytes.len() + (1 << 20), b'x');
    bytes.push(0);
    let strings_size = u32::try_from(bytes.len() - strings).expect("small");
    bytes[command + 20..command + 24].copy_from_slice(&strings_size.to_le_bytes());
    bytes
}

#[test]
fn an_index_of_a_file_past_a_limit_is_not_compared_and_not_published() {
    let root = folder();
    let (input, out) = (root.path().join("endless"), root.path().join("out"));
    let plain = fs::read(testdata().join("demo/DemoPlain.dylib")).expect("there");
    fs::write(&input, with_endless_name(plain)).expect("written");
    let built = build(&input, &out, &["--verify"]);
    assert_eq!((built.code, names_in(&out)), (Some(4), Vec::new()), "{}", built.err);
    let reason = "its answers are not compared: names left out: they are too long, or overlap too much";
    assert!(built.err.contains(reason), "{}", built.err);
    // Without --verify, the index is published with a warning. What nobody can change is a line for all images.
    let built = build(&input, &out, &[]);
    assert_eq!((built.code, names_in(&out).len()), (Some(0), 1));
    let line =
        "warning: partial: 6 details of the debug information of 1 image could not be read; -v names them\n";
    assert!(built.err.contains(line) && !built.err.contains("names left out"), "{}", built.err);
    let quiet = build(&input, &out, &["-q", "--force"]);
    assert_eq!((quiet.code, quiet.err.as_str(), quiet.images().len()), (Some(0), "", 1));
    let built = build(&input, &out, &["-v", "--force"]);
    assert!(!built.err.contains("-v names them"), "{}", built.err);
    let partial = "(arm64): partial: 6 x names left out: they are too long, or overlap too much; ";
    let meaning = "functions of these names have none in answers";
    assert!(built.err.contains(&format!("{partial}{meaning}\n")), "{}", built.err);
}

#[test]
fn an_index_that_cannot_be_verified_is_not_published() {
    let root = folder();
    let (input, out) = (root.path().join("damaged"), root.path().join("out"));
    let mut bytes = fs::read(debug_file("cxx")).expect("there");
    // The section header of __debug_info: names of 16 bytes, address, size, offset.
    let header =
        bytes.windows(32).position(|window| window.starts_with(b"__debug_info\0\0\0\0__DWARF")).expect("it");
    let info = u32_at(&bytes, header + 48);
    let second = info + 4 + u32_at(&bytes, info);
    bytes[second..second + 4].fill(0xf5);
    fs::write(&input, bytes).expect("written");
    let built = build(&input, &out, &["--verify"]);
    assert_eq!((built.code, names_in(&out)), (Some(4), Vec::new()), "{}", built.err);
    assert!(built.err.contains("cannot be verified and is not published"), "{}", built.err);
    let built = build(&input, &out, &[]);
    assert_eq!((built.code, names_in(&out).len()), (Some(0), 1), "{}", built.err);
    assert_eq!(number(&built.images()[0], &["failed_units"]), 1);
}
