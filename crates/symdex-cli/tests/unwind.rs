//! Unwind rows at the command line: `build --unwind`, `lookup --unwind-rows` and `inspect`. The expected rows are those
//! that `llvm-dwarfdump --eh-frame` prints.

use std::path::{Path, PathBuf};

use crate::common::{folder, symdex, symdex_on};
use serde_json::{Value, json};

fn parts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/elf/gcc-parts.so")
}

/// Builds the index of an ELF file of x86_64 into `output`.
fn built(output: &Path, options: &[&str]) -> PathBuf {
    let words = ["build".as_ref(), parts().into_os_string().as_os_str(), "-o".as_ref(), output.as_os_str()]
        .map(std::ffi::OsStr::to_owned);
    let done = symdex(words.into_iter().chain(options.iter().map(Into::into)));
    assert_eq!(done.code, Some(0), "{}", done.err);
    output.join("318e3a4a9b7cb3461e8534a38e7dc66e825362ea.symdex")
}

#[test]
fn rows_read_as_formulas() {
    let root = folder();
    let index = built(root.path(), &["--unwind"]);
    // In the middle of `reload`: `0x1137: CFA=RSP+32: RBX=[CFA-16], RIP=[CFA-8]`.
    assert_eq!(
        symdex_on(&index, "lookup {} --unwind-rows 0x1139").ok(),
        "0x1139        reload + 0x9 at /src/symdex/elf/parts.c:8\n\
         \x20             unwind: 0x1137..0x1155 CFA = rsp + 32; return address = [CFA - 8]; rbx = [CFA - 16]\n"
    );
    // A stub of the PLT, whose CFA is a DWARF expression.
    let stub = symdex_on(&index, "lookup {} --unwind-rows 0x1020").ok();
    assert!(stub.contains("CFA = DWARF expression 77 08 80 00 3f 1a 3b 2a 33 24 22"), "{stub}");
    let outside = symdex_on(&index, "lookup {} --unwind-rows 0x110d").out;
    assert!(outside.ends_with("unwind: no information here\n"), "{outside}");
}

#[test]
fn json_has_rows_and_null_without_information() {
    let root = folder();
    let index = built(root.path(), &["--unwind"]);
    let answers = symdex_on(&index, "lookup {} --unwind-rows --json 0x1139 0x110d").json();
    let unwind: Vec<&Value> = answers.iter().map(|answer| &answer["unwind"]).collect();
    let row = json!({
        "start": "0x1137", "end": "0x1155", "cfa": "rsp + 32", "return_address": "[CFA - 8]",
        "registers": {"rbx": "[CFA - 16]"}, "signal_frame": false, "signed": false, "at_calls_only": false,
    });
    assert_eq!(unwind, [&row, &Value::Null]);
    let without = symdex_on(&index, "lookup {} --json 0x1139").json();
    assert_eq!(without[0].get("unwind"), None);
}

#[test]
fn an_index_without_rows_says_how_to_get_them() {
    let root = folder();
    let index = built(root.path(), &[]);
    let run = symdex_on(&index, "lookup {} --unwind-rows 0x1139 0x1140");
    assert_eq!((run.code, run.out.lines().count()), (Some(3), 2), "{}", run.out);
    assert!(run.out.starts_with("0x1139        reload + 0x9 at "), "{}", run.out);
    let expected = "no unwind rows; give an index that was built with `symdex build --unwind`\n";
    assert_eq!(run.err.matches(expected).count(), 1, "{}", run.err);
    let json = symdex_on(&index, "lookup {} --unwind-rows --json 0x1139").json();
    assert_eq!((json[0].get("unwind"), &json[0]["functions"][0]["function"]), (None, &"reload".into()));
    let file = symdex_on(&parts(), "lookup {} --unwind-rows 0x1139");
    assert!(
        file.code == Some(3) && file.out.contains("reload") && file.err.contains(expected),
        "{}",
        file.err
    );
    assert!(!symdex_on(&index, "inspect {}").ok().contains("unwind"));
    // The same build with --unwind takes its place.
    assert!(symdex_on(&built(root.path(), &["--unwind"]), "inspect {}").ok().contains("unwind: 42 rows"));
}

#[test]
fn inspect_counts_rows() {
    let root = folder();
    let index = built(root.path(), &["--unwind"]);
    let overview = symdex_on(&index, "inspect {}").ok();
    assert!(overview.contains("unwind: 42 rows of 12 distinct rules, for 489 bytes of code"), "{overview}");
    let counts = &symdex_on(&index, "inspect {} --json").json()[0]["unwind"];
    let found = ["rows", "rules", "covered"].map(|member| counts[member].as_u64());
    assert_eq!(found, [Some(42), Some(12), Some(489)]);
}
