//! `symdex verify` on several indexes. `inspect.rs` and `errors.rs` test it on one.

use std::fs;

use crate::common::{CommandOutput, dsym, folder, index_of, names_in, symdex, symdex_on};
use serde_json::{Value, json};

fn totals(finished: &CommandOutput) -> Value {
    finished.json().last().expect("a line")["totals"].clone()
}

#[test]
fn all_indexes_of_a_folder_are_checked_flat_or_fanned_out() {
    let root = folder();
    let flat = index_of("cxx", root.path());
    let fanned = index_of("inline-dwarf4", root.path());
    let name = fanned.file_name().expect("a name").to_string_lossy().into_owned();
    fs::create_dir(root.path().join(&name[..2])).expect("a folder");
    fs::rename(&fanned, root.path().join(&name[..2]).join(&name)).expect("moved");

    let verified = symdex_on(root.path(), "verify {}");
    assert_eq!((verified.code, verified.out.lines().count()), (Some(0), 2), "{}", verified.err);
    assert!(verified.out.lines().all(|line| line.contains(": whole: ")), "{}", verified.out);
    let last = verified.err.lines().last().expect("totals");
    assert!(last.starts_with("2 indexes, ") && last.ends_with(" s: 2 whole"), "{last}");

    // A truncated index decides the exit code, and the others are still checked.
    let whole = fs::read(&flat).expect("there");
    fs::write(&flat, &whole[..whole.len() - 1]).expect("written");
    let missing = root.path().join("missing.symdex");
    let verified = symdex(["verify".as_ref(), missing.as_os_str(), root.path().as_os_str()]);
    assert_eq!((verified.code, verified.out.lines().count()), (Some(4), 1), "{}", verified.err);
    let last = verified.err.lines().last().expect("totals");
    assert!(
        last.starts_with("3 indexes, ") && last.ends_with(": 1 whole; failed: 1 damaged, 1 not readable"),
        "{last}"
    );

    let one = symdex_on(root.path(), &format!("verify {{}} --id {}", &name[..8]));
    assert_eq!((one.code, one.err.as_str()), (Some(0), ""), "one index has no totals");
    let empty = folder();
    let none = symdex_on(empty.path(), "verify {}");
    assert!(none.code == Some(5) && none.err.contains("no index in this folder"), "{}", none.err);
}

#[test]
fn json_has_an_object_for_each_index_and_one_with_totals() {
    let root = folder();
    index_of("cxx", root.path());
    let damaged = root.path().join("damaged.symdex");
    fs::write(&damaged, "hello").expect("written");
    let verified = symdex_on(root.path(), "verify {} --json");
    assert_eq!(verified.code, Some(6), "{}", verified.err);
    let [whole, wrong, last] = &verified.json()[..] else { panic!("{}", verified.out) };
    assert_eq!(
        (&whole["name"], &whole["arch"], &whole["partial"]),
        (&json!("cxx"), &json!("arm64"), &json!([]))
    );
    let numbers = ["chunks", "ranges", "pages"].map(|key| whole[key].as_u64());
    assert!(numbers.iter().all(|number| number.is_some_and(|number| number > 0)), "{whole}");
    assert!(
        whole["location"].as_str().is_some_and(|path| path.ends_with(&names_in(root.path())[0])),
        "{whole}"
    );
    assert_eq!(wrong["location"], damaged.to_string_lossy().as_ref());
    assert_eq!(wrong["error"]["kind"], "unsupported");
    assert!(
        wrong["error"]["message"].as_str().is_some_and(|text| text.contains("not a symdex index")),
        "{wrong}"
    );
    let last = &last["totals"];
    assert_eq!((&last["indexes"], &last["outcomes"]["whole"]), (&json!(2), &json!(1)));
    assert_eq!(last["failures"], json!({"unsupported": 1}));
}

#[test]
fn each_index_is_compared_with_its_image_in_a_folder_of_debug_files() {
    let root = folder();
    index_of("inline-dwarf4", root.path());
    let other = index_of("cxx", root.path());
    let against = |path: &std::path::Path| {
        let words = ["verify".as_ref(), root.path().as_os_str(), "--json".as_ref(), "--against".as_ref()];
        symdex(words.into_iter().chain([path.as_os_str()]))
    };
    let dsyms = dsym("cxx");
    let verified = against(dsyms.parent().expect("a folder"));
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    assert_eq!(totals(&verified)["outcomes"], json!({"equal": 2, "whole": 2}));
    let compared = &verified.json()[0]["against"];
    assert_eq!((&compared["equal"], &compared["different"]), (&json!(true), &json!(0)));
    assert!(compared["addresses"].as_u64().is_some_and(|addresses| addresses > 0), "{compared}");

    // One index has no debug file there. It is still reported as whole.
    let verified = against(&dsym("inline-dwarf4"));
    assert_eq!(verified.code, Some(3), "{}", verified.err);
    let index = other.to_string_lossy().into_owned();
    let images = verified.json();
    let without = images.iter().find(|image| image["location"] == *index).expect("a line");
    assert_eq!((&without["error"]["kind"], &without["name"]), (&json!("not_found"), &json!("cxx")));
    assert_eq!(totals(&verified)["outcomes"], json!({"equal": 1, "whole": 2}));
}
